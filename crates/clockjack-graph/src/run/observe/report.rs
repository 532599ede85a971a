//! The result of a run.

use core::{fmt, time::Duration};

use crate::{component::Snapshot, named::named, run::setup::threads};

named! {
    /// Why a run ended.
    #[non_exhaustive]
    pub enum RunStopReason {
        /// It did not start.
        NotStarted = "not_started",
        /// It has run the given number of epochs.
        TickBound = "tick_bound",
        /// It has run for the given time.
        DurationBound = "duration_bound",
        /// There was nothing to do, and nothing could come in.
        Idle = "idle",
        /// A stop was requested.
        StopRequested = "stop_requested",
        /// A component has failed.
        Error = "error",
    }
}

named! {
    /// What the run was doing when something failed.
    pub enum RunPhase {
        /// A component applied its settings.
        Configure = "configure",
        /// A component was activated.
        Activate = "activate",
        /// A component restored a snapshot.
        Restore = "restore",
        /// A component was reset.
        Reset = "reset",
        /// A component was called.
        Execute = "execute",
        /// A component made a snapshot.
        Snapshot = "snapshot",
        /// A component was deactivated.
        Deactivate = "deactivate",
        /// The run itself.
        Runtime = "runtime",
    }
}

/// A failure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// What the run was doing.
    pub phase: RunPhase,
    /// The component.
    pub component: String,
    /// Its lane.
    pub lane: String,
    /// The error message.
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

/// The result of a run.
#[derive(Clone, Debug)]
pub struct RunReport {
    /// Why it ended.
    pub stop: RunStopReason,
    /// Epochs, of all domains.
    pub epochs: u64,
    /// Invocations that have succeeded.
    pub executions: u64,
    /// Nanoseconds of the run's time.
    pub elapsed_ns: u64,
    /// Failures that did not stop the run. The oldest are kept.
    pub faults: Vec<Fault>,
    /// How many further failures were not kept.
    pub n_faults_dropped: u64,
    /// How many values that a [`Feed`](crate::Feed) accepted were not taken before the end of the
    /// run, and were dropped. They are in the [`losses`](Self::losses), too.
    pub n_fed_dropped: u64,
    /// The most regions that ran at the same time, as observed.
    pub overlap_max: usize,
    /// Epochs that several workers ran.
    pub parallel_epochs: u64,
    /// The snapshots of the components, if they were requested.
    pub snapshots: Vec<(String, Snapshot)>,
    /// The last result of each loop.
    pub loops: Vec<LoopResult>,
    /// The latencies of each chain, in the order of the plan.
    pub chains: Vec<ChainReport>,
    /// The inputs at which nothing arrived for longer than their edge's `max_silence_ms`.
    pub silent_inputs: Vec<SilentInput>,
    /// Which settings of each lane were in force, in the order of the plan.
    pub lanes: Vec<threads::LaneReport>,
    /// Health events: the newest, one per kind and origin.
    pub health: Vec<super::health::HealthEvent>,
    /// The messages that no component saw, by cause and place. Together with the messages that
    /// components were called with, they are all messages that were published.
    pub losses: Vec<super::losses::Loss>,
    /// All metrics.
    pub metrics: super::metrics::Metrics,
}

impl RunReport {
    /// What a component did; `None` if there is no component of this id.
    #[must_use]
    pub fn component(&self, id: &str) -> Option<ComponentCounts> {
        let count = |name: &str| self.metrics.count(name, id);
        Some(ComponentCounts {
            executions: count("runtime.component.execution_count")?,
            errors: count("runtime.component.error_count")?,
            budget_overruns: count("runtime.component.budget_overrun_count")?,
            restarts: count("runtime.component.restart_count").unwrap_or(0),
            longest: Duration::from_nanos(count("runtime.component.max_duration_ns")?),
        })
    }

    /// How many messages were lost: all [`losses`](Self::losses), except those that were on their
    /// way when the run ended.
    #[must_use]
    pub fn n_lost(&self) -> u64 {
        let lost = self.losses.iter().filter(|loss| !loss.is_run_ended());
        lost.map(|loss| loss.count).sum()
    }

    /// How often something was late: latencies over the budget of a chain, messages that were read
    /// after the deadline of their edge, and inputs that were silent for too long.
    #[must_use]
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the cast saturates, and a count is a whole number"
    )]
    pub fn n_late(&self) -> u64 {
        let violations: u64 = self.chains.iter().map(|chain| chain.violations).sum();
        let silences: u64 = self.silent_inputs.iter().map(|input| input.count).sum();
        let missed = self.metrics.total("runtime.channel.deadline_miss_count") as u64;
        violations + silences + missed
    }

    /// What happened on an edge; `None` if there is no edge of this id.
    #[must_use]
    pub fn edge(&self, id: &str) -> Option<EdgeCounts> {
        let count = |name: &str| self.metrics.count(name, id);
        Some(EdgeCounts {
            published: count("runtime.channel.publish_count")?,
            delivered: count("runtime.channel.delivery_count")?,
            dropped: count("runtime.channel.drop_count")?,
            overwritten: count("runtime.channel.overwrite_count")?,
            rejected: count("runtime.channel.reject_count")?,
            depth_max: count("runtime.channel.max_depth")?,
        })
    }
}

/// What a component did in a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ComponentCounts {
    /// Successful calls.
    pub executions: u64,
    /// Failed calls and tasks.
    pub errors: u64,
    /// Calls that took longer than their budget.
    pub budget_overruns: u64,
    /// How often it was recreated after a failure.
    pub restarts: u64,
    /// The longest duration of a measured call.
    pub longest: Duration,
}

/// What happened on an edge in a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EdgeCounts {
    /// Messages that its channel accepted.
    pub published: u64,
    /// Messages that were read.
    pub delivered: u64,
    /// Messages that were dropped because the channel was full.
    pub dropped: u64,
    /// Unread messages that a newer one replaced.
    pub overwritten: u64,
    /// Messages that were refused.
    pub rejected: u64,
    /// The most messages in the channel at the same time.
    pub depth_max: u64,
}

/// How long data took from one component to another. Its text is a line of the summary.
///
/// In virtual time the latencies are virtual: they depend on the graph and its inputs only.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ChainReport {
    /// The id of the chain.
    pub id: String,
    /// The component in which the data began.
    pub from: String,
    /// The component that the data had to reach.
    pub to: String,
    /// The budget.
    pub max: Duration,
    /// The calls of `to` that data of `from` reached.
    pub samples: u64,
    /// Those that took longer than the budget.
    pub violations: u64,
    /// The median of the newest 1,024 latencies, in milliseconds.
    pub p50_ms: f64,
    /// Their 99th percentile, in milliseconds.
    pub p99_ms: f64,
    /// The longest latency, in milliseconds.
    pub longest_ms: f64,
}

impl fmt::Display for ChainReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { id, from, to, samples, violations, .. } = self;
        if *samples == 0 {
            return write!(f, "chain {id}: no data of `{from}` reached `{to}`");
        }
        let (p50, p99, longest) = (self.p50_ms, self.p99_ms, self.longest_ms);
        write!(
            f,
            "chain {id}: {violations} of {samples} over {} ms; \
             p50 {p50:.3} ms, p99 {p99:.3} ms, longest {longest:.3} ms",
            self.max.as_millis()
        )
    }
}

/// An input at which nothing arrived for too long. Its text is a line of the summary.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct SilentInput {
    /// The edge.
    pub edge: String,
    /// The component that reads it.
    pub component: String,
    /// The longest time without a message that its edge allows.
    pub max: Duration,
    /// How often it was silent for longer.
    pub count: u64,
    /// The longest time without a message.
    pub longest: Duration,
}

impl fmt::Display for SilentInput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { edge, component, count, .. } = self;
        let times = if *count == 1 { "once" } else { "times" };
        let count = if *count == 1 { String::new() } else { format!("{count} ") };
        write!(
            f,
            "edge {edge}: nothing came to `{component}` for longer than {} ms, {count}{times}; the \
             longest silence was {} ms",
            self.max.as_millis(),
            self.longest.as_millis()
        )
    }
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

/// A run that did not start, or that failed.
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

    /// The failure. It names no component if it was outside of all components, for example a value
    /// that panics while it is encoded.
    #[must_use]
    pub fn fault(&self) -> Option<&Fault> {
        match &self.kind {
            RunErrorKind::Failed(fault, _) => Some(fault),
            _ => None,
        }
    }

    /// The report of the run until the failure. For a run that failed during its setup, it covers
    /// only the setup.
    #[must_use]
    pub fn report(&self) -> Option<&RunReport> {
        match &self.kind {
            RunErrorKind::Failed(_, report) => report.as_deref(),
            _ => None,
        }
    }

    /// Whether the system was shut down during the run.
    #[must_use]
    pub fn is_stopped(&self) -> bool {
        matches!(self.kind, RunErrorKind::Stopped)
    }
}

impl fmt::Display for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.kind {
            RunErrorKind::Failed(fault, _) => fault.fmt(f),
            RunErrorKind::Stopped => f.write_str("the system was shut down during the run"),
            RunErrorKind::Refused(why) => f.write_str(why),
        }
    }
}

impl core::error::Error for RunError {}
