//! How a run ended.

use core::fmt;

use crate::{component::Snapshot, named::named};

named! {
    /// Why a run ended.
    #[non_exhaustive]
    pub enum StopReason {
        /// It did not begin.
        NotStarted = "not_started",
        /// It has made as many epochs as it was to.
        TickBound = "tick_bound",
        /// It has run as long as it was to.
        DurationBound = "duration_bound",
        /// There was nothing to do, and nothing could come.
        Idle = "idle",
        /// Somebody has stopped it.
        StopRequested = "stop_requested",
        /// A component has failed.
        Error = "error",
    }
}

named! {
    /// What was being done when something failed.
    pub enum Phase {
        /// A component took its settings.
        Configure = "configure",
        /// A component was activated.
        Activate = "activate",
        /// A component took a state.
        Restore = "restore",
        /// A component was reset.
        Reset = "reset",
        /// A component was called.
        Execute = "execute",
        /// A component gave its state.
        Snapshot = "snapshot",
        /// A component was deactivated.
        Deactivate = "deactivate",
        /// The graph was checked.
        Validate = "validate",
        /// The graph was checked, and was not to run.
        DryRun = "dry_run",
        /// The run itself.
        Runtime = "runtime",
    }
}

/// Something that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// What was being done.
    pub phase: Phase,
    /// The component.
    pub component: String,
    /// Its lane.
    pub lane: String,
    /// What it said.
    pub message: String,
    /// The epoch, from one; zero before the first.
    pub epoch: u64,
    /// Whether the run has stopped because of it.
    pub is_fatal: bool,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { phase, component, epoch, message, .. } = self;
        if component.is_empty() {
            write!(f, "the {phase} failed, epoch {epoch}: {message}")
        } else {
            write!(f, "`{component}` failed in {phase}, epoch {epoch}: {message}")
        }
    }
}

/// How a run ended.
#[derive(Clone, Debug)]
pub struct RunReport {
    /// Why it ended.
    pub stop: StopReason,
    /// Epochs, of all domains.
    pub epochs: u64,
    /// Invocations that have succeeded.
    pub executions: u64,
    /// Nanoseconds of the run's own time.
    pub elapsed_ns: u64,
    /// What failed and did not stop the run. The oldest are kept.
    pub faults: Vec<Fault>,
    /// Faults beyond those.
    pub n_faults_dropped: u64,
    /// The most regions that were seen at work at once.
    pub overlap_max: usize,
    /// The states of components, if they were asked for.
    pub snapshots: Vec<(String, Snapshot)>,
    /// The last value and why it stopped, for each loop.
    pub loops: Vec<LoopResult>,
    /// What was in force of each lane, in the order of the plan.
    pub lanes: Vec<super::threads::LaneReport>,
    /// What was amiss, the newest, one for each kind and place.
    pub health: Vec<super::health::HealthEvent>,
    /// All counts.
    pub metrics: super::metrics::Metrics,
}

/// How a loop ended the last time.
#[derive(Clone, Debug, PartialEq)]
pub struct LoopResult {
    /// Its id.
    pub id: String,
    /// The last residual that a member reported.
    pub residual: Option<f64>,
    /// Why it stopped.
    pub reason: String,
}

/// A run that did not begin, or that a component has ended.
#[derive(Debug)]
pub struct RunError {
    kind: RunErrorKind,
}

#[derive(Debug)]
enum RunErrorKind {
    Failed(Fault, Option<Box<RunReport>>),
    Stopped,
    Refused(String),
}

impl RunError {
    pub(crate) fn failed(fault: Fault, report: Option<RunReport>) -> Self {
        Self { kind: RunErrorKind::Failed(fault, report.map(Box::new)) }
    }

    pub(crate) fn stopped() -> Self {
        Self { kind: RunErrorKind::Stopped }
    }

    pub(crate) fn refused(why: impl Into<String>) -> Self {
        Self { kind: RunErrorKind::Refused(why.into()) }
    }

    /// What failed. It names no component if it was none: a value that panics when it is written
    /// down.
    #[must_use]
    pub fn fault(&self) -> Option<&Fault> {
        match &self.kind {
            RunErrorKind::Failed(fault, _) => Some(fault),
            _ => None,
        }
    }

    /// What had happened until then. Of a run that failed in its set-up it tells only of that.
    #[must_use]
    pub fn report(&self) -> Option<&RunReport> {
        match &self.kind {
            RunErrorKind::Failed(_, report) => report.as_deref(),
            _ => None,
        }
    }

    /// Whether the system ended under the run.
    #[must_use]
    pub fn is_stopped(&self) -> bool {
        matches!(self.kind, RunErrorKind::Stopped)
    }
}

impl fmt::Display for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.kind {
            RunErrorKind::Failed(fault, _) => fault.fmt(f),
            RunErrorKind::Stopped => f.write_str("the system has ended under the run"),
            RunErrorKind::Refused(why) => f.write_str(why),
        }
    }
}

impl core::error::Error for RunError {}
