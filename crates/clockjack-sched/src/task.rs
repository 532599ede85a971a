//! What a job of the closure forms runs: a task, or a closure as one.
//!
//! What a run has to know comes as an argument, a [`FireContext`], and never by a thread-local: a
//! task may run on any thread, and on machines that have none.

use core::{fmt, time::Duration};

use clockjack_time::{Tick, TimerInstant};

use crate::{ExecutionBatch, HandlerError, JobNumber};

#[path = "task/erased.rs"]
mod erased;

pub use erased::Task;

/// Something that a job runs, and that may be told if it will not run any more.
///
/// A closure is enough for most jobs; a task is for those that want [`cancelled`](Self::cancelled).
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
    /// One run, or as many as the batch of `fire` says.
    ///
    /// # Errors
    ///
    /// Whatever it likes: the job ends, and the text is told in a
    /// [`HandlerFailed`](crate::Warning::HandlerFailed).
    fn run(&mut self, fire: &FireContext) -> Result<(), HandlerError>;

    /// The job was cancelled and will not run again. Called at most once, outside of any lock of
    /// the scheduler, before the task is dropped.
    fn cancelled(&mut self) {}
}

/// What one run of a task is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FireContext {
    batch: ExecutionBatch,
    now: TimerInstant,
    due: Tick,
    late: Duration,
    job: JobNumber,
}

impl FireContext {
    /// For hosts: what the run of `job` that was due at `due` is told at `now`.
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

    /// How many runs this one stands for.
    #[must_use]
    pub const fn batch(&self) -> ExecutionBatch {
        self.batch
    }

    /// The time at which the run was handed over: of the scheduler's clock, and not read again
    /// while the task runs. It is not before the run was due.
    ///
    /// A clock of the system is read once for up to eight runs that are due together. So behind a
    /// handler that takes long it may be too early, by what those before in the turn took; who must
    /// know reads [`Scheduler::now`](crate::Scheduler::now). What metrics tell of lateness is
    /// measured when a run comes due, and has nothing to do with that.
    #[must_use]
    pub const fn now(&self) -> TimerInstant {
        self.now
    }

    /// The tick at which the run was due: of the oldest one, if several were folded.
    #[must_use]
    pub const fn due(&self) -> Tick {
        self.due
    }

    /// How long after that it is [now](Self::now).
    #[must_use]
    pub const fn late(&self) -> Duration {
        self.late
    }

    /// The job, as logs and warnings name it.
    #[must_use]
    pub const fn job(&self) -> JobNumber {
        self.job
    }
}

/// What a closure may return: nothing, or a result whose error can be shown.
///
/// The text of an error is made at once, since the error itself need not be `Send`. An error whose
/// `Display` panics is a handler that panics.
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
