//! The cell: one process in memory, and the references to it.
//!
//! A cell begins with a [`Head`], which has no type parameter: what queues, wakers and the registry
//! hold is a pointer to it. Behind it stands the body, a future or a process, which only the
//! functions of its [`VTable`] know.
//!
//! # Who owns what
//!
//! 1. References are counted in the registry's slot, not in the cell, so that a look-up by pid can
//!    take one while the process ends. A [`CellRef`] is one reference. Whoever gives back the last
//!    one frees the cell and then vacates the slot.
//! 2. One reference is that of the process's *life*. It is where the process is: in the
//!    [`Entry`] of a run queue, in the hands of the worker that runs it, or, while it waits,
//!    nowhere: whoever makes it ready makes the entry anew. It is given back when the process has
//!    ended. So waking costs no counting.
//! 3. The body is touched only by the runner, the one that the state word made so. When the process
//!    ends the runner drops it, on its own thread; so what is not `Send` dies where it lived, even
//!    if the last reference goes elsewhere.
//! 4. The output belongs to the runner before the completion and to the joiner, if there is one,
//!    after it (see [`state`](crate::state)).
#![expect(unsafe_code, reason = "counts references to, and calls into, cells of unknown type")]

pub(crate) mod proc;
pub(crate) mod task;

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
    engine::Engine,
    engine_ref::EngineRef,
    error::SendError,
    exit::{Caught, Exit, ExitReason},
    payload::Payload,
    pid::Pid,
    registry::{Last, Slot},
    signal::{Lane, Signal},
    state::{Notify, State, Waiting, Word},
    ties::Ties,
};

/// The part of a cell that is the same for all.
#[repr(C)]
pub(crate) struct Head {
    pub(crate) word: Word,
    /// Of a custom cell: whether it is in a turn. For reports.
    pub(crate) is_in_turn: AtomicBool,
    pub(crate) link: Link,
    pub(crate) vtable: &'static VTable,
    /// Taken out by `VTable::free`, so that it outlives the cell's memory.
    pub(crate) engine: ManuallyDrop<EngineRef>,
    /// Where its references are counted; stays valid as long as the engine.
    slot: NonNull<Slot>,
    pub(crate) lane: Lane,
    /// Whom it is tied to; the runner's.
    pub(crate) ties: UnsafeCell<Option<Box<Ties>>>,
}

/// What a body of unknown type can do. All but `deliver` are for the runner.
pub(crate) struct VTable {
    /// Runs user code once. It has the cell by its address and not as a reference, since a custom
    /// cell may be gone when it returns.
    pub(crate) step: unsafe fn(NonNull<Head>, &Engine) -> Verdict,
    /// The next command that the step has asked for.
    pub(crate) next_request: unsafe fn(&Head) -> Option<Request>,
    /// Lets the process clean up; user code.
    pub(crate) close: unsafe fn(&Head),
    /// Drops the body and what was sent to it; user code. Called again, it goes on where a panic
    /// stopped it.
    pub(crate) drop_body: unsafe fn(&Head),
    /// Keeps the result for the joiner.
    pub(crate) store: unsafe fn(&Head, Ending),
    /// Drops a result that nobody can ask for any more; user code.
    pub(crate) drop_output: unsafe fn(&Head),
    /// Moves the result into an `Option<Result<T, Exit>>`.
    pub(crate) take_output: unsafe fn(&Head, *mut ()),
    /// Sends a message of unknown type.
    pub(crate) deliver: unsafe fn(&Head, Payload) -> Result<(), SendError<Payload>>,
    /// Frees the memory and hands back the engine that the cell held.
    pub(crate) free: unsafe fn(NonNull<Head>) -> EngineRef,
    /// Tells the body of a panic that ended its turn, by the address as in `step`; without it that
    /// ends the process.
    pub(crate) panicked: Option<Panicked>,
    /// What a custom cell does in its own way.
    pub(crate) custom: Option<&'static Custom>,
    /// What the process is called in reports.
    pub(crate) name: fn() -> &'static str,
}

/// What a body of unknown type does about a panic in its turn.
pub(crate) type Panicked = unsafe fn(NonNull<Head>, &Engine, Caught) -> Verdict;

/// What a custom cell does in its own way: the word of its front, and not the state word, says
/// whether it waits; see [`custom`](crate::custom).
pub(crate) struct Custom {
    /// What its body says of its kind.
    pub(crate) kind: fn() -> TypeId,
    /// What it is sent, as reports call it.
    pub(crate) input: fn() -> &'static str,
    /// Ends its sleep; true if it slept, and is to be queued by the caller.
    pub(crate) unpark: unsafe fn(&Head) -> bool,
    pub(crate) is_parked: unsafe fn(&Head) -> bool,
}

/// What is to become of a process after a step.
pub(crate) enum Verdict {
    Again,
    Wait(Waiting),
    /// It sleeps already, and may even have been woken, or freed: it must not be touched any more,
    /// nor be borrowed by whoever is told.
    Parked,
    /// It asked for commands, and then goes on like this.
    Dispatch(Next),
    End(Ending),
}

/// What becomes of a process when its commands are with their handlers.
pub(crate) enum Next {
    /// It waits for them, or for another event.
    Wait,
    /// It has another turn: events were kept from it, and nobody notifies a second time.
    Again,
}

/// How a process ends.
pub(crate) enum Ending {
    /// The body has kept its result already.
    Kept,
    Result(Payload),
    Exit(Exit),
}

impl Ending {
    pub(crate) fn reason(&self) -> ExitReason {
        match self {
            Self::Kept | Self::Result(_) => ExitReason::Normal,
            Self::Exit(exit) => exit.reason(),
        }
    }
}

impl Head {
    pub(crate) fn new(
        engine: EngineRef,
        slot: NonNull<Slot>,
        vtable: &'static VTable,
        joined: bool,
    ) -> Self {
        Self {
            word: if vtable.custom.is_some() { Word::running() } else { Word::new(joined) },
            is_in_turn: AtomicBool::new(false),
            link: Link::new(),
            vtable,
            engine: ManuallyDrop::new(engine),
            slot,
            lane: Lane::new(),
            ties: UnsafeCell::new(None),
        }
    }

    #[inline]
    pub(crate) fn slot(&self) -> &Slot {
        // SAFETY: the slot belongs to the registry of the engine that this cell holds, and is never
        // freed before that.
        unsafe { self.slot.as_ref() }
    }

    pub(crate) fn pid(&self) -> Pid {
        // SAFETY: whoever can call this has a reference to the cell.
        let generation = unsafe { self.slot().generation() };
        Pid::new(self.engine.node(), self.slot().index(), generation)
    }

    /// Whether it is a process of this engine. Pids do not tell: another's may be the same.
    #[inline]
    pub(crate) fn is_of(&self, engine: &Engine) -> bool {
        core::ptr::eq(&raw const **self.engine, engine)
    }

    /// Makes the process run, if it does not anyway. The event that it is about was left before.
    #[inline]
    pub(crate) fn wake(&self) {
        if self.ends_sleep() {
            self.engine.schedule_woken(Entry::of(self));
        }
    }

    /// As [`wake`](Self::wake), but it runs behind all that is queued where this is called.
    #[inline]
    pub(crate) fn wake_last(&self) {
        if self.ends_sleep() {
            self.engine.schedule_last(Entry::of(self));
        }
    }

    /// Tells the process that something was left for it; true if the caller has to queue it.
    #[inline]
    fn ends_sleep(&self) -> bool {
        match self.vtable.custom {
            None => matches!(self.word.notify(), Notify::Enqueue),
            Some(custom) => {
                // SAFETY: the table is that of the cell.
                let slept = unsafe { (custom.unpark)(self) };
                if slept {
                    // Relaxed: a hint; until it is queued it is this caller's.
                    self.is_in_turn.store(false, Relaxed);
                }
                slept
            }
        }
    }

    /// What it does, at about this time.
    pub(crate) fn state(&self) -> State {
        match self.vtable.custom {
            Some(custom) if !self.word.is_complete() => {
                // SAFETY: the table is that of the cell.
                if unsafe { (custom.is_parked)(self) } {
                    State::Idle
                // Relaxed: a hint.
                } else if self.is_in_turn.load(Relaxed) {
                    State::Running
                } else {
                    State::Ready
                }
            }
            _ => self.word.state(),
        }
    }

    /// Ends the process at its next turn.
    pub(crate) fn terminate(&self) -> bool {
        match self.word.terminate() {
            Notify::Enqueue => self.engine.schedule_woken(Entry::of(self)),
            Notify::Already if self.vtable.custom.is_some() => self.wake(),
            Notify::Already => {}
            Notify::Complete => return false,
        }
        true
    }

    /// Leaves a signal and makes the process look at it. It comes back if the process has ended.
    pub(crate) fn signal(&self, signal: Signal) -> Result<(), Signal> {
        self.lane.push(signal)?;
        self.wake();
        Ok(())
    }
}

/// What a cell has behind its head that somebody may join: the waker of who does. Whose it is, the
/// state word tells.
pub(crate) type JoinSlot = UnsafeCell<Option<Waker>>;

/// The front of a cell that may be joined.
#[repr(C)]
pub(crate) struct Joinable {
    pub(crate) head: Head,
    pub(crate) joiner: JoinSlot,
}

impl Joinable {
    pub(crate) fn new(head: Head) -> Self {
        Self { head, joiner: UnsafeCell::new(None) }
    }

    /// # Safety
    ///
    /// The head is that of a future or a process, not of a custom cell.
    pub(crate) unsafe fn of(head: &Head) -> &Self {
        // SAFETY: by the contract, the head is the first field of one.
        unsafe { &*core::ptr::from_ref(head).cast::<Self>() }
    }
}

/// One reference to a cell.
#[repr(transparent)]
pub(crate) struct CellRef(NonNull<Head>);

// SAFETY: what a reference reaches without further promise, the head, is made for sharing: atomics,
// and cells whose owner the state word names. Bodies that are not `Send` are touched and dropped by
// the runner only, which for them is always the same thread (module, 3).
unsafe impl Send for CellRef {}
// SAFETY: as above.
unsafe impl Sync for CellRef {}

impl CellRef {
    /// # Safety
    ///
    /// The pointer is that of a live cell, and the caller owns one reference, which it gives away.
    pub(crate) unsafe fn from_raw(head: NonNull<Head>) -> Self {
        Self(head)
    }

    pub(crate) fn into_raw(self) -> NonNull<Head> {
        ManuallyDrop::new(self).0
    }

    #[inline]
    pub(crate) fn head(&self) -> &Head {
        // SAFETY: this reference keeps the cell from being freed, and only shared borrows of the
        // head are made while one exists.
        unsafe { self.0.as_ref() }
    }

    pub(crate) fn as_ptr(&self) -> NonNull<Head> {
        self.0
    }

    pub(crate) fn pid(&self) -> Pid {
        self.head().pid()
    }

    pub(crate) fn signal(&self, signal: Signal) -> Result<(), Signal> {
        self.head().signal(signal)
    }
}

impl Clone for CellRef {
    #[inline]
    fn clone(&self) -> Self {
        // SAFETY: this reference is one that is counted, so the count is not zero.
        unsafe { self.head().slot().acquire() };
        Self(self.0)
    }
}

impl Drop for CellRef {
    #[inline]
    fn drop(&mut self) {
        let slot = self.head().slot;
        // SAFETY: the slot lives as long as the engine, which is held by the cell, and after the
        // cell was freed by `free`, until it is vacated.
        let slot = unsafe { slot.as_ref() };
        // SAFETY: the reference is counted and is not used after this.
        if let Some(last) = unsafe { slot.release() } {
            free(last);
        }
    }
}

impl fmt::Debug for CellRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("CellRef").field(&self.pid()).finish()
    }
}

/// Frees the cell whose last reference was given back.
#[inline(never)]
pub(crate) fn free(last: Last<'_>) {
    let head = last.value().cast::<Head>();
    // SAFETY: nobody can make another reference (the registry does not count up from zero), so the
    // cell is this thread's alone.
    let release = unsafe { head.as_ref() }.vtable.free;
    // SAFETY: as above; the function is that of the cell's own type.
    let engine = unsafe { release(head) };
    engine.vacate(last);
}

/// The life of a process that is ready: what run queues hold (module, 2).
///
/// Dropped, it is lost, and the process with it, which is then never freed: whoever drops a queue
/// need not be on the thread that the body may be dropped on. That happens only if a panic that
/// nobody catches ends the thread of an executor.
#[must_use = "a process whose entry is dropped is lost"]
pub(crate) struct Entry(NonNull<Head>);

// SAFETY: as for `CellRef`, which it becomes.
unsafe impl Send for Entry {}

impl Entry {
    /// The entry of a process that the caller has just made ready; nobody else has it.
    #[inline]
    pub(crate) fn of(head: &Head) -> Self {
        Self(NonNull::from(head))
    }

    /// The reference of the process's life.
    #[inline]
    pub(crate) fn into_ref(self) -> CellRef {
        CellRef(self.0)
    }

    /// The entry of a process that the holder of its life has just made ready again.
    #[inline]
    pub(crate) fn from_ref(life: CellRef) -> Self {
        Self(life.into_raw())
    }

    /// The index of the process in the registry.
    #[inline]
    pub(crate) fn index(&self) -> u32 {
        // SAFETY: the entry owns a reference, so the cell is there.
        unsafe { self.0.as_ref() }.slot().index()
    }

    #[inline]
    pub(crate) fn into_raw(self) -> NonNull<Head> {
        self.0
    }

    /// # Safety
    ///
    /// The pointer came from [`into_raw`](Self::into_raw), and is given away.
    #[inline]
    pub(crate) unsafe fn from_raw(head: NonNull<Head>) -> Self {
        Self(head)
    }
}

impl fmt::Debug for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Entry").finish_non_exhaustive()
    }
}

/// Entries hang in the injector by the head's link.
pub(crate) struct Queued;

// SAFETY: (1) the link stands in the head, which lives as long as the entry's reference; (2) an
// entry is the only one of its process, so the link is in one queue at a time; (3) the conversions
// are inverse to each other: the link stands at a fixed offset in the `repr(C)` head.
unsafe impl Linked for Queued {
    type Handle = Entry;

    fn into_link(handle: Entry) -> NonNull<Link> {
        let head = handle.into_raw();
        // SAFETY: the pointer is that of a live head, so the field's address is in bounds.
        let link = unsafe { &raw mut (*head.as_ptr()).link };
        // SAFETY: the address of a field of a live head is not null.
        unsafe { NonNull::new_unchecked(link) }
    }

    unsafe fn from_link(link: NonNull<Link>) -> Entry {
        // SAFETY: the link is that of a head, by the contract, so the head begins this much before.
        let head = unsafe { link.byte_sub(core::mem::offset_of!(Head, link)) };
        // SAFETY: the entry was given away by `into_link`.
        unsafe { Entry::from_raw(head.cast()) }
    }
}

static WAKER: RawWakerVTable =
    RawWakerVTable::new(waker_clone, waker_wake, waker_wake_by_ref, waker_drop);

/// A waker of the process, borrowed from a reference that outlives it.
#[inline]
pub(crate) fn borrowed_waker(head: &Head) -> ManuallyDrop<Waker> {
    let data = NonNull::from(head).as_ptr().cast_const().cast::<()>();
    // SAFETY: the functions keep the contract of `RawWaker`: they are thread-safe, and count a
    // reference for each clone. This first one counts none and is never dropped.
    ManuallyDrop::new(unsafe { Waker::from_raw(RawWaker::new(data, &WAKER)) })
}

/// The process behind a waker, if it is one of ours. The borrow is that of the waker.
#[inline]
pub(crate) fn head_of(waker: &Waker) -> Option<&Head> {
    if core::ptr::eq(waker.vtable(), &raw const WAKER) {
        // SAFETY: a waker with this table has a head as its data, and a reference to it, or is
        // borrowed from one; both last as long as the waker.
        Some(unsafe { &*waker.data().cast::<Head>() })
    } else {
        None
    }
}

unsafe fn waker_clone(data: *const ()) -> RawWaker {
    // SAFETY: the data of our wakers is a live head.
    let head = unsafe { &*data.cast::<Head>() };
    // SAFETY: the waker that is cloned has, or is borrowed from, a counted reference.
    unsafe { head.slot().acquire() };
    RawWaker::new(data, &WAKER)
}

unsafe fn waker_wake(data: *const ()) {
    // SAFETY: as for the two.
    unsafe { waker_wake_by_ref(data) };
    // SAFETY: as for the two.
    unsafe { waker_drop(data) };
}

unsafe fn waker_wake_by_ref(data: *const ()) {
    // SAFETY: the data of our wakers is a live head.
    unsafe { &*data.cast::<Head>() }.wake();
}

unsafe fn waker_drop(data: *const ()) {
    let head = data.cast_mut().cast::<Head>();
    // SAFETY: the data of our wakers is a head, so not null.
    let head = unsafe { NonNull::new_unchecked(head) };
    // SAFETY: a waker that is dropped owns one reference, and gives it up.
    drop(unsafe { CellRef::from_raw(head) });
}
