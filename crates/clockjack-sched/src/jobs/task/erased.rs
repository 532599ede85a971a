//! A type-erased task with a hand-written vtable. Small values are stored inline.
//!
//! ```text
//!             inline                             boxed
//! storage  | value, at most 3 words |      storage  | pointer |  -   |  -   |
//! vtable   | of (type, inline)      |      vtable   | of (type, boxed)      |
//! ```
//!
//! Invariant: the storage holds a valid value of the type of the vtable, in the form of the vtable,
//! and the task owns it. The vtable [`CONSUMED`] stands for no value. Code that moves the value out
//! sets that vtable *first*: if the value then panics, in a call or in a drop, it is not used a
//! second time.
//!
//! A value is inline if it is not larger than the storage and not aligned more strictly than a
//! pointer. It moves along with the task, which Rust allows for every value that is not pinned; no
//! pointer to it is kept.
#![expect(unsafe_code, reason = "keeps a value whose type only its vtable knows")]

use alloc::boxed::Box;
use core::{
    any::TypeId,
    fmt,
    marker::PhantomData,
    mem::{MaybeUninit, needs_drop},
    ptr,
};

use crate::{
    DeliveryTask, HandlerError, PendingDelivery,
    jobs::{
        delivery::DeliverySink,
        task::{FireContext, Outcome, SchedulerTask},
    },
};

/// Words of inline storage: enough for a closure over three pointers, or over a fat pointer and a
/// thin one. Where a word has four bytes there are four words, so that two pointers and two numbers
/// fit on every target.
const INLINE_WORDS: usize = if size_of::<usize>() == 4 { 4 } else { 3 };

/// Pointers instead of integers, so that a pointer in a value keeps its provenance when moved.
type InlineStorage = MaybeUninit<[*mut (); INLINE_WORDS]>;

const _: () = assert!(
    size_of::<Task>() == (INLINE_WORDS + 1) * size_of::<usize>(),
    "with four words a job has 128 bytes"
);

/// An owned, type-erased [`SchedulerTask`] or closure.
///
/// For code that builds on jobs: users pass tasks and closures, and never see this type.
pub struct Task {
    storage: InlineStorage,
    vtable: &'static TaskVTable,
}

// SAFETY: all constructors require a `Send` value, and a task is nothing but its value.
unsafe impl Send for Task {}

impl Task {
    /// Creates a task that is notified of its cancellation.
    #[must_use]
    pub fn new<T: SchedulerTask>(task: T) -> Self {
        Self { storage: store(task), vtable: const { &TaskVTable::of_task::<T>() } }
    }

    /// Creates a task whose runs are sent as deliveries.
    #[must_use]
    pub fn delivery<T: DeliveryTask>(task: T) -> Self {
        Self { storage: store(task), vtable: const { &TaskVTable::of_delivery::<T>() } }
    }

    /// Creates a task from a closure that its first run consumes. A further run does nothing and
    /// succeeds.
    #[must_use]
    pub fn once<F, R>(f: F) -> Self
    where
        F: FnOnce(&FireContext) -> R + Send + 'static,
        R: Outcome,
    {
        Self { storage: store(f), vtable: Once::<F, R>::VTABLE }
    }

    /// Creates a task from a closure that can run many times.
    #[must_use]
    pub fn every<F, R>(f: F) -> Self
    where
        F: FnMut(&FireContext) -> R + Send + 'static,
        R: Outcome,
    {
        Self { storage: store(f), vtable: Every::<F, R>::VTABLE }
    }

    /// Runs the task.
    ///
    /// # Errors
    ///
    /// The error of the task or closure. A panic propagates; the host catches it. After a panic, a
    /// closure of [`once`](Self::once) is consumed, and any other value is as the panic left it.
    pub fn run(&mut self, fire: &FireContext) -> Result<(), HandlerError> {
        let run = self.vtable.run;
        // SAFETY: `run` is from the vtable of this task.
        unsafe { run(self, fire) }
    }

    /// Notifies the task that it was cancelled.
    pub fn cancelled(&mut self) {
        if let Some(cancelled) = self.vtable.cancelled {
            // SAFETY: `cancelled` is from the vtable of this task.
            unsafe { cancelled(self) }
        }
    }

    /// Whether [`cancelled`](Self::cancelled) calls anything. It does not for closures.
    #[must_use]
    pub const fn wants_cancel(&self) -> bool {
        self.vtable.cancelled.is_some()
    }

    /// Whether its runs are sent as deliveries.
    #[must_use]
    pub const fn is_delivery(&self) -> bool {
        self.vtable.deliver.is_some()
    }

    /// The function that passes a delivery of this task to its sink.
    pub(crate) const fn deliver(&self) -> Option<fn(PendingDelivery)> {
        self.vtable.deliver
    }

    /// Whether the drop does anything. It does not once a closure of [`once`](Self::once) has run.
    pub(crate) const fn needs_drop(&self) -> bool {
        self.vtable.needs_drop
    }

    /// Borrows the task or closure that this was created from; `None` if that was of another type
    /// or was consumed by its run.
    #[must_use]
    pub fn value_mut<T: 'static>(&mut self) -> Option<&mut T> {
        if (self.vtable.type_id)() != TypeId::of::<T>() {
            return None;
        }
        // SAFETY: `T` is the type of the vtable.
        Some(unsafe { self.value() })
    }

    /// Whether the value is stored inline, without an allocation.
    #[must_use]
    pub const fn is_inline(&self) -> bool {
        self.vtable.is_inline
    }

    /// Returns the task or closure that this was created from, for a caller whose request failed.
    ///
    /// `None` if it was of another type or was consumed by its run; then the value is dropped.
    #[must_use]
    pub fn take_back<T: 'static>(mut self) -> Option<T> {
        if (self.vtable.type_id)() != TypeId::of::<T>() {
            return None;
        }
        // SAFETY: `T` is the type of the vtable, so the storage holds a `T`.
        Some(unsafe { self.take() })
    }

    /// Moves the value out and leaves the task consumed.
    ///
    /// # Safety
    ///
    /// The vtable must be of type `T`.
    unsafe fn take<T>(&mut self) -> T {
        self.vtable = &CONSUMED;
        if fits_inline::<T>() {
            // SAFETY: the vtable was of `T` (by contract), so the storage holds an aligned `T`
            // (`store`). The vtable is CONSUMED now, so the value is not read again.
            return unsafe { self.storage.as_ptr().cast::<T>().read() };
        }
        // SAFETY: the vtable was of `T`, which does not fit, so `store` has put a pointer here.
        let value = unsafe { self.storage.as_ptr().cast::<*mut T>().read() };
        // SAFETY: the pointer came from `Box::into_raw` in `store`. The vtable is CONSUMED now, so
        // no second box is made of it.
        *unsafe { Box::from_raw(value) }
    }

    /// Borrows the value.
    ///
    /// # Safety
    ///
    /// The vtable must be of type `T`.
    unsafe fn value<T>(&mut self) -> &mut T {
        let value = if fits_inline::<T>() {
            self.storage.as_mut_ptr().cast::<T>()
        } else {
            // SAFETY: the vtable is of `T` (by contract), which does not fit, so `store` has put a
            // pointer here.
            unsafe { self.storage.as_ptr().cast::<*mut T>().read() }
        };
        // SAFETY: the storage or the box holds a valid, aligned `T` (by contract, `store`), which
        // the task owns; the borrow lasts as long as that of the task.
        unsafe { &mut *value }
    }
}

impl Drop for Task {
    fn drop(&mut self) {
        let drop_value = self.vtable.drop_value;
        // SAFETY: `drop_value` is from the vtable of this task, which is not used afterwards.
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

/// The operations of a task, for one type of value. Each function may be called only with a task
/// that has this vtable.
struct TaskVTable {
    run: unsafe fn(&mut Task, &FireContext) -> Result<(), HandlerError>,
    cancelled: Option<unsafe fn(&mut Task)>,
    /// Passes a delivery of such a task to its sink.
    deliver: Option<fn(PendingDelivery)>,
    drop_value: unsafe fn(&mut Task),
    type_id: fn() -> TypeId,
    is_inline: bool,
    /// Whether `drop_value` does anything.
    needs_drop: bool,
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
            needs_drop: needs_drop::<T>() || !fits_inline::<T>(),
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
    needs_drop: false,
};

/// An empty type, so that [`CONSUMED`] matches no type that other code can name.
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

/// Stores a value inline, or a pointer to its box.
fn store<T>(value: T) -> InlineStorage {
    let mut storage = InlineStorage::uninit();
    if fits_inline::<T>() {
        // SAFETY: the storage is at least as large as a `T` and aligned for it (`fits_inline`), and
        // it is empty.
        unsafe { storage.as_mut_ptr().cast::<T>().write(value) }
    } else {
        let value = Box::into_raw(Box::new(value));
        // SAFETY: the storage is at least a pointer large and aligned for it, and it is empty.
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

/// Nothing borrows the task when the sink gets the delivery.
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

/// Drops the value in place.
///
/// # Safety
///
/// The task must have a vtable of `T`.
unsafe fn drop_value<T>(task: &mut Task) {
    task.vtable = &CONSUMED;
    if fits_inline::<T>() {
        // SAFETY: the vtable was of `T` (by contract), so the storage holds one. The vtable is
        // CONSUMED now, so the value is not used or dropped again.
        unsafe { ptr::drop_in_place(task.storage.as_mut_ptr().cast::<T>()) }
    } else {
        // SAFETY: the vtable was of `T`, which does not fit, so `store` has put a pointer here.
        let value = unsafe { task.storage.as_ptr().cast::<*mut T>().read() };
        // SAFETY: the pointer came from `Box::into_raw` in `store`. The vtable is CONSUMED now, so
        // no second box is made of it.
        drop(unsafe { Box::from_raw(value) });
    }
}
