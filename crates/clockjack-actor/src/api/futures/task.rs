//! A future with its continuation, in the buffer of its actor or in a box of its own.
//!
//! A task is pinned where it is from its creation until its drop. Everything here belongs to the
//! runner: no other thread accesses it.
//!
//! # The lent actor
//!
//! A future cannot borrow its actor in place, because the thread that polls the cell has an
//! exclusive borrow of the whole cell. So for that time the actor is moved into a [box of its
//! own](Loan), of which the cell knows only the address, and moved back when the future was
//! dropped. Hence: while the actor is lent, nobody accesses it except the future; and on every way
//! on which the future ends (result, panic, stop, restart) the future is dropped first and the
//! actor is taken back after that.
#![expect(unsafe_code, reason = "keeps futures of any type in memory that is used again")]

use alloc::boxed::Box;
use core::{
    any::type_name,
    mem::MaybeUninit,
    pin::Pin,
    ptr::{self, NonNull},
    task::{self, Poll},
};

use clockjack_exec::Failure;

use crate::{Actor, Context, IntoNext, Next};

/// A future that has borrowed its actor.
pub(crate) type LentFuture<'a, R> = Pin<Box<dyn Future<Output = R> + Send + 'a>>;

/// Polls a task, and runs its continuation if it is ready.
pub(super) type PollFn<A> = unsafe fn(
    NonNull<()>,
    &mut task::Context<'_>,
    &mut Option<A>,
    &mut Context<'_, A>,
) -> Poll<Result<Next, Failure>>;

/// The vtable of a task whose type is erased.
struct TaskVTable<A: Actor> {
    run: PollFn<A>,
    drop_in_place: unsafe fn(NonNull<()>),
    drop_box: unsafe fn(NonNull<()>),
    name: fn() -> &'static str,
}

impl<A: Actor> TaskVTable<A> {
    const fn of<B: TaskBody<A>>() -> &'static Self {
        const {
            &Self {
                run: B::run,
                drop_in_place: drop_in_place::<B>,
                drop_box: drop_box::<B>,
                name: type_name::<B::Named>,
            }
        }
    }
}

/// The body of a task.
trait TaskBody<A: Actor>: Sized {
    /// The type whose name is reported.
    type Named;

    /// Polls the task, and runs its continuation if it is ready.
    ///
    /// # Safety
    ///
    /// The body is of this type, is pinned, and belongs to the task that its actor polls now.
    unsafe fn run(
        body: NonNull<()>,
        waker: &mut task::Context<'_>,
        actor: &mut Option<A>,
        cx: &mut Context<'_, A>,
    ) -> Poll<Result<Next, Failure>>;
}

/// An owned task.
pub(crate) struct Task<A: Actor> {
    body: NonNull<()>,
    vtable: &'static TaskVTable<A>,
    is_in_buffer: bool,
}

impl<A: Actor> Task<A> {
    /// A future and its continuation.
    pub(super) fn then<F, T>(buffer: &mut TaskBuffer, future: F, then: T) -> Self
    where
        F: Future + 'static,
        T: FnOnce(&mut A, &mut Context<'_, A>, F::Output) -> Result<Next, Failure> + 'static,
    {
        Self::put(buffer, Then { future: Some(future), then: Some(then) })
    }

    /// A future that will borrow the actor.
    pub(super) fn lent<F, R>(buffer: &mut TaskBuffer, make: F) -> Self
    where
        F: for<'a> FnOnce(&'a mut A) -> LentFuture<'a, R> + 'static,
        R: IntoNext + 'static,
    {
        Self::put(buffer, Lent { future: None, make: Some(make) })
    }

    fn put<B: TaskBody<A>>(buffer: &mut TaskBuffer, body: B) -> Self {
        let vtable = TaskVTable::of::<B>();
        match buffer.claim::<B>() {
            Some(place) => {
                // SAFETY: the buffer is large enough, aligned, and empty.
                unsafe { place.write(body) };
                Self { body: place.cast(), vtable, is_in_buffer: true }
            }
            None => {
                let body = NonNull::from(Box::leak(Box::new(body))).cast();
                Self { body, vtable, is_in_buffer: false }
            }
        }
    }

    /// The function that polls it, and its first argument.
    pub(super) fn runner(&self) -> (PollFn<A>, NonNull<()>) {
        (self.vtable.run, self.body)
    }

    pub(super) fn is_in_buffer(&self) -> bool {
        self.is_in_buffer
    }

    pub(super) fn name(&self) -> &'static str {
        (self.vtable.name)()
    }
}

impl<A: Actor> Drop for Task<A> {
    fn drop(&mut self) {
        if self.is_in_buffer {
            // SAFETY: `put` has written the body there, and it is dropped with the task.
            unsafe { (self.vtable.drop_in_place)(self.body) };
        } else {
            // SAFETY: `put` has boxed the body, and it is dropped with the task.
            unsafe { (self.vtable.drop_box)(self.body) };
        }
    }
}

/// # Safety
///
/// There is a body of this type, which nobody uses again.
unsafe fn drop_in_place<B>(body: NonNull<()>) {
    // SAFETY: by the contract.
    unsafe { ptr::drop_in_place(body.cast::<B>().as_ptr()) };
}

/// # Safety
///
/// There is a boxed body of this type, which nobody uses again.
unsafe fn drop_box<B>(body: NonNull<()>) {
    // SAFETY: by the contract.
    drop(unsafe { Box::from_raw(body.cast::<B>().as_ptr()) });
}

/// A future and its continuation.
pub(super) struct Then<F, T> {
    future: Option<F>,
    then: Option<T>,
}

impl<A, F, T> TaskBody<A> for Then<F, T>
where
    A: Actor,
    F: Future + 'static,
    T: FnOnce(&mut A, &mut Context<'_, A>, F::Output) -> Result<Next, Failure> + 'static,
{
    type Named = F;

    unsafe fn run(
        body: NonNull<()>,
        waker: &mut task::Context<'_>,
        actor: &mut Option<A>,
        cx: &mut Context<'_, A>,
    ) -> Poll<Result<Next, Failure>> {
        // SAFETY: by the contract; the borrow ends before the task is dropped below.
        let body = unsafe { body.cast::<Self>().as_mut() };
        // SAFETY: the body is not moved before it is dropped.
        let mut future = unsafe { Pin::new_unchecked(&mut body.future) };
        let Some(polled) = future.as_mut().as_pin_mut() else { return Poll::Pending };
        let Poll::Ready(output) = polled.poll(waker) else { return Poll::Pending };
        future.set(None);
        let then = body.then.take();
        // The buffer is free for futures that the continuation starts.
        drop(cx.state.rare().futures.remove_polled());
        Poll::Ready(match (actor, then) {
            (Some(actor), Some(then)) => then(actor, cx, output),
            _ => Ok(Next::Stay),
        })
    }
}

/// The function that makes a future which borrows the actor, and that future.
pub(super) struct Lent<F, R> {
    /// Dropped before the actor is taken back.
    future: Option<LentFuture<'static, R>>,
    make: Option<F>,
}

impl<A, F, R> TaskBody<A> for Lent<F, R>
where
    A: Actor,
    F: for<'a> FnOnce(&'a mut A) -> LentFuture<'a, R> + 'static,
    R: IntoNext + 'static,
{
    type Named = F;

    unsafe fn run(
        body: NonNull<()>,
        waker: &mut task::Context<'_>,
        actor: &mut Option<A>,
        cx: &mut Context<'_, A>,
    ) -> Poll<Result<Next, Failure>> {
        // SAFETY: by the contract; the borrow ends before the task is dropped below.
        let body = unsafe { body.cast::<Self>().as_mut() };
        if let Some(make) = body.make.take()
            && let Some(actor) = actor.take()
        {
            let lent = cx.state.rare().futures.loan.lend(actor);
            // SAFETY: the actor stays there until `take_back`, which nobody calls before the future
            // that has the borrow was dropped: below, or with the task. `make` works for a borrow
            // of any length, so nothing else can have kept the borrow.
            let lent = unsafe { &mut *lent.as_ptr() };
            body.future = Some(make(lent));
        }
        let Some(future) = &mut body.future else { return Poll::Pending };
        let Poll::Ready(result) = future.as_mut().poll(waker) else { return Poll::Pending };
        drop(body.future.take());
        let futures = &mut cx.state.rare().futures;
        drop(futures.remove_polled());
        *actor = futures.loan.take_back();
        Poll::Ready(result.into_next())
    }
}

/// The box of an actor while a future has borrowed it; kept for the next time.
pub(super) struct Loan<A> {
    place: Option<NonNull<MaybeUninit<A>>>,
    is_out: bool,
}

impl<A> Loan<A> {
    pub(super) const fn new() -> Self {
        Self { place: None, is_out: false }
    }

    /// Whether lending needs no memory.
    pub(super) fn has_place(&self) -> bool {
        self.place.is_some()
    }

    /// Moves the actor into the box.
    fn lend(&mut self, actor: A) -> NonNull<A> {
        assert!(!self.is_out, "an actor was lent twice");
        let place = *self
            .place
            .get_or_insert_with(|| NonNull::from(Box::leak(Box::new(MaybeUninit::uninit()))));
        let place = place.cast::<A>();
        // SAFETY: it is a box for one actor, and empty.
        unsafe { place.write(actor) };
        self.is_out = true;
        place
    }

    /// Moves the actor back, if it is lent. The future that has borrowed it is gone.
    pub(super) fn take_back(&mut self) -> Option<A> {
        if !core::mem::take(&mut self.is_out) {
            return None;
        }
        // SAFETY: the flag says that there is an actor; it is read once.
        self.place.map(|place| unsafe { place.cast::<A>().read() })
    }
}

impl<A> Drop for Loan<A> {
    fn drop(&mut self) {
        drop(self.take_back());
        if let Some(place) = self.place.take() {
            // SAFETY: it came from a box, and is empty.
            drop(unsafe { Box::from_raw(place.as_ptr()) });
        }
    }
}

/// The unit of the buffer, which determines its alignment.
type BufferWord = MaybeUninit<u128>;

/// Memory for one task, which is reused.
pub(super) struct TaskBuffer {
    words: Option<NonNull<[BufferWord]>>,
    pub(super) is_taken: bool,
}

impl TaskBuffer {
    pub(super) const fn none() -> Self {
        Self { words: None, is_taken: false }
    }

    pub(super) fn new(bytes: usize) -> Self {
        let n = bytes.div_ceil(size_of::<BufferWord>());
        let words = (n > 0).then(|| NonNull::from(Box::leak(Box::<[u128]>::new_uninit_slice(n))));
        Self { words, is_taken: false }
    }

    /// Whether a body of this type can be placed here now.
    pub(super) fn fits<B>(&self) -> bool {
        let bytes = self.words.map_or(0, |words| words.len() * size_of::<BufferWord>());
        !self.is_taken && size_of::<B>() <= bytes && align_of::<B>() <= align_of::<BufferWord>()
    }

    fn claim<B>(&mut self) -> Option<NonNull<B>> {
        if !self.fits::<B>() {
            return None;
        }
        let place = self.words?.cast();
        self.is_taken = true;
        Some(place)
    }
}

impl Drop for TaskBuffer {
    fn drop(&mut self) {
        debug_assert!(!self.is_taken, "a task outlived its buffer");
        if let Some(words) = self.words.take() {
            // SAFETY: it came from a box, and no task is in it.
            drop(unsafe { Box::from_raw(words.as_ptr()) });
        }
    }
}
