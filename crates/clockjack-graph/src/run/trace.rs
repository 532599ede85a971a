//! Trace records: fixed in size, numbers for names, kept by each region until the epoch has ended.

use alloc::vec::Vec;

use super::batch::Job;
use super::env::Env;
use super::message::Message;
use super::node::NodeState;
use crate::named::named;

named! {
    /// What a record tells of.
    pub enum TraceName {
        /// An epoch.
        SchedulerIteration = "scheduler_iteration",
        /// An epoch begins.
        SchedulerIterationBegin = "scheduler_iteration_begin",
        /// An epoch has ended.
        SchedulerIterationEnd = "scheduler_iteration_end",
        /// A call of a component.
        ComponentExecute = "component_execute",
        /// A call begins.
        ComponentExecuteBegin = "component_execute_begin",
        /// A call has ended.
        ComponentExecuteEnd = "component_execute_end",
        /// The run is to stop, and a component was at work.
        ComponentCancellationRequested = "component_cancellation_requested",
        /// A component has seen that the run is to stop.
        ComponentCancellationObserved = "component_cancellation_observed",
        /// A call took longer than its budget.
        ComponentTimeoutBudgetExceeded = "component_timeout_budget_exceeded",
        /// Invocations of one component on a pool lane.
        ThreadPoolBatch = "thread_pool_batch",
        /// A tick of a fixed-rate lane begins.
        FixedRateTickBegin = "fixed_rate_tick_begin",
        /// A tick of a fixed-rate lane.
        FixedRateTick = "fixed_rate_tick",
        /// A tick of a fixed-rate lane has ended.
        FixedRateTickEnd = "fixed_rate_tick_end",
        /// A tick took longer than its budget.
        FixedRateOverrun = "fixed_rate_overrun",
        /// A tick was left out.
        FixedRateSkippedTick = "fixed_rate_skipped_tick",
        /// A value was published.
        ChannelPublish = "channel_publish",
        /// A value became visible.
        ChannelCommit = "channel_commit",
        /// A value of a state edge became visible.
        StateCommit = "state_commit",
        /// A value of an async edge was admitted.
        AsyncAdmission = "async_admission",
        /// Settings were looked at.
        ConfigTransactionValidate = "config_transaction_validate",
        /// Settings were taken.
        ConfigTransactionApply = "config_transaction_apply",
        /// Settings were taken back.
        ConfigTransactionRollback = "config_transaction_rollback",
        /// Settings are in force.
        ConfigTransactionCommit = "config_transaction_commit",
        /// An iteration of a loop.
        LoopIteration = "loop_iteration",
        /// An iteration begins.
        LoopIterationBegin = "loop_iteration_begin",
        /// An iteration has ended.
        LoopIterationEnd = "loop_iteration_end",
        /// A loop has converged.
        LoopConverged = "loop_converged",
        /// A loop took longer than its budget.
        LoopBudgetOverrun = "loop_budget_overrun",
        /// A loop has made as many iterations as it may.
        LoopMaxIterationsHit = "loop_max_iterations_hit",
        /// The outputs of a loop were thrown away.
        LoopOutputDiscarded = "loop_output_discarded",
        /// A member of a loop has failed.
        LoopError = "loop_error",
        /// The run is to stop, and a loop was at work.
        LoopCancellationRequested = "loop_cancellation_requested",
        /// A loop has stopped because the run is to.
        LoopCancellationObserved = "loop_cancellation_observed",
        /// Something is not as it should be.
        HealthEvent = "health_event",
    }
}

impl TraceName {
    /// The part of the runtime that it is of.
    #[must_use]
    pub const fn phase(self) -> &'static str {
        match self {
            Self::ComponentExecute
            | Self::ComponentExecuteBegin
            | Self::ComponentExecuteEnd
            | Self::ComponentCancellationRequested
            | Self::ComponentCancellationObserved
            | Self::ComponentTimeoutBudgetExceeded
            | Self::ThreadPoolBatch => "component",
            Self::ChannelPublish
            | Self::ChannelCommit
            | Self::StateCommit
            | Self::AsyncAdmission => "channel",
            Self::ConfigTransactionValidate
            | Self::ConfigTransactionApply
            | Self::ConfigTransactionRollback
            | Self::ConfigTransactionCommit => "config",
            Self::LoopIteration
            | Self::LoopIterationBegin
            | Self::LoopIterationEnd
            | Self::LoopConverged
            | Self::LoopBudgetOverrun
            | Self::LoopMaxIterationsHit
            | Self::LoopOutputDiscarded
            | Self::LoopError
            | Self::LoopCancellationRequested
            | Self::LoopCancellationObserved => "loop",
            Self::HealthEvent => "health",
            _ => "scheduler",
        }
    }
}

/// Nothing of that kind belongs to a record.
pub const NONE: u32 = u32::MAX;

/// What has happened, in numbers of the plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceRecord {
    /// What it tells of.
    pub name: TraceName,
    /// The component, or [`NONE`].
    pub component: u32,
    /// The edge, or [`NONE`].
    pub edge: u32,
    /// The lane, or [`NONE`].
    pub lane: u32,
    /// Which of those who work on an epoch, from zero.
    pub worker: u16,
    /// The epoch.
    pub epoch: u64,
    /// Nanoseconds since the run began.
    pub start_ns: u64,
    /// Nanoseconds; zero for a point.
    pub duration_ns: u64,
    /// The message that began it all: edge plus one, and its number; zero: none.
    pub correlation: (u32, u64),
    /// The message that led to it, or the one that it is about.
    pub message: (u32, u64),
    /// What else there is to say: an iteration, a number of ticks.
    pub value: u64,
}

impl TraceRecord {
    /// Something that happens now.
    pub(crate) fn point(name: TraceName, env: &Env) -> Self {
        Self::at(name, env, env.since_start())
    }

    /// Something that happened then.
    #[inline]
    fn at(name: TraceName, env: &Env, start_ns: u64) -> Self {
        Self {
            name,
            component: NONE,
            edge: NONE,
            lane: NONE,
            worker: 0,
            epoch: env.epoch,
            start_ns,
            duration_ns: 0,
            correlation: (0, 0),
            message: (0, 0),
            value: 0,
        }
    }
}

/// The records of a region in one epoch.
#[derive(Debug, Default)]
pub(crate) struct Recorder {
    pub(crate) records: Vec<TraceRecord>,
    pub(crate) lane: u32,
    pub(crate) worker: u16,
    pub(crate) n_dropped: u64,
}

/// Records that a region keeps in one epoch.
const RECORDS_MAX: usize = 4096;

impl Recorder {
    pub(crate) fn push(&mut self, record: TraceRecord) {
        self.push_of(self.worker, record);
    }

    fn push_of(&mut self, worker: u16, record: TraceRecord) {
        if self.records.len() < RECORDS_MAX {
            self.records.push(TraceRecord { worker, ..record });
        } else {
            self.n_dropped += 1;
        }
    }
}

/// When whoever runs regions last looked at the clock, in an epoch with a trace.
///
/// A look costs as much as all the rest of a record. So a call begins in a trace when the one
/// before it on the same worker has ended, and what it has published is committed at its end: what
/// the run itself does in between is drawn as part of the call that follows. Calls with a budget
/// are measured for themselves, and so are those of an epoch that is timed and not traced.
#[derive(Debug, Default)]
pub(crate) struct Glance(Option<u64>);

impl Glance {
    /// The last look, or one now.
    #[inline]
    fn get(&mut self, env: &Env) -> u64 {
        *self.0.get_or_insert_with(|| env.since_start())
    }

    /// A look now.
    #[inline]
    fn look(&mut self, env: &Env) -> u64 {
        *self.0.insert(env.since_start())
    }
}

/// When a call began, if that is measured.
#[derive(Clone, Copy)]
pub(crate) struct Begun(Option<u64>);

impl Begun {
    /// Whether it is.
    #[inline]
    pub(crate) fn is_measured(self) -> bool {
        self.0.is_some()
    }
}

#[inline(always)]
pub(crate) fn begin(env: &Env, node: &NodeState, glance: &mut Glance) -> Begun {
    let is_measured = env.measures || node.is_measured();
    Begun(if is_measured { Some(look(env, node, glance)) } else { None })
}

#[inline(never)]
fn look(env: &Env, node: &NodeState, glance: &mut Glance) -> u64 {
    if env.traces && !node.is_measured() { glance.get(env) } else { glance.look(env) }
}

#[inline(never)]
pub(crate) fn end(
    env: &Env,
    node: &mut NodeState,
    (recorder, glance): (&mut Recorder, &mut Glance),
    begun: Begun,
    messages: &[Message],
) {
    if let Some(begun_ns) = begun.0 {
        let ended_ns = glance.look(env);
        measured(env, node, recorder, (begun_ns, ended_ns), messages);
    }
}

fn measured(
    env: &Env,
    node: &mut NodeState,
    recorder: &mut Recorder,
    (begun_ns, ended_ns): (u64, u64),
    messages: &[Message],
) {
    let duration_ns = ended_ns.saturating_sub(begun_ns);
    let counts = &mut node.counts;
    counts.last_ns = duration_ns;
    counts.max_ns = counts.max_ns.max(duration_ns);
    let is_over = node.budget_ns > 0 && duration_ns > node.budget_ns;
    counts.budget_overruns += u64::from(is_over);
    counts.callback_overruns +=
        u64::from(node.callback_max_ns > 0 && duration_ns > node.callback_max_ns);
    if !env.traces {
        return;
    }
    let cause = messages.first();
    let record = TraceRecord {
        component: number(node.component),
        lane: recorder.lane,
        duration_ns,
        correlation: cause.map_or((0, 0), |message| message.meta.correlation.pair()),
        message: cause.map_or((0, 0), |message| message.id().pair()),
        ..TraceRecord::at(TraceName::ComponentExecute, env, begun_ns)
    };
    recorder.push(record);
    if is_over {
        recorder.push(TraceRecord {
            component: number(node.component),
            ..TraceRecord::at(TraceName::ComponentTimeoutBudgetExceeded, env, ended_ns)
        });
    }
}

/// Invocations that overlapped: one record for each worker, with how many it did.
pub(crate) fn batch(env: &Env, node: &NodeState, recorder: &mut Recorder, jobs: &[Job]) {
    if !env.traces {
        return;
    }
    for worker in 0..=jobs.iter().map(|job| job.worker).max().unwrap_or(0) {
        let n_jobs = jobs.iter().filter(|job| job.worker == worker).count() as u64;
        if n_jobs > 0 {
            let component = number(node.component);
            let (lane, value) = (recorder.lane, n_jobs);
            let point = TraceRecord::point(TraceName::ThreadPoolBatch, env);
            recorder.push_of(worker, TraceRecord { component, lane, value, ..point });
        }
    }
}

#[inline]
pub(crate) fn committed(
    env: &Env,
    recorder: &mut Recorder,
    glance: &mut Glance,
    edge: u32,
    seq: u64,
) {
    if env.traces {
        note_commit(env, recorder, glance, edge, seq);
    }
}

#[inline(never)]
fn note_commit(env: &Env, recorder: &mut Recorder, glance: &mut Glance, edge: u32, seq: u64) {
    let (lane, message) = (recorder.lane, (edge + 1, seq));
    let point = TraceRecord::at(TraceName::ChannelCommit, env, glance.get(env));
    recorder.push(TraceRecord { edge, lane, message, ..point });
}

#[inline]
pub(crate) fn iterated(env: &Env, recorder: &mut Recorder, index: u32) {
    if env.traces {
        recorder.push(TraceRecord {
            value: u64::from(index),
            ..TraceRecord::point(TraceName::LoopIteration, env)
        });
    }
}

fn number(index: usize) -> u32 {
    u32::try_from(index).expect("components are counted by the limits of a description")
}
