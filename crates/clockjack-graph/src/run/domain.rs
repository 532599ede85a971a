//! An epoch domain: its coordinator, which gives its epochs their times and their order.
//!
//! All lanes that do not keep the time of the system by themselves are one domain; each that does
//! is another. A domain is a future: the first on the executor of the system, each other on the
//! thread of its lane, if the host has one to give. In an epoch:
//!
//! 1. what was published for this epoch becomes visible, in compiled order, then what has come from
//!    outside, in the order of its coming;
//! 2. the regions are run: in compiled order, or by several where the plan allows it;
//! 3. what was committed is written down, in compiled order.
//!
//! In simulated time an epoch takes no time. After it, time goes to the next tick of a lane or a
//! timer; only an epoch in which nothing was called lets it go on to what else may become ready by
//! time alone.

mod ahead;
mod boundary;

use core::{
    future::poll_fn,
    pin::pin,
    task::{Context, Poll},
    time::Duration,
};
use std::{collections::VecDeque, sync::Arc};

use clockjack_exec::Sleep;
use clockjack_sync::mutant;

use super::{
    blackboard::StateCounts,
    commit_log,
    crew::Crew,
    epoch::{Core, Outcome, own},
    health::{self, Health, HealthKey, HealthKind, HealthSink},
    inbox::{Arrival, Inbox, TaskResult},
    lanes::Lanes,
    node::guarded,
    reconfigure::ConfigCounts,
    region::{Region, earlier},
    report::{Fault, Phase, StopReason},
    shared::RunShared,
    sinks::{LogPart, TraceLog},
    tasks::{EndCounts, Running, ShutdownPolicy},
    trace::{Beginning, TraceName, TraceRecord},
    wiring::{Place, Special, count},
};

/// Calls of components after which a coordinator lets others have its worker.
const CALLS_BEFORE_YIELD: u64 = 512;

/// Epochs after which health events are gathered.
const HEALTH_EVERY: u64 = 64;

/// Faults that a run keeps.
const FAULTS_MAX: usize = 256;

/// Whose time a domain follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pace {
    /// Its own: it goes on as fast as it can.
    Simulated,
    /// That of the system.
    System,
}

/// An epoch domain.
pub(crate) struct Domain {
    pub(crate) index: usize,
    pub(crate) pace: Pace,
    pub(crate) core: Arc<Core>,
    pub(crate) lanes: Lanes,
    pub(crate) crew: Option<Crew>,
    /// Where the channel of each edge of the plan is.
    pub(crate) places: Arc<[Place]>,
    pub(crate) inboxes: Arc<[Inbox]>,
    pub(crate) shared: Arc<RunShared>,
    pub(crate) bounds: Bounds,
    pub(crate) timing_every: u64,
    pub(crate) commit_log: Option<LogPart>,
    pub(crate) trace: Option<TraceLog>,
    pub(crate) special: Special,
    pub(crate) progress: Progress,
}

/// When a domain ends by itself.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    pub(crate) steps: Option<u64>,
    pub(crate) duration_ns: Option<u64>,
    pub(crate) until_idle: bool,
    /// What becomes of its tasks then, and how long they are waited for.
    pub(crate) shutdown: (ShutdownPolicy, Duration),
}

/// Where a domain stands.
pub(crate) struct Progress {
    pub(crate) health: HealthSink,
    pub(crate) n_called: u64,
    pub(crate) last_called: u64,
    pub(crate) overlap_max: usize,
    pub(crate) faults: Vec<Fault>,
    pub(crate) n_faults_dropped: u64,
    pub(crate) n_tasks: u64,
    pub(crate) n_tasks_completed: u64,
    pub(crate) tasks_at_end: EndCounts,
    running: Running,
    pub(crate) n_async_evicted: u64,
    pub(crate) blocked_ns: u64,
    /// For each lane.
    pub(crate) n_starvations: Vec<u64>,
    pub(crate) config: ConfigCounts,
    pub(crate) state: StateCounts,
    arrivals: VecDeque<Arrival>,
    /// For edges on which messages evict older ones: the edge, how many there are, how many of
    /// them stay.
    over: Vec<(u32, u32, u32)>,
    boundary_log: Vec<u8>,
    epoch_log: Vec<u8>,
    /// Of the epoch, its ticks and its boundary.
    records: Vec<TraceRecord>,
    /// What is known when it ends.
    points: Vec<TraceRecord>,
    pub(crate) n_trace_events: u64,
    /// Messages on `async` edges and tasks, at once.
    pub(crate) async_max: u64,
}

impl Progress {
    /// At the beginning; so many health events are kept.
    pub(crate) fn new(health_capacity: usize) -> Self {
        Self {
            health: HealthSink::new(health_capacity),
            n_called: 0,
            last_called: 0,
            overlap_max: 0,
            faults: Vec::new(),
            n_faults_dropped: 0,
            n_tasks: 0,
            n_tasks_completed: 0,
            tasks_at_end: EndCounts::default(),
            running: Running::default(),
            n_async_evicted: 0,
            blocked_ns: 0,
            n_starvations: Vec::new(),
            config: ConfigCounts::default(),
            state: StateCounts::default(),
            arrivals: VecDeque::new(),
            over: Vec::new(),
            boundary_log: Vec::new(),
            epoch_log: Vec::new(),
            records: Vec::new(),
            points: Vec::new(),
            n_trace_events: 0,
            async_max: 0,
        }
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

/// What to do next.
enum Moment {
    /// An epoch at this time.
    At(u64),
    /// Nothing before this time, unless something comes.
    SleepUntil(u64),
    /// Nothing, unless something comes.
    Wait,
    /// Nothing, ever.
    End(StopReason),
}

impl Domain {
    /// Runs until it ends.
    pub(crate) async fn run(mut self) -> (Self, StopReason, Option<Fault>) {
        let ended = self.run_to_end().await;
        if self.index > 0 {
            self.shared.lane_ended();
            self.inboxes[0].call();
        }
        if let Some(crew) = &mut self.crew {
            crew.close();
        }
        self.progress.n_starvations =
            self.crew.take().map(|crew| crew.n_starvations()).unwrap_or_default();
        if ended.1.is_some() {
            self.shared.stop_all(&self.inboxes);
        }
        self.end_tasks().await;
        // Who looks at a run that has ended sees how it has.
        gather_health(alone(&mut self.core), &mut self.progress);
        self.hand_on_trace();
        self.shared.live.put_last(&self);
        (self, ended.0, ended.1)
    }

    /// Makes one epoch after the other. What panics outside of all calls, like a value that is
    /// written down, ends it as a fault does.
    async fn run_to_end(&mut self) -> (StopReason, Option<Fault>) {
        let ended = {
            let mut epochs = pin!(self.run_epochs());
            let poll = |cx: &mut Context<'_>| {
                let polled = guarded(|| Ok(epochs.as_mut().poll(cx)));
                polled.map_or_else(|failure| Poll::Ready(Err(failure)), |polled| polled.map(Ok))
            };
            poll_fn(poll).await
        };
        ended.unwrap_or_else(|failure| {
            let fault = Self::runtime_fault(&format!("{failure}"));
            (StopReason::Error, Some(Fault { epoch: self.core.env.epoch, ..fault }))
        })
    }

    async fn run_epochs(&mut self) -> (StopReason, Option<Fault>) {
        if let Some(log) = &self.commit_log {
            let mut head = Vec::new();
            let own = self.lanes.list.first().filter(|_| self.index > 0);
            let lane = own.map(|lane| self.shared.plan.lanes[lane.lane].spec.id.as_str());
            commit_log::head(&mut head, &self.shared.plan.name, lane);
            log.write(&head);
        }
        let mut n_since_yield = 0;
        loop {
            if self.core.env.is_stopping() {
                break (StopReason::StopRequested, None);
            }
            match self.next_moment() {
                Moment::End(reason) => break (reason, None),
                Moment::Wait => self.sleep(None).await,
                Moment::SleepUntil(until_ns) => self.sleep(Some(until_ns)).await,
                Moment::At(now_ns) => {
                    if let Some(fault) = self.epoch(now_ns).await {
                        break (StopReason::Error, Some(fault));
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

    /// When the next epoch is.
    fn next_moment(&mut self) -> Moment {
        let (epoch, now_ns) = (self.core.env.epoch, self.core.env.now_ns);
        if self.core.regions.is_empty() && self.inboxes.len() > 1 {
            // All lanes keep their own time.
            return Moment::End(StopReason::NotStarted);
        }
        if self.bounds.steps.is_some_and(|steps| epoch >= steps) {
            return Moment::End(StopReason::TickBound);
        }
        let called = self.shared.is_step_called(self.index);
        let next = match self.pace {
            Pace::Simulated => self.next_simulated(epoch, now_ns, called),
            Pace::System => self.next_by_system(epoch, called),
        };
        match (next, self.bounds.duration_ns) {
            (Moment::Wait, bound)
                if self.is_left_over() && !mutant!("domain-waits-for-lanes-that-ended") =>
            {
                let reason =
                    if bound.is_some() { StopReason::DurationBound } else { StopReason::TickBound };
                Moment::End(reason)
            }
            (Moment::Wait, Some(bound)) if self.pace == Pace::System => {
                // Until then something may come.
                if self.core.env.since_start() >= bound {
                    Moment::End(StopReason::DurationBound)
                } else {
                    Moment::SleepUntil(bound)
                }
            }
            (Moment::At(at) | Moment::SleepUntil(at), Some(bound)) if at >= bound => {
                Moment::End(StopReason::DurationBound)
            }
            (next, _) => next,
        }
    }

    /// Whether the lanes that keep their own time have done all that they were to do, and nothing
    /// is left for the others: a bounded run does not wait for what will never come.
    fn is_left_over(&self) -> bool {
        self.is_bounded_by_lanes() && !self.shared.has_lanes_left() && !self.has_more()
    }

    /// Whether this domain does not go on by itself when all lanes beside it have ended.
    fn is_bounded_by_lanes(&self) -> bool {
        let is_bounded = self.bounds.steps.is_some() || self.bounds.duration_ns.is_some();
        self.index == 0 && self.inboxes.len() > 1 && is_bounded
    }

    fn next_simulated(&self, epoch: u64, now_ns: u64, is_called: bool) -> Moment {
        if epoch == 0 {
            return Moment::At(0);
        }
        let (tick, other) = self.due();
        let tick = self.lanes.next_of(tick);
        let was_idle = self.progress.last_called == 0;
        if was_idle && !is_called && !self.has_more() {
            let next = earlier(tick, other);
            return match next {
                Some(next_ns) => Moment::At(next_ns.max(now_ns)),
                None if self.bounds.until_idle => Moment::End(StopReason::Idle),
                None if self.bounds.steps.is_some() => Moment::At(now_ns),
                None => Moment::Wait,
            };
        }
        Moment::At(tick.map_or(now_ns, |tick_ns| tick_ns.max(now_ns)))
    }

    fn next_by_system(&self, epoch: u64, is_called: bool) -> Moment {
        let now_ns = self.core.env.since_start();
        if epoch == 0 || is_called {
            return Moment::At(now_ns);
        }
        let (tick, other) = self.due();
        let next = earlier(self.lanes.next_of(tick), other);
        let only_ticks = self.index > 0;
        if !only_ticks && (self.has_work() || (next.is_none() && self.progress.last_called > 0)) {
            return Moment::At(now_ns);
        }
        let next = if only_ticks { self.lanes.next_tick() } else { next };
        match next {
            Some(next_ns) if next_ns <= now_ns => Moment::At(now_ns),
            Some(next_ns) => Moment::SleepUntil(next_ns),
            None if self.bounds.until_idle && !self.has_more() => Moment::End(StopReason::Idle),
            None => Moment::Wait,
        }
    }

    async fn sleep(&mut self, until_ns: Option<u64>) {
        let env = &self.core.env;
        let (index, shared) = (self.index, &self.shared);
        let ends_with_lanes = until_ns.is_none() && self.is_bounded_by_lanes();
        let called = || {
            env.is_stopping()
                || shared.is_step_called(index)
                || (ends_with_lanes && !shared.has_lanes_left())
        };
        let inbox = &self.inboxes[index];
        let slept_ns = env.nanos();
        match until_ns {
            None => poll_fn(|cx| inbox.poll_any(cx.waker(), called)).await,
            Some(until_ns) => {
                // An edge, not a delay: a delay from now would be rounded up to the edge after it.
                let now = env.executor.now();
                let edge_ns =
                    now.tick().get().saturating_mul(now.resolution().nanos().get().into());
                let after = env.began_ns.saturating_add(until_ns).saturating_sub(edge_ns);
                let edge = now.saturating_add(Duration::from_nanos(after)).tick();
                // By the timers of the executor that runs this: that of the lane's own thread.
                let mut sleep = pin!(Sleep::until(edge, || None));
                let only_ticks = index > 0;
                poll_fn(|cx| {
                    if sleep.as_mut().poll(cx).is_ready() {
                        return Poll::Ready(());
                    }
                    if !only_ticks {
                        return inbox.poll_any(cx.waker(), called);
                    }
                    // A lane of its own time takes what has come at its tick.
                    inbox.watch(cx.waker());
                    if called() { Poll::Ready(()) } else { Poll::Pending }
                })
                .await;
            }
        }
        self.progress.blocked_ns += self.core.env.nanos().saturating_sub(slept_ns);
    }

    /// One epoch; the fault that ends the run, if there is one.
    async fn epoch(&mut self, now_ns: u64) -> Option<Fault> {
        self.settle_tasks().await;
        let is_called = self.shared.take_step(self.index);
        let core = alone(&mut self.core);
        core.env.epoch += 1;
        core.env.now_ns = now_ns;
        let epoch = core.env.epoch;
        core.env.measures = core.env.traces
            || epoch <= 4
            || (self.timing_every > 0 && epoch.is_multiple_of(self.timing_every));
        self.lanes.begin(now_ns, is_called, &mut core.is_due);
        if core.env.traces {
            // Its end is put in when it is known.
            let epoch = TraceRecord::point(TraceName::SchedulerIteration, &core.env);
            core.env.begun_ns = epoch.start_ns;
            self.progress.records.push(epoch);
        }
        let has_boundary = self.special.has_boundary()
            || *core.env.is_written.get_mut()
            || !self.progress.arrivals.is_empty()
            || self.inboxes[self.index].has_any();
        let outcome = match &mut self.crew {
            crew if !has_boundary && !crew.as_ref().is_some_and(Crew::pays) => {
                run_in_order(core, crew.as_mut())
            }
            _ => self.begin_and_run().await,
        };
        if let Some((failed_at, _)) = &outcome.fault {
            self.forget_tasks_behind(*failed_at);
        }
        self.start_tasks();
        self.close_epoch(now_ns, outcome)
    }

    /// Lets go of tasks of regions that ran beside one before them that failed: they do not count.
    fn forget_tasks_behind(&mut self, failed_at: usize) {
        if mutant!("domain-keeps-tasks-beside") {
            return;
        }
        let core = alone(&mut self.core);
        let behind = core.regions.iter_mut().skip(failed_at + 1).map(own);
        let behind = behind.flat_map(|region| region.nodes.iter().map(|node| node.component));
        let behind: Vec<usize> = behind.collect();
        core.env.tasks.forget(&behind);
    }

    /// The beginning of an epoch for which there is something, and its regions.
    async fn begin_and_run(&mut self) -> Outcome {
        self.commit_deferred();
        let boundary = self.take_arrivals();
        self.open_rooms();
        if let Some(fault) = boundary {
            return Outcome { fault: Some((0, fault)), ..Outcome::default() };
        }
        match &mut self.crew {
            Some(crew) if crew.pays() => {
                alone(&mut self.core).env.is_shared = true;
                let outcome = crew.run(&mut self.core).await;
                let core = alone(&mut self.core);
                core.env.is_shared = false;
                if core.env.traces {
                    core.gather_lines();
                }
                self.settle_turns(outcome.fault.as_ref().map(|(position, _)| *position));
                outcome
            }
            crew => run_in_order(alone(&mut self.core), crew.as_mut()),
        }
    }

    /// Takes what was written and counted in the turns of an epoch that several have worked on: in
    /// compiled order, and not of those that ran beside what failed before them.
    fn settle_turns(&mut self, failed_at: Option<usize>) {
        let Core { env, .. } = alone(&mut self.core);
        let counts =
            |position: u32| failed_at.is_none_or(|failed_at| position as usize <= failed_at);
        if let Some(desk) = &env.journal {
            desk.settle(counts);
        }
        if core::mem::take(env.has_counted.get_mut()) {
            let (index, nodes) = (self.index, &self.shared.nodes);
            let position_of = |component: usize| {
                let (domain, position, _) = nodes[component];
                (domain as usize == index).then_some(position)
            };
            env.user.settle(position_of, counts);
        }
    }

    /// In simulated time, waits until all tasks have ended: how long they take is not part of it.
    async fn settle_tasks(&mut self) {
        if self.pace != Pace::Simulated || self.core.env.tasks.n_open() == 0 {
            return;
        }
        let (env, n_waiting) = (&self.core.env, self.n_tasks_waiting());
        let inbox = &self.inboxes[self.index];
        poll_fn(|cx| {
            // First the waker, then the look: what comes between them wakes.
            inbox.watch(cx.waker());
            if inbox.n_tasks() + n_waiting >= env.tasks.n_open() || env.is_stopping() {
                Poll::Ready(())
            } else {
                Poll::Pending
            }
        })
        .await;
    }

    /// Gives the executor what components have submitted.
    fn start_tasks(&mut self) {
        let env = &self.core.env;
        if env.tasks.n_open() == 0 {
            return;
        }
        let submitted = env.tasks.take_submitted();
        if !submitted.is_empty() {
            let n_open = env.tasks.n_open() as u64;
            self.progress.async_max = self.progress.async_max.max(n_open);
        }
        for submitted in submitted {
            let number = self.progress.n_tasks;
            self.progress.n_tasks += 1;
            let inbox = self.inboxes[self.index].clone();
            let origin = submitted.from;
            let ending = TaskEnding { inbox, number, origin, result: None };
            let work = submitted.into_work();
            let task = async move { ending.end(work.await) };
            self.progress.running.start(number, origin.component, &env.executor, task);
        }
    }

    /// Writes down what was committed, and counts.
    fn close_epoch(&mut self, now_ns: u64, outcome: Outcome) -> Option<Fault> {
        let core = alone(&mut self.core);
        let progress = &mut self.progress;
        progress.last_called = outcome.n_called;
        progress.n_called += outcome.n_called;
        progress.overlap_max = progress.overlap_max.max(outcome.overlap);
        let failed_at = outcome.fault.as_ref().map_or(usize::MAX, |(position, _)| *position);
        if let Some(log) = &self.commit_log {
            let epoch = &mut progress.epoch_log;
            epoch.clear();
            if mutant!("domain-forgets-its-buffers") {
                *epoch = Vec::new();
            }
            commit_log::epoch(epoch, core.env.epoch, now_ns);
            epoch.append(&mut progress.boundary_log);
            for (position, region) in core.regions.iter_mut().enumerate() {
                let region = own(region);
                if position <= failed_at {
                    epoch.append(&mut region.log);
                } else {
                    // It ran beside what failed before it, and does not count.
                    region.log.clear();
                }
            }
            if let Some((_, fault)) = &outcome.fault {
                let component = self.shared.component_of(&fault.component);
                commit_log::failure(epoch, component);
            }
            log.write(epoch);
        }
        for position in 0..if outcome.n_faults > 0 { core.regions.len() } else { 0 } {
            let region = own(&mut core.regions[position]);
            if position > failed_at {
                region.faults.clear();
            }
            region.faults.drain(..).for_each(|fault| progress.note_fault(fault));
        }
        if core.env.epoch.is_multiple_of(HEALTH_EVERY) {
            gather_health(core, progress);
        }
        close_lanes(core, progress, &mut self.lanes, self.pace, now_ns);
        if !self.special.credited.is_empty() {
            self.give_credit();
        }
        if self.trace.is_some() {
            self.hand_on_trace();
        }
        if self.shared.live.is_asked(self.index) {
            self.shared.live.put(self);
        }
        outcome.fault.map(|(_, fault)| fault)
    }

    /// Gives the log the records of an epoch, all at once.
    fn hand_on_trace(&mut self) {
        let Some(trace) = &self.trace else { return };
        let core = alone(&mut self.core);
        let Progress { records, points, n_trace_events, .. } = &mut self.progress;
        let (epoch, start_ns) = (core.env.epoch, core.env.begun_ns);
        let mut log = trace.open(Beginning { epoch, start_ns });
        let n_of_epoch = log.take_records(records);
        let n_of_regions = log.take(&mut core.lines);
        *n_trace_events += n_of_epoch + n_of_regions + log.take_records(points);
    }

    /// A fault of the run itself.
    pub(crate) fn runtime_fault(message: &str) -> Fault {
        Fault {
            phase: Phase::Runtime,
            component: String::new(),
            lane: String::new(),
            message: message.into(),
            epoch: 0,
            is_fatal: true,
        }
    }
}

/// Runs all regions, one after the other, and tells those who might help what that takes.
fn run_in_order(core: &mut Core, crew: Option<&mut Crew>) -> Outcome {
    let crew = crew.filter(|_| core.env.measures);
    let Some(crew) = crew else { return core.run_in_order() };
    let begun_ns = core.env.nanos();
    let outcome = core.run_in_order();
    crew.measured(core.env.nanos().saturating_sub(begun_ns), outcome.n_called);
    outcome
}

/// Takes what the channels, lanes and tasks have noted.
fn gather_health(core: &mut Core, progress: &mut Progress) {
    let (now_ns, sink) = (core.env.now_ns, &mut progress.health);
    let (env, points) = (&core.env, &mut progress.points);
    sink.watch(env.traces);
    let rejected = |kind, component, lane, policy, n_rejected| Health {
        key: HealthKey { kind, component, lane, edge: health::NONE, policy },
        occurrence_count: n_rejected,
        sequence: 0,
        depth: 0,
        capacity: 0,
        observed_ns: now_ns,
    };
    for region in &mut core.regions {
        let Region { nodes, channels, lane, .. } = own(region);
        let lane = count(*lane);
        for node in nodes {
            let component = count(node.component);
            let mine = channels[node.channels.clone()].iter_mut();
            for channel in mine.filter(|channel| channel.has_health()) {
                channel.hand_on_health(component, lane, sink);
            }
            let n_rejected = node.take_new_rejects();
            if n_rejected > 0 {
                let policy = node.admission.map_or("", |one| one.overflow.name());
                let kind = HealthKind::SchedulerReject;
                sink.record(rejected(kind, component, lane, policy, n_rejected));
            }
        }
    }
    let n_rejected = env.tasks.take_new_rejects();
    if n_rejected > 0 {
        let (none, kind) = (health::NONE, HealthKind::TaskReject);
        sink.record(rejected(kind, none, none, "reject", n_rejected));
    }
    sink.tell(|event| points.push(TraceRecord::health(event, env)));
}

/// Gives lanes their next ticks.
fn close_lanes(core: &Core, progress: &mut Progress, lanes: &mut Lanes, pace: Pace, epoch_ns: u64) {
    let ended_ns = match pace {
        Pace::Simulated => epoch_ns,
        Pace::System => core.env.since_start(),
    };
    let (env, records, points) = (&core.env, &mut progress.records, &mut progress.points);
    let (start_ns, now_ns) = match records.first() {
        Some(epoch) => (epoch.start_ns, env.since_start()),
        None => (0, 0),
    };
    let duration_ns = now_ns.saturating_sub(start_ns);
    let n_before = records.len();
    lanes.end(epoch_ns, ended_ns, |lane, end| {
        if !env.traces {
            return;
        }
        let lane = u32::try_from(lane.lane).expect("lanes are few");
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
        // Ticks begin with the epoch: they come before what is in them.
        let n_ticks = inside.len() + 1 - n_before;
        inside.rotate_right(n_ticks);
    }
}

/// The core, between epochs.
fn alone(core: &mut Arc<Core>) -> &mut Core {
    Arc::get_mut(core).expect("nobody works on an epoch")
}

/// Tells the inbox what came of a task, also if it was dropped or has panicked.
struct TaskEnding {
    inbox: Inbox,
    number: u64,
    origin: super::tasks::TaskOrigin,
    result: Option<TaskResult>,
}

impl TaskEnding {
    fn end(mut self, result: TaskResult) {
        self.result = Some(result);
    }
}

impl Drop for TaskEnding {
    fn drop(&mut self) {
        let (number, origin, result) = (self.number, self.origin, self.result.take());
        // A run that has ended takes nothing more.
        let _ = self.inbox.put(Arrival::Task { number, origin, result });
    }
}

/// Lets others have the worker.
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
