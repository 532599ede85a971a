//! The task: one process in memory, and the references to it.
//!
//! A task begins with a [`Header`], which has no type parameter: what queues, wakers and the registry
//! hold is a pointer to it. Behind it stands the body, a future or a process, which only the
//! functions of its [`VTable`] know.
//!
//! # Who owns what
//!
//! 1. References are counted in the registry's slot, not in the task, so that a look-up by pid can
//!    take one while the process ends. A [`TaskRef`] is one reference. Whoever gives back the last
//!    one frees the task and then vacates the slot.
//! 2. One reference is that of the process's *task*. It is where the process is: in the
//!    [`Runnable`] of a run queue, in the hands of the worker that runs it, or, while it waits,
//!    nowhere: whoever makes it ready makes the runnable anew. It is given back when the process has
//!    ended. So waking costs no counting.
//! 3. The body is touched only by the runner, the one that the state word made so. When the process
//!    ends the runner drops it, on its own thread; so what is not `Send` dies where it lived, even
//!    if the last reference goes elsewhere.
//! 4. The output belongs to the runner before_first_poll the completion and to the joiner, if there is one,
//!    after it (see [`state`](crate::state)).
#![expect(unsafe_code, reason = "counts references to, and calls into, cells of unknown type")]

pub(crate) mod future;
pub(crate) mod process;

use alloc::boxed::Box;
use core::{
    any::TypeId,
    fmt,
    mem::ManuallyDrop,
    ptr::NonNull,
    task::{RawWaker, RawWakerVTable, Waker},
};

use clockjack_sync::{
    link::{Link, Linked},
    prim::{
        UnsafeCell,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
};

use crate::{
    command::Request,
    error::SendError,
    executor::ExecutorShared,
    executor_ref::ExecutorRef,
    exit::{ExitReason, JoinError, PanicPayload},
    links::ProcessLinks,
    payload::Payload,
    pid::Pid,
    registry::{LastRef, Slot},
    signal::{ProcessSignal, SignalQueue},
    state::{AtomicState, NotifyAction, State, WaitKind},
};

/// The part of a task that is the same for all.
#[repr(C)]
pub(crate) struct Header {
    pub(crate) state: AtomicState,
    /// Of a custom task: whether it is in a turn. For reports.
    pub(crate) is_polling: AtomicBool,
    pub(crate) link: Link,
    pub(crate) vtable: &'static VTable,
    /// Taken out by `VTable::free`, so that it outlives the task's memory.
    pub(crate) executor: ManuallyDrop<ExecutorRef>,
    /// Where its references are counted; stays valid as long as the executor.
    slot: NonNull<Slot>,
    pub(crate) signals: SignalQueue,
    /// Whom it is tied to; the runner's.
    pub(crate) links: UnsafeCell<Option<Box<ProcessLinks>>>,
}

/// What a body of unknown type can do. All but `deliver` are for the runner.
pub(crate) struct VTable {
    /// Runs user code once. It has the task by its address and not as a reference, since a custom
    /// task may be gone when it returns.
    pub(crate) poll: unsafe fn(NonNull<Header>, &ExecutorShared) -> PollOutcome,
    /// The next command that the step has asked for.
    pub(crate) next_request: unsafe fn(&Header) -> Option<Request>,
    /// Lets the process clean up; user code.
    pub(crate) close: unsafe fn(&Header),
    /// Drops the body and what was sent to it; user code. Called again, it goes on where a panic
    /// stopped it.
    pub(crate) drop_body: unsafe fn(&Header),
    /// Keeps the result for the joiner.
    pub(crate) store: unsafe fn(&Header, TaskResult),
    /// Drops a result that nobody can ask for any more; user code.
    pub(crate) drop_output: unsafe fn(&Header),
    /// Moves the result into an `Option<Result<T, JoinError>>`.
    pub(crate) take_output: unsafe fn(&Header, *mut ()),
    /// Sends a message of unknown type.
    pub(crate) deliver: unsafe fn(&Header, Payload) -> Result<(), SendError<Payload>>,
    /// Frees the memory and hands back the executor that the task held.
    pub(crate) free: unsafe fn(NonNull<Header>) -> ExecutorRef,
    /// Tells the body of a panic that ended its turn, by the address as in `step`; without it that
    /// ends the process.
    pub(crate) on_panic: Option<OnPanic>,
    /// What a custom task does in its own way.
    pub(crate) custom: Option<&'static CustomVTable>,
    /// What the process is called in reports.
    pub(crate) name: fn() -> &'static str,
}

/// What a body of unknown type does about a panic in its turn.
pub(crate) type OnPanic = unsafe fn(NonNull<Header>, &ExecutorShared, PanicPayload) -> PollOutcome;

/// What a custom task does in its own way: the word of its front, and not the state word, says
/// whether it waits; see [`custom`](crate::custom_task).
pub(crate) struct CustomVTable {
    /// What its body says of its kind.
    pub(crate) kind: fn() -> TypeId,
    /// What it is sent, as reports call it.
    pub(crate) input: fn() -> &'static str,
    /// Ends its sleep; true if it slept, and is to be queued by the caller.
    pub(crate) unpark: unsafe fn(&Header) -> bool,
    pub(crate) is_parked: unsafe fn(&Header) -> bool,
}

/// What is to become of a process after a step.
pub(crate) enum PollOutcome {
    PollAgain,
    Wait(WaitKind),
    /// It sleeps already, and may even have been woken, or freed: it must not be touched any more,
    /// nor be borrowed by whoever is told.
    Parked,
    /// It asked for commands, and then goes on like this.
    DispatchCommands(AfterDispatch),
    Finished(TaskResult),
}

/// What becomes of a process when its commands are with their handlers.
pub(crate) enum AfterDispatch {
    /// It waits for them, or for another event.
    Wait,
    /// It has another turn: events were kept from it, and nobody notifies a second time.
    PollAgain,
}

/// How a process ends.
pub(crate) enum TaskResult {
    /// The body has kept its result already.
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
            link: Link::new(),
            vtable,
            executor: ManuallyDrop::new(executor),
            slot,
            signals: SignalQueue::new(),
            links: UnsafeCell::new(None),
        }
    }

    #[inline]
    pub(crate) fn slot(&self) -> &Slot {
        // SAFETY: the slot belongs to the registry of the executor that this task holds, and is never
        // freed before_first_poll that.
        unsafe { self.slot.as_ref() }
    }

    pub(crate) fn pid(&self) -> Pid {
        // SAFETY: whoever can call this has a reference to the task.
        let generation = unsafe { self.slot().generation() };
        Pid::new(self.executor.node(), self.slot().index(), generation)
    }

    /// Whether it is a process of this executor. Pids do not tell: another's may be the same.
    #[inline]
    pub(crate) fn is_of(&self, executor: &ExecutorShared) -> bool {
        core::ptr::eq(&raw const **self.executor, executor)
    }

    /// Makes the process run, if it does not anyway. The event that it is about was left before_first_poll.
    #[inline]
    pub(crate) fn wake(&self) {
        if self.unpark() {
            self.executor.schedule_woken(Runnable::of(self));
        }
    }

    /// As [`wake`](Self::wake), but it runs behind all that is queued where this is called.
    #[inline]
    pub(crate) fn wake_last(&self) {
        if self.unpark() {
            self.executor.schedule_last(Runnable::of(self));
        }
    }

    /// Tells the process that something was left for it; true if the caller has to queue it.
    #[inline]
    fn unpark(&self) -> bool {
        match self.vtable.custom {
            None => matches!(self.state.notify(), NotifyAction::Enqueue),
            Some(custom) => {
                // SAFETY: the table is that of the task.
                let slept = unsafe { (custom.unpark)(self) };
                if slept {
                    // Relaxed: a hint; until it is queued it is this caller's.
                    self.is_polling.store(false, Relaxed);
                }
                slept
            }
        }
    }

    /// What it does, at about this time.
    pub(crate) fn state(&self) -> State {
        match self.vtable.custom {
            Some(custom) if !self.state.is_complete() => {
                // SAFETY: the table is that of the task.
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

    /// Ends the process at its next turn.
    pub(crate) fn terminate(&self) -> bool {
        match self.state.terminate() {
            NotifyAction::Enqueue => self.executor.schedule_woken(Runnable::of(self)),
            NotifyAction::Already if self.vtable.custom.is_some() => self.wake(),
            NotifyAction::Already => {}
            NotifyAction::Complete => return false,
        }
        true
    }

    /// Leaves a signal and makes the process look at it. It comes back if the process has ended.
    pub(crate) fn signal(&self, signal: ProcessSignal) -> Result<(), ProcessSignal> {
        self.signals.push(signal)?;
        self.wake();
        Ok(())
    }
}

/// What a task has behind its header that somebody may join: the waker of who does. Whose it is, the
/// state word tells.
pub(crate) type JoinWakerSlot = UnsafeCell<Option<Waker>>;

/// The front of a task that may be joined.
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
    pub(crate) unsafe fn of(header: &Header) -> &Self {
        // SAFETY: by the contract, the header is the first field of one.
        unsafe { &*core::ptr::from_ref(header).cast::<Self>() }
    }
}

/// One reference to a task.
#[repr(transparent)]
pub(crate) struct TaskRef(NonNull<Header>);

// SAFETY: what a reference reaches without further promise, the header, is made for sharing: atomics,
// and cells whose owner the state word names. Bodies that are not `Send` are touched and dropped by
// the runner only, which for them is always the same thread (module, 3).
unsafe impl Send for TaskRef {}
// SAFETY: as above.
unsafe impl Sync for TaskRef {}

impl TaskRef {
    /// # Safety
    ///
    /// The pointer is that of a live task, and the caller owns one reference, which it gives away.
    pub(crate) unsafe fn from_raw(header: NonNull<Header>) -> Self {
        Self(header)
    }

    pub(crate) fn into_raw(self) -> NonNull<Header> {
        ManuallyDrop::new(self).0
    }

    #[inline]
    pub(crate) fn header(&self) -> &Header {
        // SAFETY: this reference keeps the task from being freed, and only shared borrows of the
        // header are made while one exists.
        unsafe { self.0.as_ref() }
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
        // SAFETY: this reference is one that is counted, so the count is not zero.
        unsafe { self.header().slot().acquire() };
        Self(self.0)
    }
}

impl Drop for TaskRef {
    #[inline]
    fn drop(&mut self) {
        let slot = self.header().slot;
        // SAFETY: the slot lives as long as the executor, which is held by the task, and after the
        // task was freed by `free`, until it is vacated.
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

/// Frees the task whose last reference was given back.
#[inline(never)]
pub(crate) fn free(last: LastRef<'_>) {
    let header = last.value().cast::<Header>();
    // SAFETY: nobody can make another reference (the registry does not count up from zero), so the
    // task is this thread's single_thread.
    let release = unsafe { header.as_ref() }.vtable.free;
    // SAFETY: as above; the function is that of the task's own type.
    let executor = unsafe { release(header) };
    executor.vacate(last);
}

/// The task of a process that is ready: what run queues hold (module, 2).
///
/// Dropped, it is lost, and the process with it, which is then never freed: whoever drops a queue
/// need not be on the thread that the body may be dropped on. That happens only if a panic that
/// nobody catches ends the thread of an executor.
#[must_use = "a process whose runnable is dropped is lost"]
pub(crate) struct Runnable(NonNull<Header>);

// SAFETY: as for `TaskRef`, which it becomes.
unsafe impl Send for Runnable {}

impl Runnable {
    /// The runnable of a process that the caller has just made ready; nobody else has it.
    #[inline]
    pub(crate) fn of(header: &Header) -> Self {
        Self(NonNull::from(header))
    }

    /// The reference of the process's task.
    #[inline]
    pub(crate) fn into_ref(self) -> TaskRef {
        TaskRef(self.0)
    }

    /// The runnable of a process that the holder of its task has just made ready again.
    #[inline]
    pub(crate) fn from_ref(task: TaskRef) -> Self {
        Self(task.into_raw())
    }

    /// The index of the process in the registry.
    #[inline]
    pub(crate) fn index(&self) -> u32 {
        // SAFETY: the runnable owns a reference, so the task is there.
        unsafe { self.0.as_ref() }.slot().index()
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

/// Runnables hang in the injector by the header's link.
pub(crate) struct RunQueueLink;

// SAFETY: (1) the link stands in the header, which lives as long as the runnable's reference; (2) an
// runnable is the only one of its process, so the link is in one queue at a time; (3) the conversions
// are inverse to each other: the link stands at a fixed offset in the `repr(C)` header.
unsafe impl Linked for RunQueueLink {
    type Handle = Runnable;

    fn into_link(handle: Runnable) -> NonNull<Link> {
        let header = handle.into_raw();
        // SAFETY: the pointer is that of a live header, so the field's address is in bounds.
        let link = unsafe { &raw mut (*header.as_ptr()).link };
        // SAFETY: the address of a field of a live header is not null.
        unsafe { NonNull::new_unchecked(link) }
    }

    unsafe fn from_link(link: NonNull<Link>) -> Runnable {
        // SAFETY: the link is that of a header, by the contract, so the header begins this much before_first_poll.
        let header = unsafe { link.byte_sub(core::mem::offset_of!(Header, link)) };
        // SAFETY: the runnable was given away by `into_link`.
        unsafe { Runnable::from_raw(header.cast()) }
    }
}

static WAKER: RawWakerVTable =
    RawWakerVTable::new(waker_clone, waker_wake, waker_wake_by_ref, waker_drop);

/// A waker of the process, borrowed from a reference that outlives it.
#[inline]
pub(crate) fn borrowed_waker(header: &Header) -> ManuallyDrop<Waker> {
    let data = NonNull::from(header).as_ptr().cast_const().cast::<()>();
    // SAFETY: the functions keep the contract of `RawWaker`: they are thread-safe, and count a
    // reference for each clone. This first one counts none and is never dropped.
    ManuallyDrop::new(unsafe { Waker::from_raw(RawWaker::new(data, &WAKER)) })
}

/// The process behind a waker, if it is one of ours. The borrow is that of the waker.
#[inline]
pub(crate) fn header_of(waker: &Waker) -> Option<&Header> {
    if core::ptr::eq(waker.vtable(), &raw const WAKER) {
        // SAFETY: a waker with this table has a header as its data, and a reference to it, or is
        // borrowed from one; both last as long as the waker.
        Some(unsafe { &*waker.data().cast::<Header>() })
    } else {
        None
    }
}

unsafe fn waker_clone(data: *const ()) -> RawWaker {
    // SAFETY: the data of our wakers is a live header.
    let header = unsafe { &*data.cast::<Header>() };
    // SAFETY: the waker that is cloned has, or is borrowed from, a counted reference.
    unsafe { header.slot().acquire() };
    RawWaker::new(data, &WAKER)
}

unsafe fn waker_wake(data: *const ()) {
    // SAFETY: as for the two.
    unsafe { waker_wake_by_ref(data) };
    // SAFETY: as for the two.
    unsafe { waker_drop(data) };
}

unsafe fn waker_wake_by_ref(data: *const ()) {
    // SAFETY: the data of our wakers is a live header.
    unsafe { &*data.cast::<Header>() }.wake();
}

unsafe fn waker_drop(data: *const ()) {
    let header = data.cast_mut().cast::<Header>();
    // SAFETY: the data of our wakers is a header, so not null.
    let header = unsafe { NonNull::new_unchecked(header) };
    // SAFETY: a waker that is dropped owns one reference, and gives it up.
    drop(unsafe { TaskRef::from_raw(header) });
}
