//! What is known of a run of a graph by its components: what was published, what was seen, and who
//! is at work.

use alloc::{
    collections::{BTreeMap, BTreeSet},
    format,
    string::String,
    sync::Arc,
    vec::Vec,
};
use std::sync::{Mutex, MutexGuard};

use clockjack_graph::{
    Stopper,
    compile::Plan,
    describe::{LaneType, TriggerType},
};

use crate::{
    context::{SimContext, open},
    fault::Class,
    invariant::Invariant,
};

/// Numbers below this one are no news: members of loops publish them again and again.
pub(super) const COMMON: u64 = 64;

/// One call of so many may stop the run.
const STOPS_EVERY: u64 = 16;
/// By the clock a run is stopped after so many calls.
const CALLS_MAX: u64 = 1_000;

/// What is the same for the whole run, of a component.
#[derive(Clone, Debug, Default)]
pub(super) struct Part {
    lane: usize,
    region: usize,
    is_reentrant: bool,
    /// It takes what comes in another order than that of its coming.
    reorders: bool,
    /// Components that must have ended before it begins.
    before: Vec<usize>,
}

/// What is the same for the whole run, of a lane.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LanePart {
    /// How many of its components may be at work at once, and how many calls of one.
    width: usize,
    /// Nanoseconds between its ticks, if it has any.
    period_ns: Option<u64>,
}

/// An end of an edge: a component, and the name of its port.
pub(super) type End = (usize, &'static str);

/// The shape of a graph, as far as the invariants need it.
#[derive(Debug, Default)]
pub(super) struct Shape {
    pub(super) parts: Vec<Part>,
    pub(super) lanes: Vec<LanePart>,
    /// How many edges go from one port to another.
    edges: BTreeMap<(End, End), usize>,
}

/// The ports that components have.
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

/// What a call has to suffer.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct CallFaults {
    /// Ticks that it takes.
    pub(super) slow: u64,
    pub(super) fails: bool,
    pub(super) panics: bool,
    /// It stops the run.
    pub(super) stops: bool,
    /// How much more it publishes than it should.
    pub(super) flood: u64,
}

/// Where a value that was published stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Standing {
    /// The call that has published it is not over.
    Staged,
    /// It may be seen.
    Out,
    /// It was refused, or the call has failed.
    Void,
}

#[derive(Clone, Copy, Debug)]
struct Good {
    from: End,
    /// Its number among all of that port.
    seq: u64,
    standing: Standing,
    /// Two calls have published it: it says nothing any more.
    is_ambiguous: bool,
}

/// Whether what calls suffer is drawn, or as it was before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FaultsToCome {
    Drawn,
    AsBefore,
}

pub(super) struct Oracle {
    pub(super) faults_to_come: BTreeMap<(usize, u64, u64), CallFaults>,
    how: FaultsToCome,
    goods: BTreeMap<u64, Good>,
    n_published: BTreeMap<End, u64>,
    /// Components that there are.
    pub(super) n_alive: u64,
    /// The number of the last that came from one port to another.
    came: BTreeMap<(End, End), u64>,
    /// Calls of each component that are under way.
    at_work: BTreeMap<usize, usize>,
    /// Epochs in which each lane was seen at work, and the last of them.
    ticks: BTreeMap<usize, (u64, u64)>,
    /// Epochs in which somebody was called.
    pub(super) called_in: BTreeSet<u64>,
    /// The last epoch that anybody has seen, and its time.
    last: (u64, u64),
    pub(super) n_calls: u64,
    pub(super) n_failed: u64,
    pub(super) n_at_once: usize,
    /// In which epoch somebody has stopped the run first.
    pub(super) stopped_in: Option<u64>,
    pub(super) stopper: Option<Stopper>,
}

/// What all components of a run share.
#[derive(Clone)]
pub(super) struct RunState {
    pub(super) sim: SimContext,
    pub(super) shape: Arc<Shape>,
    /// When the run began, by the clock's source; none in simulated time.
    began: Option<u64>,
    oracle: Arc<Mutex<Oracle>>,
}

impl RunState {
    pub(super) fn new(
        sim: &SimContext,
        shape: &Arc<Shape>,
        faults_to_come: Option<BTreeMap<(usize, u64, u64), CallFaults>>,
        follows_clock: bool,
    ) -> Self {
        let how =
            if faults_to_come.is_some() { FaultsToCome::AsBefore } else { FaultsToCome::Drawn };
        let oracle = Oracle {
            faults_to_come: faults_to_come.unwrap_or_default(),
            how,
            goods: BTreeMap::new(),
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
        open(&self.oracle)
    }

    fn check(&self, invariant: Invariant, is_kept: bool, text: impl FnOnce() -> String) {
        self.sim.check(invariant, is_kept, text);
    }

    /// A call begins, in this epoch, which is at this time.
    pub(super) fn enters(&self, who: usize, epoch: u64, now_ns: u64) -> Visit<'_> {
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
            format!("{n_regions} are at work in the lane of component {who}, which begins")
        });
        let early = others.iter().find(|one| part.before.contains(one));
        self.check(Invariant::G5, early.is_none(), || {
            format!("component {who} begins while {early:?} is at work")
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
        Visit { run_state: self, who, published: Vec::new(), is_fine: false }
    }

    /// What this call is to suffer: a function of who it is and of all that it sees, so that it is
    /// the same whoever comes first.
    pub(super) fn call_faults(&self, who: usize, epoch: u64, seen: u64) -> CallFaults {
        let key = (who, epoch, seen);
        let known = {
            let oracle = self.oracle();
            let known = oracle.faults_to_come.get(&key).copied();
            if oracle.how == FaultsToCome::AsBefore {
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
            // Seldom asked for: what comes behind it is not seen.
            stops: seen.is_multiple_of(STOPS_EVERY) && sim.fault(Class::OddStop).is_some(),
            flood: sim.fault(Class::EdgeFlood).map_or(0, |size| 1 + size % 6),
        };
        self.oracle().faults_to_come.insert(key, call_faults);
        call_faults
    }

    /// Whether a run by the clock has had enough calls. Some graphs are never idle, and make as
    /// many as they can.
    pub(super) fn is_enough(&self) -> bool {
        self.began.is_some() && self.oracle().n_calls >= CALLS_MAX
    }

    /// Somebody stops the run.
    pub(super) fn stop(&self, epoch: u64) {
        let mut oracle = self.oracle();
        oracle.stopped_in.get_or_insert(epoch);
        let stopper = oracle.stopper.clone();
        drop(oracle);
        if let Some(stopper) = stopper {
            stopper.stop();
        }
    }

    /// A value is given to others by a task, some time.
    pub(super) fn will_give(&self, from: End, value: u64) {
        self.put(from, value, Standing::Out);
    }

    fn put(&self, from: End, value: u64, standing: Standing) {
        let mut oracle = self.oracle();
        let seq = oracle.n_published.entry(from).or_default();
        *seq += 1;
        let good = Good { from, seq: *seq, standing, is_ambiguous: false };
        oracle.goods.entry(value).and_modify(|known| known.is_ambiguous = true).or_insert(good);
    }

    /// A value has come to an input of a component.
    pub(super) fn sees(&self, to: End, value: u64) {
        if value < COMMON {
            return;
        }
        let mut oracle = self.oracle();
        let good = oracle.goods.get(&value).copied();
        let Some(good) = good.filter(|good| !good.is_ambiguous) else {
            drop(oracle);
            return self.check(Invariant::G4, good.is_some(), || {
                format!("{value:x} at {to:?} was published by nobody")
            });
        };
        let ends = (good.from, to);
        let n_edges = self.shape.edges.get(&ends).copied().unwrap_or(0);
        let last = oracle.came.insert(ends, good.seq).unwrap_or(0);
        drop(oracle);
        self.check(Invariant::G4, good.standing == Standing::Out, || {
            format!("{value:x} of {:?} at {to:?} is {:?}", good.from, good.standing)
        });
        self.check(Invariant::G4, n_edges > 0, || {
            format!("no edge from {:?} to {to:?}", good.from)
        });
        // Calls that overlap are counted as they begin, and seen as they were called for; tasks
        // that end by the clock are seen as they end.
        let (from, port) = good.from;
        let is_ordered = !self.shape.parts[from].is_reentrant && !self.shape.parts[to.0].reorders;
        let is_task = port == "done" && self.began.is_some();
        if n_edges == 1 && is_ordered && !is_task {
            self.check(Invariant::G2, last < good.seq, || {
                format!("number {} of {:?} at {to:?} after {last}", good.seq, good.from)
            });
        }
    }

    /// How many values were published at a port, or would have been.
    pub(super) fn n_offered(&self, (who, port): (usize, &str)) -> u64 {
        let oracle = self.oracle();
        let mut ends = oracle.n_published.iter();
        ends.find(|((of, name), _)| (*of, *name) == (who, port)).map_or(0, |(_, n)| *n)
    }
}

/// A call under way. However it ends, the oracle know.
pub(super) struct Visit<'d> {
    run_state: &'d RunState,
    who: usize,
    published: Vec<u64>,
    is_fine: bool,
}

impl Visit<'_> {
    /// A value is description to be published.
    pub(super) fn publishes(&mut self, port: &'static str, value: u64) {
        self.run_state.put((self.who, port), value, Standing::Staged);
        self.published.push(value);
    }

    /// It came back.
    pub(super) fn refused(&mut self, value: u64) {
        self.published.retain(|one| *one != value);
        self.run_state.settle(value, Standing::Void);
    }

    /// The call has succeeded.
    pub(super) fn succeeds(mut self) {
        self.is_fine = true;
    }
}

impl RunState {
    fn settle(&self, value: u64, standing: Standing) {
        if let Some(good) = self.oracle().goods.get_mut(&value) {
            good.standing = standing;
        }
    }
}

impl Drop for Visit<'_> {
    fn drop(&mut self) {
        let standing = if self.is_fine { Standing::Out } else { Standing::Void };
        for value in &self.published {
            self.run_state.settle(*value, standing);
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
