//! Trace records: fixed in size, numbers for names, kept until the epoch has ended by each region,
//! or by all together if one worker runs them.
//!
//! A record that has a duration stands for three names: that of the span, its `_begin` and its
//! `_end`. A run writes only the first; [`expand`] gives all of them to who reads.

mod expand;
mod lines;

use clockjack_sync::mutant;
pub use expand::expand;
use lines::RecordSource;
pub(crate) use lines::{EpochStart, Line, Lines};

use super::{
    batch::Job,
    env::Env,
    health::{Health, HealthKind},
    message::{Message, MessageId},
    node::NodeState,
};
use crate::named::named;

named! {
    /// What a record tells of.
    #[non_exhaustive]
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
    /// Which kind of that: of a health event its place in
    /// [`HealthKind::ALL`](super::health::HealthKind::ALL), else zero.
    pub detail: u8,
    /// The component, or [`NONE`]; of a loop, its first member.
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
    /// What else there is to say: an iteration from zero, how many ticks, outputs or events, the
    /// number of a change of settings; of a batch, who took part: a bit for each worker; of the end
    /// of a span, its nanoseconds.
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
            detail: 0,
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

    /// Who took part in a batch; nobody for other records. The last stands for all after it, too.
    pub fn worker_ids(&self) -> impl Iterator<Item = u16> + use<> {
        let bits = if self.name == TraceName::ThreadPoolBatch { self.value } else { 0 };
        (0..64_u16).filter(move |worker| bits >> worker & 1 == 1)
    }

    /// Of a health event, its kind.
    #[must_use]
    pub fn health_kind(&self) -> Option<HealthKind> {
        let kinds = (self.name == TraceName::HealthEvent).then_some(HealthKind::ALL)?;
        kinds.get(usize::from(self.detail)).copied()
    }

    /// A health event, told of now. It may have happened some epochs ago.
    pub(crate) fn health(event: &Health, env: &Env) -> Self {
        let kind = HealthKind::ALL.iter().position(|kind| *kind == event.key.kind);
        Self {
            detail: kind.and_then(|kind| u8::try_from(kind).ok()).unwrap_or(0),
            component: event.key.component,
            edge: event.key.edge,
            lane: event.key.lane,
            value: event.occurrence_count,
            ..Self::point(TraceName::HealthEvent, env)
        }
    }
}

/// Writes down what a region does in one epoch.
#[derive(Debug, Default)]
pub(crate) struct Recorder {
    /// Its own, unless all regions that one worker runs share theirs.
    pub(crate) lines: Box<Lines>,
    pub(crate) lane: u32,
    pub(crate) worker: u16,
}

impl Recorder {
    pub(crate) fn push(&mut self, record: TraceRecord) -> Option<usize> {
        self.lines.push(TraceRecord { worker: self.worker, ..record })
    }

    #[inline]
    fn source(&self, worker: u16) -> RecordSource {
        RecordSource { lane: self.lane, worker }
    }

    /// A point of a component of this region.
    #[cold]
    pub(crate) fn note(&mut self, env: &Env, name: TraceName, component: usize, value: u64) {
        if env.traces {
            let (component, lane) = (number(component), self.lane);
            let point = TraceRecord::point(name, env);
            self.push(TraceRecord { component, lane, value, ..point });
        }
    }

    /// A span that has begun; where it is kept, for [`close`](Self::close). What comes next is in
    /// it, and does not begin before it.
    pub(crate) fn open(
        &mut self,
        env: &Env,
        clock: &mut ClockCache,
        name: TraceName,
        component: usize,
    ) -> Option<usize> {
        if !env.traces {
            return None;
        }
        let (component, lane) = (number(component), self.lane);
        let begun = TraceRecord::at(name, env, clock.read(env));
        self.push(TraceRecord { component, lane, ..begun })
    }

    /// The span has ended.
    pub(crate) fn close(&mut self, env: &Env, span: Option<usize>, value: u64) {
        if let Some(record) = span.and_then(|at| self.lines.get_mut(at)) {
            record.duration_ns = env.since_start().saturating_sub(record.start_ns);
            record.value = value;
        }
    }

    /// The span was none: nothing has happened in it.
    pub(crate) fn forget(&mut self, span: Option<usize>) {
        if let Some(at) = span {
            self.lines.truncate(at);
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
pub(crate) struct ClockCache(Option<u64>);

impl ClockCache {
    /// The last look, or one now.
    #[inline]
    fn cached(&mut self, env: &Env) -> u64 {
        *self.0.get_or_insert_with(|| env.since_start())
    }

    /// A look now.
    #[inline(never)]
    fn read(&mut self, env: &Env) -> u64 {
        *self.0.insert(env.since_start())
    }
}

/// When a call began, if that is measured.
#[derive(Clone, Copy)]
pub(crate) struct Begun(Option<u64>);

impl Begun {
    /// It is not.
    pub(crate) const UNMEASURED: Self = Self(None);

    /// Whether it is.
    #[inline]
    pub(crate) fn is_measured(self) -> bool {
        self.0.is_some()
    }
}

#[inline(always)]
pub(crate) fn begin(env: &Env, node: &NodeState, clock: &mut ClockCache) -> Begun {
    let is_measured = env.measures || node.is_measured();
    Begun(if is_measured { Some(call_start(env, node, clock)) } else { None })
}

/// As [`begin`], of a call that has no budget: the last look will do if there was one.
#[inline(always)]
pub(crate) fn begin_unbudgeted(env: &Env, clock: &mut ClockCache) -> Begun {
    match clock.0 {
        Some(now_ns) if env.traces => Begun(Some(now_ns)),
        _ if env.measures => Begun(Some(clock.read(env))),
        _ => Begun::UNMEASURED,
    }
}

#[inline(never)]
fn call_start(env: &Env, node: &NodeState, clock: &mut ClockCache) -> u64 {
    if env.traces && !node.is_measured() { clock.cached(env) } else { clock.read(env) }
}

#[inline(never)]
pub(crate) fn end(
    env: &Env,
    node: &mut NodeState,
    (recorder, clock): (&mut Recorder, &mut ClockCache),
    begun: Begun,
    messages: &[Message],
) {
    if let Some(begun_ns) = begun.0 {
        let duration_ns = clock.read(env).saturating_sub(begun_ns);
        let worker = recorder.worker;
        called(env, node, recorder, worker, (begun_ns, duration_ns), messages.first());
    }
}

/// As [`end`], of a call that has no budget.
#[inline(never)]
pub(crate) fn end_unbudgeted(
    env: &Env,
    node: &mut NodeState,
    (recorder, clock): (&mut Recorder, &mut ClockCache),
    begun: Begun,
    cause: Option<&Message>,
) {
    if let Some(begun_ns) = begun.0 {
        let duration_ns = clock.read(env).saturating_sub(begun_ns);
        node.counts.last_ns = duration_ns;
        node.counts.max_ns = node.counts.max_ns.max(duration_ns);
        if env.traces {
            let worker = recorder.worker;
            record_call(env, node, recorder, worker, (begun_ns, duration_ns), cause);
        }
    }
}

/// One of the invocations that overlapped, as it was measured.
pub(crate) fn job(env: &Env, node: &mut NodeState, recorder: &mut Recorder, job: &Job) {
    if let Some(span) = job.span_ns
        && !mutant!("trace-forgets-jobs")
    {
        called(env, node, recorder, job.worker, span, job.messages.first());
    }
}

/// A call that began then and took so long.
fn called(
    env: &Env,
    node: &mut NodeState,
    recorder: &mut Recorder,
    worker: u16,
    (begun_ns, duration_ns): (u64, u64),
    cause: Option<&Message>,
) {
    let counts = &mut node.counts;
    counts.last_ns = duration_ns;
    counts.max_ns = counts.max_ns.max(duration_ns);
    let is_over = node.budget_ns > 0 && duration_ns > node.budget_ns;
    let is_stuck = node.callback_max_ns > 0 && duration_ns > node.callback_max_ns;
    counts.budget_overruns += u64::from(is_over);
    counts.callback_overruns += u64::from(is_stuck);
    if !env.traces {
        return;
    }
    record_call(env, node, recorder, worker, (begun_ns, duration_ns), cause);
    if is_over || is_stuck {
        let name = TraceName::ComponentTimeoutBudgetExceeded;
        recorder.note(env, name, node.component, duration_ns);
    }
}

#[inline(always)]
fn record_call(
    env: &Env,
    node: &NodeState,
    recorder: &mut Recorder,
    worker: u16,
    (begun_ns, duration_ns): (u64, u64),
    cause: Option<&Message>,
) {
    let (message, correlation) = match cause {
        Some(cause) => (cause.id(), cause.meta.correlation),
        None => Default::default(),
    };
    let (component, source) = (number(node.component), recorder.source(worker));
    let times = (begun_ns.wrapping_sub(env.begun_ns), duration_ns);
    let line = Line::call(component, source, times, message, correlation);
    recorder.lines.add(line, || TraceRecord {
        component,
        lane: source.lane,
        worker,
        duration_ns,
        correlation: correlation.pair(),
        message: message.pair(),
        ..TraceRecord::at(TraceName::ComponentExecute, env, begun_ns)
    });
}

/// Invocations that may have overlapped: from the first beginning to the last end, with all who
/// took part.
pub(crate) fn batch(env: &Env, node: &NodeState, recorder: &mut Recorder, jobs: &[Job]) {
    if !env.traces {
        return;
    }
    let spans = || jobs.iter().filter_map(|job| job.span_ns);
    let Some(start_ns) = spans().map(|(begun_ns, _)| begun_ns).min() else { return };
    let end_ns = spans().map(|(begun_ns, took_ns)| begun_ns.saturating_add(took_ns)).max();
    let bit = |job: &Job| 1_u64 << u32::from(job.worker).min(u64::BITS - 1);
    recorder.push(TraceRecord {
        component: number(node.component),
        lane: recorder.lane,
        start_ns,
        duration_ns: end_ns.map_or(0, |end_ns| end_ns - start_ns),
        value: jobs.iter().map(bit).fold(0, |all, one| all | one),
        ..TraceRecord::point(TraceName::ThreadPoolBatch, env)
    });
}

#[inline]
pub(crate) fn committed(
    env: &Env,
    recorder: &mut Recorder,
    clock: &mut ClockCache,
    edge: u32,
    seq: u64,
) {
    if env.traces {
        note_commit(env, recorder, clock, edge, seq);
    }
}

#[inline(never)]
fn note_commit(env: &Env, recorder: &mut Recorder, clock: &mut ClockCache, edge: u32, seq: u64) {
    let (now_ns, message) = (clock.cached(env), MessageId::new(edge, seq));
    let source = recorder.source(recorder.worker);
    let line = Line::commit(edge, source, now_ns.wrapping_sub(env.begun_ns), message);
    recorder.lines.add(line, || {
        let RecordSource { lane, worker } = source;
        let point = TraceRecord::at(TraceName::ChannelCommit, env, now_ns);
        TraceRecord { edge, lane, worker, message: message.pair(), ..point }
    });
}

/// A publication on an edge whose reader sees it in the next epoch.
#[inline]
pub(crate) fn published(env: &Env, recorder: &mut Recorder, clock: &mut ClockCache, edge: u32) {
    if env.traces {
        let lane = recorder.lane;
        let point = TraceRecord::at(TraceName::ChannelPublish, env, clock.cached(env));
        recorder.push(TraceRecord { edge, lane, ..point });
    }
}

fn number(index: usize) -> u32 {
    u32::try_from(index).expect("components are counted by the limits of a description")
}
