//! Tasks that run when the scheduler closes, and the report of a close.
//!
//! # Roles
//!
//! Any thread *registers* a task, gets a handle for it and may *cancel* it by that. One *closer*
//! takes all registered tasks, in the order in which they run. No thread ever waits.
//!
//! # States
//!
//! Tasks are stored in slots, at most 4096, in chunks that are allocated on first use and freed
//! with the whole. A slot has one state word. Registrations are numbered from 1; no number is
//! reused.
//!
//! ```text
//!          claim          publish            cancel, close
//!   Free --------> Busy ----------> Ready n ---------------> Taking n
//!    ^              |                                           |
//!    |              | close                                     | moved out
//!    |              v                                           |
//!    +---------- Refused                                        |
//!    +----------------------------------------------------------+
//!
//!   registration_word: | number of registrations ... | closed |
//! ```
//!
//! # Rules
//!
//! 1. Only the thread that moved a slot from Free to Busy writes its content, until it publishes
//!    it. Only the thread that moved it from Ready to Taking moves the content out, until it sets
//!    Free.
//! 2. A registration claims its slot *before* it gets its number by an exchange of the registration
//!    word. If that word is closed, the registration gets no number, frees the slot and is refused.
//! 3. A close sets the closed bit of the registration word by one read-modify-write and *then*
//!    reads every slot. By rule 2 each registration has either found the word closed, or the closer
//!    sees its claim, because the close acquires what the exchange released.
//! 4. The closer takes what is Ready. What is Busy it moves to Refused: that registration fails to
//!    publish, takes its content back and is refused. So after a close nothing becomes Ready that
//!    the closer will not take.
//! 5. A handle names the slot and the number. Since numbers are not used again, an old handle
//!    matches no later task in its slot.
//! 6. A task that was moved out is run or dropped only after its slot is free: no user code runs
//!    while a slot is in a state that other threads would have to wait for.
//!
//! So exactly one of a task's registrar, canceller and closer has the task in the end: it is
//! refused, cancelled or run.
//!
//! # Why it cannot hang
//!
//! Only the loop of the registration word repeats an exchange, and only if another thread got a
//! number. A scan reads each slot once; the closer reads a slot a second or third time only if it
//! changed from Busy to Ready or further in between. A thread that stops in the middle keeps one
//! slot from being used and nothing else.
//!
//! A registration is refused for lack of room if it has seen each slot in use, one after the other.
#![expect(unsafe_code, reason = "moves tasks in and out of slots that threads share")]

use alloc::{boxed::Box, vec::Vec};
use core::{any::Any, fmt, ptr, time::Duration};

use clockjack_sync::{
    primitive::{
        IS_MODEL, UnsafeCell,
        atomic::{
            AtomicPtr, AtomicUsize,
            Ordering::{AcqRel, Acquire, Relaxed, Release},
        },
    },
    primitive_array,
};
use clockjack_time::DriverStatus;

use crate::{HandlerError, ScheduleError, ScheduleErrorKind};

/// Slots per chunk: few, because most programs register a handful.
const CHUNK_SLOTS: usize = if IS_MODEL { 2 } else { 64 };
/// With [`CHUNK_SLOTS`] they make the 4096 tasks that may be registered at a time.
const CHUNKS_MAX: usize = if IS_MODEL { 1 } else { 64 };

/// A slot's state, in its two lowest bits; above them is the number of the task, or zero.
const STATE_BITS: u32 = 2;
const FREE: usize = 0;
const BUSY: usize = 1;
const REFUSED: usize = 3;
const READY_TAG: usize = 2;
const TAKING_TAG: usize = 3;

/// The lowest bit of the registration word; above it is the number of registrations.
const CLOSED: usize = 1;
const ONE_NUMBER: usize = 2;
/// The last number that fits into a state. After it, registrations are refused.
const NUMBER_MAX: usize = usize::MAX >> STATE_BITS;

/// The priority of a close task.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TaskRunPriority {
    /// First: tasks that keep the system consistent.
    SystemCritical,
    /// Then: tasks of the runtime.
    Runtime,
    /// Last: tasks of users.
    #[default]
    User,
}

impl fmt::Display for TaskRunPriority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::SystemCritical => "system-critical",
            Self::Runtime => "runtime",
            Self::User => "user",
        })
    }
}

/// Names a close task. It is valid only for the scheduler that returned it; dropping it cancels
/// nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TaskRunHandle {
    slot: usize,
    number: usize,
}

impl TaskRunHandle {
    /// The number of the task in the order of registration, from 1 on, as
    /// [`TaskRunFailed`](crate::Warning::TaskRunFailed) names it.
    #[must_use]
    pub const fn number(self) -> u64 {
        self.number as u64
    }
}

/// The results of the close tasks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TaskRunReport {
    /// How many returned `Ok`.
    pub succeeded: u64,
    /// How many returned an error or panicked. Later tasks ran nevertheless.
    pub failed: u64,
    /// How long all of them took.
    pub duration: Duration,
}

/// The report of a close. It accounts for all jobs: `accepted` is the sum of `executed` and
/// `cancelled`, as long as none is `still_running`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CloseReport {
    /// Jobs that the scheduler has accepted.
    pub accepted: u64,
    /// Accepted jobs that are completed, including `run_on_close`.
    pub executed: u64,
    /// Accepted jobs that were cancelled, by the close or before it.
    pub cancelled: u64,
    /// The close tasks.
    pub close_tasks: TaskRunReport,
    /// One-shots that were marked to be run at the close, and ran.
    pub run_on_close: u64,
    /// Jobs whose handler had not returned when the close reported, or whose delivery had not been
    /// dropped.
    pub still_running: u64,
    /// The status of the driver after it was stopped; `None` if there is no driver.
    pub driver: Option<DriverStatus>,
}

impl fmt::Display for CloseReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { accepted, executed, cancelled, close_tasks, run_on_close, .. } = self;
        write!(f, "closed: {accepted} jobs accepted, {executed} executed")?;
        write!(f, " ({run_on_close} by the close), {cancelled} cancelled")?;
        if self.still_running > 0 {
            write!(f, ", {} still running", self.still_running)?;
        }
        let TaskRunReport { succeeded, failed, duration } = close_tasks;
        write!(f, "; close tasks: {succeeded} succeeded, {failed} failed in {duration:?}")?;
        match self.driver {
            None => f.write_str("; no driver"),
            Some(DriverStatus::Flushed { drained, pending_ticks }) => {
                write!(f, "; driver flushed: {drained} ticks drained, {pending_ticks} since")
            }
            Some(DriverStatus::Ok) => f.write_str("; driver not stopped"),
            Some(DriverStatus::Backpressured { pending_ticks }) => {
                write!(f, "; driver not stopped: {pending_ticks} ticks wait")
            }
            Some(DriverStatus::Suspended) => f.write_str("; driver stopped"),
        }
    }
}

/// A task that a close has taken, and that is run next.
pub struct CloseTask {
    number: usize,
    priority: TaskRunPriority,
    task: Box<dyn RunOnClose>,
}

impl CloseTask {
    /// Its number in the order of registration.
    #[must_use]
    pub const fn number(&self) -> u64 {
        self.number as u64
    }

    /// Its priority.
    #[must_use]
    pub const fn priority(&self) -> TaskRunPriority {
        self.priority
    }

    /// Runs it. A panic propagates; the host catches it.
    ///
    /// # Errors
    ///
    /// The error of the task.
    pub fn run(self) -> Result<(), HandlerError> {
        self.task.run()
    }
}

impl fmt::Debug for CloseTask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CloseTask")
            .field("number", &self.number)
            .field("priority", &self.priority)
            .finish_non_exhaustive()
    }
}

/// The close tasks; the protocol is at the top of the file.
pub struct CloseTasks {
    registration_word: AtomicUsize,
    chunks: [AtomicPtr<TaskChunk>; CHUNKS_MAX],
}

// SAFETY: the content of a slot is `Send` and is moved in and out by one thread at a time (rule 1);
// a chunk is shared only as `&TaskChunk`, and freed by `&mut self`.
unsafe impl Sync for CloseTasks {}
// SAFETY: the chunks belong to it, and the tasks in them are `Send`.
unsafe impl Send for CloseTasks {}

impl CloseTasks {
    /// How many tasks may be registered at a time.
    pub const LEN_MAX: usize = CHUNK_SLOTS * CHUNKS_MAX;

    /// Creates an empty, open store.
    #[must_use]
    pub fn new() -> Self {
        Self {
            registration_word: AtomicUsize::new(0),
            chunks: primitive_array![AtomicPtr::new(ptr::null_mut()); CHUNKS_MAX],
        }
    }

    /// Registers a task. Those of one priority run in the order of registration.
    ///
    /// # Errors
    ///
    /// Returns the task with [`Closed`](ScheduleErrorKind::Closed) once a close has begun, and with
    /// [`CapacityExceeded`](ScheduleErrorKind::CapacityExceeded) at the maximum number of tasks.
    pub fn register<F>(
        &self,
        task: F,
        priority: TaskRunPriority,
    ) -> Result<TaskRunHandle, ScheduleError<F>>
    where
        F: FnOnce() -> Result<(), HandlerError> + Send + 'static,
    {
        if self.is_closed() {
            return Err(ScheduleError::new(ScheduleErrorKind::Closed, task));
        }
        let Some((index, slot)) = self.claim() else {
            return Err(ScheduleError::new(ScheduleErrorKind::CapacityExceeded, task));
        };
        let number = match self.next_number() {
            Ok(number) => number,
            Err(kind) => {
                slot.free();
                return Err(ScheduleError::new(kind, task));
            }
        };
        // SAFETY: this thread has claimed the slot and has not published it.
        unsafe { slot.put(CloseTask { number, priority, task: Box::new(task) }) };
        if slot.publish(number) {
            return Ok(TaskRunHandle { slot: index, number });
        }
        // SAFETY: this thread has claimed the slot and could not publish it, so it is still its.
        let refused = unsafe { slot.take() };
        slot.free();
        let task: Box<dyn Any> = refused.task;
        let task = task.downcast::<F>().expect("the slot holds what this call has put there");
        Err(ScheduleError::new(ScheduleErrorKind::Closed, *task))
    }

    /// Cancels a task and drops it here and now. True once; false if it was cancelled before, or a
    /// close has taken it.
    pub fn cancel(&self, handle: TaskRunHandle) -> bool {
        let Some(slot) = self.slot(handle.slot) else {
            return false;
        };
        if !slot.begin_take(handle.number) {
            return false;
        }
        // SAFETY: this thread has moved the slot from Ready to Taking.
        let cancelled = unsafe { slot.take() };
        slot.free();
        drop(cancelled);
        true
    }

    /// Refuses registrations from now on, and takes all tasks, in the order in which they are to
    /// run. A second close finds nothing.
    pub fn close(&self) -> Vec<CloseTask> {
        // Acquire: pairs with the exchange in `next_number`, so that each claim whose number was
        // given out before is seen below (rule 3). Release: who sees the bit sees what the closer
        // did before, as is usual for a state that users can ask for.
        self.registration_word.fetch_or(CLOSED, AcqRel);
        let mut tasks = Vec::new();
        for slot in self.slots() {
            if let Some(number) = slot.refuse_or_begin_take() {
                // SAFETY: this thread has moved the slot from Ready to Taking.
                let task = unsafe { slot.take() };
                debug_assert_eq!(task.number, number, "the slot holds another task");
                slot.free();
                tasks.push(task);
            }
        }
        tasks.sort_unstable_by_key(|task| (task.priority, task.number));
        tasks
    }

    /// Whether a close has begun.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        // Acquire: pairs with the close.
        self.registration_word.load(Acquire) & CLOSED != 0
    }

    /// How many tasks are registered; exact if no other thread registers or cancels meanwhile.
    #[must_use]
    pub fn len(&self) -> usize {
        self.slots().filter(|slot| slot.is_ready()).count()
    }

    /// Whether none is registered; as exact as [`len`](Self::len).
    #[must_use]
    pub fn is_empty(&self) -> bool {
        !self.slots().any(TaskSlot::is_ready)
    }

    fn next_number(&self) -> Result<usize, ScheduleErrorKind> {
        // Relaxed: only the exchange counts; a stale value fails it.
        let mut registration_word = self.registration_word.load(Relaxed);
        loop {
            if registration_word & CLOSED != 0 {
                return Err(ScheduleErrorKind::Closed);
            }
            let number = registration_word / ONE_NUMBER + 1;
            if number > NUMBER_MAX {
                return Err(ScheduleErrorKind::CapacityExceeded);
            }
            // Release: the claim of the slot is seen by the close that finds this number given out
            // (rule 3). Exchanges of others in between continue it.
            match self.registration_word.compare_exchange_weak(
                registration_word,
                registration_word + ONE_NUMBER,
                Release,
                Relaxed,
            ) {
                Ok(_) => return Ok(number),
                Err(now) => registration_word = now,
            }
        }
    }

    /// A slot that is Busy for this thread, with its index.
    fn claim(&self) -> Option<(usize, &TaskSlot)> {
        let chunks = self
            .chunks
            .iter()
            .map(|chunk_ptr| chunk_at(chunk_ptr).unwrap_or_else(|| grow(chunk_ptr)));
        chunks.flat_map(|chunk| &chunk.slots).enumerate().find(|(_, slot)| slot.claim())
    }

    fn slot(&self, index: usize) -> Option<&TaskSlot> {
        let chunk = chunk_at(self.chunks.get(index / CHUNK_SLOTS)?)?;
        Some(&chunk.slots[index % CHUNK_SLOTS])
    }

    /// The slots that there are. Chunks are made in order, each only when the ones before are full.
    fn slots(&self) -> impl Iterator<Item = &TaskSlot> {
        self.chunks.iter().map_while(chunk_at).flat_map(|chunk| &chunk.slots)
    }
}

impl Default for CloseTasks {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for CloseTasks {
    fn drop(&mut self) {
        for chunk_ptr in &self.chunks {
            // Relaxed: `&mut self` orders all that others did before.
            let chunk = chunk_ptr.load(Relaxed);
            if !chunk.is_null() {
                // SAFETY: the pointer came from `Box::into_raw` in `grow`, is freed here only, and
                // `&mut self` shows that nobody borrows the chunk.
                drop(unsafe { Box::from_raw(chunk) });
            }
        }
    }
}

impl fmt::Debug for CloseTasks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CloseTasks")
            .field("len", &self.len())
            .field("is_closed", &self.is_closed())
            .finish_non_exhaustive()
    }
}

/// A type-erased close task that can be downcast.
trait RunOnClose: Any + Send {
    fn run(self: Box<Self>) -> Result<(), HandlerError>;
}

impl<F: FnOnce() -> Result<(), HandlerError> + Send + 'static> RunOnClose for F {
    fn run(self: Box<Self>) -> Result<(), HandlerError> {
        self()
    }
}

struct TaskChunk {
    slots: [TaskSlot; CHUNK_SLOTS],
}

/// The chunk of a pointer, if it was allocated.
fn chunk_at(chunk_ptr: &AtomicPtr<TaskChunk>) -> Option<&TaskChunk> {
    // Acquire: pairs with the exchange in `grow`.
    let chunk = chunk_ptr.load(Acquire);
    // SAFETY: a pointer that is not null came from `Box::into_raw` in `grow`. It is freed when the
    // whole is dropped, which is not before the borrow of the chunk_ptr ends; until then only
    // shared references to the chunk are made.
    unsafe { chunk.as_ref() }
}

/// Allocates the chunk of a pointer, unless another thread was faster.
#[cold]
fn grow(chunk_ptr: &AtomicPtr<TaskChunk>) -> &TaskChunk {
    let made = Box::into_raw(Box::new(TaskChunk {
        slots: primitive_array![TaskSlot::new(); CHUNK_SLOTS],
    }));
    // Release: publishes the new chunk to `chunk_at`. Acquire: pairs with the same exchange of the
    // thread that was faster.
    let chunk = match chunk_ptr.compare_exchange(ptr::null_mut(), made, Release, Acquire) {
        Ok(_) => made,
        Err(other) => {
            // SAFETY: the pointer came from `Box::into_raw` above, and nobody else has seen it.
            drop(unsafe { Box::from_raw(made) });
            other
        }
    };
    // SAFETY: as in `chunk_at`; it is not null.
    unsafe { &*chunk }
}

struct TaskSlot {
    state: AtomicUsize,
    content: UnsafeCell<Option<CloseTask>>,
}

impl TaskSlot {
    clockjack_sync::const_unless_loom! {
        const fn new() -> Self {
            Self { state: AtomicUsize::new(FREE), content: UnsafeCell::new(None) }
        }
    }

    /// Free to Busy.
    fn claim(&self) -> bool {
        // Relaxed: a hint that spares the exchange for slots in use.
        self.state.load(Relaxed) == FREE
            // Acquire: pairs with the store in `free`: the content was moved out before.
            && self.state.compare_exchange(FREE, BUSY, Acquire, Relaxed).is_ok()
    }

    /// Busy to Ready, unless a close has refused it.
    fn publish(&self, number: usize) -> bool {
        let ready = number << STATE_BITS | READY_TAG;
        // Release: publishes the content to who begins to take it. Relaxed on failure: the content
        // is this thread's own.
        self.state.compare_exchange(BUSY, ready, Release, Relaxed).is_ok()
    }

    /// Ready to Taking, if it is that number's.
    fn begin_take(&self, number: usize) -> bool {
        let ready = number << STATE_BITS | READY_TAG;
        let taking = number << STATE_BITS | TAKING_TAG;
        // Acquire: pairs with `publish`: the content is there.
        self.state.compare_exchange(ready, taking, Acquire, Relaxed).is_ok()
    }

    /// Busy to Refused, or Ready to Taking with the task's number.
    fn refuse_or_begin_take(&self) -> Option<usize> {
        // Relaxed: the exchange of the registration word has acquired the claims that must be seen;
        // the content is acquired when it is taken.
        let mut state = self.state.load(Relaxed);
        loop {
            if state == BUSY {
                // Relaxed: the registrar learns nothing by it but that it is refused.
                match self.state.compare_exchange(BUSY, REFUSED, Relaxed, Relaxed) {
                    Ok(_) => return None,
                    Err(now) => state = now,
                }
            } else if state & READY_TAG != 0 && state & BUSY == 0 {
                let number = state >> STATE_BITS;
                if self.begin_take(number) {
                    return Some(number);
                }
                // A canceller has it. If the slot is claimed once more, the registration word
                // refuses that registration.
                return None;
            } else {
                return None;
            }
        }
    }

    /// Any state of this thread's own to Free.
    fn free(&self) {
        // Release: pairs with the next `claim`: the content is moved out. A swap and not a store,
        // since a close may move Busy to Refused meanwhile.
        self.state.swap(FREE, Release);
    }

    fn is_ready(&self) -> bool {
        // Relaxed: a count that publishes nothing.
        self.state.load(Relaxed) & TAKING_TAG == READY_TAG
    }

    /// Puts the content in.
    ///
    /// # Safety
    ///
    /// This thread must have claimed the slot and not published it.
    unsafe fn put(&self, task: CloseTask) {
        self.content.with_mut(|content| {
            // SAFETY: nobody else touches the content of a slot that this thread has claimed (rule
            // 1). What is overwritten is `None`, so nothing is dropped.
            unsafe { *content = Some(task) }
        });
    }

    /// Moves the content out.
    ///
    /// # Safety
    ///
    /// This thread must have claimed the slot, put the content in and not published it, or have
    /// moved it from Ready to Taking; and not have freed it.
    unsafe fn take(&self) -> CloseTask {
        let task = self.content.with_mut(|content| {
            // SAFETY: nobody else touches the content of a slot that this thread has (rule 1).
            unsafe { &mut *content }.take()
        });
        task.expect("a slot that was published has a content")
    }
}
