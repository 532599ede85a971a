//! A task in memory, and the references to it.
//!
//! A *task* is whatever the executor runs: a [future](future), a [process](process) or a [custom
//! task](crate::custom_task). Its cell begins with a [`Header`], which has no type parameter; run
//! queues, wakers and the registry hold a pointer to the header. Behind the header is the body,
//! which only the functions of the header's [`VTable`] know. The layout is that of tokio's and
//! async-task's tasks.
//!
//! # Who owns what
//!
//! 1. References are counted in the registry's slot, not in the cell, so that a look-up by pid can
//!    take a reference while the task ends. A [`TaskRef`] is one reference. The thread that
//!    releases the last one frees the cell and then vacates the slot.
//! 2. One reference belongs to the task itself and keeps it alive. It is where the task is: in the
//!    [`Runnable`] in a run queue, or with the worker that polls the task. While the task waits, no
//!    variable holds this reference; the thread that makes the task ready creates the `Runnable`
//!    from the header's address. The reference is released when the task has ended. So waking a
//!    task changes no count.
//! 3. Only the runner touches the body: the thread that the [state](crate::state) made the runner.
//!    When the task ends, the runner drops the body on its own thread. So a body that is not `Send`
//!    is dropped on the thread that it lived on, even if the last reference is released elsewhere.
//! 4. The runner owns the output before the completion, and the joiner, if there is one, owns it
//!    afterwards (see [`state`](crate::state)).
#![expect(unsafe_code, reason = "counts references to, and calls into, cells of unknown type")]

pub(crate) mod budget;
pub mod custom_task;
pub(crate) mod future;
pub(crate) mod join;
pub(crate) mod live_task;
pub mod memory;
pub(crate) mod process;
pub mod registry;
pub mod state;

use alloc::boxed::Box;
use core::{
    any::TypeId,
    fmt,
    marker::PhantomData,
    mem::ManuallyDrop,
    ops::Deref,
    ptr::NonNull,
    task::{RawWaker, RawWakerVTable, Waker},
};

use clockjack_sync::{
    link::{Link, Linked},
    primitive::{
        UnsafeCell,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
};

use self::{budget::Budget, live_task::PollStats};
use crate::{
    command::Request,
    error::SendError,
    executor::ExecutorShared,
    executor_ref::ExecutorRef,
    exit::{ExitReason, JoinError, PanicPayload},
    payload::Payload,
    pid::Pid,
    process::links::ProcessLinks,
    process::signal::{ProcessSignal, SignalQueue},
    registry::{LastRef, Slot},
    state::{AtomicState, NotifyAction, State, WaitKind},
};

/// The part of a cell that is the same for all tasks.
#[repr(C)]
pub(crate) struct Header {
    pub(crate) state: AtomicState,
    /// Of a custom task: whether it is being polled. For reports.
    pub(crate) is_polling: AtomicBool,
    pub(crate) budget: Budget,
    pub(crate) link: Link,
    pub(crate) vtable: &'static VTable,
    /// Taken out by `VTable::free`, so that it outlives the cell's memory.
    pub(crate) executor: ManuallyDrop<ExecutorRef>,
    /// The slot that counts the references; it stays valid as long as the executor.
    slot: NonNull<Slot>,
    pub(crate) signals: SignalQueue,
    /// Links and monitors; only the runner touches them.
    pub(crate) links: UnsafeCell<Option<Box<ProcessLinks>>>,
    /// For dumps.
    pub(crate) poll_stats: PollStats,
}

/// The functions of a body of unknown type. All but `deliver` are for the runner.
pub(crate) struct VTable {
    /// Polls the body once. The cell is passed by its address and not by reference, because a
    /// custom task may be freed when this returns.
    pub(crate) poll: unsafe fn(NonNull<Header>, &ExecutorShared) -> PollOutcome,
    /// The next command that the poll has yielded.
    pub(crate) next_request: unsafe fn(HeaderRef<'_>) -> Option<Request>,
    /// Lets the process clean up; user code.
    pub(crate) close: unsafe fn(HeaderRef<'_>),
    /// Drops the body and the messages that were sent to it; user code. Called again, it continues
    /// where a panic stopped it.
    pub(crate) drop_body: unsafe fn(HeaderRef<'_>),
    /// Stores the result for the joiner.
    pub(crate) store: unsafe fn(HeaderRef<'_>, TaskResult),
    /// Drops a result that nobody can ask for any more; user code.
    pub(crate) drop_output: unsafe fn(HeaderRef<'_>),
    /// Moves the result into an `Option<Result<T, JoinError>>`.
    pub(crate) take_output: unsafe fn(HeaderRef<'_>, *mut ()),
    /// Sends a message of unknown type.
    pub(crate) deliver: unsafe fn(HeaderRef<'_>, Payload) -> Result<(), SendError<Payload>>,
    /// Frees the memory and returns the executor that the cell held.
    pub(crate) free: unsafe fn(NonNull<Header>) -> ExecutorRef,
    /// Reports to the body a panic that ended its poll; the cell is passed by its address as in
    /// `poll`. Without this function a panic ends the task.
    pub(crate) on_panic: Option<OnPanic>,
    /// The additional functions of a custom task.
    pub(crate) custom: Option<&'static CustomVTable>,
    /// The name of the task in reports.
    pub(crate) name: fn() -> &'static str,
    /// Whether the cell begins with a [`FutureHeader`](future::FutureHeader).
    pub(crate) is_future: bool,
}

/// What a body of unknown type does about a panic in its poll.
pub(crate) type OnPanic = unsafe fn(NonNull<Header>, &ExecutorShared, PanicPayload) -> PollOutcome;

/// The additional functions of a custom task. A word in its shared part, and not the state of the
/// header, says whether it waits; see [`custom_task`](crate::custom_task).
pub(crate) struct CustomVTable {
    /// The kind that the custom task states.
    pub(crate) kind: fn() -> TypeId,
    /// The type that its shared part begins with.
    pub(crate) prefix: fn() -> TypeId,
    /// The name of its messages in reports.
    pub(crate) input: fn() -> &'static str,
    /// Ends its sleep; true if it was parked: then the caller enqueues it.
    pub(crate) unpark: unsafe fn(HeaderRef<'_>) -> bool,
    pub(crate) is_parked: unsafe fn(HeaderRef<'_>) -> bool,
    /// How many messages it has taken out of its mailbox; for traces.
    pub(crate) messages_taken: unsafe fn(HeaderRef<'_>) -> usize,
    /// How many messages are in its mailbox, and how many may be; for metrics.
    pub(crate) messages_waiting: unsafe fn(HeaderRef<'_>) -> (usize, usize),
}

/// What the executor does with a task after a poll.
pub(crate) enum PollOutcome {
    PollAgain,
    Wait(WaitKind),
    /// The task is parked already. Another thread may even have woken or freed it, so the caller
    /// must neither touch it nor hold a borrow of it.
    Parked,
    /// The task has yielded commands; afterwards the executor does what the field says.
    DispatchCommands(AfterDispatch),
    Finished(TaskResult),
}

/// What the executor does with a task after it has passed the commands to their handlers.
pub(crate) enum AfterDispatch {
    /// The task waits for them, or for another event.
    Wait,
    /// The task is polled again: there are more events, for which nobody notifies a second time.
    PollAgain,
}

/// How a task ended.
pub(crate) enum TaskResult {
    /// The body has stored its output already.
    Stored,
    Output(Payload),
    Error(JoinError),
}

impl TaskResult {
    pub(crate) fn reason(&self) -> ExitReason {
        match self {
            Self::Stored | Self::Output(_) => ExitReason::Normal,
            Self::Error(error) => error.reason(),
        }
    }
}

impl Header {
    pub(crate) fn new(
        executor: ExecutorRef,
        slot: NonNull<Slot>,
        vtable: &'static VTable,
        joined: bool,
    ) -> Self {
        Self {
            state: if vtable.custom.is_some() {
                AtomicState::running()
            } else {
                AtomicState::new(joined)
            },
            is_polling: AtomicBool::new(false),
            budget: Budget::new(),
            link: Link::new(),
            vtable,
            executor: ManuallyDrop::new(executor),
            slot,
            signals: SignalQueue::new(),
            links: UnsafeCell::new(None),
            poll_stats: PollStats::new(),
        }
    }

    #[inline]
    pub(crate) fn slot(&self) -> &Slot {
        // SAFETY: the slot belongs to the registry of the executor that this cell holds, and the
        // registry never frees a slot before itself.
        unsafe { self.slot.as_ref() }
    }

    pub(crate) fn pid(&self) -> Pid {
        // SAFETY: every caller has a reference to the task.
        let generation = unsafe { self.slot().generation() };
        Pid::new(self.executor.node(), self.slot().index(), generation)
    }

    /// Whether this is a task of that executor. The pid does not tell: a task of another executor
    /// may have the same.
    #[inline]
    pub(crate) fn is_of(&self, executor: &ExecutorShared) -> bool {
        core::ptr::eq(&raw const **self.executor, executor)
    }
}

/// A borrow of a task: of its header, with the right to reach the rest of the cell.
///
/// A `&Header` has no such right: a pointer that is derived from a reference may access only what
/// the reference covers (Stacked Borrows; Jung and others, POPL 2020). This type keeps the pointer
/// that the cell was created with, so a function of the vtable may cast it to the type of the cell.
#[derive(Clone, Copy)]
pub(crate) struct HeaderRef<'t> {
    cell: NonNull<Header>,
    _borrow: PhantomData<&'t Header>,
}

impl Deref for HeaderRef<'_> {
    type Target = Header;

    #[inline]
    fn deref(&self) -> &Header {
        self.get()
    }
}

impl<'t> HeaderRef<'t> {
    /// # Safety
    ///
    /// The pointer is the one that the cell was created with, or a copy of it, and a reference
    /// keeps the cell alive for `'t`.
    #[inline]
    pub(crate) unsafe fn new(cell: NonNull<Header>) -> Self {
        Self { cell, _borrow: PhantomData }
    }

    /// The header alone, for as long as the task is borrowed.
    #[inline]
    pub(crate) fn get(self) -> &'t Header {
        // SAFETY: by the contract of `new` the cell is alive, and only shared borrows of a header
        // are made while a reference exists.
        unsafe { self.cell.as_ref() }
    }

    /// The pointer that the cell was created with.
    #[inline]
    pub(crate) fn as_ptr(self) -> NonNull<Header> {
        self.cell
    }

    /// How many messages the task has taken out of its mailbox, if it is a custom task.
    pub(crate) fn messages_taken(self) -> usize {
        // SAFETY: the vtable is that of the cell.
        self.vtable.custom.map_or(0, |custom| unsafe { (custom.messages_taken)(self) })
    }

    /// How many messages are in the mailbox of a custom task, and how many may be.
    pub(crate) fn messages_waiting(self) -> (usize, usize) {
        // SAFETY: the vtable is that of the cell.
        self.vtable.custom.map_or((0, 0), |custom| unsafe { (custom.messages_waiting)(self) })
    }

    /// Makes the task run, unless it will run anyway. The caller has left the event before.
    #[inline]
    pub(crate) fn wake(self) {
        if self.unpark() {
            self.executor.schedule_woken(Runnable::of(self));
        }
    }

    /// As [`wake`](Self::wake), but the task goes to the end of the caller's run queue.
    #[inline]
    pub(crate) fn wake_last(self) {
        if self.unpark() {
            self.executor.schedule_last(Runnable::of(self));
        }
    }

    /// Tells the task that there is an event; true if the caller must enqueue the task.
    #[inline]
    fn unpark(self) -> bool {
        match self.vtable.custom {
            None => matches!(self.state.notify(), NotifyAction::Enqueue),
            Some(custom) => {
                // SAFETY: the vtable is that of the cell.
                let slept = unsafe { (custom.unpark)(self) };
                if slept {
                    // Relaxed: a hint; until the task is enqueued, it belongs to this caller.
                    self.is_polling.store(false, Relaxed);
                }
                slept
            }
        }
    }

    /// What the task does, at about this time.
    pub(crate) fn state(self) -> State {
        match self.vtable.custom {
            Some(custom) if !self.state.is_complete() => {
                // SAFETY: the vtable is that of the cell.
                if unsafe { (custom.is_parked)(self) } {
                    State::Idle
                // Relaxed: a hint.
                } else if self.is_polling.load(Relaxed) {
                    State::Running
                } else {
                    State::Ready
                }
            }
            _ => self.state.load(),
        }
    }

    /// Ends the task instead of its next poll; false if it has ended already.
    pub(crate) fn terminate(self) -> bool {
        match self.state.terminate() {
            NotifyAction::Enqueue => self.executor.schedule_woken(Runnable::of(self)),
            NotifyAction::Already if self.vtable.custom.is_some() => self.wake(),
            NotifyAction::Already => {}
            NotifyAction::Complete => return false,
        }
        true
    }

    /// Sends a signal and wakes the task. Returns the signal to the caller if the task has ended.
    pub(crate) fn signal(self, signal: ProcessSignal) -> Result<(), ProcessSignal> {
        self.signals.push(signal)?;
        self.wake();
        Ok(())
    }
}

/// The waker of the joiner. The [state](crate::state) says who owns the slot.
pub(crate) type JoinWakerSlot = UnsafeCell<Option<Waker>>;

/// The beginning of a cell that can be joined.
#[repr(C)]
pub(crate) struct JoinableHeader {
    pub(crate) header: Header,
    pub(crate) join_waker: JoinWakerSlot,
}

impl JoinableHeader {
    pub(crate) fn new(header: Header) -> Self {
        Self { header, join_waker: UnsafeCell::new(None) }
    }

    /// # Safety
    ///
    /// The header is that of a future or a process, not of a custom task.
    pub(crate) unsafe fn of(header: HeaderRef<'_>) -> &Self {
        // SAFETY: by the contract, the header is the first field of one, and the pointer is that of
        // the whole cell.
        unsafe { header.as_ptr().cast::<Self>().as_ref() }
    }
}

/// One counted reference to a task.
#[repr(transparent)]
pub(crate) struct TaskRef(NonNull<Header>);

// SAFETY: a reference gives access to the header only, which is made for sharing: atomics, and
// cells whose owner the state names. Only the runner touches and drops a body that is not `Send`,
// and for such a body the runner is always the same thread (module, 3).
unsafe impl Send for TaskRef {}
// SAFETY: as above.
unsafe impl Sync for TaskRef {}

impl TaskRef {
    /// # Safety
    ///
    /// The pointer is the one that a live cell was created with, and the caller owns one reference,
    /// which it gives away.
    pub(crate) unsafe fn from_raw(header: NonNull<Header>) -> Self {
        Self(header)
    }

    pub(crate) fn into_raw(self) -> NonNull<Header> {
        ManuallyDrop::new(self).0
    }

    #[inline]
    pub(crate) fn header(&self) -> HeaderRef<'_> {
        // SAFETY: this reference keeps the cell from being freed, and its pointer is that of the
        // cell.
        unsafe { HeaderRef::new(self.0) }
    }

    pub(crate) fn as_ptr(&self) -> NonNull<Header> {
        self.0
    }

    pub(crate) fn pid(&self) -> Pid {
        self.header().pid()
    }

    pub(crate) fn signal(&self, signal: ProcessSignal) -> Result<(), ProcessSignal> {
        self.header().signal(signal)
    }
}

impl Clone for TaskRef {
    #[inline]
    fn clone(&self) -> Self {
        // SAFETY: this reference is counted, so the count is not zero.
        unsafe { self.header().slot().acquire() };
        Self(self.0)
    }
}

impl Drop for TaskRef {
    #[inline]
    fn drop(&mut self) {
        let slot = self.header().slot;
        // SAFETY: the slot lives as long as the executor. The cell holds the executor, and after
        // `free` has freed the cell, `free` itself holds it until the slot is vacated.
        let slot = unsafe { slot.as_ref() };
        // SAFETY: the reference is counted and is not used after this.
        if let Some(last) = unsafe { slot.release() } {
            free(last);
        }
    }
}

impl fmt::Debug for TaskRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("TaskRef").field(&self.pid()).finish()
    }
}

/// Frees the cell whose last reference was released.
#[inline(never)]
pub(crate) fn free(last: LastRef<'_>) {
    let header = last.value().cast::<Header>();
    // SAFETY: nobody can make another reference (the registry does not count up from zero), so this
    // thread has the cell to itself.
    let release = unsafe { header.as_ref() }.vtable.free;
    // SAFETY: as above; the function is that of the cell's own type.
    let executor = unsafe { release(header) };
    executor.vacate(last);
}

/// A task that is ready: the item of a run queue. It owns the reference that the task has to itself
/// (module, 2). async-task uses the same name; tokio calls it `Notified`.
///
/// Dropping a `Runnable` leaks its task: the body may have to be dropped on another thread than the
/// one that drops the queue. This happens only if a panic that nobody catches ends the thread of an
/// executor.
#[must_use = "a task whose runnable is dropped is lost"]
pub(crate) struct Runnable(NonNull<Header>);

// SAFETY: as for `TaskRef`, which it becomes.
unsafe impl Send for Runnable {}

impl Runnable {
    /// The runnable of a task that the caller has just made ready; nobody else has it.
    #[inline]
    pub(crate) fn of(header: HeaderRef<'_>) -> Self {
        Self(header.as_ptr())
    }

    /// The reference that the task has to itself.
    #[inline]
    pub(crate) fn into_ref(self) -> TaskRef {
        TaskRef(self.0)
    }

    /// The runnable of a task that the holder of its own reference has just made ready again.
    #[inline]
    pub(crate) fn from_ref(task: TaskRef) -> Self {
        Self(task.into_raw())
    }

    /// A further reference to the task.
    pub(crate) fn to_ref(&self) -> TaskRef {
        let own = ManuallyDrop::new(TaskRef(self.0));
        TaskRef::clone(&own)
    }

    /// The index of the task in the registry.
    #[inline]
    pub(crate) fn index(&self) -> u32 {
        // SAFETY: the runnable owns a reference, so the cell is alive.
        unsafe { self.0.as_ref() }.slot().index()
    }

    /// The task is polled now: it gets a new budget. `nanos` is when the worker last read the
    /// clock.
    #[inline]
    pub(crate) fn begin_poll(&self, nanos: u64) {
        // SAFETY: as above.
        let header = unsafe { self.0.as_ref() };
        header.budget.refill();
        header.poll_stats.count(nanos);
    }

    #[inline]
    pub(crate) fn into_raw(self) -> NonNull<Header> {
        self.0
    }

    /// # Safety
    ///
    /// The pointer came from [`into_raw`](Self::into_raw), and is given away.
    #[inline]
    pub(crate) unsafe fn from_raw(header: NonNull<Header>) -> Self {
        Self(header)
    }
}

impl fmt::Debug for Runnable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Runnable").finish_non_exhaustive()
    }
}

/// Links runnables in the injector by the link in their header.
pub(crate) struct RunQueueLink;

// SAFETY: (1) the link is in the header, which lives as long as the runnable's reference; (2) a
// runnable is the only one of its task, so the link is in one queue at a time; (3) the conversions
// are inverse to each other: the link has a fixed offset in the `repr(C)` header.
unsafe impl Linked for RunQueueLink {
    type Handle = Runnable;

    fn into_link(handle: Runnable) -> NonNull<Link> {
        // SAFETY: a runnable keeps its task alive.
        unsafe { link_of(handle.into_raw()) }
    }

    unsafe fn from_link(link: NonNull<Link>) -> Runnable {
        // SAFETY: by the contract the link is that of a header.
        let header = unsafe { header_around(link) };
        // SAFETY: `into_link` gave the runnable away.
        unsafe { Runnable::from_raw(header) }
    }
}

/// The link of a header, with access to the whole cell.
///
/// # Safety
///
/// The pointer is that of a live header.
#[inline]
unsafe fn link_of(header: NonNull<Header>) -> NonNull<Link> {
    // SAFETY: by the contract the header is live, so the address of its field is in bounds.
    let link = unsafe { &raw mut (*header.as_ptr()).link };
    // SAFETY: the address of a field of a live header is not null.
    unsafe { NonNull::new_unchecked(link) }
}

/// The header around a link.
///
/// # Safety
///
/// The link came from [`link_of`].
#[inline]
unsafe fn header_around(link: NonNull<Link>) -> NonNull<Header> {
    // SAFETY: by the contract the header begins at this offset before its link.
    unsafe { link.byte_sub(core::mem::offset_of!(Header, link)) }.cast()
}

static WAKER: RawWakerVTable =
    RawWakerVTable::new(waker_clone, waker_wake, waker_wake_by_ref, waker_drop);

/// A waker of the task, borrowed from a reference that outlives it.
#[inline]
pub(crate) fn borrowed_waker(header: HeaderRef<'_>) -> ManuallyDrop<Waker> {
    let data = header.as_ptr().as_ptr().cast_const().cast::<()>();
    // SAFETY: the functions keep the contract of `RawWaker`: they are thread-safe, and count a
    // reference per clone. This first waker counts none and is never dropped.
    ManuallyDrop::new(unsafe { Waker::from_raw(RawWaker::new(data, &WAKER)) })
}

/// The address of the task of a waker, if it is a waker of this crate. The task lives as long as
/// the waker.
#[inline]
pub(crate) fn header_ptr_of(waker: &Waker) -> Option<NonNull<Header>> {
    if core::ptr::eq(waker.vtable(), &raw const WAKER) {
        NonNull::new(waker.data().cast_mut().cast())
    } else {
        None
    }
}

/// The task of a waker, if it is a waker of this crate. The borrow is that of the waker.
#[inline]
pub(crate) fn header_of(waker: &Waker) -> Option<HeaderRef<'_>> {
    if core::ptr::eq(waker.vtable(), &raw const WAKER) {
        // SAFETY: a waker with this vtable has the pointer of a cell as its data, and owns a
        // reference to it or is borrowed from one; both last as long as the waker.
        Some(unsafe { header_of_data(waker.data()) })
    } else {
        None
    }
}

/// Wakes a task as [`Waker::wake`] does, but puts it at the end of the caller's run queue, where
/// any worker can take it: for a task that is to run concurrently with the rest of this poll. A
/// waker of another crate is woken as usual.
pub fn wake_last(waker: Waker) {
    match header_of(&waker) {
        Some(header) => header.wake_last(),
        None => waker.wake(),
    }
}

/// # Safety
///
/// The data is that of a waker of this crate, which lives for `'t`.
#[inline]
unsafe fn header_of_data<'t>(data: *const ()) -> HeaderRef<'t> {
    // SAFETY: the data of our wakers is the pointer of a cell, so it is not null.
    let cell = unsafe { NonNull::new_unchecked(data.cast_mut().cast()) };
    // SAFETY: as above, and the waker keeps the cell alive.
    unsafe { HeaderRef::new(cell) }
}

unsafe fn waker_clone(data: *const ()) -> RawWaker {
    // SAFETY: by the contract of a waker.
    let header = unsafe { header_of_data(data) };
    // SAFETY: the waker that is cloned owns, or is borrowed from, a counted reference.
    unsafe { header.slot().acquire() };
    RawWaker::new(data, &WAKER)
}

unsafe fn waker_wake(data: *const ()) {
    // SAFETY: by the contract of both functions.
    unsafe { waker_wake_by_ref(data) };
    // SAFETY: as above.
    unsafe { waker_drop(data) };
}

unsafe fn waker_wake_by_ref(data: *const ()) {
    // SAFETY: by the contract of a waker.
    unsafe { header_of_data(data) }.wake();
}

unsafe fn waker_drop(data: *const ()) {
    let header = data.cast_mut().cast::<Header>();
    // SAFETY: the data of our wakers is a header, so not null.
    let header = unsafe { NonNull::new_unchecked(header) };
    // SAFETY: a waker that is dropped owns one reference, and gives it away.
    drop(unsafe { TaskRef::from_raw(header) });
}
