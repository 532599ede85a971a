//! Random graphs on the real engine, with components that fail, take time, publish more messages
//! than the edges have capacity for, and stop the run in the middle.
//!
//! In simulated time, a graph runs twice: on one thread, and on several workers whose calls are
//! interleaved. The faults of a call depend only on its inputs, so both runs have the same faults,
//! and their commit logs must be equal. With the wall clock, a graph runs once, with clock faults.

mod log;
mod oracle;
mod parts;

use core::{
    future::Future as _,
    pin::Pin,
    task::{Context, Poll, Waker},
};
use std::{collections::BTreeMap, sync::Arc};

use clockjack_actor::ActorSystem;
use clockjack_graph::{
    Clock, CommitLog, Graph, GraphFile, GraphRun, Parallel, RunError, RunOptions, RunReport,
    compile::Plan, describe::EdgeMode as Keeps,
};

use self::{
    log::{LogBuffer, Record, records},
    oracle::{CallFaults, RunState, Shape},
    parts::{TestComponent, set_run_state},
};
use crate::{
    context::{Mode, SimContext},
    fault::Class,
    host::any::AnyHost,
    invariant::Invariant,
    random::{Stream, digest},
    random_graph::{random_graph, registry},
    run::{Description, Workload},
};

/// The maximum number of ticks that calls may consume per poll of the run.
const SLOW_MAX: u64 = 60;
/// After this many polls, a run counts as one that never ends.
const LOOKS_MAX: u64 = 6_000;
/// After this many polls, no more faults occur.
const HEAL_AFTER: u64 = 40;
/// The maximum number of graphs per run, and the number of calls that suffices.
const GRAPHS_MAX: u64 = 8;
const CALLS_MIN: u64 = 60;
/// The maximum number of consecutive epochs at one time in which nothing happens.
const IDLE_MAX: u64 = 8;
/// With the wall clock, the maximum number of worker steps between two polls.
const TURNS_AT_ONCE: u64 = 4;
/// The number of different random graphs.
const GRAPHS: u64 = 1 << 20;

/// Random graphs: order, capacity, isolation of failed calls, and independence of threads.
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

    fn run(&self, sim: &SimContext) {
        let settings = Settings {
            n_workers: usize::try_from(sim.setting("seats", 2, 5)).unwrap_or(2),
            epochs: sim.setting("epochs", 15, 40),
            pace: sim.setting("pace", 1, 40),
            tasks_max: usize::try_from(sim.setting("tasks", 1, 6)).unwrap_or(1),
            is_by_clock: sim.setting("by-clock", 0, 3) == 0,
            is_alone: sim.setting("alone", 0, 1) == 0,
        };
        let (mut graphs, mut n_calls) = (sim.stream("graph"), 0);
        // Some graphs do almost nothing: then another graph follows.
        for _ in 0..GRAPHS_MAX {
            n_calls += run_graph(sim, settings, graphs.below(GRAPHS));
            if sim.is_broken() || n_calls >= CALLS_MIN {
                break;
            }
        }
        set_run_state(None);
    }
}

/// Runs one graph and returns the number of component calls.
fn run_graph(sim: &SimContext, settings: Settings, number: u64) -> u64 {
    let text = random_graph(number);
    sim.record("graph", &[number]);
    let graph = match compile(&text) {
        Ok(graph) => graph,
        Err(faults) => {
            sim.check(Invariant::G1, false, || format!("{faults}\n{text}"));
            return 0;
        }
    };
    let plan = graph.plan().clone();
    let shape = Arc::new(Shape::of(&plan));
    let run = WorkloadRun { sim: sim.clone(), text, shape, plan, settings };
    let result = if !settings.is_by_clock {
        run.twice()
    } else if settings.is_alone {
        run.by_clock(0)
    } else {
        run.by_clock(settings.n_workers)
    };
    result.map_or(0, |result| result.n_calls)
}

fn compile(text: &str) -> Result<Graph, String> {
    let file = GraphFile::parse("random.yaml", text).map_err(|faults| format!("{faults:?}"))?;
    file.compile(&registry::<TestComponent>()).map_err(|faults| format!("{faults:?}"))
}

/// The random settings of a run.
#[derive(Clone, Copy, Debug)]
struct Settings {
    n_workers: usize,
    epochs: u64,
    pace: u64,
    tasks_max: usize,
    is_by_clock: bool,
    /// With the wall clock: whether the run uses one thread.
    is_alone: bool,
}

struct WorkloadRun {
    sim: SimContext,
    text: String,
    shape: Arc<Shape>,
    plan: Plan,
    settings: Settings,
}

/// The result of a graph run.
struct GraphRunResult {
    log: Vec<u8>,
    records: Vec<(usize, Record)>,
    /// The parts of the report that must not depend on threads.
    invariant_parts: String,
    call_faults_drawn: BTreeMap<(usize, u64, u64), CallFaults>,
    stopped_in: Option<u64>,
    n_calls: u64,
}

impl WorkloadRun {
    /// In simulated time: on one thread, then on several workers.
    fn twice(&self) -> Option<GraphRunResult> {
        let alone = self.in_simulated_time(0, None)?;
        if self.sim.is_broken() {
            return None;
        }
        let together =
            self.in_simulated_time(self.settings.n_workers, Some(alone.call_faults_drawn.clone()))?;
        self.compare(&alone, &together);
        Some(together)
    }

    fn in_simulated_time(
        &self,
        n_workers: usize,
        call_faults_drawn: Option<BTreeMap<(usize, u64, u64), CallFaults>>,
    ) -> Option<GraphRunResult> {
        let log = CommitLog::in_memory();
        let options =
            RunOptions::steps(self.settings.epochs).clock(Clock::Virtual).commit_log(&log);
        let options = options.tasks_max(self.settings.tasks_max).workers(n_workers.max(1));
        let run_state = RunState::new(&self.sim, &self.shape, call_faults_drawn, false);
        let mut host = self.host(n_workers)?;
        let mut run = self.start(&host, &run_state, options.parallel(Parallel::Always))?;
        let mut pace = self.sim.stream("pace");
        let mut ended = None;
        for look in 0..LOOKS_MAX {
            if look == HEAL_AFTER && self.sim.mode() == Mode::Liveness {
                self.sim.heal();
            }
            if host.run_until_idle() {
                host.check_idle_state();
            }
            ended = self.poll_or_advance(&mut host, &run_state, &mut run, &mut pace);
            if ended.is_some() || self.sim.is_broken() {
                break;
            }
        }
        self.check_result(host, &run_state, run, ended, &|| log.bytes())
    }

    /// With the wall clock, subject to clock faults.
    fn by_clock(&self, n_workers: usize) -> Option<GraphRunResult> {
        let run_state = RunState::new(&self.sim, &self.shape, None, true);
        let tape = LogBuffer::new(&run_state);
        let log = CommitLog::to(tape.clone());
        let options = RunOptions::until_stopped().clock(Clock::Wall).commit_log(&log);
        let options = options.tasks_max(self.settings.tasks_max).workers(n_workers.max(1));
        let mut host = self.host(n_workers)?;
        let mut run = self.start(&host, &run_state, options.parallel(Parallel::Always))?;
        let mut pace = self.sim.stream("pace");
        let mut ended = None;
        let mut polls_left = None;
        for look in 0.. {
            if polls_left.is_none() && look >= self.settings.epochs * 2 {
                if self.sim.mode() == Mode::Liveness {
                    self.sim.heal();
                }
                run.stop();
                polls_left = Some(LOOKS_MAX);
            }
            polls_left = polls_left.map(|left: u64| left.saturating_sub(1));
            if polls_left == Some(0) {
                break;
            }
            // Some graphs are never idle, so the loop does not wait for that.
            let n_turns = pace.between(1, TURNS_AT_ONCE);
            (0..n_turns).for_each(|_| host.step_if_woken());
            ended = self.poll_or_advance(&mut host, &run_state, &mut run, &mut pace);
            if ended.is_some() || self.sim.is_broken() {
                break;
            }
        }
        self.check_result(host, &run_state, run, ended, &|| tape.bytes())
    }

    fn host(&self, n_workers: usize) -> Option<AnyHost> {
        let builder = ActorSystem::builder("graphs");
        let host = AnyHost::start(&self.sim, builder, n_workers);
        self.sim.check(Invariant::S2, host.is_ok(), || {
            format!("start failed: {:?}", host.as_ref().err())
        });
        host.ok()
    }

    fn start(&self, host: &AnyHost, run_state: &RunState, options: RunOptions) -> Option<GraphRun> {
        set_run_state(Some((run_state.clone(), host.system().executor())));
        let graph = compile(&self.text).ok()?;
        let run = graph.start(host.system(), options);
        self.sim.check(Invariant::S2, run.is_ok(), || {
            format!("start failed: {:?}", run.as_ref().err())
        });
        let run = run.ok()?;
        run_state.oracle().stopper = Some(run.stopper());
        Some(run)
    }

    /// Polls the run; if it has not ended, advances time.
    fn poll_or_advance(
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
        host.advance(pace.below(self.settings.pace * 2));
        None
    }

    /// The run has ended, or should have: checks everything.
    fn check_result(
        &self,
        mut host: AnyHost,
        run_state: &RunState,
        run: GraphRun,
        ended: Option<Result<RunReport, RunError>>,
        log: &dyn Fn() -> Vec<u8>,
    ) -> Option<GraphRunResult> {
        drop(run);
        let is_live = self.sim.mode() == Mode::Liveness;
        let invariant = if is_live { Invariant::L1 } else { Invariant::X1 };
        self.sim.check(invariant, ended.is_some(), || "the run does not stop".to_owned());
        let ended = ended?;
        let (log, faulty) = (log(), ended.is_err());
        let records = records(&log);
        let is_read = records.is_some();
        self.sim.check(Invariant::G1, is_read, || format!("no commit log: {} bytes", log.len()));
        let records = records?;
        self.sim.record(
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
        host.shutdown(&self.sim);
        drop(host);
        let oracle = run_state.oracle();
        let n_alive = oracle.n_alive;
        let (n_calls, n_failed, n_at_once) = (oracle.n_calls, oracle.n_failed, oracle.n_at_once);
        self.sim.record("ran", &[n_calls, n_failed, n_at_once as u64]);
        let (call_faults_drawn, stopped_in) = (oracle.call_faults_drawn.clone(), oracle.stopped_in);
        drop(oracle);
        self.sim.check_equal(Invariant::S2, "remaining components", n_alive, 0);
        Some(GraphRunResult {
            log,
            records,
            invariant_parts: invariant_parts(&ended),
            call_faults_drawn,
            stopped_in,
            n_calls,
        })
    }

    /// In the epoch in which the run failed, nothing may be committed after the failure, in the
    /// order of the plan.
    fn check_failed_epoch(&self, records: &[(usize, Record)]) {
        let Some((_, Record::Failure(component))) = records.last() else { return };
        let region = |component: usize| self.plan.components.get(component).map(|one| one.region);
        // An index without a component means the run itself.
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
                format!("edge {} was committed after the failure of {component}", edge.id)
            });
        }
    }

    /// With the wall clock, a run must not produce endless epochs in which nothing happens.
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
            format!("{most} consecutive epochs at one time without a call")
        });
    }

    /// Every message of every edge must be in exactly one place, and no edge may exceed its
    /// capacity.
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

    /// Compares what must not depend on threads.
    fn compare(&self, alone: &GraphRunResult, together: &GraphRunResult) {
        let stopped = [alone.stopped_in, together.stopped_in];
        self.sim.check(Invariant::G1, stopped[0] == stopped[1], || format!("stopped: {stopped:?}"));
        let Some(epoch) = alone.stopped_in else {
            let at = alone.log.iter().zip(&together.log).position(|(one, other)| one != other);
            self.sim.check(Invariant::G1, alone.log == together.log, || {
                format!(
                    "logs of {} and {} bytes differ at {at:?}\n{}",
                    alone.log.len(),
                    together.log.len(),
                    self.text
                )
            });
            return self.sim.check(
                Invariant::G1,
                alone.invariant_parts == together.invariant_parts,
                || {
                    format!(
                        "reports differ:\n{}\nbut\n{}",
                        alone.invariant_parts, together.invariant_parts
                    )
                },
            );
        };
        // In the epoch in which the run was stopped, only what had started by then counts.
        let until = |ran: &GraphRunResult| {
            let places = ran.records.iter().filter_map(|(place, record)| match record {
                Record::Epoch(number, _) => Some((*place, *number)),
                _ => None,
            });
            let mut behind = places.skip_while(|(_, number)| *number < epoch);
            behind.next().map_or(ran.log.len(), |(place, _)| place)
        };
        let (one, other) = (&alone.log[..until(alone)], &together.log[..until(together)]);
        self.sim.check(Invariant::G1, one == other, || {
            format!("the logs differ before the last epoch {epoch}\n{}", self.text)
        });
    }
}

/// The parts of the result that must not depend on threads.
fn invariant_parts(ended: &Result<RunReport, RunError>) -> String {
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
