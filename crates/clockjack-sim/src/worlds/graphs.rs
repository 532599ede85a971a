//! Graphs: random ones, run by the real engine, with components that fail, dawdle, publish more
//! than there is room for and stop the run in the middle of it.
//!
//! In simulated time a graph is run twice: on one thread, and by several workers that come in
//! between each other's calls. What a call suffers follows from what it sees, so that it is the
//! same in both, and the commit logs must be, too. By the clock it is run once, while the clock
//! does what it does.

mod books;
mod log;
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
    books::{Desk, Shape, Woe},
    log::{Record, Tape, records},
    parts::{Watched, set_desk},
};
use crate::{
    fault::Class,
    hall::Hall,
    law::Law,
    random::{Stream, digest},
    run::{About, World},
    stage::{Mode, Stage},
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

impl World for Graphs {
    fn about(&self) -> About {
        use Class::{ClockDrift, DriverStall, EdgeFlood, OddStop};
        use Law::{G1, G2, G3, G4, G5, L1, S2, T1, X1};
        About {
            name: "graphs",
            faults: &[Class::EVERYDAY, &[ClockDrift, DriverStall, OddStop, EdgeFlood]],
            laws: &[G1, G2, G3, G4, G5, T1, X1, S2, L1],
            least_records: 60,
            least_comparisons: 200,
        }
    }

    fn play(&self, stage: &Stage) {
        let settings = Settings {
            seats: usize::try_from(stage.setting("seats", 2, 5)).unwrap_or(2),
            epochs: stage.setting("epochs", 15, 40),
            pace: stage.setting("pace", 1, 40),
            tasks_max: usize::try_from(stage.setting("tasks", 1, 6)).unwrap_or(1),
            is_by_clock: stage.setting("by-clock", 0, 3) == 0,
            is_alone: stage.setting("alone", 0, 1) == 0,
        };
        let (mut graphs, mut n_calls) = (stage.stream("graph"), 0);
        // Some graphs do next to nothing: then another one follows.
        for _ in 0..GRAPHS_MAX {
            n_calls += play(stage, settings, graphs.below(GRAPHS));
            if stage.is_broken() || n_calls >= CALLS_MIN {
                break;
            }
        }
        set_desk(None);
    }
}

/// Plays one graph; how many calls were made of its components.
fn play(stage: &Stage, settings: Settings, number: u64) -> u64 {
    let text = random_graph(number);
    stage.note("graph", &[number]);
    let graph = match compile(&text) {
        Ok(graph) => graph,
        Err(faults) => {
            stage.check(Law::G1, false, || format!("{faults}\n{text}"));
            return 0;
        }
    };
    let plan = graph.plan().clone();
    let shape = Arc::new(Shape::of(&plan));
    let play = Play { stage: stage.clone(), text, shape, plan, settings };
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

/// What was drawn for a run of the world.
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

struct Play {
    stage: Stage,
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
    woes: BTreeMap<(usize, u64, u64), Woe>,
    stopped_in: Option<u64>,
    n_calls: u64,
}

impl Play {
    /// In simulated time: on one thread, then by several workers.
    fn twice(&self) -> Option<Ran> {
        let alone = self.in_simulated_time(0, None)?;
        if self.stage.is_broken() {
            return None;
        }
        let together = self.in_simulated_time(self.settings.seats, Some(alone.woes.clone()))?;
        self.compare(&alone, &together);
        Some(together)
    }

    fn in_simulated_time(
        &self,
        seats: usize,
        woes: Option<BTreeMap<(usize, u64, u64), Woe>>,
    ) -> Option<Ran> {
        let log = CommitLog::in_memory();
        let options =
            RunOptions::steps(self.settings.epochs).clock(Clock::Virtual).commit_log(&log);
        let options = options.tasks_max(self.settings.tasks_max).workers(seats.max(1));
        let desk = Desk::new(&self.stage, &self.shape, woes, false);
        let mut hall = self.hall(seats)?;
        let mut run = self.start(&hall, &desk, options.parallel(Parallel::Always))?;
        let mut pace = self.stage.stream("pace");
        let mut ended = None;
        for look in 0..LOOKS_MAX {
            if look == HEAL_AFTER && self.stage.mode() == Mode::Liveness {
                self.stage.heal();
            }
            if hall.settle() {
                hall.check_quiet();
            }
            ended = self.look(&mut hall, &desk, &mut run, &mut pace);
            if ended.is_some() || self.stage.is_broken() {
                break;
            }
        }
        self.ends(hall, &desk, run, ended, &|| log.bytes())
    }

    /// By the clock, which may do what it likes.
    fn by_clock(&self, seats: usize) -> Option<Ran> {
        let desk = Desk::new(&self.stage, &self.shape, None, true);
        let tape = Tape::new(&desk);
        let log = CommitLog::to(tape.clone());
        let options = RunOptions::until_stopped().clock(Clock::Wall).commit_log(&log);
        let options = options.tasks_max(self.settings.tasks_max).workers(seats.max(1));
        let mut hall = self.hall(seats)?;
        let mut run = self.start(&hall, &desk, options.parallel(Parallel::Always))?;
        let mut pace = self.stage.stream("pace");
        let mut ended = None;
        let mut looks_left = None;
        for look in 0.. {
            if looks_left.is_none() && look >= self.settings.epochs * 2 {
                if self.stage.mode() == Mode::Liveness {
                    self.stage.heal();
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
            (0..n_turns).for_each(|_| hall.turn_if_woken());
            ended = self.look(&mut hall, &desk, &mut run, &mut pace);
            if ended.is_some() || self.stage.is_broken() {
                break;
            }
        }
        self.ends(hall, &desk, run, ended, &|| tape.bytes())
    }

    fn hall(&self, seats: usize) -> Option<Hall> {
        let builder = ActorSystem::builder("graphs");
        let hall = Hall::start(&self.stage, builder, seats);
        self.stage.check(Law::S2, hall.is_ok(), || format!("no start: {:?}", hall.as_ref().err()));
        hall.ok()
    }

    fn start(&self, hall: &Hall, desk: &Desk, options: RunOptions) -> Option<GraphRun> {
        set_desk(Some((desk.clone(), hall.system().executor())));
        let graph = compile(&self.text).ok()?;
        let run = graph.start(hall.system(), options);
        self.stage.check(Law::S2, run.is_ok(), || format!("no start: {:?}", run.as_ref().err()));
        let run = run.ok()?;
        desk.books().stopper = Some(run.stopper());
        Some(run)
    }

    /// Looks whether the run has ended; if not, lets some time pass.
    fn look(
        &self,
        hall: &mut Hall,
        desk: &Desk,
        run: &mut GraphRun,
        pace: &mut Stream,
    ) -> Option<Result<RunReport, RunError>> {
        desk.stage.allow_slowness(SLOW_MAX);
        let mut cx = Context::from_waker(Waker::noop());
        if let Poll::Ready(ended) = Pin::new(run).poll(&mut cx) {
            return Some(ended);
        }
        hall.pass(pace.below(self.settings.pace * 2));
        None
    }

    /// The run has ended, or should have: everything is looked at.
    fn ends(
        &self,
        mut hall: Hall,
        desk: &Desk,
        run: GraphRun,
        ended: Option<Result<RunReport, RunError>>,
        log: &dyn Fn() -> Vec<u8>,
    ) -> Option<Ran> {
        drop(run);
        let is_live = self.stage.mode() == Mode::Liveness;
        let law = if is_live { Law::L1 } else { Law::X1 };
        self.stage.check(law, ended.is_some(), || "the run does not end".to_owned());
        let ended = ended?;
        let (log, faulty) = (log(), ended.is_err());
        let records = records(&log);
        let is_read = records.is_some();
        self.stage.check(Law::G1, is_read, || format!("no commit log: {} bytes", log.len()));
        let records = records?;
        self.stage.note(
            "log",
            &[log.len() as u64, records.len() as u64, digest(&log), u64::from(faulty)],
        );
        self.check_failed_epoch(&records);
        if self.settings.is_by_clock {
            self.check_idle(&records, desk);
        }
        let report = match &ended {
            Ok(report) => Some(report),
            Err(error) => error.report(),
        };
        self.stage.check(Law::S2, report.is_some(), || format!("no report: {ended:?}"));
        if let Some(report) = report {
            self.check_edges(report, desk);
        }
        desk.books().stopper = None;
        hall.end(&self.stage);
        drop(hall);
        let books = desk.books();
        let n_alive = books.n_alive;
        let (n_calls, n_failed, n_at_once) = (books.n_calls, books.n_failed, books.n_at_once);
        self.stage.note("ran", &[n_calls, n_failed, n_at_once as u64]);
        let (woes, stopped_in) = (books.woes.clone(), books.stopped_in);
        drop(books);
        self.stage.check_equal(Law::S2, "components that are left", n_alive, 0);
        Some(Ran { log, records, facts: facts(&ended), woes, stopped_in, n_calls })
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
            self.stage.check(Law::G4, !is_prompt || from <= Some(failed), || {
                format!("edge {} was committed behind the failure of {component}", edge.id)
            });
        }
    }

    /// By the clock nobody makes epochs without end in which nothing happens.
    fn check_idle(&self, records: &[(usize, Record)], desk: &Desk) {
        let called_in = core::mem::take(&mut desk.books().called_in);
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
        self.stage.check(Law::X1, most <= IDLE_MAX, || {
            format!("{most} epochs at one time in which nothing happens")
        });
    }

    /// Every message of every edge is in one place, and no edge holds more than it may.
    fn check_edges(&self, report: &RunReport, desk: &Desk) {
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
            self.stage.check(Law::G3, gone <= published && published - gone <= most, || {
                format!("edge {id}: {published} published, {gone} gone, of {most} inside")
            });
            self.stage.check(Law::G3, depth <= most, || format!("edge {id}: {depth} of {most}"));
            let from =
                (edge.from.0, self.plan.components[edge.from.0].outputs[edge.from.1].name.as_str());
            let offered = desk.n_offered(from);
            let counted = published + of("reject_count");
            self.stage.check(Law::G3, counted <= offered, || {
                format!("edge {id}: {counted} counted, {offered} offered")
            });
        }
    }

    /// What threads must not change.
    fn compare(&self, alone: &Ran, together: &Ran) {
        let stopped = [alone.stopped_in, together.stopped_in];
        self.stage.check(Law::G1, stopped[0] == stopped[1], || format!("stopped: {stopped:?}"));
        let Some(epoch) = alone.stopped_in else {
            let at = alone.log.iter().zip(&together.log).position(|(one, other)| one != other);
            self.stage.check(Law::G1, alone.log == together.log, || {
                format!(
                    "logs of {} and {} bytes part at {at:?}\n{}",
                    alone.log.len(),
                    together.log.len(),
                    self.text
                )
            });
            return self.stage.check(Law::G1, alone.facts == together.facts, || {
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
        self.stage.check(Law::G1, one == other, || {
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
