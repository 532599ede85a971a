//! Every published message is accounted for: a component was called with it, or the report lists it
//! as lost. The components of random graphs write both sides down themselves.
//!
//! The books are checked for the whole run and for each reader: what was published on the edges to
//! a component is what the component saw, what these edges lost, and what the component lost. So a
//! loss that is listed at a wrong place does not balance one that is not listed. Only what a loop
//! discards is listed without its edge; for readers of a loop the difference must be that of the
//! loops before them.
//!
//! Sixty graphs by default, `CLOCKJACK_GRAPHS` of them if that is set, and a third of them by the
//! wall clock, too, once or `CLOCKJACK_REPEATS` times: as they are, and with lanes that have clocks
//! of their own.

use core::time::Duration;
use std::{
    collections::{BTreeMap, BTreeSet},
    panic::resume_unwind,
    sync::{Mutex, MutexGuard, PoisonError},
};

use clockjack_graph::{
    Clock, Failure, Graph, GraphContext, Parallel, RunOptions, RunReport, RunStopReason, Stamp,
    compile::{Plan, PlanComponent},
    describe::{ClockDomain, GraphFile},
    run::{LossCause, LossPlace},
};
use clockjack_rt::Runtime;
use clockjack_sim::random_graph::{
    TestComponentConfig, TestLogic, is_multiple, mix, random_graph, random_graph_with_clocks,
    registry, task,
};

use super::{STEPS, WORKERS, number, runtime};

/// What the components of one run have done.
#[derive(Debug, Default)]
struct Ledger {
    /// Values offered to an output, by component and port: accepted or not, kept or discarded.
    published: BTreeMap<(String, &'static str), u64>,
    /// Messages that calls got, by component.
    seen: BTreeMap<String, u64>,
}

/// One test uses it, with one run after the other.
static LEDGER: Mutex<Option<Ledger>> = Mutex::new(None);

fn ledger() -> MutexGuard<'static, Option<Ledger>> {
    LEDGER.lock().unwrap_or_else(PoisonError::into_inner)
}

fn note_published(component: &str, port: &'static str) {
    let mut ledger = ledger();
    let ledger = ledger.get_or_insert_default();
    *ledger.published.entry((component.into(), port)).or_default() += 1;
}

/// Components that publish a lot, fail as configured, and write down what they see.
struct Accountant;

impl TestLogic for Accountant {
    type Resources = ();

    fn call(
        config: TestComponentConfig,
        cx: &mut GraphContext<'_>,
        digest: u64,
    ) -> Result<u64, Failure> {
        let TestComponentConfig { behavior, ports } = config;
        let id = String::from(cx.component_id());
        let mut digest = mix(digest, cx.epoch());
        let mut n_seen = cx.drain(ports.t).count() as u64;
        for port in [ports.a, ports.b, ports.s] {
            for value in cx.drain(port) {
                digest = mix(digest, *value);
                n_seen += 1;
            }
        }
        *ledger().get_or_insert_default().seen.entry(id.clone()).or_default() += n_seen;
        for nth in 0..behavior.burst.max(1) {
            note_published(&id, "out");
            let value = mix(digest, nth);
            let refused = if is_multiple(digest, 2) {
                let ns = cx.epoch() * 1_000_000 + digest % 5_000_000;
                cx.publish_stamped(ports.out, value, Stamp { domain: ClockDomain::Steady, ns })
            } else {
                cx.publish(ports.out, value)
            };
            digest = mix(digest, u64::from(refused.is_err()));
        }
        note_published(&id, "side");
        drop(cx.publish(ports.side, digest));
        note_published(&id, "text");
        drop(cx.publish(ports.text, format!("{digest:x}")));
        if is_multiple(digest, behavior.tasks) {
            let work = task(!digest, digest % 3);
            let of = id.clone();
            drop(cx.submit_task(ports.done, async move {
                let value = work.await?;
                note_published(&of, "done");
                Ok(value)
            }));
        }
        if is_multiple(digest, behavior.fails) {
            return Err(Failure::msg("told to fail"));
        }
        if is_multiple(digest, behavior.panics) {
            // It goes past the hook, which would print it.
            resume_unwind(Box::new("told to panic"));
        }
        Ok(digest)
    }
}

fn compile(text: &str) -> Graph {
    let file = GraphFile::parse("random.yaml", text).expect("the generator writes valid text");
    file.compile(&registry::<Accountant>()).unwrap_or_else(|faults| panic!("{faults:#?}\n{text}"))
}

/// How many messages were published on each edge.
fn published(plan: &Plan, ledger: &Ledger) -> Vec<u64> {
    let mut published = vec![0; plan.edges.len()];
    for ((component, port), n) in &ledger.published {
        let of_id = |one: &&PlanComponent| one.spec.id == *component;
        let outputs = &plan.components.iter().find(of_id).expect("it has run").outputs;
        let output = outputs.iter().find(|one| one.name == *port).expect("it has published");
        output.edges.iter().for_each(|edge| published[*edge] += n);
    }
    published
}

/// Checks that every message is in the books once, in the whole run and for each reader.
fn check_books(plan: &Plan, report: &RunReport, books: &Ledger, who: &str) {
    let published = published(plan, books);
    let lost_at = |place: &LossPlace| -> u64 {
        report.losses.iter().filter(|loss| loss.place == *place).map(|loss| loss.count).sum()
    };
    let at_edge = |edge: &usize| lost_at(&LossPlace::Edge(plan.edges[*edge].id.clone()));
    let loops = plan.regions.iter().filter(|region| region.loop_policy.is_some());
    let in_loops: BTreeSet<usize> = loops.flat_map(|region| region.components.clone()).collect();
    let mut n_unplaced = 0;
    for component in &plan.components {
        let id = &component.spec.id;
        let edges: Vec<usize> =
            component.inputs.iter().flat_map(|input| input.edges.clone()).collect();
        let came: u64 = edges.iter().map(|edge| published[*edge]).sum();
        let seen = books.seen.get(id).copied().unwrap_or(0);
        let lost =
            edges.iter().map(at_edge).sum::<u64>() + lost_at(&LossPlace::Component(id.clone()));
        assert!(came >= seen + lost, "{who}: `{id}`: {came} came, {seen} seen, {lost} lost");
        let rest = came - seen - lost;
        let reads_loop = edges.iter().any(|edge| in_loops.contains(&plan.edges[*edge].from.0));
        assert!(rest == 0 || reads_loop, "{who}: {rest} messages for `{id}` are in no list");
        n_unplaced += rest;
    }
    let of_loops = report.losses.iter().filter(|one| matches!(one.place, LossPlace::Loop(_)));
    let of_loops: u64 = of_loops.map(|loss| loss.count).sum();
    assert_eq!(n_unplaced, of_loops, "{who}: what loops have discarded");
    let (published, seen): (u64, u64) = (published.iter().sum(), books.seen.values().sum());
    let lost: u64 = report.losses.iter().map(|loss| loss.count).sum();
    assert_eq!(published, seen + lost, "{who}: {published} published, {seen} seen, {lost} lost");
}

/// Runs a graph and checks its books. `feeds`: how many values are fed to its first output while it
/// runs, after which it is stopped.
fn check(
    runtime: &Runtime,
    text: &str,
    options: RunOptions,
    feeds: Option<u64>,
    who: &str,
) -> RunReport {
    *ledger() = None;
    let graph = compile(text);
    let plan = graph.plan().clone();
    let first = plan.components[0].spec.id.clone();
    let run = graph.start(runtime.system(), options).expect("it starts");
    let mut n_fed = 0;
    if let Some(feeds) = feeds {
        let feed = run.feed::<u64>(&format!("{first}.out")).expect("it is such an output");
        for value in 0..feeds {
            // A run that has ended by itself, or that takes nothing now, refuses some.
            n_fed += u64::from(feed.publish(value).is_ok());
            if value == feeds / 2 {
                let delays = runtime.system().scheduler().jobs().delays();
                runtime.block_on(delays.delay(PAUSE)).expect("the scheduler runs");
            }
        }
        run.stop();
    }
    let report = match runtime.block_on(run) {
        Ok(report) => report,
        Err(error) => error.report().expect("it has begun").clone(),
    };
    let mut books = ledger().take().unwrap_or_default();
    *books.published.entry((first, "out")).or_default() += n_fed;
    check_books(&plan, &report, &books, &format!("{text}\n{who}"));
    report
}

/// How long a run goes on between two halves of what is fed to it.
const PAUSE: Duration = Duration::from_millis(5);

/// Adds the causes of a run to those seen so far.
fn add_causes(causes: &mut BTreeMap<LossCause, u64>, report: &RunReport) {
    for loss in &report.losses {
        *causes.entry(loss.cause).or_default() += loss.count;
    }
}

/// Two lanes with clocks of their own, the second slower, with small edges between them.
const TWO_CLOCKS: &str = "
schema_version: 1
graph: { name: clocks, kind: internal_test }
lanes:
  fast: { type: fixed_rate, period_ms: 1, wall_clock_enabled: true }
  slow: { type: fixed_rate, period_ms: 5, wall_clock_enabled: true }
components:
  - { id: c0, type: mixer, execution: { lane: fast } , config: { burst: 2 } }
  - id: c1
    type: mixer
    event_sources: [{ type: message, inputs: [a, b, t] }]
    trigger_policy: { type: any_input, inputs: [a, b, t] }
    execution: { lane: slow, on_error: continue }
    config: { fails: 5 }
edges:
  - { id: e0, kind: delay, from: c0.out, to: c1.a,
      policy: { mode: queue, capacity: 3, overflow: drop_oldest } }
  - { id: e1, kind: async, from: c0.side, to: c1.b,
      policy: { mode: queue, capacity: 2, overflow: reject, max_inflight: 1 } }
  - { id: e2, kind: delay, from: c0.text, to: c1.t, policy: { mode: latest } }
  - { id: e3, kind: delay, from: c1.out, to: c0.a,
      policy: { mode: queue, capacity: 1, overflow: drop_newest } }
";

/// Runs a graph by the wall clock: to the end, and with values from outside until it is stopped.
fn check_wall(
    runtime: &Runtime,
    text: &str,
    who: &str,
    workers: usize,
    causes: &mut BTreeMap<LossCause, u64>,
) {
    let who = format!("wall, {who}, {workers} workers");
    let options = |options: RunOptions| {
        options.tasks_max(3).clock(Clock::Wall).workers(workers).parallel(Parallel::Always)
    };
    let report = check(runtime, text, options(RunOptions::steps(STEPS)), None, &who);
    add_causes(causes, &report);
    let until_stopped = options(RunOptions::until_stopped());
    let report = check(runtime, text, until_stopped, Some(40), &format!("{who}, stopped"));
    add_causes(causes, &report);
}

#[test]
fn every_published_message_is_seen_or_listed_as_lost() {
    let runtime = runtime();
    let mut causes = BTreeMap::new();
    let n_graphs = number("CLOCKJACK_GRAPHS").unwrap_or(60);
    for seed in 1..=n_graphs {
        let text = random_graph(seed);
        let options = || RunOptions::steps(STEPS).tasks_max(3);
        let mut losses = Vec::new();
        for workers in WORKERS {
            let options = options().workers(workers).parallel(Parallel::Always);
            let who = format!("seed {seed}, {workers} workers");
            let report = check(&runtime, &text, options.clock(Clock::Virtual), None, &who);
            add_causes(&mut causes, &report);
            // After a fault, other workers may have gone further than one would.
            if report.stop != RunStopReason::Error {
                losses.push(report.losses);
            }
        }
        assert!(losses.windows(2).all(|pair| pair[0] == pair[1]), "seed {seed}: {losses:#?}");
    }
    // By the wall clock no two runs are the same: each graph is run as often as asked for.
    for nth in 0..number("CLOCKJACK_REPEATS").unwrap_or(1) {
        let workers = WORKERS.into_iter().cycle().skip(usize::try_from(nth % 4).expect("below 4"));
        for (seed, workers) in (1..=n_graphs.div_ceil(3)).zip(workers) {
            let who = format!("seed {seed}");
            check_wall(&runtime, &random_graph(seed), &who, workers, &mut causes);
            let (text, who) = (random_graph_with_clocks(seed), format!("clocks, {who}"));
            check_wall(&runtime, &text, &who, workers, &mut causes);
        }
    }
    let options = RunOptions::steps(60).clock(Clock::Wall);
    let report = check(&runtime, TWO_CLOCKS, options, None, "two clocks");
    assert!(report.n_lost() > 0, "{:?}", report.losses);
    // The graphs are useful: they lose messages in every way.
    let unseen: Vec<_> =
        LossCause::ALL.iter().filter(|cause| !causes.contains_key(cause)).collect();
    assert!(unseen.is_empty(), "no graph loses a message by {unseen:?}: {causes:?}");
}
