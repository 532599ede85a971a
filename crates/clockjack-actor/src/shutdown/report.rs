//! What came of a shutdown: each phase and each task, with its outcome.

use alloc::{borrow::Cow, boxed::Box, string::String, vec::Vec};
use core::{fmt, time::Duration};

use super::Phase;

/// Why the system is shut down.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reason(Cow<'static, str>);

impl Reason {
    /// Somebody ended the system.
    pub const ACTOR_SYSTEM_TERMINATE: Self = Self(Cow::Borrowed("actor system terminate"));
    /// The process is about to end.
    pub const PROCESS_EXIT: Self = Self(Cow::Borrowed("process exit"));
    /// Nobody said.
    pub const UNKNOWN: Self = Self(Cow::Borrowed("unknown reason"));

    /// A reason of one's own.
    #[must_use]
    pub fn new(text: impl Into<Cow<'static, str>>) -> Self {
        Self(text.into())
    }

    /// The reason as a text.
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

/// What came of a shutdown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// The reason of the first who asked for it.
    pub reason: Reason,
    /// Every phase, in the order of the phases.
    pub phases: Vec<PhaseReport>,
    /// Why later phases did not run; none if the shutdown came to its end.
    pub aborted: Option<Abort>,
}

impl Report {
    /// Whether each task that was added ran and succeeded.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        let mut tasks = self.phases.iter().flat_map(|phase| &phase.tasks);
        tasks.all(|task| task.outcome == TaskOutcome::Completed)
    }

    /// The report of a phase; none if there is no such phase.
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

/// Why a shutdown stopped before its last phase.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Abort {
    /// The phase that went wrong and does not recover.
    pub phase: Phase,
    /// What went wrong first in it.
    pub error: String,
}

impl fmt::Display for Abort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "phase `{}`: {}", self.phase, self.error)
    }
}

/// What came of a phase.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PhaseReport {
    /// Which phase.
    pub phase: Phase,
    /// What came of it as a whole.
    pub outcome: PhaseOutcome,
    /// Its tasks, in the order in which they were added.
    pub tasks: Vec<TaskReport>,
    /// From its beginning to its end.
    pub took: Duration,
}

impl PhaseReport {
    /// Whether it has no task that failed, was too late or did not run.
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

/// What came of a phase as a whole. If tasks failed and others were late, it is late.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PhaseOutcome {
    /// All its tasks succeeded, or it had none.
    Completed,
    /// All its tasks ended, some of them with a failure.
    Failed,
    /// Its time was over before all its tasks were.
    TimedOut,
    /// It did not run.
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
    /// Its configuration says so.
    Disabled,
    /// The shutdown began with a later phase.
    BeforeStart,
    /// An earlier phase went wrong and does not recover.
    Aborted,
}

/// What came of a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskReport {
    /// The name that it was added with.
    pub name: Box<str>,
    /// What came of it.
    pub outcome: TaskOutcome,
}

/// How a task ended.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TaskOutcome {
    /// It succeeded.
    Completed,
    /// It failed or panicked; the text is its failure's.
    Failed(Cow<'static, str>),
    /// It was not done when the time of its phase was over, and was dropped.
    TimedOut,
    /// Its phase did not run; it was dropped without having been polled.
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
