//! Graphs: random ones, run by the real engine, with components that fail, take_time, publish more
//! than there is workers for and stop the run in the middle of it.
//!
//! In simulated time a graph is run twice: on one thread, and by several workers that come in
//! between each other's calls. What a call suffers follows from what it sees, so that it is the
//! same in both, and the commit logs must be, too. By the clock it is run once, while the clock
//! does what it does.

mod log;
mod oracle;
mod parts;

use alloc::{
    borrow::ToOwned as _, collections::BTreeMap, format, string::String, sync::Arc, vec::Vec,
};
use core::{
    future::Future as _,
    pin::Pin,
    task::{Context, Poll, Waker},
};

use clockjack_actor::ActorSystem;
use clockjack_graph::{
    Clock, CommitLog, Graph, GraphFile, GraphRun, Parallel, RunError, RunOptions, RunReport,
    compile::Plan,
    describe::Mode as Keeps,
    testing::{random_graph, registry},
};

use self::{
    log::{LogBuffer, Record, records},
    oracle::{CallFaults, RunState, Shape},
    parts::{Watched, set_desk},
};
use crate::{
    context::{Mode, SimContext},
    fault::Class,
    host::any::AnyHost,
    invariant::Invariant,
    random::{Stream, digest},
    run::{Description, Workload},
};

/// For how many ticks calls may be slow between two looks from outside.
const SLOW_MAX: u64 = 60;
/// How often a run is looked at before it counts as one that never ends.
const LOOKS_MAX: u64 = 6_000;
/// After how many looks nothing fails any more.
const HEAL_AFTER: u64 = 40;
/// How many graphs a run plays at the most, and how many calls are enough.
const GRAPHS_MAX: u64 = 8;
const CALLS_MIN: u64 = 60;
/// How many epochs at one time there may be, one behind the other, in which nothing happens.
const IDLE_MAX: u64 = 8;
/// By the clock workers have so many turns at once.
const TURNS_AT_ONCE: u64 = 4;
/// How many different graphs there are.
const GRAPHS: u64 = 1 << 20;

/// Random graphs: order, capacity, what fails and leaves nothing, and that threads change nothing.
#[derive(Clone, Copy, Debug)]
pub struct Graphs;

impl Workload for Graphs {
    fn description(&self) -> Description {
        use Class::{ClockDrift, DriverStall, EdgeFlood, OddStop};
        use Invariant::{G1, G2, G3, G4, G5, L1, S2, T1, X1};
        Description {
            name: "graphs",
            faults: &[Class::EVERYDAY, &[ClockDrift, DriverStall, OddStop, EdgeFlood]],
            invariants: &[G1, G2, G3, G4, G5, T1, X1, S2, L1],
            least_records: 60,
            least_comparisons: 200,
        }
    }

    fn play(&self, sim: &SimContext) {
        let settings = Settings {
            seats: usize::try_from(sim.setting("seats", 2, 5)).unwrap_or(2),
            epochs: sim.setting("epochs", 15, 40),
            pace: sim.setting("pace", 1, 40),
            tasks_max: usize::try_from(sim.setting("tasks", 1, 6)).unwrap_or(1),
            is_by_clock: sim.setting("by-clock", 0, 3) == 0,
            is_alone: sim.setting("alone", 0, 1) == 0,
        };
        let (mut graphs, mut n_calls) = (sim.stream("graph"), 0);
        // Some graphs do next to nothing: then another one follows.
        for _ in 0..GRAPHS_MAX {
            n_calls += play(sim, settings, graphs.below(GRAPHS));
            if sim.is_broken() || n_calls >= CALLS_MIN {
                break;
            }
        }
        set_desk(None);
    }
}

/// Plays one graph; how many calls were made of its components.
fn play(sim: &SimContext, settings: Settings, number: u64) -> u64 {
    let text = random_graph(number);
    sim.note("graph", &[number]);
    let graph = match compile(&text) {
        Ok(graph) => graph,
        Err(faults) => {
            sim.check(Invariant::G1, false, || format!("{faults}\n{text}"));
            return 0;
        }
    };
    let plan = graph.plan().clone();
    let shape = Arc::new(Shape::of(&plan));
    let play = WorkloadRun { sim: sim.clone(), text, shape, plan, settings };
    let ran = if !settings.is_by_clock {
        play.twice()
    } else if settings.is_alone {
        play.by_clock(0)
    } else {
        play.by_clock(settings.seats)
    };
    ran.map_or(0, |ran| ran.n_calls)
}

fn compile(text: &str) -> Result<Graph, String> {
    let file = GraphFile::parse("random.yaml", text).map_err(|faults| format!("{faults:?}"))?;
    file.compile(&registry::<Watched>()).map_err(|faults| format!("{faults:?}"))
}

/// What was drawn for a run of the workload.
#[derive(Clone, Copy, Debug)]
struct Settings {
    seats: usize,
    epochs: u64,
    pace: u64,
    tasks_max: usize,
    is_by_clock: bool,
    /// By the clock: on one thread.
    is_alone: bool,
}

struct WorkloadRun {
    sim: SimContext,
    text: String,
    shape: Arc<Shape>,
    plan: Plan,
    settings: Settings,
}

/// What came of a run.
struct Ran {
    log: Vec<u8>,
    records: Vec<(usize, Record)>,
    /// All of its report that threads must not change.
    facts: String,
    faults_to_come: BTreeMap<(usize, u64, u64), CallFaults>,
    stopped_in: Option<u64>,
    n_calls: u64,
}

impl WorkloadRun {
    /// In simulated time: on one thread, then by several workers.
    fn twice(&self) -> Option<Ran> {
        let alone = self.in_simulated_time(0, None)?;
        if self.sim.is_broken() {
            return None;
        }
        let together =
            self.in_simulated_time(self.settings.seats, Some(alone.faults_to_come.clone()))?;
        self.compare(&alone, &together);
        Some(together)
    }

    fn in_simulated_time(
        &self,
        seats: usize,
        faults_to_come: Option<BTreeMap<(usize, u64, u64), CallFaults>>,
    ) -> Option<Ran> {
        let log = CommitLog::in_memory();
        let options =
            RunOptions::steps(self.settings.epochs).clock(Clock::Virtual).commit_log(&log);
        let options = options.tasks_max(self.settings.tasks_max).workers(seats.max(1));
        let run_state = RunState::new(&self.sim, &self.shape, faults_to_come, false);
        let mut host = self.host(seats)?;
        let mut run = self.start(&host, &run_state, options.parallel(Parallel::Always))?;
        let mut pace = self.sim.stream("pace");
        let mut ended = None;
        for look in 0..LOOKS_MAX {
            if look == HEAL_AFTER && self.sim.mode() == Mode::Liveness {
                self.sim.heal();
            }
            if host.settle() {
                host.check_quiet();
            }
            ended = self.look(&mut host, &run_state, &mut run, &mut pace);
            if ended.is_some() || self.sim.is_broken() {
                break;
            }
        }
        self.ends(host, &run_state, run, ended, &|| log.bytes())
    }

    /// By the clock, which may do what it likes.
    fn by_clock(&self, seats: usize) -> Option<Ran> {
        let run_state = RunState::new(&self.sim, &self.shape, None, true);
        let tape = LogBuffer::new(&run_state);
        let log = CommitLog::to(tape.clone());
        let options = RunOptions::until_stopped().clock(Clock::Wall).commit_log(&log);
        let options = options.tasks_max(self.settings.tasks_max).workers(seats.max(1));
        let mut host = self.host(seats)?;
        let mut run = self.start(&host, &run_state, options.parallel(Parallel::Always))?;
        let mut pace = self.sim.stream("pace");
        let mut ended = None;
        let mut looks_left = None;
        for look in 0.. {
            if looks_left.is_none() && look >= self.settings.epochs * 2 {
                if self.sim.mode() == Mode::Liveness {
                    self.sim.heal();
                }
                run.stop();
                looks_left = Some(LOOKS_MAX);
            }
            looks_left = looks_left.map(|left: u64| left.saturating_sub(1));
            if looks_left == Some(0) {
                break;
            }
            // Some graphs are never idle, so nobody waits for that.
            let n_turns = pace.between(1, TURNS_AT_ONCE);
            (0..n_turns).for_each(|_| host.turn_if_woken());
            ended = self.look(&mut host, &run_state, &mut run, &mut pace);
            if ended.is_some() || self.sim.is_broken() {
                break;
            }
        }
        self.ends(host, &run_state, run, ended, &|| tape.bytes())
    }

    fn host(&self, seats: usize) -> Option<AnyHost> {
        let builder = ActorSystem::builder("graphs");
        let host = AnyHost::start(&self.sim, builder, seats);
        self.sim
            .check(Invariant::S2, host.is_ok(), || format!("no start: {:?}", host.as_ref().err()));
        host.ok()
    }

    fn start(&self, host: &AnyHost, run_state: &RunState, options: RunOptions) -> Option<GraphRun> {
        set_desk(Some((run_state.clone(), host.system().executor())));
        let graph = compile(&self.text).ok()?;
        let run = graph.start(host.system(), options);
        self.sim
            .check(Invariant::S2, run.is_ok(), || format!("no start: {:?}", run.as_ref().err()));
        let run = run.ok()?;
        run_state.oracle().stopper = Some(run.stopper());
        Some(run)
    }

    /// Looks whether the run has ended; if not, lets some time pass.
    fn look(
        &self,
        host: &mut AnyHost,
        run_state: &RunState,
        run: &mut GraphRun,
        pace: &mut Stream,
    ) -> Option<Result<RunReport, RunError>> {
        run_state.sim.allow_slowness(SLOW_MAX);
        let mut cx = Context::from_waker(Waker::noop());
        if let Poll::Ready(ended) = Pin::new(run).poll(&mut cx) {
            return Some(ended);
        }
        host.pass(pace.below(self.settings.pace * 2));
        None
    }

    /// The run has ended, or should have: everything is looked at.
    fn ends(
        &self,
        mut host: AnyHost,
        run_state: &RunState,
        run: GraphRun,
        ended: Option<Result<RunReport, RunError>>,
        log: &dyn Fn() -> Vec<u8>,
    ) -> Option<Ran> {
        drop(run);
        let is_live = self.sim.mode() == Mode::Liveness;
        let invariant = if is_live { Invariant::L1 } else { Invariant::X1 };
        self.sim.check(invariant, ended.is_some(), || "the run does not end".to_owned());
        let ended = ended?;
        let (log, faulty) = (log(), ended.is_err());
        let records = records(&log);
        let is_read = records.is_some();
        self.sim.check(Invariant::G1, is_read, || format!("no commit log: {} bytes", log.len()));
        let records = records?;
        self.sim.note(
            "log",
            &[log.len() as u64, records.len() as u64, digest(&log), u64::from(faulty)],
        );
        self.check_failed_epoch(&records);
        if self.settings.is_by_clock {
            self.check_idle(&records, run_state);
        }
        let report = match &ended {
            Ok(report) => Some(report),
            Err(error) => error.report(),
        };
        self.sim.check(Invariant::S2, report.is_some(), || format!("no report: {ended:?}"));
        if let Some(report) = report {
            self.check_edges(report, run_state);
        }
        run_state.oracle().stopper = None;
        host.end(&self.sim);
        drop(host);
        let oracle = run_state.oracle();
        let n_alive = oracle.n_alive;
        let (n_calls, n_failed, n_at_once) = (oracle.n_calls, oracle.n_failed, oracle.n_at_once);
        self.sim.note("ran", &[n_calls, n_failed, n_at_once as u64]);
        let (faults_to_come, stopped_in) = (oracle.faults_to_come.clone(), oracle.stopped_in);
        drop(oracle);
        self.sim.check_equal(Invariant::S2, "components that are left", n_alive, 0);
        Some(Ran { log, records, facts: facts(&ended), faults_to_come, stopped_in, n_calls })
    }

    /// Of the epoch in which the run has failed nothing is committed behind the failure, in the
    /// order of the plan.
    fn check_failed_epoch(&self, records: &[(usize, Record)]) {
        let Some((_, Record::Failure(component))) = records.last() else { return };
        let region = |component: usize| self.plan.components.get(component).map(|one| one.region);
        // A number that no component has is that of the run itself.
        let Some(failed) = usize::try_from(*component).ok().and_then(region) else { return };
        let last = records.iter().rev().skip(1);
        let committed = last.map_while(|(_, record)| match record {
            Record::Epoch(..) => None,
            Record::Commit(edge) => Some(usize::try_from(*edge).unwrap_or(0)),
            Record::Arrival | Record::Budget | Record::Failure(_) => Some(usize::MAX),
        });
        for edge in committed.filter_map(|edge| self.plan.edges.get(edge)) {
            let is_prompt = edge.kind == clockjack_graph::describe::EdgeKind::Immediate;
            let from = region(edge.from.0);
            self.sim.check(Invariant::G4, !is_prompt || from <= Some(failed), || {
                format!("edge {} was committed behind the failure of {component}", edge.id)
            });
        }
    }

    /// By the clock nobody makes epochs without end in which nothing happens.
    fn check_idle(&self, records: &[(usize, Record)], run_state: &RunState) {
        let called_in = core::mem::take(&mut run_state.oracle().called_in);
        let (mut n_idle, mut most, mut last_ns) = (0_u64, 0, None);
        for (_, record) in records {
            n_idle = match record {
                Record::Epoch(epoch, now_ns) if !called_in.contains(epoch) => {
                    let is_same = last_ns.replace(*now_ns) == Some(*now_ns);
                    if is_same { n_idle + 1 } else { 1 }
                }
                _ => 0,
            };
            most = most.max(n_idle);
        }
        self.sim.check(Invariant::X1, most <= IDLE_MAX, || {
            format!("{most} epochs at one time in which nothing happens")
        });
    }

    /// Every message of every edge is in one place, and no edge holds more than it may.
    fn check_edges(&self, report: &RunReport, run_state: &RunState) {
        for edge in &self.plan.edges {
            let of = |name: &str| {
                let is_it = |metric: &&clockjack_graph::run::Metric| {
                    metric.name.strip_prefix("runtime.channel.") == Some(name)
                        && metric.label.as_ref().is_some_and(|(_, label)| *label == edge.id)
                };
                let found = report.metrics.list.iter().find(is_it);
                #[expect(
                    clippy::cast_possible_truncation,
                    clippy::cast_sign_loss,
                    reason = "counts"
                )]
                found.map_or(0, |metric| metric.value as u64)
            };
            let (published, depth) = (of("publish_count"), of("max_depth"));
            let gone = of("delivery_count")
                + of("drop_count")
                + of("overwrite_count")
                + of("stale_drop_count");
            let most = match edge.policy.mode {
                Keeps::Latest | Keeps::Latched => 1,
                Keeps::PreviousTick => 2,
                _ => u64::from(edge.policy.capacity.max(1)),
            };
            let id = &edge.id;
            self.sim.check(Invariant::G3, gone <= published && published - gone <= most, || {
                format!("edge {id}: {published} published, {gone} gone, of {most} inside")
            });
            self.sim
                .check(Invariant::G3, depth <= most, || format!("edge {id}: {depth} of {most}"));
            let from =
                (edge.from.0, self.plan.components[edge.from.0].outputs[edge.from.1].name.as_str());
            let offered = run_state.n_offered(from);
            let counted = published + of("reject_count");
            self.sim.check(Invariant::G3, counted <= offered, || {
                format!("edge {id}: {counted} counted, {offered} offered")
            });
        }
    }

    /// What threads must not change.
    fn compare(&self, alone: &Ran, together: &Ran) {
        let stopped = [alone.stopped_in, together.stopped_in];
        self.sim.check(Invariant::G1, stopped[0] == stopped[1], || format!("stopped: {stopped:?}"));
        let Some(epoch) = alone.stopped_in else {
            let at = alone.log.iter().zip(&together.log).position(|(one, other)| one != other);
            self.sim.check(Invariant::G1, alone.log == together.log, || {
                format!(
                    "logs of {} and {} bytes part at {at:?}\n{}",
                    alone.log.len(),
                    together.log.len(),
                    self.text
                )
            });
            return self.sim.check(Invariant::G1, alone.facts == together.facts, || {
                format!("reports differ:\n{}\nbut\n{}", alone.facts, together.facts)
            });
        };
        // Of an epoch in which it was stopped, what was begun by then counts.
        let until = |ran: &Ran| {
            let places = ran.records.iter().filter_map(|(place, record)| match record {
                Record::Epoch(number, _) => Some((*place, *number)),
                _ => None,
            });
            let mut behind = places.skip_while(|(_, number)| *number < epoch);
            behind.next().map_or(ran.log.len(), |(place, _)| place)
        };
        let (one, other) = (&alone.log[..until(alone)], &together.log[..until(together)]);
        self.sim.check(Invariant::G1, one == other, || {
            format!("the logs part before epoch {epoch}, which was the last\n{}", self.text)
        });
    }
}

/// All of an end that threads must not change.
fn facts(ended: &Result<RunReport, RunError>) -> String {
    match ended {
        Ok(report) => {
            let RunReport { stop, epochs, executions, elapsed_ns, faults, loops, .. } = report;
            format!("{stop} {epochs} {executions} {elapsed_ns} {faults:#?} {loops:#?}")
        }
        Err(error) => {
            let report = error.report().map(|report| {
                let RunReport { epochs, elapsed_ns, faults, .. } = report;
                format!("{epochs} {elapsed_ns} {faults:#?}")
            });
            format!("{:#?} {report:?}", error.fault())
        }
    }
}
