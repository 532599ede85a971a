//! The report of a shutdown: each phase and each task, with its outcome.

use alloc::{borrow::Cow, boxed::Box, string::String, vec::Vec};
use core::{fmt, time::Duration};

use super::Phase;

/// The reason for a shutdown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reason(Cow<'static, str>);

impl Reason {
    /// `ActorSystem::shutdown` was called.
    pub const ACTOR_SYSTEM_TERMINATE: Self = Self(Cow::Borrowed("actor system terminate"));
    /// The process is about to exit.
    pub const PROCESS_EXIT: Self = Self(Cow::Borrowed("process exit"));
    /// No reason was given.
    pub const UNKNOWN: Self = Self(Cow::Borrowed("unknown reason"));

    /// A reason with this text.
    #[must_use]
    pub fn new(text: impl Into<Cow<'static, str>>) -> Self {
        Self(text.into())
    }

    /// The text of the reason.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The results of a shutdown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// The reason of the first request.
    pub reason: Reason,
    /// All phases, in the order in which they run.
    pub phases: Vec<PhaseReport>,
    /// Why later phases did not run; `None` if the shutdown ran to completion.
    pub aborted: Option<Abort>,
}

impl Report {
    /// Whether every task ran and succeeded.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        let mut tasks = self.phases.iter().flat_map(|phase| &phase.tasks);
        tasks.all(|task| task.outcome == TaskOutcome::Completed)
    }

    /// The report of a phase; `None` if there is no such phase.
    #[must_use]
    pub fn phase(&self, phase: Phase) -> Option<&PhaseReport> {
        self.phases.iter().find(|report| report.phase == phase)
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "shutdown ({})", self.reason)?;
        match &self.aborted {
            Some(abort) => write!(f, " aborted in {abort}")?,
            None => f.write_str(" complete")?,
        }
        let bad = self.phases.iter().filter(|phase| !phase.is_clean());
        bad.into_iter().try_for_each(|phase| write!(f, "; {phase}"))
    }
}

/// Why a shutdown was aborted before its last phase.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Abort {
    /// The phase that failed and is not configured to recover.
    pub phase: Phase,
    /// The first error in that phase.
    pub error: String,
}

impl fmt::Display for Abort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "phase `{}`: {}", self.phase, self.error)
    }
}

/// The results of a phase.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PhaseReport {
    /// The phase.
    pub phase: Phase,
    /// The outcome of the phase as a whole.
    pub outcome: PhaseOutcome,
    /// Its tasks, in the order in which they were added.
    pub tasks: Vec<TaskReport>,
    /// The time that the phase took.
    pub took: Duration,
}

impl PhaseReport {
    /// Whether no task of the phase failed, timed out or did not run.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.tasks.iter().all(|task| task.outcome == TaskOutcome::Completed)
    }
}

impl fmt::Display for PhaseReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "phase `{}` {}", self.phase, self.outcome)?;
        for task in &self.tasks {
            write!(f, ", task `{}` {}", task.name, task.outcome)?;
        }
        Ok(())
    }
}

/// The outcome of a phase as a whole. If some tasks failed and others timed out, the phase timed
/// out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PhaseOutcome {
    /// All tasks succeeded, or there were none.
    Completed,
    /// All tasks completed, some of them with a failure.
    Failed,
    /// The time of the phase was over before all tasks were done.
    TimedOut,
    /// The phase did not run.
    Skipped(Skip),
}

impl fmt::Display for PhaseOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::TimedOut => "timed out",
            Self::Skipped(Skip::Disabled) => "skipped: it is disabled",
            Self::Skipped(Skip::BeforeStart) => "skipped: the shutdown began with a later one",
            Self::Skipped(Skip::Aborted) => "skipped: the shutdown was aborted",
        })
    }
}

/// Why a phase did not run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Skip {
    /// The configuration disables it.
    Disabled,
    /// The shutdown began with a later phase.
    BeforeStart,
    /// An earlier phase failed and is not configured to recover.
    Aborted,
}

/// The result of a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskReport {
    /// The name of the task.
    pub name: Box<str>,
    /// The outcome of the task.
    pub outcome: TaskOutcome,
}

/// The outcome of a task.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TaskOutcome {
    /// The task succeeded.
    Completed,
    /// The task failed or panicked, with this text.
    Failed(Cow<'static, str>),
    /// The task was not done when the time of its phase was over, and was dropped.
    TimedOut,
    /// The phase did not run; the task was dropped without being polled.
    NotRun,
}

impl fmt::Display for TaskOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Completed => f.write_str("completed"),
            Self::Failed(text) => write!(f, "failed: {text}"),
            Self::TimedOut => f.write_str("timed out"),
            Self::NotRun => f.write_str("did not run"),
        }
    }
}
