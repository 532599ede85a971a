//! An epoch domain and its coordinator, which decides when each epoch runs.
//!
//! All lanes without a clock of their own form one domain. Each `fixed_rate` lane that follows the
//! wall clock is a domain of its own. A domain is a future: the first runs on the executor of the
//! system, each other one on the thread of its lane, if the host provides one. An epoch has three
//! parts:
//!
//! 1. The coordinator commits what was deferred to this epoch, in compiled order, then what came
//!    from outside, in the order of arrival, then the results of tasks (`boundary.rs`).
//! 2. The regions run: sequentially in compiled order, or in parallel where the plan allows it
//!    ([`epoch`](super::epoch), [`helpers`](super::helpers)).
//! 3. The coordinator writes the commits to the commit log, in compiled order, and updates lanes,
//!    credit and metrics ([`Domain::close_epoch`]).
//!
//! In simulated time an epoch takes no time. After an epoch, time advances to the next tick of a
//! lane or a timer. Only after an epoch in which nothing was called does time advance to other
//! events that depend on time alone.

mod boundary;
mod readiness;
pub(crate) mod silence;

use core::{
    future::poll_fn,
    pin::pin,
    task::{Context, Poll},
    time::Duration,
};
use std::{collections::VecDeque, sync::Arc};

use clockjack_exec::Sleep;
use silence::WatchedInput;

use super::{
    chains::ChainEnd,
    epoch::{DomainState, EpochOutcome, RegionCell},
    helpers::Helpers,
    lanes::Lanes,
    node::catch_panic,
    region::{Region, earlier},
};
use crate::run::{
    flow::{
        blackboard::StateCounts,
        inbox::{Inbox, Incoming, TaskResult},
        reconfigure::ConfigCounts,
        tasks,
        tasks::{EndCounts, RunningTasks, ShutdownPolicy},
    },
    observe::{
        commit_log,
        health::{self, Health, HealthKey, HealthKind, HealthSink},
        losses::EdgeTally,
        report::{Fault, RunPhase, RunStopReason},
        sinks::{LogPart, TraceLog},
        trace::{EpochStart, TraceName, TraceRecord},
    },
    setup::{
        shared::RunShared,
        wiring::{ChannelLocation, SpecialEdges, count},
    },
};

/// Calls of components after which a coordinator yields its worker thread.
const CALLS_BEFORE_YIELD: u64 = 512;

/// Health events are collected once per this number of epochs.
const HEALTH_EVERY: u64 = 64;

/// How many faults a run keeps.
const FAULTS_MAX: usize = 256;

/// Why the coordinator may change the state of its domain: between epochs no worker refers to it.
const EXCLUSIVE: &str = "the state has one owner between epochs";

/// Which clock a domain follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pace {
    /// Simulated time: it advances as fast as epochs run.
    Simulated,
    /// The clock of the system.
    System,
}

/// An epoch domain.
pub(crate) struct Domain {
    pub(crate) index: usize,
    pub(crate) pace: Pace,
    pub(crate) state: Arc<DomainState>,
    pub(crate) lanes: Lanes,
    pub(crate) helpers: Option<Helpers>,
    /// Where the channel of each edge of the plan is.
    pub(crate) channel_locations: Arc<[ChannelLocation]>,
    pub(crate) inboxes: Arc<[Inbox]>,
    pub(crate) shared: Arc<RunShared>,
    pub(crate) bounds: Bounds,
    pub(crate) timing_every: u64,
    pub(crate) commit_log: Option<LogPart>,
    pub(crate) trace: Option<TraceLog>,
    pub(crate) special_edges: SpecialEdges,
    pub(crate) progress: Progress,
}

/// When a domain ends by itself.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    pub(crate) steps: Option<u64>,
    pub(crate) duration_ns: Option<u64>,
    pub(crate) until_idle: bool,
    /// What happens to its tasks then, and how long the run waits for them.
    pub(crate) shutdown: (ShutdownPolicy, Duration),
}

/// The progress of a domain: counts, faults, and buffers that are reused.
#[derive(Default)]
pub(crate) struct Progress {
    pub(crate) health: HealthSink,
    pub(crate) n_called: u64,
    pub(crate) last_called: u64,
    pub(crate) overlap_max: usize,
    /// Epochs that ran in parallel.
    pub(crate) n_parallel: u64,
    pub(crate) faults: Vec<Fault>,
    pub(crate) n_faults_dropped: u64,
    /// Fed values that were not taken before the end.
    pub(crate) n_fed_dropped: u64,
    pub(crate) n_tasks: u64,
    pub(crate) n_tasks_completed: u64,
    pub(crate) tasks_at_end: EndCounts,
    running: RunningTasks,
    /// Messages on `async` edges that newer ones have evicted.
    pub(crate) async_evicted: EdgeTally,
    /// Messages whose reader had ended, or that came after the last epoch.
    pub(crate) undelivered: EdgeTally,
    pub(crate) blocked_ns: u64,
    /// For each lane, how long its calls of this epoch took, if the run has a model of their costs.
    pub(crate) lane_costs_ns: Vec<u64>,
    /// For each lane.
    pub(crate) n_starvations: Vec<u64>,
    pub(crate) config: ConfigCounts,
    pub(crate) state: StateCounts,
    /// Inputs that must not be silent for long.
    pub(crate) silence: Vec<WatchedInput>,
    incoming: VecDeque<Incoming>,
    /// A buffer for what was lost on its way from other domains: the edge, how many.
    lost_before: Vec<(u32, u64)>,
    /// Per edge with a bound on messages in flight: the edge, how many messages there are, how many
    /// may stay.
    in_flight: Vec<(u32, u32, u32)>,
    boundary_log: Vec<u8>,
    epoch_log: Vec<u8>,
    /// Trace records of the epoch, its ticks and its boundary.
    records: Vec<TraceRecord>,
    /// Trace records that are known only at the end of the epoch.
    points: Vec<TraceRecord>,
    pub(crate) n_trace_events: u64,
    /// The most messages on `async` edges and tasks at the same time.
    pub(crate) async_max: u64,
}

impl Progress {
    /// The state at the beginning; `health_capacity`: how many health events are kept.
    pub(crate) fn new(health_capacity: usize) -> Self {
        Self { health: HealthSink::new(health_capacity), ..Self::default() }
    }

    /// Keeps a fault that does not end the run, or counts it.
    fn note_fault(&mut self, fault: Fault) {
        if self.faults.len() < FAULTS_MAX {
            self.faults.push(fault);
        } else {
            self.n_faults_dropped += 1;
        }
    }
}

/// What the coordinator does next.
enum NextAction {
    /// Runs an epoch at this time.
    At(u64),
    /// Sleeps until this time, or until something comes in.
    SleepUntil(u64),
    /// Sleeps until something comes in.
    Wait,
    /// Ends.
    End(RunStopReason),
}

impl Domain {
    /// Runs until the domain ends.
    pub(crate) async fn run(mut self) -> (Self, RunStopReason, Option<Fault>) {
        let ended = self.run_to_end().await;
        self.watch_silence_at_end(ended.0);
        if self.index > 0 {
            self.shared.lane_ended();
            self.inboxes[0].wake();
        }
        if let Some(helpers) = &mut self.helpers {
            helpers.close();
        }
        self.progress.n_parallel = self.helpers.as_ref().map_or(0, Helpers::n_parallel);
        self.progress.n_starvations =
            self.helpers.take().map(|helpers| helpers.n_starvations()).unwrap_or_default();
        if ended.1.is_some() {
            self.shared.stop_all(&self.inboxes);
        }
        self.stop_tasks().await;
        // After the end, live views show the final state.
        take_call_reports(&self.shared, &mut self.progress, self.trace.is_some());
        gather_health(Arc::get_mut(&mut self.state).expect(EXCLUSIVE), &mut self.progress);
        self.flush_trace();
        self.shared.live.publish_final(&self);
        (self, ended.0, ended.1)
    }

    /// Runs one epoch after the other. A panic outside of component calls, for example while a
    /// value is encoded, ends the run like a fault.
    async fn run_to_end(&mut self) -> (RunStopReason, Option<Fault>) {
        let ended = {
            let mut epochs = pin!(self.run_epochs());
            let poll = |cx: &mut Context<'_>| {
                let polled = catch_panic(|| Ok(epochs.as_mut().poll(cx)));
                polled.map_or_else(|failure| Poll::Ready(Err(failure)), |polled| polled.map(Ok))
            };
            poll_fn(poll).await
        };
        ended.unwrap_or_else(|failure| {
            let fault = Self::runtime_fault(&format!("{failure}"));
            (RunStopReason::Error, Some(Fault { epoch: self.state.env.epoch, ..fault }))
        })
    }

    async fn run_epochs(&mut self) -> (RunStopReason, Option<Fault>) {
        if let Some(log) = &self.commit_log {
            let mut head = Vec::new();
            let own = self.lanes.list.first().filter(|_| self.index > 0);
            let lane = own.map(|lane| self.shared.plan.lanes[lane.lane].spec.id.as_str());
            commit_log::head(&mut head, &self.shared.plan.name, lane);
            log.write(&head);
        }
        let mut n_since_yield = 0;
        loop {
            if self.state.env.is_stopping() {
                break (RunStopReason::StopRequested, None);
            }
            match self.next_action() {
                NextAction::End(reason) => break (reason, None),
                NextAction::Wait => self.sleep_and_watch(None).await,
                NextAction::SleepUntil(until_ns) => self.sleep_and_watch(Some(until_ns)).await,
                NextAction::At(now_ns) => {
                    if let Some(fault) = self.epoch(now_ns).await {
                        break (RunStopReason::Error, Some(fault));
                    }
                    n_since_yield += self.progress.last_called.max(1);
                    if n_since_yield >= CALLS_BEFORE_YIELD {
                        n_since_yield = 0;
                        yield_now().await;
                    }
                }
            }
        }
    }

    /// Decides when the next epoch runs.
    fn next_action(&mut self) -> NextAction {
        let (epoch, now_ns) = (self.state.env.epoch, self.state.env.now_ns);
        if self.state.regions.is_empty() && self.inboxes.len() > 1 {
            // All lanes are domains of their own.
            return NextAction::End(RunStopReason::NotStarted);
        }
        if self.bounds.steps.is_some_and(|steps| epoch >= steps) {
            return NextAction::End(RunStopReason::TickBound);
        }
        let is_requested = self.shared.is_step_requested(self.index);
        let next = match self.pace {
            Pace::Simulated => self.next_simulated(epoch, now_ns, is_requested),
            Pace::System => self.next_by_system(epoch, is_requested),
        };
        match (next, self.bounds.duration_ns) {
            (NextAction::Wait, bound) if self.has_nothing_left() => {
                let reason = if bound.is_some() {
                    RunStopReason::DurationBound
                } else {
                    RunStopReason::TickBound
                };
                NextAction::End(reason)
            }
            (NextAction::Wait, Some(bound)) if self.pace == Pace::System => {
                // Something may come in until then.
                if self.state.env.since_start() >= bound {
                    NextAction::End(RunStopReason::DurationBound)
                } else {
                    NextAction::SleepUntil(bound)
                }
            }
            (NextAction::At(at) | NextAction::SleepUntil(at), Some(bound)) if at >= bound => {
                NextAction::End(RunStopReason::DurationBound)
            }
            (next, _) => next,
        }
    }

    /// Whether all other domains have ended and nothing is left to do here: a bounded run does not
    /// wait for messages that can never come.
    fn has_nothing_left(&self) -> bool {
        self.is_bounded_by_lanes() && !self.shared.has_lanes_left() && !self.has_more()
    }

    /// Whether this domain ends when all other domains have ended.
    fn is_bounded_by_lanes(&self) -> bool {
        let is_bounded = self.bounds.steps.is_some() || self.bounds.duration_ns.is_some();
        self.index == 0 && self.inboxes.len() > 1 && is_bounded
    }

    fn next_simulated(&self, epoch: u64, now_ns: u64, is_step_requested: bool) -> NextAction {
        if epoch == 0 {
            return NextAction::At(0);
        }
        let (tick, other) = self.due();
        let tick = self.lanes.next_of(tick);
        let was_idle = self.progress.last_called == 0;
        if was_idle && !is_step_requested && !self.has_more() {
            let next = earlier(tick, other);
            return match next {
                Some(next_ns) => NextAction::At(next_ns.max(now_ns)),
                None if self.bounds.until_idle => NextAction::End(RunStopReason::Idle),
                None if self.bounds.steps.is_some() => NextAction::At(now_ns),
                None => NextAction::Wait,
            };
        }
        NextAction::At(tick.map_or(now_ns, |tick_ns| tick_ns.max(now_ns)))
    }

    fn next_by_system(&self, epoch: u64, is_step_requested: bool) -> NextAction {
        let now_ns = self.state.env.since_start();
        if epoch == 0 || is_step_requested {
            return NextAction::At(now_ns);
        }
        let (tick, other) = self.due();
        let next = earlier(self.lanes.next_of(tick), other);
        let only_ticks = self.index > 0;
        if !only_ticks && (self.has_work() || (next.is_none() && self.progress.last_called > 0)) {
            return NextAction::At(now_ns);
        }
        let next = if only_ticks { self.lanes.next_tick() } else { next };
        match next {
            Some(next_ns) if next_ns <= now_ns => NextAction::At(now_ns),
            Some(next_ns) => NextAction::SleepUntil(next_ns),
            None if self.bounds.until_idle && !self.has_more() => {
                NextAction::End(RunStopReason::Idle)
            }
            None => NextAction::Wait,
        }
    }

    /// Sleeps, but wakes up when an input has been silent for too long. That causes no epoch: the
    /// caller decides again what to do.
    async fn sleep_and_watch(&mut self, until_ns: Option<u64>) {
        let is_wait = until_ns.is_none();
        let silent_ns = self.next_silence().filter(|_| self.pace == Pace::System);
        self.sleep(earlier(until_ns, silent_ns), is_wait).await;
        if silent_ns.is_some() {
            self.watch_silence(self.state.env.since_start());
        }
    }

    /// Sleeps until a time, if there is one, or until something comes in. `is_wait`: nothing is
    /// due.
    async fn sleep(&mut self, until_ns: Option<u64>, is_wait: bool) {
        let env = &self.state.env;
        let (index, shared) = (self.index, &self.shared);
        let ends_with_lanes = is_wait && self.is_bounded_by_lanes();
        let must_wake = || {
            env.is_stopping()
                || shared.is_step_requested(index)
                || (ends_with_lanes && !shared.has_lanes_left())
        };
        let inbox = &self.inboxes[index];
        let slept_ns = env.nanos();
        match until_ns {
            None => poll_fn(|cx| inbox.poll_any(cx.waker(), must_wake)).await,
            Some(until_ns) => {
                // Until a clock edge, not for a delay: a delay from now would be rounded up to the
                // next edge.
                let now = env.executor.now();
                let edge_ns =
                    now.tick().get().saturating_mul(now.resolution().nanos().get().into());
                let after = env.began_ns.saturating_add(until_ns).saturating_sub(edge_ns);
                let edge = now.saturating_add(Duration::from_nanos(after)).tick();
                // Uses the timers of the executor that polls this future: for a lane, that of its
                // own thread.
                let mut sleep = pin!(Sleep::until(edge, || None));
                let only_ticks = index > 0;
                poll_fn(|cx| {
                    if sleep.as_mut().poll(cx).is_ready() {
                        return Poll::Ready(());
                    }
                    if !only_ticks {
                        return inbox.poll_any(cx.waker(), must_wake);
                    }
                    // A lane with its own clock takes incoming messages only at its ticks.
                    inbox.register_coordinator(cx.waker());
                    if must_wake() { Poll::Ready(()) } else { Poll::Pending }
                })
                .await;
            }
        }
        self.progress.blocked_ns += self.state.env.nanos().saturating_sub(slept_ns);
    }

    /// Runs one epoch; returns the fault that ends the run, if there is one.
    async fn epoch(&mut self, now_ns: u64) -> Option<Fault> {
        self.wait_for_tasks().await;
        self.watch_silence(now_ns);
        let is_step_requested = self.shared.take_step_request(self.index);
        let state = Arc::get_mut(&mut self.state).expect(EXCLUSIVE);
        state.env.epoch += 1;
        state.env.now_ns = now_ns;
        let epoch = state.env.epoch;
        state.env.measures = state.env.traces
            || epoch <= 4
            || self.helpers.as_ref().is_some_and(Helpers::wants_measurement)
            || (self.timing_every > 0 && epoch.is_multiple_of(self.timing_every));
        self.lanes.begin(now_ns, is_step_requested, &mut state.is_due);
        if state.env.traces {
            // The duration is filled in at the end of the epoch.
            let epoch = TraceRecord::point(TraceName::SchedulerIteration, &state.env);
            state.env.begun_ns = epoch.start_ns;
            self.progress.records.push(epoch);
        }
        let has_boundary = self.special_edges.has_boundary()
            || *state.env.is_written.get_mut()
            || !self.progress.incoming.is_empty()
            || self.inboxes[self.index].has_any();
        let outcome = match &mut self.helpers {
            helpers
                if !has_boundary && !helpers.as_ref().is_some_and(Helpers::is_worth_parallel) =>
            {
                run_sequential(state, helpers.as_mut())
            }
            _ => self.run_with_boundary().await,
        };
        if let Some((failed_at, _)) = &outcome.fault {
            self.discard_tasks_after(*failed_at);
        }
        self.start_tasks();
        self.close_epoch(now_ns, outcome)
    }

    /// Discards the tasks of regions after one that failed: in a parallel epoch they may have run
    /// already, but they do not count.
    fn discard_tasks_after(&mut self, failed_at: usize) {
        let state = Arc::get_mut(&mut self.state).expect(EXCLUSIVE);
        let behind = state.regions.iter_mut().skip(failed_at + 1).map(RegionCell::get_mut);
        let behind = behind.flat_map(|region| region.nodes.iter().map(|node| node.component));
        let behind: Vec<usize> = behind.collect();
        state.env.tasks.forget(&behind);
    }

    /// Runs an epoch that has something to commit at its boundary, or that runs in parallel.
    async fn run_with_boundary(&mut self) -> EpochOutcome {
        self.commit_deferred();
        let boundary = self.take_incoming();
        self.open_rooms();
        if let Some(fault) = boundary {
            return EpochOutcome { fault: Some((0, fault)), ..EpochOutcome::default() };
        }
        match &mut self.helpers {
            Some(helpers) if helpers.is_worth_parallel() => {
                let state = Arc::get_mut(&mut self.state).expect(EXCLUSIVE);
                state.env.is_parallel = true;
                let before_ns = state.env.measures.then(|| state.measured_ns());
                let outcome = helpers.run(&mut self.state).await;
                let state = Arc::get_mut(&mut self.state).expect(EXCLUSIVE);
                state.env.is_parallel = false;
                if let Some(before_ns) = before_ns {
                    helpers.record_cost(state.measured_ns() - before_ns, outcome.n_called);
                }
                if state.env.traces {
                    state.gather_lines();
                }
                self.apply_buffered_effects(outcome.fault.as_ref().map(|(position, _)| *position));
                outcome
            }
            helpers => {
                run_sequential(Arc::get_mut(&mut self.state).expect(EXCLUSIVE), helpers.as_mut())
            }
        }
    }

    /// Applies the log lines and counts that were buffered in a parallel epoch: in compiled order,
    /// and without those of regions after one that failed.
    fn apply_buffered_effects(&mut self, failed_at: Option<usize>) {
        let DomainState { env, .. } = Arc::get_mut(&mut self.state).expect(EXCLUSIVE);
        let counts =
            |position: u32| failed_at.is_none_or(|failed_at| position as usize <= failed_at);
        if let Some(log) = &env.component_log {
            log.flush_epoch(counts);
        }
        if core::mem::take(env.has_buffered_counts.get_mut()) {
            let (index, nodes) = (self.index, &self.shared.nodes);
            let position_of = |component: usize| {
                let (domain, position, _) = nodes[component];
                (domain as usize == index).then_some(position)
            };
            env.user.apply_buffered(position_of, counts);
        }
    }

    /// In simulated time, waits until all tasks have ended: their duration is not part of simulated
    /// time.
    async fn wait_for_tasks(&mut self) {
        if self.pace != Pace::Simulated || self.state.env.tasks.n_open() == 0 {
            return;
        }
        let (env, n_waiting) = (&self.state.env, self.n_tasks_waiting());
        let inbox = &self.inboxes[self.index];
        poll_fn(|cx| {
            // Registers the waker first and checks second: a task that ends in between wakes this
            // future.
            inbox.register_coordinator(cx.waker());
            if inbox.n_tasks() + n_waiting >= env.tasks.n_open() || env.is_stopping() {
                Poll::Ready(())
            } else {
                Poll::Pending
            }
        })
        .await;
    }

    /// Gives the submitted tasks to the executor.
    fn start_tasks(&mut self) {
        let env = &self.state.env;
        if env.tasks.n_open() == 0 {
            return;
        }
        let submitted = env.tasks.take_submitted();
        if !submitted.is_empty() {
            let n_open = env.tasks.n_open() as u64;
            self.progress.async_max = self.progress.async_max.max(n_open);
        }
        let state = Arc::get_mut(&mut self.state).expect(EXCLUSIVE);
        for from in submitted.iter().map(|one| one.from).filter(|from| from.call > 0) {
            let (_, region, at) = self.shared.nodes[from.component];
            let node = &mut state.regions[region as usize].get_mut().nodes[at as usize];
            node.chains.iter_mut().for_each(|chains| chains.hold(from.call));
        }
        let env = &self.state.env;
        for submitted in submitted {
            let number = self.progress.n_tasks;
            self.progress.n_tasks += 1;
            let inbox = self.inboxes[self.index].clone();
            let origin = submitted.from;
            let ending = TaskCompletion { inbox, number, origin, result: None };
            let work = submitted.into_work();
            let task = async move { ending.end(work.await) };
            self.progress.running.start(number, origin.component, &env.executor, task);
        }
    }

    /// Writes the commits of the epoch to the commit log, and updates the counts.
    fn close_epoch(&mut self, now_ns: u64, outcome: EpochOutcome) -> Option<Fault> {
        let state = Arc::get_mut(&mut self.state).expect(EXCLUSIVE);
        let progress = &mut self.progress;
        progress.last_called = outcome.n_called;
        progress.n_called += outcome.n_called;
        progress.overlap_max = progress.overlap_max.max(outcome.overlap);
        let failed_at = outcome.fault.as_ref().map_or(usize::MAX, |(position, _)| *position);
        if let Some(log) = &self.commit_log {
            let epoch = &mut progress.epoch_log;
            epoch.clear();
            commit_log::epoch(epoch, state.env.epoch, now_ns);
            epoch.append(&mut progress.boundary_log);
            for (position, region) in state.regions.iter_mut().enumerate() {
                let region = region.get_mut();
                if position <= failed_at {
                    epoch.append(&mut region.log);
                } else {
                    // It ran concurrently with a region before it that failed, and does not count.
                    region.log.clear();
                }
            }
            if let Some((_, fault)) = &outcome.fault {
                let component = self.shared.component_of(&fault.component);
                commit_log::failure(epoch, component);
            }
            log.write(epoch);
        }
        for position in 0..if outcome.may_have_faults { state.regions.len() } else { 0 } {
            let region = state.regions[position].get_mut();
            if position > failed_at {
                region.faults.clear();
            }
            region.faults.drain(..).for_each(|fault| progress.note_fault(fault));
        }
        if state.env.epoch.is_multiple_of(HEALTH_EVERY) {
            take_call_reports(&self.shared, progress, self.trace.is_some());
            gather_health(state, progress);
        }
        if let (Some(cost), Pace::Simulated) = (&self.shared.call_cost, self.pace) {
            cost.add_up(state, &mut progress.lane_costs_ns);
        }
        close_lanes(state, progress, &mut self.lanes, self.pace, now_ns);
        if !self.special_edges.credited.is_empty() {
            self.report_credit();
        }
        self.note_arrivals(now_ns);
        if self.trace.is_some() {
            self.flush_trace();
        }
        if self.shared.live.is_requested(self.index) {
            self.shared.live.publish(self);
        }
        outcome.fault.map(|(_, fault)| fault)
    }

    /// Moves the records of an epoch to the trace log, all at once.
    fn flush_trace(&mut self) {
        let Some(trace) = &self.trace else { return };
        let state = Arc::get_mut(&mut self.state).expect(EXCLUSIVE);
        let Progress { records, points, n_trace_events, .. } = &mut self.progress;
        let (epoch, start_ns) = (state.env.epoch, state.env.begun_ns);
        let mut log = trace.open(EpochStart { epoch, start_ns });
        let n_of_epoch = log.take_records(records);
        let n_of_regions = log.take(&mut state.lines);
        *n_trace_events += n_of_epoch + n_of_regions + log.take_records(points);
    }

    /// A fault of the run itself.
    pub(crate) fn runtime_fault(message: &str) -> Fault {
        Fault {
            phase: RunPhase::Runtime,
            component: String::new(),
            lane: String::new(),
            message: message.into(),
            epoch: 0,
            is_fatal: true,
        }
    }
}

/// Runs all regions sequentially, and records how long that took.
fn run_sequential(state: &mut DomainState, helpers: Option<&mut Helpers>) -> EpochOutcome {
    let helpers = helpers.filter(|_| state.env.measures);
    let Some(helpers) = helpers else { return state.run_sequential() };
    let begun_ns = state.env.nanos();
    let outcome = state.run_sequential();
    helpers.record_cost(state.env.nanos().saturating_sub(begun_ns), outcome.n_called);
    outcome
}

/// Collects the reports of calls that did not return in time, which are in the trace already.
fn take_call_reports(shared: &RunShared, progress: &mut Progress, is_traced: bool) {
    for event in shared.calls.take_events() {
        progress.n_trace_events += u64::from(is_traced);
        progress.health.record_reported(event);
    }
}

/// Collects the health events of channels, lanes and tasks.
fn gather_health(state: &mut DomainState, progress: &mut Progress) {
    let (now_ns, sink) = (state.env.now_ns, &mut progress.health);
    let (env, points) = (&state.env, &mut progress.points);
    sink.watch(env.traces);
    let rejected = |kind, component, lane, policy, n_rejected| Health {
        key: HealthKey::new(kind, component, lane, policy),
        occurrence_count: n_rejected,
        sequence: 0,
        depth: 0,
        capacity: 0,
        observed_ns: now_ns,
    };
    for region in &mut state.regions {
        let Region { nodes, channels, lane, .. } = region.get_mut();
        let lane = count(*lane);
        for node in nodes {
            let component = count(node.component);
            let mine = channels[node.channels.clone()].iter_mut();
            for channel in mine.filter(|channel| channel.has_health()) {
                channel.drain_health(component, lane, sink);
            }
            let n_rejected = node.take_new_rejects();
            if n_rejected > 0 {
                let policy = node.admission.map_or("", |one| one.overflow.name());
                let kind = HealthKind::SchedulerReject;
                sink.record(rejected(kind, component, lane, policy, n_rejected));
            }
            for chain in node.chains.iter_mut().flat_map(|chains| &mut chains.chains) {
                let Some((n_new, observed_ns)) =
                    chain.end.as_mut().map(ChainEnd::take_new_violations)
                else {
                    continue;
                };
                let event = rejected(HealthKind::ChainOverBudget, component, lane, "", n_new);
                let key = HealthKey { chain: count(chain.chain), ..event.key };
                sink.record(Health { key, observed_ns, ..event });
            }
        }
    }
    let n_rejected = env.tasks.take_new_rejects();
    if n_rejected > 0 {
        let (none, kind) = (health::NONE, HealthKind::TaskReject);
        sink.record(rejected(kind, none, none, "reject", n_rejected));
    }
    sink.report_new(|event| points.push(TraceRecord::health(event, env)));
}

/// Schedules the next ticks of the lanes.
fn close_lanes(
    state: &DomainState,
    progress: &mut Progress,
    lanes: &mut Lanes,
    pace: Pace,
    epoch_ns: u64,
) {
    let ended_ns = match pace {
        Pace::Simulated => epoch_ns,
        Pace::System => state.env.since_start(),
    };
    let costs_ns = core::mem::take(&mut progress.lane_costs_ns);
    let cost_ns = |lane: usize| costs_ns.get(lane).copied().unwrap_or(0);
    let ended_ns = |lane: usize| ended_ns.saturating_add(cost_ns(lane));
    let (env, records, points) = (&state.env, &mut progress.records, &mut progress.points);
    let (start_ns, now_ns) = match records.first() {
        Some(epoch) => (epoch.start_ns, env.trace_ns()),
        None => (0, 0),
    };
    let duration_ns = now_ns.saturating_sub(start_ns);
    let n_before = records.len();
    lanes.end(epoch_ns, ended_ns, |lane, end| {
        if !env.traces {
            return;
        }
        let lane = u32::try_from(lane.lane).expect("the compiler bounds the number of lanes");
        let point = |name| TraceRecord { lane, ..TraceRecord::point(name, env) };
        let tick = point(TraceName::FixedRateTick);
        records.push(TraceRecord { start_ns, duration_ns, ..tick });
        if end.is_overrun {
            points.push(point(TraceName::FixedRateOverrun));
        }
        if end.n_skipped > 0 {
            let value = end.n_skipped;
            points.push(TraceRecord { value, ..point(TraceName::FixedRateSkippedTick) });
        }
    });
    if let Some((epoch, inside)) = records.split_first_mut() {
        epoch.duration_ns = duration_ns;
        // Ticks begin with the epoch, so they come before the records inside them.
        let n_ticks = inside.len() + 1 - n_before;
        inside.rotate_right(n_ticks);
    }
    progress.lane_costs_ns = costs_ns;
}

/// Reports the result of a task to the inbox, also if the task is dropped or panics.
struct TaskCompletion {
    inbox: Inbox,
    number: u64,
    origin: tasks::TaskOrigin,
    result: Option<TaskResult>,
}

impl TaskCompletion {
    fn end(mut self, result: TaskResult) {
        self.result = Some(result);
    }
}

impl Drop for TaskCompletion {
    fn drop(&mut self) {
        let (number, origin, result) = (self.number, self.origin, self.result.take());
        // The inbox of a run that has ended is closed.
        let _ = self.inbox.put(Incoming::TaskEnded { number, origin, result });
    }
}

/// Yields the worker thread once.
pub(super) async fn yield_now() {
    let mut has_yielded = false;
    poll_fn(|cx| {
        if has_yielded {
            return Poll::Ready(());
        }
        has_yielded = true;
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}
