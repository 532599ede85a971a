//! Trace records: fixed in size, with numbers for names. Each region keeps its own until the epoch
//! has ended; if one worker runs all regions, they share one list.
//!
//! A record with a duration represents three names: that of the span, its `_begin` and its `_end`.
//! A run writes only the first; [`expand()`] produces all of them for a reader.
//!
//! The times of records are those of their domain. In virtual time an epoch takes no time: all its
//! records begin when it does, and no span has a duration. So such a trace can be repeated, except
//! for the workers in it; what calls take by the clock of the system is in the metrics.

mod expand;
mod lines;

pub use expand::expand;
pub(super) use expand::is_immediate;
use lines::RecordSource;
pub(crate) use lines::{EpochStart, Line, Lines};

use super::health::{Health, HealthKind};
use crate::{
    named::named,
    run::{
        engine::{batch::Job, env::Env, node::NodeState},
        flow::message::{Message, MessageId},
    },
};

named! {
    /// What a record is about.
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
        /// A further message of the call before: the call itself names its first message.
        ComponentInput = "component_input",
        /// The run is stopping while a component runs.
        ComponentCancellationRequested = "component_cancellation_requested",
        /// A component has observed that the run is stopping.
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
        /// A tick was skipped.
        FixedRateSkippedTick = "fixed_rate_skipped_tick",
        /// A value was published.
        ChannelPublish = "channel_publish",
        /// A value became visible.
        ChannelCommit = "channel_commit",
        /// A value of a state edge became visible.
        StateCommit = "state_commit",
        /// A value of an async edge was admitted.
        AsyncAdmission = "async_admission",
        /// New settings were validated.
        ConfigTransactionValidate = "config_transaction_validate",
        /// New settings were applied.
        ConfigTransactionApply = "config_transaction_apply",
        /// New settings were rolled back.
        ConfigTransactionRollback = "config_transaction_rollback",
        /// New settings are in force.
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
        /// A loop has reached its largest number of iterations.
        LoopMaxIterationsHit = "loop_max_iterations_hit",
        /// The outputs of a loop were discarded.
        LoopOutputDiscarded = "loop_output_discarded",
        /// A member of a loop has failed.
        LoopError = "loop_error",
        /// The run is stopping while a loop runs.
        LoopCancellationRequested = "loop_cancellation_requested",
        /// A loop has stopped because the run is stopping.
        LoopCancellationObserved = "loop_cancellation_observed",
        /// A health event.
        HealthEvent = "health_event",
    }
}

impl TraceName {
    /// The part of the runtime that it belongs to.
    #[must_use]
    pub const fn phase(self) -> &'static str {
        match self {
            Self::ComponentExecute
            | Self::ComponentExecuteBegin
            | Self::ComponentExecuteEnd
            | Self::ComponentInput
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

/// A record has no component, edge or lane.
pub const NONE: u32 = u32::MAX;

/// A trace record. Components, edges and lanes are indices of the plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceRecord {
    /// What it is about.
    pub name: TraceName,
    /// For a health event, the index of its kind in
    /// [`HealthKind::ALL`](super::health::HealthKind::ALL); otherwise zero.
    pub detail: u8,
    /// The component, or [`NONE`]; for a loop, its first member.
    pub component: u32,
    /// The edge, or [`NONE`].
    pub edge: u32,
    /// The lane, or [`NONE`].
    pub lane: u32,
    /// The worker of the epoch, from zero.
    pub worker: u16,
    /// The epoch.
    pub epoch: u64,
    /// Nanoseconds since the run began, in the time of the domain: in virtual time, when the epoch
    /// takes place.
    pub start_ns: u64,
    /// Nanoseconds; zero for an instant, and in virtual time.
    pub duration_ns: u64,
    /// The message that began the chain of calls: edge plus one, and its number; zero: none.
    pub correlation: (u32, u64),
    /// The message that caused it, or the message that it is about.
    pub message: (u32, u64),
    /// Further data: the index of an iteration; the number of ticks, outputs or events; the number
    /// of a change of settings; for a batch, a bit for each worker that took part; for the end of a
    /// span, its duration in nanoseconds.
    pub value: u64,
}

impl TraceRecord {
    /// A record of the current time.
    pub(crate) fn point(name: TraceName, env: &Env) -> Self {
        Self::at(name, env, env.trace_ns())
    }

    /// A record of a given time, as measured. In simulated time it is that of the epoch.
    #[inline]
    fn at(name: TraceName, env: &Env, measured_ns: u64) -> Self {
        let start_ns = if env.is_simulated { env.now_ns } else { measured_ns };
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

    /// The workers that took part in a batch; none for other records. The last bit also represents
    /// all workers with a higher number.
    pub fn worker_ids(&self) -> impl Iterator<Item = u16> + use<> {
        let bits = if self.name == TraceName::ThreadPoolBatch { self.value } else { 0 };
        (0..64_u16).filter(move |worker| bits >> worker & 1 == 1)
    }

    /// The kind of a health event.
    #[must_use]
    pub fn health_kind(&self) -> Option<HealthKind> {
        let kinds = (self.name == TraceName::HealthEvent).then_some(HealthKind::ALL)?;
        kinds.get(usize::from(self.detail)).copied()
    }

    /// A health event, recorded now. It may have happened some epochs ago.
    pub(crate) fn health(event: &Health, env: &Env) -> Self {
        Self::health_at(event, EpochStart { epoch: env.epoch, start_ns: env.trace_ns() })
    }

    /// A health event, recorded at this time.
    pub(crate) fn health_at(event: &Health, at: EpochStart) -> Self {
        let kind = HealthKind::ALL.iter().position(|kind| *kind == event.key.kind);
        Self {
            name: TraceName::HealthEvent,
            detail: kind.and_then(|kind| u8::try_from(kind).ok()).unwrap_or(0),
            component: event.key.component,
            edge: event.key.edge,
            lane: event.key.lane,
            worker: 0,
            epoch: at.epoch,
            start_ns: at.start_ns,
            duration_ns: 0,
            correlation: (0, 0),
            message: (0, 0),
            value: event.occurrence_count,
        }
    }
}

/// Records what a region does in one epoch.
#[derive(Debug, Default)]
pub(crate) struct Recorder {
    /// Its own list, or the list that all regions of one worker share.
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

    /// Records an instant of a component of this region.
    #[cold]
    pub(crate) fn note(&mut self, env: &Env, name: TraceName, component: usize, value: u64) {
        if env.traces {
            let (component, lane) = (number(component), self.lane);
            let point = TraceRecord::point(name, env);
            self.push(TraceRecord { component, lane, value, ..point });
        }
    }

    /// Begins a span; returns its index for [`close`](Self::close). Later records are inside it and
    /// do not begin before it.
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

    /// Ends a span.
    pub(crate) fn close(&mut self, env: &Env, span: Option<usize>, value: u64) {
        if let Some(record) = span.and_then(|at| self.lines.get_mut(at)) {
            record.duration_ns = env.trace_ns().saturating_sub(record.start_ns);
            record.value = value;
        }
    }

    /// Removes a span in which nothing happened.
    pub(crate) fn forget(&mut self, span: Option<usize>) {
        if let Some(at) = span {
            self.lines.truncate(at);
        }
    }
}

/// The last clock reading of a worker, in an epoch with a trace.
///
/// Reading the clock costs as much as the rest of a record. So in a trace a call begins when the
/// previous call on the same worker has ended, and its publications are committed at its end: what
/// the runtime does in between is drawn as part of the next call. Calls with a budget are measured
/// exactly, and so are all calls in an epoch that is timed but not traced.
#[derive(Debug, Default)]
pub(crate) struct ClockCache(Option<u64>);

impl ClockCache {
    /// The last reading, or a new one.
    #[inline]
    fn cached(&mut self, env: &Env) -> u64 {
        *self.0.get_or_insert_with(|| env.since_start())
    }

    /// A new reading.
    #[inline(never)]
    fn read(&mut self, env: &Env) -> u64 {
        *self.0.insert(env.since_start())
    }
}

/// When a call began, if it is measured.
#[derive(Clone, Copy)]
pub(crate) struct Begun(Option<u64>);

impl Begun {
    /// The call is not measured.
    pub(crate) const UNMEASURED: Self = Self(None);

    /// Whether the call is measured.
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

/// As [`begin`], for a call without a budget: uses the last clock reading if there is one.
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
        called(env, node, recorder, worker, (begun_ns, duration_ns), messages);
    }
}

/// As [`end`], for a call without a budget.
#[inline(never)]
pub(crate) fn end_unbudgeted(
    env: &Env,
    node: &mut NodeState,
    (recorder, clock): (&mut Recorder, &mut ClockCache),
    begun: Begun,
    messages: &[Message],
) {
    if let Some(begun_ns) = begun.0 {
        let duration_ns = clock.read(env).saturating_sub(begun_ns);
        node.note_duration(duration_ns);
        if env.traces {
            let worker = recorder.worker;
            record_call(env, node, recorder, worker, (begun_ns, duration_ns), messages);
        }
    }
}

/// Records one of several overlapping invocations, as measured.
pub(crate) fn job(env: &Env, node: &mut NodeState, recorder: &mut Recorder, job: &Job) {
    if let Some(span) = job.span_ns {
        called(env, node, recorder, job.worker, span, &job.messages);
    }
}

/// Records a call with its start and its duration.
fn called(
    env: &Env,
    node: &mut NodeState,
    recorder: &mut Recorder,
    worker: u16,
    (begun_ns, duration_ns): (u64, u64),
    messages: &[Message],
) {
    node.note_duration(duration_ns);
    let counts = &mut node.counts;
    let is_over = node.budget_ns > 0 && duration_ns > node.budget_ns;
    let is_stuck = node.callback_max_ns > 0 && duration_ns > node.callback_max_ns;
    counts.budget_overruns += u64::from(is_over);
    counts.callback_overruns += u64::from(is_stuck);
    if !env.traces {
        return;
    }
    record_call(env, node, recorder, worker, (begun_ns, duration_ns), messages);
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
    messages: &[Message],
) {
    let mut messages = messages.iter().filter(|one| !one.is_none());
    let (message, correlation) = messages.next().map(ids).unwrap_or_default();
    let (component, source) = (number(node.component), recorder.source(worker));
    let duration_ns = if env.is_simulated { 0 } else { duration_ns };
    let times = (since_epoch(env, begun_ns), duration_ns);
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
    for further in messages {
        let (message, correlation) = ids(further);
        let line = Line::input(component, source, times.0, message, correlation);
        recorder.lines.add(line, || TraceRecord {
            component,
            lane: source.lane,
            worker,
            correlation: correlation.pair(),
            message: message.pair(),
            ..TraceRecord::at(TraceName::ComponentInput, env, begun_ns)
        });
    }
}

/// A message, and the message that began its chain of calls.
#[inline]
fn ids(message: &Message) -> (MessageId, MessageId) {
    (message.id(), message.meta.correlation)
}

/// A measured time, from the start of the epoch on. In simulated time an epoch takes no time.
#[inline]
fn since_epoch(env: &Env, measured_ns: u64) -> u64 {
    if env.is_simulated { 0 } else { measured_ns.wrapping_sub(env.begun_ns) }
}

/// Records a batch of invocations: from the first beginning to the last end, with all workers that
/// took part.
pub(crate) fn batch(env: &Env, node: &NodeState, recorder: &mut Recorder, jobs: &[Job]) {
    if !env.traces {
        return;
    }
    let spans = || jobs.iter().filter_map(|job| job.span_ns);
    let Some(start_ns) = spans().map(|(begun_ns, _)| begun_ns).min() else { return };
    let end_ns = spans().map(|(begun_ns, took_ns)| begun_ns.saturating_add(took_ns)).max();
    let bit = |job: &Job| 1_u64 << u32::from(job.worker).min(u64::BITS - 1);
    let took_ns = end_ns.filter(|_| !env.is_simulated).map_or(0, |end_ns| end_ns - start_ns);
    recorder.push(TraceRecord {
        component: number(node.component),
        lane: recorder.lane,
        duration_ns: took_ns,
        value: jobs.iter().map(bit).fold(0, |all, one| all | one),
        ..TraceRecord::at(TraceName::ThreadPoolBatch, env, start_ns)
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
    let line = Line::commit(edge, source, since_epoch(env, now_ns), message);
    recorder.lines.add(line, || {
        let RecordSource { lane, worker } = source;
        let point = TraceRecord::at(TraceName::ChannelCommit, env, now_ns);
        TraceRecord { edge, lane, worker, message: message.pair(), ..point }
    });
}

/// Records a publication that becomes visible in the next epoch.
#[inline]
pub(crate) fn published(env: &Env, recorder: &mut Recorder, clock: &mut ClockCache, edge: u32) {
    if env.traces {
        let lane = recorder.lane;
        let point = TraceRecord::at(TraceName::ChannelPublish, env, clock.cached(env));
        recorder.push(TraceRecord { edge, lane, ..point });
    }
}

fn number(index: usize) -> u32 {
    u32::try_from(index).expect("the limits of a description bound the number of components")
}
