//! A task without its type, in place if it is small.
//!
//! ```text
//!            inline                              boxed
//! storage  | value, at most 3 words |      storage  | pointer |  -   |  -   |  -   |
//! vtable | of (type, inline)      |      vtable | of (type, boxed)             |
//! ```
//!
//! Invariant: the storage holds a valid value of the type that the vtable is for, in the form that the
//! vtable is for, and the task owns it. The vtable [`CONSUMED`] is for no value at all. Who moves the
//! value out sets that vtable *first*: if the value then panics, in a call or in a drop, nobody
//! finds it a second time.
//!
//! A value is inline if it is not larger than the storage and not aligned more strictly than a
//! pointer. It is moved along with the task, which Rust allows for every value that is not pinned;
//! no pointer to it is kept.
#![expect(unsafe_code, reason = "keeps a value whose type only its vtable knows")]

use alloc::boxed::Box;
use core::{any::TypeId, fmt, marker::PhantomData, mem::MaybeUninit, ptr};

use crate::{
    DeliveryTask, HandlerError, PendingDelivery,
    delivery::DeliverySink,
    task::{FireContext, Outcome, SchedulerTask},
};

/// Words of storage for a value in place: a closure over three pointers, or over a fat one and
/// another. Where a word has four bytes it is four of them, so that two pointers and two numbers
/// fit on every target.
const INLINE_WORDS: usize = if size_of::<usize>() == 4 { 4 } else { 3 };

/// Pointers and not integers, so that a pointer in a value stays one in every move.
type InlineStorage = MaybeUninit<[*mut (); INLINE_WORDS]>;

const _: () = assert!(
    size_of::<Task>() == (INLINE_WORDS + 1) * size_of::<usize>(),
    "with four words a job has 128 bytes"
);

/// An owned [`SchedulerTask`] or closure without its type.
///
/// For those who build on jobs: users hand over tasks and closures, and never see this.
pub struct Task {
    storage: InlineStorage,
    vtable: &'static TaskVTable,
}

// SAFETY: all constructors ask for a value that is `Send`, and a task is nothing but its value.
unsafe impl Send for Task {}

impl Task {
    /// A task that is told of its cancellation.
    #[must_use]
    pub fn new<T: SchedulerTask>(task: T) -> Self {
        Self { storage: store(task), vtable: const { &TaskVTable::of_task::<T>() } }
    }

    /// A task whose runs are sent as deliveries.
    #[must_use]
    pub fn delivery<T: DeliveryTask>(task: T) -> Self {
        Self { storage: store(task), vtable: const { &TaskVTable::of_delivery::<T>() } }
    }

    /// A closure that is consumed by its first run. A further run does nothing and succeeds.
    #[must_use]
    pub fn once<F, R>(f: F) -> Self
    where
        F: FnOnce(&FireContext) -> R + Send + 'static,
        R: Outcome,
    {
        Self { storage: store(f), vtable: Once::<F, R>::VTABLE }
    }

    /// A closure that runs as often as it is asked to.
    #[must_use]
    pub fn every<F, R>(f: F) -> Self
    where
        F: FnMut(&FireContext) -> R + Send + 'static,
        R: Outcome,
    {
        Self { storage: store(f), vtable: Every::<F, R>::VTABLE }
    }

    /// Runs it.
    ///
    /// # Errors
    ///
    /// As the task or closure says. A panic passes through: to catch it is the host's part. After
    /// one, what [`once`](Self::once) made is consumed, and all others are as the panic left them.
    pub fn run(&mut self, fire: &FireContext) -> Result<(), HandlerError> {
        let run = self.vtable.run;
        // SAFETY: `run` is of the vtable that the task has.
        unsafe { run(self, fire) }
    }

    /// Tells it that it was cancelled, if it wants to know.
    pub fn cancelled(&mut self) {
        if let Some(cancelled) = self.vtable.cancelled {
            // SAFETY: `cancelled` is of the vtable that the task has.
            unsafe { cancelled(self) }
        }
    }

    /// Whether [`cancelled`](Self::cancelled) calls anything: closures have nothing to be told.
    #[must_use]
    pub const fn wants_cancel(&self) -> bool {
        self.vtable.cancelled.is_some()
    }

    /// Whether its runs are sent as deliveries.
    #[must_use]
    pub const fn is_delivery(&self) -> bool {
        self.vtable.deliver.is_some()
    }

    /// What gives a delivery of this task to its sink.
    pub(crate) const fn deliver(&self) -> Option<fn(PendingDelivery)> {
        self.vtable.deliver
    }

    /// The task or closure that this was made from, borrowed; `None` if it was made from another
    /// type or has been consumed by its run.
    #[must_use]
    pub fn value_mut<T: 'static>(&mut self) -> Option<&mut T> {
        if (self.vtable.type_id)() != TypeId::of::<T>() {
            return None;
        }
        // SAFETY: the type is the vtable's own.
        Some(unsafe { self.value() })
    }

    /// Whether the value needs no memory of its own.
    #[must_use]
    pub const fn is_inline(&self) -> bool {
        self.vtable.is_inline
    }

    /// The task or closure that this was made from, for a caller whose request was refused.
    ///
    /// `None` if it was made from another type or has been consumed by its run; it is dropped then.
    #[must_use]
    pub fn take_back<T: 'static>(mut self) -> Option<T> {
        if (self.vtable.type_id)() != TypeId::of::<T>() {
            return None;
        }
        // SAFETY: the type is the vtable's own, so the storage holds a `T`.
        Some(unsafe { self.take() })
    }

    /// Moves the value out and leaves the task consumed.
    ///
    /// # Safety
    ///
    /// The vtable must be one of type `T`.
    unsafe fn take<T>(&mut self) -> T {
        self.vtable = &CONSUMED;
        if fits_inline::<T>() {
            // SAFETY: the vtable was of `T` (by contract), so the storage holds one, aligned for it
            // (`store`); the vtable is consumed now, so nobody reads it again.
            return unsafe { self.storage.as_ptr().cast::<T>().read() };
        }
        // SAFETY: the vtable was of `T` and it does not fit, so `store` has put a pointer here.
        let value = unsafe { self.storage.as_ptr().cast::<*mut T>().read() };
        // SAFETY: the pointer came from `Box::into_raw` in `store`, and the vtable is consumed now, so
        // nobody makes a second box of it.
        *unsafe { Box::from_raw(value) }
    }

    /// The value, borrowed.
    ///
    /// # Safety
    ///
    /// The vtable must be one of type `T`.
    unsafe fn value<T>(&mut self) -> &mut T {
        let value = if fits_inline::<T>() {
            self.storage.as_mut_ptr().cast::<T>()
        } else {
            // SAFETY: the vtable is of `T` (by contract) and it does not fit, so `store` has put a
            // pointer here.
            unsafe { self.storage.as_ptr().cast::<*mut T>().read() }
        };
        // SAFETY: the storage or the box holds a valid, aligned `T` (by contract, `store`), which the
        // task owns; it is borrowed as long as the task is.
        unsafe { &mut *value }
    }
}

impl Drop for Task {
    fn drop(&mut self) {
        let drop_value = self.vtable.drop_value;
        // SAFETY: `drop_value` is of the vtable that the task has, and nothing follows it.
        unsafe { drop_value(self) }
    }
}

impl fmt::Debug for Task {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Task")
            .field("wants_cancel", &self.wants_cancel())
            .field("is_inline", &self.is_inline())
            .finish_non_exhaustive()
    }
}

/// What a task does, for one type of value. Each function may be called only with a task that has
/// this vtable.
struct TaskVTable {
    run: unsafe fn(&mut Task, &FireContext) -> Result<(), HandlerError>,
    cancelled: Option<unsafe fn(&mut Task)>,
    /// Gives a delivery of such a task to its sink.
    deliver: Option<fn(PendingDelivery)>,
    drop_value: unsafe fn(&mut Task),
    type_id: fn() -> TypeId,
    is_inline: bool,
}

impl TaskVTable {
    const fn of_task<T: SchedulerTask>() -> Self {
        Self { cancelled: Some(notify_cancelled_task::<T>), ..Self::of::<T>(run_task::<T>) }
    }

    const fn of_delivery<T: DeliveryTask>() -> Self {
        let cancelled: Option<unsafe fn(&mut Task)> =
            if T::NOTIFY_CANCEL { Some(notify_cancelled_delivery::<T>) } else { None };
        Self { cancelled, deliver: Some(deliver::<T>), ..Self::of::<T>(|_, _| Ok(())) }
    }

    const fn of<T: 'static>(
        run: unsafe fn(&mut Task, &FireContext) -> Result<(), HandlerError>,
    ) -> Self {
        Self {
            run,
            cancelled: None,
            deliver: None,
            drop_value: drop_value::<T>,
            type_id: TypeId::of::<T>,
            is_inline: fits_inline::<T>(),
        }
    }
}

/// The vtable of a task whose value is gone.
static CONSUMED: TaskVTable = TaskVTable {
    run: |_, _| Ok(()),
    cancelled: None,
    deliver: None,
    drop_value: |_| (),
    type_id: TypeId::of::<Consumed>,
    is_inline: true,
};

/// The type of no value, so that [`CONSUMED`] is of a type that nobody else can name.
enum Consumed {}

struct Once<F, R>(PhantomData<(F, R)>);

impl<F: FnOnce(&FireContext) -> R + 'static, R: Outcome> Once<F, R> {
    const VTABLE: &'static TaskVTable = &TaskVTable::of::<F>(run_once::<F, R>);
}

struct Every<F, R>(PhantomData<(F, R)>);

impl<F: FnMut(&FireContext) -> R + 'static, R: Outcome> Every<F, R> {
    const VTABLE: &'static TaskVTable = &TaskVTable::of::<F>(run_every::<F, R>);
}

const fn fits_inline<T>() -> bool {
    size_of::<T>() <= size_of::<InlineStorage>() && align_of::<T>() <= align_of::<InlineStorage>()
}

/// Puts a value into a storage, by itself or by a pointer to it.
fn store<T>(value: T) -> InlineStorage {
    let mut storage = InlineStorage::uninit();
    if fits_inline::<T>() {
        // SAFETY: the storage is as large as a `T` at least and aligned for one (`fits_inline`), and
        // nothing is in it yet.
        unsafe { storage.as_mut_ptr().cast::<T>().write(value) }
    } else {
        let value = Box::into_raw(Box::new(value));
        // SAFETY: the storage is three pointers large and aligned for them, and nothing is in it yet.
        unsafe { storage.as_mut_ptr().cast::<*mut T>().write(value) }
    }
    storage
}

/// # Safety
///
/// The task must have a vtable of `T`.
unsafe fn run_task<T: SchedulerTask>(
    task: &mut Task,
    fire: &FireContext,
) -> Result<(), HandlerError> {
    // SAFETY: by contract.
    unsafe { task.value::<T>() }.run(fire)
}

/// # Safety
///
/// The task must have a vtable of `T`.
unsafe fn notify_cancelled_task<T: SchedulerTask>(task: &mut Task) {
    // SAFETY: by contract.
    unsafe { task.value::<T>() }.cancelled();
}

/// # Safety
///
/// The task must have a vtable of `T`.
unsafe fn notify_cancelled_delivery<T: DeliveryTask>(task: &mut Task) {
    // SAFETY: by contract.
    unsafe { task.value::<T>() }.cancelled();
}

/// Nothing of the task is borrowed when the sink gets the delivery.
fn deliver<T: DeliveryTask>(mut delivery: PendingDelivery) {
    if let Some(sink) = delivery.task_mut::<T>().map(|task| task.sink()) {
        sink.deliver(delivery);
    }
}

/// # Safety
///
/// The task must have a vtable of `F`.
unsafe fn run_once<F, R>(task: &mut Task, fire: &FireContext) -> Result<(), HandlerError>
where
    F: FnOnce(&FireContext) -> R,
    R: Outcome,
{
    // SAFETY: by contract.
    let f = unsafe { task.take::<F>() };
    f(fire).into_outcome()
}

/// # Safety
///
/// The task must have a vtable of `F`.
unsafe fn run_every<F, R>(task: &mut Task, fire: &FireContext) -> Result<(), HandlerError>
where
    F: FnMut(&FireContext) -> R,
    R: Outcome,
{
    // SAFETY: by contract.
    let f = unsafe { task.value::<F>() };
    f(fire).into_outcome()
}

/// PayloadDrop the value where it is, which need not be moved for that.
///
/// # Safety
///
/// The task must have a vtable of `T`.
unsafe fn drop_value<T>(task: &mut Task) {
    task.vtable = &CONSUMED;
    if fits_inline::<T>() {
        // SAFETY: the vtable was of `T` (by contract), so the storage holds one; the vtable is consumed
        // now, so nobody uses or drops it again.
        unsafe { ptr::drop_in_place(task.storage.as_mut_ptr().cast::<T>()) }
    } else {
        // SAFETY: the vtable was of `T` and it does not fit, so `store` has put a pointer here.
        let value = unsafe { task.storage.as_ptr().cast::<*mut T>().read() };
        // SAFETY: the pointer came from `Box::into_raw` in `store`, and the vtable is consumed now, so
        // nobody makes a second box of it.
        drop(unsafe { Box::from_raw(value) });
    }
}
