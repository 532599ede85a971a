//! The oracle of the graphs workload: which values were published and seen, and which calls are
//! running.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, MutexGuard},
};

use clockjack_graph::{
    Stopper,
    compile::Plan,
    describe::{LaneType, TriggerType},
};

use crate::{
    context::{SimContext, lock},
    fault::Class,
    invariant::Invariant,
};

/// Values below this one are not checked: members of loops publish them repeatedly.
pub(super) const COMMON: u64 = 64;

/// One of this many calls may stop the run.
const STOPS_EVERY: u64 = 16;
/// With the wall clock, a run is stopped after this many calls.
const CALLS_MAX: u64 = 1_000;

/// The constant properties of a component.
#[derive(Clone, Debug, Default)]
pub(super) struct Part {
    lane: usize,
    region: usize,
    is_reentrant: bool,
    /// Whether the component takes inputs in an order other than that of their arrival.
    reorders: bool,
    /// Components that must have finished before this one starts.
    before: Vec<usize>,
}

/// The constant properties of a lane.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LanePart {
    /// The maximum number of its components, and of calls of one component, that may run
    /// concurrently.
    width: usize,
    /// Nanoseconds between its ticks, if it has ticks.
    period_ns: Option<u64>,
}

/// An end of an edge: a component, and the name of its port.
pub(super) type End = (usize, &'static str);

/// The parts of a graph that the invariants need.
#[derive(Debug, Default)]
pub(super) struct Shape {
    pub(super) parts: Vec<Part>,
    pub(super) lanes: Vec<LanePart>,
    /// The number of edges between two ports.
    edges: BTreeMap<(End, End), usize>,
}

/// The names of all ports.
const PORTS: [&str; 8] = ["a", "b", "s", "t", "out", "side", "text", "done"];

impl Shape {
    pub(super) fn of(plan: &Plan) -> Self {
        let mut shape = Self::default();
        for one in &plan.components {
            let region = &plan.regions[one.region];
            let mut regions = region.incoming.clone();
            if region.is_output {
                regions = (0..one.region).collect();
            }
            let before = regions.iter().flat_map(|at| &plan.regions[*at].components).copied();
            let trigger = one.spec.trigger.trigger_type;
            shape.parts.push(Part {
                lane: one.lane,
                region: one.region,
                is_reentrant: one.spec.execution.reentrant,
                reorders: matches!(trigger, TriggerType::TimeSync | TriggerType::Watermark),
                before: before.collect(),
            });
        }
        for lane in &plan.lanes {
            let spec = &lane.spec;
            let is_pool = spec.lane_type == LaneType::ThreadPool;
            let width = if is_pool { spec.max_threads.max(1) as usize } else { 1 };
            let is_paced = spec.lane_type == LaneType::FixedRate;
            let period_ns = is_paced.then(|| spec.period_ns()).filter(|period| *period > 0);
            shape.lanes.push(LanePart { width, period_ns });
        }
        let name = |text: &str| PORTS.iter().find(|name| **name == text).copied().unwrap_or("");
        for edge in &plan.edges {
            let from = &plan.components[edge.from.0].outputs[edge.from.1].name;
            let to = &plan.components[edge.to.0].inputs[edge.to.1].name;
            let ends = ((edge.from.0, name(from)), (edge.to.0, name(to)));
            *shape.edges.entry(ends).or_default() += 1;
        }
        shape
    }
}

/// The faults of a call.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct CallFaults {
    /// How many ticks the call takes.
    pub(super) slow: u64,
    pub(super) fails: bool,
    pub(super) panics: bool,
    /// Whether the call stops the run.
    pub(super) stops: bool,
    /// How many additional messages the call publishes.
    pub(super) flood: u64,
}

/// The state of a published value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ValueState {
    /// The call that published the value is still running.
    Staged,
    /// The value may be seen.
    Out,
    /// The value was rejected, or the call failed.
    Void,
}

#[derive(Clone, Copy, Debug)]
struct PublishedValue {
    from: End,
    /// The sequence number among all values of this port.
    seq: u64,
    state: ValueState,
    /// Two calls published the same value: it cannot be checked.
    is_ambiguous: bool,
}

/// Whether the faults of calls are drawn, or repeated from the previous run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FaultSource {
    Drawn,
    Repeated,
}

pub(super) struct Oracle {
    pub(super) call_faults_drawn: BTreeMap<(usize, u64, u64), CallFaults>,
    how: FaultSource,
    published: BTreeMap<u64, PublishedValue>,
    n_published: BTreeMap<End, u64>,
    /// The number of live components.
    pub(super) n_alive: u64,
    /// The sequence number of the last value that arrived, per pair of ports.
    came: BTreeMap<(End, End), u64>,
    /// The running calls of each component.
    at_work: BTreeMap<usize, usize>,
    /// The number of epochs in which each lane was active, and the last of them.
    ticks: BTreeMap<usize, (u64, u64)>,
    /// Epochs with at least one call.
    pub(super) called_in: BTreeSet<u64>,
    /// The latest epoch that a call has seen, and its time.
    last: (u64, u64),
    pub(super) n_calls: u64,
    pub(super) n_failed: u64,
    pub(super) n_at_once: usize,
    /// The first epoch in which a call stopped the run.
    pub(super) stopped_in: Option<u64>,
    pub(super) stopper: Option<Stopper>,
}

/// The state that all components of a run share.
#[derive(Clone)]
pub(super) struct RunState {
    pub(super) sim: SimContext,
    pub(super) shape: Arc<Shape>,
    /// When the run started, by the source of the clock; `None` in simulated time.
    began: Option<u64>,
    oracle: Arc<Mutex<Oracle>>,
}

impl RunState {
    pub(super) fn new(
        sim: &SimContext,
        shape: &Arc<Shape>,
        call_faults_drawn: Option<BTreeMap<(usize, u64, u64), CallFaults>>,
        follows_clock: bool,
    ) -> Self {
        let how =
            if call_faults_drawn.is_some() { FaultSource::Repeated } else { FaultSource::Drawn };
        let oracle = Oracle {
            call_faults_drawn: call_faults_drawn.unwrap_or_default(),
            how,
            published: BTreeMap::new(),
            n_published: BTreeMap::new(),
            n_alive: 0,
            came: BTreeMap::new(),
            at_work: BTreeMap::new(),
            ticks: BTreeMap::new(),
            called_in: BTreeSet::new(),
            last: (0, 0),
            n_calls: 0,
            n_failed: 0,
            n_at_once: 0,
            stopped_in: None,
            stopper: None,
        };
        Self {
            sim: sim.clone(),
            shape: Arc::clone(shape),
            began: follows_clock.then(|| sim.clock().raw()),
            oracle: Arc::new(Mutex::new(oracle)),
        }
    }

    pub(super) fn oracle(&self) -> MutexGuard<'_, Oracle> {
        lock(&self.oracle)
    }

    fn check(&self, invariant: Invariant, is_kept: bool, text: impl FnOnce() -> String) {
        self.sim.check(invariant, is_kept, text);
    }

    /// A call starts in this epoch, at this time.
    pub(super) fn enters(&self, who: usize, epoch: u64, now_ns: u64) -> RunningCall<'_> {
        let part = &self.shape.parts[who];
        let lane = self.shape.lanes[part.lane];
        let mut oracle = self.oracle();
        oracle.n_calls += 1;
        oracle.called_in.insert(epoch);
        let others: Vec<usize> = oracle.at_work.keys().copied().filter(|one| *one != who).collect();
        let calls = oracle.at_work.entry(who).or_default();
        *calls += 1;
        let calls = *calls;
        oracle.n_at_once = oracle.n_at_once.max(oracle.at_work.len());
        let before = core::mem::replace(&mut oracle.last, (epoch, now_ns));
        let ticks = oracle.ticks.entry(part.lane).or_default();
        if ticks.1 != epoch {
            *ticks = (ticks.0 + 1, epoch);
        }
        let n_ticks = ticks.0;
        drop(oracle);
        let most = if part.is_reentrant { lane.width } else { 1 };
        self.check(Invariant::G5, calls <= most, || {
            format!("{calls} calls of component {who} at once")
        });
        let is_of_lane = |one: &&usize| self.shape.parts[**one].lane == part.lane;
        let regions: BTreeSet<usize> =
            others.iter().filter(is_of_lane).map(|one| self.shape.parts[*one].region).collect();
        let n_regions = regions.iter().filter(|one| **one != part.region).count();
        self.check(Invariant::G5, n_regions < lane.width, || {
            format!("{n_regions} regions run concurrently in the lane of component {who}")
        });
        let early = others.iter().find(|one| part.before.contains(one));
        self.check(Invariant::G5, early.is_none(), || {
            format!("component {who} starts while {early:?} is running")
        });
        self.check(Invariant::T1, before <= (epoch, now_ns), || {
            format!("epoch {epoch} at {now_ns} ns after {before:?}")
        });
        if let Some(began) = self.began {
            let most_ns = (self.sim.now() - began).saturating_mul(1_000_000);
            self.check(Invariant::T1, now_ns <= most_ns, || {
                format!("epoch {epoch} at {now_ns} ns, when {most_ns} have passed")
            });
        }
        if let Some(period_ns) = lane.period_ns {
            let due = now_ns / period_ns + 1;
            self.check(Invariant::T1, n_ticks <= due, || {
                format!("tick {n_ticks} of lane {} at {now_ns} ns", part.lane)
            });
        }
        RunningCall { run_state: self, who, published: Vec::new(), is_fine: false }
    }

    /// The faults of this call: a function of the component and of all its inputs, so that they do
    /// not depend on the order of calls.
    pub(super) fn call_faults(&self, who: usize, epoch: u64, seen: u64) -> CallFaults {
        let key = (who, epoch, seen);
        let known = {
            let oracle = self.oracle();
            let known = oracle.call_faults_drawn.get(&key).copied();
            if oracle.how == FaultSource::Repeated {
                Some(known.unwrap_or_default())
            } else {
                known
            }
        };
        if let Some(call_faults) = known {
            return call_faults;
        }
        let sim = &self.sim;
        let call_faults = CallFaults {
            slow: sim.fault(Class::SlowHandler).map_or(0, |size| 1 + size % 25),
            fails: sim.fault(Class::HandlerError).is_some(),
            panics: sim.fault(Class::HandlerPanic).is_some(),
            // Rare, because nothing after it is checked.
            stops: seen.is_multiple_of(STOPS_EVERY) && sim.fault(Class::OddStop).is_some(),
            flood: sim.fault(Class::EdgeFlood).map_or(0, |size| 1 + size % 6),
        };
        self.oracle().call_faults_drawn.insert(key, call_faults);
        call_faults
    }

    /// Whether a run with the wall clock has had enough calls. Some graphs are never idle, and make
    /// as many calls as they can.
    pub(super) fn is_enough(&self) -> bool {
        self.began.is_some() && self.oracle().n_calls >= CALLS_MAX
    }

    /// A call stops the run.
    pub(super) fn stop(&self, epoch: u64) {
        let mut oracle = self.oracle();
        oracle.stopped_in.get_or_insert(epoch);
        let stopper = oracle.stopper.clone();
        drop(oracle);
        if let Some(stopper) = stopper {
            stopper.stop();
        }
    }

    /// A task will publish a value at some time.
    pub(super) fn will_publish(&self, from: End, value: u64) {
        self.put(from, value, ValueState::Out);
    }

    fn put(&self, from: End, value: u64, state: ValueState) {
        let mut oracle = self.oracle();
        let seq = oracle.n_published.entry(from).or_default();
        *seq += 1;
        let good = PublishedValue { from, seq: *seq, state, is_ambiguous: false };
        oracle.published.entry(value).and_modify(|known| known.is_ambiguous = true).or_insert(good);
    }

    /// A value has arrived at an input of a component.
    pub(super) fn sees(&self, to: End, value: u64) {
        if value < COMMON {
            return;
        }
        let mut oracle = self.oracle();
        let good = oracle.published.get(&value).copied();
        let Some(good) = good.filter(|good| !good.is_ambiguous) else {
            drop(oracle);
            return self.check(Invariant::G4, good.is_some(), || {
                format!("{value:x} at {to:?} was never published")
            });
        };
        let ends = (good.from, to);
        let n_edges = self.shape.edges.get(&ends).copied().unwrap_or(0);
        let last = oracle.came.insert(ends, good.seq).unwrap_or(0);
        drop(oracle);
        self.check(Invariant::G4, good.state == ValueState::Out, || {
            format!("{value:x} of {:?} at {to:?} is {:?}", good.from, good.state)
        });
        self.check(Invariant::G4, n_edges > 0, || {
            format!("no edge from {:?} to {to:?}", good.from)
        });
        // Overlapping calls get their sequence numbers when they start, and their values are seen
        // in the order of the calls. Values of tasks with the wall clock are seen in the order in
        // which the tasks finish.
        let (from, port) = good.from;
        let is_ordered = !self.shape.parts[from].is_reentrant && !self.shape.parts[to.0].reorders;
        let is_task = port == "done" && self.began.is_some();
        if n_edges == 1 && is_ordered && !is_task {
            self.check(Invariant::G2, last < good.seq, || {
                format!("number {} of {:?} at {to:?} after {last}", good.seq, good.from)
            });
        }
    }

    /// The number of values that were offered at a port, including rejected ones.
    pub(super) fn n_offered(&self, (who, port): (usize, &str)) -> u64 {
        let oracle = self.oracle();
        let mut ends = oracle.n_published.iter();
        ends.find(|((of, name), _)| (*of, *name) == (who, port)).map_or(0, |(_, n)| *n)
    }
}

/// A running call. The oracle learns its result on drop.
pub(super) struct RunningCall<'d> {
    run_state: &'d RunState,
    who: usize,
    published: Vec<u64>,
    is_fine: bool,
}

impl RunningCall<'_> {
    /// A value is about to be published.
    pub(super) fn publishes(&mut self, port: &'static str, value: u64) {
        self.run_state.put((self.who, port), value, ValueState::Staged);
        self.published.push(value);
    }

    /// A value was rejected.
    pub(super) fn refused(&mut self, value: u64) {
        self.published.retain(|one| *one != value);
        self.run_state.set_state(value, ValueState::Void);
    }

    /// The call succeeded.
    pub(super) fn succeeds(mut self) {
        self.is_fine = true;
    }
}

impl RunState {
    fn set_state(&self, value: u64, state: ValueState) {
        if let Some(good) = self.oracle().published.get_mut(&value) {
            good.state = state;
        }
    }
}

impl Drop for RunningCall<'_> {
    fn drop(&mut self) {
        let state = if self.is_fine { ValueState::Out } else { ValueState::Void };
        for value in &self.published {
            self.run_state.set_state(*value, state);
        }
        let mut oracle = self.run_state.oracle();
        oracle.n_failed += u64::from(!self.is_fine);
        if let Some(calls) = oracle.at_work.get_mut(&self.who) {
            *calls -= 1;
            if *calls == 0 {
                oracle.at_work.remove(&self.who);
            }
        }
    }
}
