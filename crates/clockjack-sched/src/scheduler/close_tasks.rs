//! Tasks that run when the scheduler closes, and the report of a close.
//!
//! # Protocol
//!
//! Roles: any thread *registers* a task, gets a handle for the task, and may *cancel* the task by
//! that handle. One *closer* takes all registered tasks, in the order in which they run. The tasks
//! are in a list behind a [`SpinLock`], in the order of registration. Registrations are numbered
//! from 1, and no number is reused.
//!
//! 1. A registration checks under the lock whether the list is closed, and adds its task in the
//!    same critical section. A close sets `is_closed` and takes all tasks in one critical section.
//!    So the order of these two critical sections decides: the closer takes the task, or the
//!    registration is refused.
//! 2. A canceller finds and removes its task in one critical section. So exactly one of a task's
//!    registrar, cancellers and closer gets the task: it is refused, cancelled or run.
//! 3. No user code runs under the lock, and nothing is allocated or freed there. A registration
//!    boxes its task before it locks, and drops or returns a refused task after it has unlocked; so
//!    does a canceller. If the list needs a larger buffer, the registration unlocks, allocates the
//!    buffer, and tries again with it.
//!
//! *Why it cannot hang*: the holder of the lock moves at most [`CloseTasks::LEN_MAX`] entries. A
//! registration tries again only if other threads have filled a buffer in between, and the number
//! of tasks is bounded.
//!
//! Interrupts must not lock: an interrupt may have interrupted the holder.
//! [`Scheduler`](crate::Scheduler) refuses them.

use alloc::{boxed::Box, vec::Vec};
use core::{fmt, mem, time::Duration};

use clockjack_sync::spin_lock::SpinLock;
use clockjack_time::DriverStatus;

use crate::{HandlerError, ScheduleError, ScheduleErrorKind};

/// The room of the first buffer: small, because most programs register a handful.
const CAPACITY_MIN: usize = 4;

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
    /// How many were dropped because the time of the close was over.
    pub left: u64,
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
    /// Runs that the close did not execute because its time was over: those that were due when it
    /// began, and those of marked one-shots. Their jobs were cancelled.
    pub runs_left: u64,
    /// The status of the driver after it was stopped; `None` if there is no driver.
    pub driver: Option<DriverStatus>,
}

impl CloseReport {
    /// Whether the close has done everything: no handler is still running, no due run was left, and
    /// all close tasks succeeded.
    #[must_use]
    pub const fn is_clean(&self) -> bool {
        let TaskRunReport { failed, left, .. } = self.close_tasks;
        self.still_running == 0 && self.runs_left == 0 && failed == 0 && left == 0
    }
}

impl fmt::Display for CloseReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { accepted, executed, cancelled, close_tasks, run_on_close, .. } = self;
        write!(f, "closed: {accepted} jobs accepted, {executed} executed")?;
        write!(f, " ({run_on_close} by the close), {cancelled} cancelled")?;
        if self.still_running > 0 {
            write!(f, ", {} still running", self.still_running)?;
        }
        if self.runs_left > 0 {
            write!(f, ", {} due runs left", self.runs_left)?;
        }
        let TaskRunReport { succeeded, failed, left, duration } = close_tasks;
        write!(f, "; close tasks: {succeeded} succeeded, {failed} failed in {duration:?}")?;
        if *left > 0 {
            write!(f, ", {left} left")?;
        }
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
    task: Box<dyn FnOnce() -> Result<(), HandlerError> + Send>,
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
        (self.task)()
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
#[derive(Default)]
pub struct CloseTasks {
    list: SpinLock<TaskList>,
}

impl CloseTasks {
    /// How many tasks may be registered at a time.
    pub const LEN_MAX: usize = 4096;

    /// Creates an empty, open store.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Registers a task. Those of one priority run in the order of registration. Not for
    /// interrupts.
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
        let mut task = Box::new(task);
        // The buffer that the list may take, and then the one that the list has replaced.
        let mut buffer = Vec::new();
        loop {
            match self.list.with(|list| list.push(task, priority, &mut buffer)) {
                Ok(number) => return Ok(TaskRunHandle { number }),
                Err((PushError::Refused(kind), refused)) => {
                    return Err(ScheduleError::new(kind, *refused));
                }
                Err((PushError::NeedsBuffer { capacity }, refused)) => {
                    buffer = Vec::with_capacity(capacity);
                    task = refused;
                }
            }
        }
    }

    /// Cancels a task and drops it here and now. True once; false if it was cancelled before, or a
    /// close has taken it. Not for interrupts.
    pub fn cancel(&self, handle: TaskRunHandle) -> bool {
        let cancelled = self.list.with(|list| list.remove(handle.number));
        // The task is dropped after the unlock (rule 3).
        cancelled.is_some()
    }

    /// Refuses registrations from now on, and takes all tasks, in the order in which they are to
    /// run. A second close finds nothing.
    pub fn close(&self) -> Vec<CloseTask> {
        let mut tasks = self.list.with(|list| {
            list.is_closed = true;
            mem::take(&mut list.tasks)
        });
        tasks.sort_unstable_by_key(|task| (task.priority, task.number));
        tasks
    }

    /// Whether a close has begun.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.list.with(|list| list.is_closed)
    }

    /// How many tasks are registered.
    #[must_use]
    pub fn len(&self) -> usize {
        self.list.with(|list| list.tasks.len())
    }

    /// Whether none is registered.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
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

/// Why a task was not added to the list.
enum PushError {
    /// The registration is refused.
    Refused(ScheduleErrorKind),
    /// The buffer of the list is full, and the caller has brought no larger one.
    NeedsBuffer { capacity: usize },
}

/// The registered tasks, sorted by their numbers.
#[derive(Default)]
struct TaskList {
    tasks: Vec<CloseTask>,
    last_number: usize,
    is_closed: bool,
}

impl TaskList {
    /// Adds a task and returns its number. If the list is full, it takes `buffer` in exchange for
    /// its own, provided that `buffer` is larger.
    fn push<F>(
        &mut self,
        task: Box<F>,
        priority: TaskRunPriority,
        buffer: &mut Vec<CloseTask>,
    ) -> Result<usize, (PushError, Box<F>)>
    where
        F: FnOnce() -> Result<(), HandlerError> + Send + 'static,
    {
        if self.is_closed {
            return Err((PushError::Refused(ScheduleErrorKind::Closed), task));
        }
        let len = self.tasks.len();
        let number = self.last_number.checked_add(1).filter(|_| len < CloseTasks::LEN_MAX);
        let Some(number) = number else {
            return Err((PushError::Refused(ScheduleErrorKind::CapacityExceeded), task));
        };
        if len == self.tasks.capacity() {
            if buffer.capacity() <= len {
                let capacity = (len * 2).clamp(CAPACITY_MIN, CloseTasks::LEN_MAX);
                return Err((PushError::NeedsBuffer { capacity }, task));
            }
            buffer.append(&mut self.tasks);
            mem::swap(&mut self.tasks, buffer);
        }
        self.last_number = number;
        self.tasks.push(CloseTask { number, priority, task });
        Ok(number)
    }

    fn remove(&mut self, number: usize) -> Option<CloseTask> {
        let index = self.tasks.binary_search_by_key(&number, |task| task.number).ok()?;
        Some(self.tasks.remove(index))
    }
}
