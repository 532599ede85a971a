//! Custom tasks: tasks whose types another crate defines. Actors are custom tasks:
//! `clockjack-actor` runs an actor without a second allocation, a box per message or a second state
//! word.
//!
//! The cell of a custom task is a header like that of every task, behind it a *shared part* of the
//! other crate's type, which every holder of a reference can reach, and behind that the *body*,
//! which only the runner touches. The other crate decides what the shared part holds and how it is
//! filled; a thread that has left something in it calls [`CustomTaskRef::wake`].
//!
//! The [state](crate::state) word of a custom task stays Running for the task's whole life; the
//! state that is shown comes from the shared part. A word in the
//! shared part says whether it is parked, so that a producer learns by one read-modify-write both
//! that it has left something and whether it has to enqueue the task:
//!
//! 1. *Park.* A body that has nothing to do returns [`CustomPollOutcome::Park`] and does not park
//!    itself: it is exclusively borrowed until its poll has returned. Then the executor, which is
//!    still the runner, parks it ([`CustomTask::park`]) by an exchange that fails if a producer has
//!    unparked the task (rule 2) since the body checked; in that case the task is polled again
//!    soon. From the exchange on, another thread may poll the task or even free it. So the code
//!    that makes the exchange has the cell by its address, borrows at most the word, and does not
//!    touch the cell afterwards.
//! 2. *Unpark.* A producer leaves something and then calls [`CustomTask::unpark`], or leaves it by
//!    an operation that does the same, as the push into a mailbox: a read-modify-write of the same
//!    word that ends the parking and stays visible until the body checks. Exactly one producer
//!    finds the task parked, and that one enqueues it ([`CustomTaskRef::schedule`], or
//!    [`CustomTaskRef::wake`] for both).
//! 3. *Terminate.* The executor terminates a task when a poll begins. So it sets the bit in the
//!    state first and then unparks the task. A body that was unparked also checks this bit
//!    ([`PollContext::is_terminated`]): if it parked instead, its next poll would never begin.
//!
//! A panic in a poll does not end a custom task: the executor reports the panic to the body
//! ([`CustomTask::on_panic`]), which decides.
#![expect(unsafe_code, reason = "lays out cells of another crate's types, and calls into them")]

use core::{
    any::{TypeId, type_name},
    fmt,
    marker::PhantomData,
    mem::ManuallyDrop,
    ops::Deref,
    ptr::NonNull,
    task::Waker,
    time::Duration,
};

#[cfg(loom)]
use clockjack_sync::mpsc::Pop;
use clockjack_sync::{
    link::Link,
    primitive::{UnsafeCell, atomic::Ordering::Relaxed},
};
use clockjack_time::TimerInstant;

use crate::{
    error::{SendError, TimerError},
    executor::{ExecutorShared, INITIAL_REFS},
    executor_ref::ExecutorRef,
    exit::PanicPayload,
    handle::Handle,
    payload::Payload,
    pid::Pid,
    process::links::{self, ReceivedSignal},
    state::State,
    task::{self, CustomVTable, Header, HeaderRef, PollOutcome, TaskRef, TaskResult, VTable},
    timer::{self, action::TimerAction},
};

/// The body of a custom task. Only its runner touches it.
pub trait CustomTask: Sized + 'static {
    /// The part that every holder of a reference can reach. It is dropped with the last reference,
    /// on whichever thread releases that.
    type Shared: 'static;

    /// What [`park`](Self::park) needs: for example, a proof that the mailbox was empty.
    type ParkToken: Copy;

    /// What a holder of a reference of unknown type may ask for: for example, the type of the
    /// messages.
    fn kind() -> TypeId;

    /// The type that the shared part begins with, at the same alignment, for those who [look for
    /// tasks](find_in) whose exact type they do not know.
    fn prefix() -> TypeId {
        TypeId::of::<Self::Shared>()
    }

    /// The name of the task in reports.
    fn name() -> &'static str {
        type_name::<Self>()
    }

    /// The name of its messages in reports.
    fn input() -> &'static str {
        type_name::<Self::Shared>()
    }
    /// Leaves a mark that the runner will see, and ends the parking. True if the task was parked.
    fn unpark(shared: &Self::Shared) -> bool;

    /// Whether the task is parked.
    fn is_parked(shared: &Self::Shared) -> bool;

    /// How many messages were taken out of the mailbox so far, with wrap-around; for traces.
    fn messages_taken(shared: &Self::Shared) -> usize {
        let _ = shared;
        0
    }

    /// The number of messages in the mailbox, and how many may be there; for metrics.
    fn messages_waiting(shared: &Self::Shared) -> (usize, usize) {
        let _ = shared;
        (0, 0)
    }

    /// Parks the task, unless there is a reason not to; returns whether the task is parked (rule 1
    /// of the [module](self)). If not, the next poll finds that reason.
    ///
    /// # Safety
    ///
    /// The caller is the runner, does not borrow the body any more, and `shared` is the address of
    /// the task's shared part. The shared part is alive as long as the task is not parked. After it
    /// is parked, neither this function nor the caller touches it or holds a borrow of it in an
    /// argument.
    unsafe fn park(shared: NonNull<Self::Shared>, how: Self::ParkToken) -> bool;

    /// Polls the task once. It is never called twice at the same time, nor after it has returned
    /// [`CustomPollOutcome::Finished`].
    fn poll(&mut self, cx: &PollContext<'_, Self::Shared>) -> CustomPollOutcome<Self::ParkToken>;

    /// A panic ended the last poll; it came from any code that the poll had called. This function
    /// must not call code that may panic; the next poll may.
    fn on_panic(
        &mut self,
        cx: &PollContext<'_, Self::Shared>,
        payload: PanicPayload,
    ) -> CustomPollOutcome<Self::ParkToken>;

    /// The executor terminates the task. The body is dropped after this.
    fn on_terminate(&mut self, cx: &PollContext<'_, Self::Shared>);
}

/// What the executor does with a custom task after a poll.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CustomPollOutcome<S> {
    /// It polls the task again soon.
    PollAgain,
    /// It parks the task (rule 1 of the [module](self)).
    Park(S),
    /// It ends the task.
    Finished,
}

/// The context of one poll of a custom task.
pub struct PollContext<'t, F> {
    header: HeaderRef<'t>,
    executor: &'t ExecutorShared,
    _shared: PhantomData<&'t F>,
}

impl<'t, F: 'static> PollContext<'t, F> {
    /// The shared part.
    #[must_use]
    #[inline]
    pub fn shared(&self) -> &'t F {
        // SAFETY: a context is made for the header of a cell with this shared part.
        unsafe { &self.header.as_ptr().cast::<CustomHeader<F>>().as_ref().shared }
    }

    /// The same context for code that knows only the beginning of the shared part.
    ///
    /// # Safety
    ///
    /// `F` begins with a `G`, at the same alignment.
    #[must_use]
    #[inline]
    pub unsafe fn of_prefix<G: 'static>(&self) -> PollContext<'t, G> {
        PollContext { header: self.header, executor: self.executor, _shared: PhantomData }
    }

    /// A reference to the task itself.
    #[must_use]
    pub fn self_ref(&self) -> CustomTaskRef<F> {
        // SAFETY: the code that polls holds the task's own reference, which is counted.
        unsafe { self.header.slot().acquire() };
        // SAFETY: the reference that was just counted is given away.
        let task = unsafe { TaskRef::from_raw(self.header.as_ptr()) };
        CustomTaskRef { task, _shared: PhantomData }
    }

    /// The pid of the task.
    #[must_use]
    pub fn pid(&self) -> Pid {
        self.header.pid()
    }

    /// The time, read now, in nanoseconds since the executor's start.
    #[must_use]
    pub fn nanos(&self) -> u64 {
        self.executor.nanos()
    }

    /// The time, read now.
    #[must_use]
    pub fn now(&self) -> TimerInstant {
        self.executor.now()
    }

    /// How many events one poll may take.
    #[must_use]
    pub fn throughput(&self) -> usize {
        self.executor.limits().throughput_max()
    }

    /// How long one poll may take, in nanoseconds.
    #[must_use]
    pub fn budget_nanos(&self) -> u64 {
        self.executor.step_budget_nanos()
    }

    /// A handle of the executor.
    #[must_use]
    pub fn handle(&self) -> Handle {
        Handle::new((*self.header.executor).clone())
    }

    /// Wakes the task once when `after` has passed. This cannot be cancelled: a task that does not
    /// wait any more gets a spurious wake-up.
    ///
    /// # Errors
    ///
    /// As [`Timer::arm`](crate::Timer::arm).
    pub fn wake_after(&self, after: Duration) -> Result<(), TimerError> {
        let deadline = self.executor.toolbox().deadline_after(after);
        timer::arm(self.executor, deadline, TimerAction::WakeTask(self.pid())).map(|_| ())
    }

    /// Whether the executor terminates the task instead of its next poll. A body that was unparked
    /// checks this too, and does not park if it is true: nobody would unpark it again.
    #[must_use]
    #[inline]
    pub fn is_terminated(&self) -> bool {
        self.header.state.is_terminated()
    }

    /// Whether the executor has asked the task to stop since the last call, and why.
    #[must_use]
    #[inline]
    pub fn take_cancel(&self) -> Option<&'static str> {
        if self.header.signals.is_empty() { None } else { self.take_signals() }
    }

    #[cold]
    fn take_signals(&self) -> Option<&'static str> {
        let mut cancelled = None;
        // All of them: nobody notifies a second time about signals that are left. A custom task has
        // no links, so no signal ends it here.
        while let Ok(true) = links::take_signals(self.header, self.executor, |received| {
            if let ReceivedSignal::Cancel { reason } = received {
                cancelled.get_or_insert(reason);
            }
        }) {}
        cancelled
    }

    /// Calls user code, and catches a panic in it, if the toolbox can.
    ///
    /// # Errors
    ///
    /// The panic.
    pub fn catch_unwind(&self, call: &mut dyn FnMut()) -> Result<(), PanicPayload> {
        self.executor.toolbox().catch_unwind(call)
    }

    /// Drops a value of a user; a panic in the drop is caught and counted.
    pub fn drop_catching_panic<T>(&self, value: T) {
        self.executor.drop_catching_panic(value);
    }

    /// Drops the payload of a panic, which may panic again.
    pub fn drop_panic_payload(&self, payload: PanicPayload) {
        self.executor.drop_panic_payload(payload);
    }
}

impl<F> fmt::Debug for PollContext<'_, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PollContext").field("pid", &self.header.pid()).finish_non_exhaustive()
    }
}

/// The beginning of all cells with a shared part of this type.
#[repr(C)]
struct CustomHeader<F> {
    header: Header,
    shared: F,
}

#[repr(C)]
struct CustomTaskCell<B: CustomTask> {
    header: CustomHeader<B::Shared>,
    body: UnsafeCell<Option<B>>,
}

/// A counted reference to a custom task with a shared part of this type. It is one pointer wide.
#[repr(transparent)]
pub struct CustomTaskRef<F> {
    task: TaskRef,
    _shared: PhantomData<F>,
}

// SAFETY: a reference gives `&F` to any thread (needs `F: Sync`), and the thread that releases the
// last one drops the `F` (needs `F: Send`); the rest of the cell is made for sharing.
unsafe impl<F: Send + Sync> Send for CustomTaskRef<F> {}
// SAFETY: as above.
unsafe impl<F: Send + Sync> Sync for CustomTaskRef<F> {}

impl<F: 'static> CustomTaskRef<F> {
    #[inline]
    fn header(&self) -> &CustomHeader<F> {
        // SAFETY: the reference was made for a `repr(C)` cell with this shared part, and keeps it
        // alive; only shared borrows of the header are made.
        unsafe { self.task.as_ptr().cast::<CustomHeader<F>>().as_ref() }
    }

    /// Enqueues the task, which the caller has unparked (rule 2).
    ///
    /// # Safety
    ///
    /// The task was parked, and this caller has ended that.
    #[inline]
    pub unsafe fn schedule(&self) {
        let header = self.task.header();
        // Relaxed: a hint; until the task is enqueued, it belongs to this caller.
        header.is_polling.store(false, Relaxed);
        header.executor.schedule_woken(task::Runnable::of(header));
    }

    /// Unparks and enqueues the task, unless it will be polled anyway. The caller has left before
    /// what the poll is to find.
    #[inline]
    pub fn wake(&self) {
        self.task.header().wake();
    }

    /// As [`wake`](Self::wake), but the task goes to the end of the caller's run queue: for a task
    /// that has the more to do in one poll the later it is polled.
    #[inline]
    pub fn wake_last(&self) {
        self.task.header().wake_last();
    }

    /// The pid of the task.
    #[must_use]
    pub fn pid(&self) -> Pid {
        self.task.pid()
    }

    /// The [kind](CustomTask::kind) of the task.
    #[must_use]
    pub fn kind(&self) -> Option<TypeId> {
        self.task.header().vtable.custom.map(|custom| (custom.kind)())
    }

    /// How many messages were taken out of its mailbox so far, with wrap-around.
    #[must_use]
    pub fn messages_taken(&self) -> usize {
        self.task.header().messages_taken()
    }

    /// How many messages are in its mailbox, and how many may be.
    #[must_use]
    pub fn messages_waiting(&self) -> (usize, usize) {
        self.task.header().messages_waiting()
    }

    /// The name of the task in reports.
    #[must_use]
    pub fn name(&self) -> &'static str {
        (self.task.header().vtable.name)()
    }

    /// The name of its messages in reports.
    #[must_use]
    pub fn input(&self) -> &'static str {
        self.task.header().vtable.custom.map_or("", |custom| (custom.input)())
    }

    /// What the task does, at about this time.
    #[must_use]
    pub fn state(&self) -> State {
        self.task.header().state()
    }

    /// Whether the executor has completed the task.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.task.header().state.is_complete()
    }

    /// A waker of the task.
    #[must_use]
    pub fn waker(&self) -> Waker {
        Waker::clone(&task::borrowed_waker(self.task.header()))
    }

    /// A handle of its executor.
    #[must_use]
    pub fn handle(&self) -> Handle {
        Handle::new((*self.task.header().executor).clone())
    }

    /// The queue link, which the run queues do not need any more; it owns the reference.
    ///
    /// # Safety
    ///
    /// The task is in its last poll, or complete, and nobody else uses the link.
    #[must_use]
    pub unsafe fn into_spare_link(self) -> NonNull<Link> {
        // SAFETY: the reference keeps the task alive.
        unsafe { task::link_of(self.task.into_raw()) }
    }

    /// # Safety
    ///
    /// The link came from [`into_spare_link`](Self::into_spare_link) of a reference of this type,
    /// and the reference is given away.
    #[must_use]
    pub unsafe fn from_spare_link(link: NonNull<Link>) -> Self {
        // SAFETY: by the contract the link is that of a header.
        let header = unsafe { task::header_around(link) };
        // SAFETY: by the contract.
        unsafe { Self::from_raw(header.cast()) }
    }

    /// The address of the cell; it owns the reference.
    #[must_use]
    pub fn into_raw(self) -> NonNull<()> {
        self.task.into_raw().cast()
    }

    /// The address of the cell; it stays valid as long as there is a reference.
    #[must_use]
    #[inline]
    pub fn as_raw(&self) -> NonNull<()> {
        self.task.as_ptr().cast()
    }

    /// # Safety
    ///
    /// The address came from [`into_raw`](Self::into_raw) of a reference to a cell whose shared
    /// part begins with an `F`, at the same alignment, and the reference is given away.
    #[must_use]
    #[inline]
    pub unsafe fn from_raw(raw: NonNull<()>) -> Self {
        // SAFETY: by the contract.
        Self { task: unsafe { TaskRef::from_raw(raw.cast()) }, _shared: PhantomData }
    }

    /// Whether both refer to the same task.
    #[must_use]
    pub fn ptr_eq(&self, other: &Self) -> bool {
        self.task.as_ptr() == other.task.as_ptr()
    }
}

impl<F: 'static> Deref for CustomTaskRef<F> {
    type Target = F;

    #[inline]
    fn deref(&self) -> &F {
        &self.header().shared
    }
}

impl<F> Clone for CustomTaskRef<F> {
    #[inline]
    fn clone(&self) -> Self {
        Self { task: self.task.clone(), _shared: PhantomData }
    }
}

impl<F> fmt::Debug for CustomTaskRef<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("CustomTaskRef").field(&self.task.pid()).finish()
    }
}

/// Why a custom task was not started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CustomStartError {
    /// The executor has as many tasks as its limits allow.
    Full,
    /// The executor is shutting down.
    Stopping,
}

/// Starts a custom task. `make` is called if there is room for it, and `before` when the task can
/// be found and before its first poll.
///
/// # Errors
///
/// [`CustomStartError`]; then nothing was called.
///
/// # Safety
///
/// The executor runs it on this thread only, or the body is `Send`.
pub unsafe fn start<B: CustomTask>(
    executor: &ExecutorRef,
    make: impl FnOnce() -> (B::Shared, B),
    before: impl FnOnce(&CustomTaskRef<B::Shared>),
) -> Result<CustomTaskRef<B::Shared>, CustomStartError> {
    if executor.is_stopping() {
        return Err(CustomStartError::Stopping);
    }
    let local = executor.worker_local();
    let Some(reserved) = executor.reserve(local) else {
        return Err(CustomStartError::Full);
    };
    let (shared, body) = make();
    let header = Header::new(executor.clone(), reserved.slot(), VTableOf::<B>::TABLE, false);
    let body = UnsafeCell::new(Some(body));
    let task =
        executor.memory.make(CustomTaskCell { header: CustomHeader { header, shared }, body });
    let task = executor.publish(local, reserved, task.cast(), INITIAL_REFS, |header| {
        // SAFETY: the cell is alive, and the reference is not released.
        let task = unsafe { TaskRef::from_raw(header.as_ptr()) };
        before(&ManuallyDrop::new(CustomTaskRef { task, _shared: PhantomData }));
    });
    Ok(CustomTaskRef { task, _shared: PhantomData })
}

/// Calls `found` with each live custom task whose shared part begins with a `G`, among `n` slots of
/// the registry from this index on. Returns the index to continue with; `None` if there are no
/// further slots.
///
/// Between two calls it holds no reference, so it keeps no task alive.
///
/// # Safety
///
/// Each custom task whose [prefix](CustomTask::prefix) is the type id of `G` has a shared part that
/// begins with a `G`, at the same alignment.
#[doc(hidden)]
pub unsafe fn find_in<G: 'static>(
    executor: &ExecutorShared,
    from: u32,
    n: u32,
    mut found: impl FnMut(&CustomTaskRef<G>),
) -> Option<u32> {
    let wanted = TypeId::of::<G>();
    executor.for_each_live_in(from, n, |task| {
        let custom = task.header().vtable.custom;
        if custom.is_some_and(|custom| (custom.prefix)() == wanted) {
            found(&CustomTaskRef { task, _shared: PhantomData });
        }
    })
}

/// Takes a task that is ready and polls it, as a worker does: for models in which threads act as
/// the workers of an executor that has none. `Busy` if another thread takes a task at the same
/// time.
///
/// # Safety
///
/// What the executor runs is `Send`, and nothing else polls it at the same time.
#[cfg(loom)]
#[doc(hidden)]
pub unsafe fn run_next(executor: &ExecutorRef) -> Pop<()> {
    match executor.injector.take_batch(1) {
        Pop::Item(batch) => {
            batch.into_iter().for_each(|runnable| _ = executor.poll_task(runnable));
            Pop::Item(())
        }
        Pop::Empty => Pop::Empty,
        Pop::Retry => Pop::Retry,
    }
}

struct VTableOf<B>(B);

impl<B: CustomTask> VTableOf<B> {
    const TABLE: &'static VTable = &VTable {
        poll: poll::<B>,
        next_request: no_request,
        close: close::<B>,
        drop_body: drop_body::<B>,
        store: store_nothing,
        drop_output: nothing,
        take_output: take_nothing,
        deliver: refuse,
        free: free::<B>,
        name: B::name,
        is_future: false,
        on_panic: Some(on_panic::<B>),
        custom: Some(&CustomVTable {
            kind: B::kind,
            prefix: B::prefix,
            input: B::input,
            unpark: unpark::<B>,
            is_parked: is_parked::<B>,
            messages_taken: messages_taken::<B>,
            messages_waiting: messages_waiting::<B>,
        }),
    };
}

/// Lends the body out for the duration of the call, so that a model checker detects concurrent
/// access.
///
/// # Safety
///
/// The header is that of a `CustomTaskCell<B>`, and the caller is its runner until the call
/// returns.
#[inline]
unsafe fn with_body<B: CustomTask, R>(
    header: NonNull<Header>,
    call: impl FnOnce(&mut Option<B>) -> R,
) -> R {
    let task = header.cast::<CustomTaskCell<B>>().as_ptr();
    // SAFETY: the header is the first field of a `repr(C)` cell of this type.
    let body = unsafe { &(*task).body };
    // SAFETY: the caller is the only one that touches the body.
    body.with_mut(|body| call(unsafe { &mut *body }))
}

/// # Safety
///
/// The header is that of a `CustomTaskCell<B>`.
unsafe fn shared_of<B: CustomTask>(header: HeaderRef<'_>) -> &B::Shared {
    // SAFETY: by the contract.
    unsafe { &header.as_ptr().cast::<CustomHeader<B::Shared>>().as_ref().shared }
}

unsafe fn unpark<B: CustomTask>(header: HeaderRef<'_>) -> bool {
    // SAFETY: the vtable is that of the cell.
    B::unpark(unsafe { shared_of::<B>(header) })
}

unsafe fn is_parked<B: CustomTask>(header: HeaderRef<'_>) -> bool {
    // SAFETY: the vtable is that of the cell.
    B::is_parked(unsafe { shared_of::<B>(header) })
}

unsafe fn messages_taken<B: CustomTask>(header: HeaderRef<'_>) -> usize {
    // SAFETY: the vtable is that of the cell.
    B::messages_taken(unsafe { shared_of::<B>(header) })
}

unsafe fn messages_waiting<B: CustomTask>(header: HeaderRef<'_>) -> (usize, usize) {
    // SAFETY: the vtable is that of the cell.
    B::messages_waiting(unsafe { shared_of::<B>(header) })
}

fn context<'t, B: CustomTask>(
    header: HeaderRef<'t>,
    executor: &'t ExecutorShared,
) -> PollContext<'t, B::Shared> {
    PollContext { header, executor, _shared: PhantomData }
}

/// Polls the body, and then parks the task if the body asks for that.
///
/// # Safety
///
/// The header is that of a `CustomTaskCell<B>`, and the caller is its runner; after
/// [`PollOutcome::Parked`] it is not, and the header may be freed.
#[inline]
unsafe fn poll_body<B: CustomTask>(
    header: NonNull<Header>,
    executor: &ExecutorShared,
    call: impl FnOnce(&mut B, &PollContext<'_, B::Shared>) -> CustomPollOutcome<B::ParkToken>,
) -> PollOutcome {
    let poll = |body: &mut Option<B>| match body {
        // SAFETY: the runner holds the task's own reference.
        Some(body) => call(body, &context::<B>(unsafe { HeaderRef::new(header) }, executor)),
        None => CustomPollOutcome::Finished,
    };
    // SAFETY: by the contract.
    let outcome = unsafe { with_body(header, poll) };
    // SAFETY: by the contract, and the borrow has ended.
    unsafe { finish_poll::<B>(header, outcome) }
}

/// Carries out the outcome of a poll. No reference to the cell is an argument here, or exists while
/// the task is parked.
///
/// # Safety
///
/// As for [`poll_body`]; the body is not borrowed.
#[inline]
unsafe fn finish_poll<B: CustomTask>(
    header: NonNull<Header>,
    outcome: CustomPollOutcome<B::ParkToken>,
) -> PollOutcome {
    let token = match outcome {
        CustomPollOutcome::PollAgain => return PollOutcome::PollAgain,
        CustomPollOutcome::Park(token) => token,
        CustomPollOutcome::Finished => {
            return PollOutcome::Finished(TaskResult::Output(Payload::unit()));
        }
    };
    let task = header.cast::<CustomHeader<B::Shared>>().as_ptr();
    // SAFETY: the header is the first field of a `repr(C)` cell with this shared part, which is
    // alive.
    let shared = unsafe { &raw mut (*task).shared };
    // SAFETY: the address of a field of a live cell is not null.
    let shared = unsafe { NonNull::new_unchecked(shared) };
    // SAFETY: the caller is the runner, and has borrowed nothing. If this parks the task, nothing
    // touches the cell afterwards.
    if unsafe { B::park(shared, token) } { PollOutcome::Parked } else { PollOutcome::PollAgain }
}

unsafe fn poll<B: CustomTask>(header: NonNull<Header>, executor: &ExecutorShared) -> PollOutcome {
    // SAFETY: the caller is the runner.
    unsafe { poll_body::<B>(header, executor, B::poll) }
}

unsafe fn on_panic<B: CustomTask>(
    header: NonNull<Header>,
    executor: &ExecutorShared,
    payload: PanicPayload,
) -> PollOutcome {
    // SAFETY: the caller is the runner.
    unsafe { poll_body::<B>(header, executor, |body, cx| body.on_panic(cx, payload)) }
}

unsafe fn close<B: CustomTask>(header: HeaderRef<'_>) {
    let call = |body: &mut Option<B>| {
        if let Some(body) = body {
            body.on_terminate(&context::<B>(header, &header.get().executor));
        }
    };
    // SAFETY: the caller is the runner.
    unsafe { with_body(header.as_ptr(), call) }
}

unsafe fn drop_body<B: CustomTask>(header: HeaderRef<'_>) {
    // SAFETY: the caller is the runner.
    let body = unsafe { with_body(header.as_ptr(), Option::<B>::take) };
    drop(body);
}

unsafe fn store_nothing(_: HeaderRef<'_>, _: TaskResult) {}

unsafe fn nothing(_: HeaderRef<'_>) {}

unsafe fn take_nothing(_: HeaderRef<'_>, _: *mut ()) {}

unsafe fn no_request(_: HeaderRef<'_>) -> Option<crate::command::Request> {
    None
}

unsafe fn refuse(_: HeaderRef<'_>, message: Payload) -> Result<(), SendError<Payload>> {
    Err(SendError::wrong_type(message))
}

unsafe fn free<B: CustomTask>(header: NonNull<Header>) -> ExecutorRef {
    let task = header.cast::<CustomTaskCell<B>>();
    // SAFETY: the cell was made by `start` with this type, and the caller has its last reference.
    let inside = unsafe { &mut (*task.as_ptr()).header.header };
    debug_assert!(inside.state.is_complete(), "a live task was freed");
    // SAFETY: the cell is dropped without looking at the field again.
    let executor = unsafe { ManuallyDrop::take(&mut inside.executor) };
    // SAFETY: as above; it came from the memory of its executor.
    unsafe { executor.memory.free(task) };
    executor
}
