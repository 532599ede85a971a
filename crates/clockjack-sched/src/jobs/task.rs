//! Tasks and closures that a job runs.
//!
//! A run gets its context as an argument, a [`FireContext`], and never from a thread-local: a task
//! may run on any thread, and on platforms without threads.

use core::{fmt, time::Duration};

use clockjack_time::{Tick, TimerInstant};

use crate::{ExecutionBatch, HandlerError, JobNumber};

mod erased;

pub use erased::Task;

/// Something that a job runs, and that is notified if the job is cancelled.
///
/// A closure is enough for most jobs; use a task for [`cancelled`](Self::cancelled).
///
/// # Examples
///
/// ```
/// use clockjack_sched::{FireContext, HandlerError, SchedulerTask};
///
/// struct Flush {
///     lines: Vec<String>,
/// }
///
/// impl SchedulerTask for Flush {
///     fn run(&mut self, _fire: &FireContext) -> Result<(), HandlerError> {
///         self.lines.clear();
///         Ok(())
///     }
///
///     fn cancelled(&mut self) {
///         self.lines.clear();
///     }
/// }
/// ```
pub trait SchedulerTask: Send + 'static {
    /// Executes one run, or as many runs as the batch of `fire` says.
    ///
    /// # Errors
    ///
    /// An error completes the job, and its text is reported in a
    /// [`HandlerFailed`](crate::Warning::HandlerFailed).
    fn run(&mut self, fire: &FireContext) -> Result<(), HandlerError>;

    /// Called when the job was cancelled and will not run again: at most once, without any lock of
    /// the scheduler, before the task is dropped.
    fn cancelled(&mut self) {}
}

/// The context of one run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FireContext {
    batch: ExecutionBatch,
    now: TimerInstant,
    due: Tick,
    late: Duration,
    job: JobNumber,
}

impl FireContext {
    /// For hosts: the context at `now` of a run of `job` that was due at `due`.
    #[doc(hidden)]
    #[must_use]
    pub const fn new(
        job: JobNumber,
        batch: ExecutionBatch,
        due: Tick,
        now: TimerInstant,
        late: Duration,
    ) -> Self {
        Self { batch, now, due, late, job }
    }

    /// How many runs this call represents.
    #[must_use]
    pub const fn batch(&self) -> ExecutionBatch {
        self.batch
    }

    /// The time at which the run was handed over, by the scheduler's clock. It is not read again
    /// while the task runs, and is not before the run was due.
    ///
    /// A system clock is read once for up to eight runs that are due together. So it may be too
    /// early by the duration of the preceding handlers of the same poll; if you need the exact
    /// time, read [`Scheduler::now`](crate::Scheduler::now). The lateness in metrics is measured
    /// when a run becomes due, and is not affected.
    #[must_use]
    pub const fn now(&self) -> TimerInstant {
        self.now
    }

    /// The tick at which the run was due; if several runs were folded, that of the oldest.
    #[must_use]
    pub const fn due(&self) -> Tick {
        self.due
    }

    /// How late the run is: [`now`](Self::now) minus [`due`](Self::due).
    #[must_use]
    pub const fn late(&self) -> Duration {
        self.late
    }

    /// The number of the job in logs and warnings.
    #[must_use]
    pub const fn job(&self) -> JobNumber {
        self.job
    }
}

/// The return value of a closure: nothing, or a result whose error can be displayed.
///
/// The text of an error is formatted at once, because the error itself need not be `Send`. If its
/// `Display` panics, the handler counts as panicked.
#[diagnostic::on_unimplemented(
    message = "a scheduled closure returns `()` or a `Result<(), E>` whose error can be displayed"
)]
pub trait Outcome {
    /// The result, with its error as text.
    ///
    /// # Errors
    ///
    /// If the closure failed.
    fn into_outcome(self) -> Result<(), HandlerError>;
}

impl Outcome for () {
    fn into_outcome(self) -> Result<(), HandlerError> {
        Ok(())
    }
}

impl<E: fmt::Display> Outcome for Result<(), E> {
    fn into_outcome(self) -> Result<(), HandlerError> {
        self.map_err(|error| HandlerError::from_display(&error))
    }
}
