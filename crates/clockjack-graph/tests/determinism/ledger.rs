//! Every published message is accounted for: a component was called with it, or the report lists it
//! as lost. The components of random graphs write both sides down themselves.

use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use clockjack_graph::{
    Clock, Failure, Graph, GraphContext, Parallel, RunOptions, RunReport, RunStopReason, Stamp,
    compile::{Plan, PlanComponent},
    describe::{ClockDomain, GraphFile},
    run::LossCause,
};
use clockjack_rt::Runtime;
use clockjack_sim::random_graph::{
    TestComponentConfig, TestLogic, is_multiple, mix, random_graph, registry, task,
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
        if is_multiple(digest, behavior.fails) || is_multiple(digest, behavior.panics) {
            return Err(Failure::msg("told to fail"));
        }
        Ok(digest)
    }
}

fn compile(text: &str) -> Graph {
    let file = GraphFile::parse("random.yaml", text).expect("the generator writes valid text");
    file.compile(&registry::<Accountant>()).unwrap_or_else(|faults| panic!("{faults:#?}\n{text}"))
}

/// How many messages were published, one per edge.
fn n_published(plan: &Plan, ledger: &Ledger) -> u64 {
    let n_edges = |component: &str, port: &str| {
        let of_id = |one: &&PlanComponent| one.spec.id == component;
        let outputs = &plan.components.iter().find(of_id).expect("it has run").outputs;
        let output = outputs.iter().find(|one| one.name == port).expect("it has published");
        output.edges.len() as u64
    };
    let each = ledger.published.iter();
    each.map(|((component, port), n)| n * n_edges(component, port)).sum()
}

/// Runs a graph and checks its books; returns the losses by cause.
fn check(runtime: &Runtime, text: &str, options: RunOptions, who: &str) -> RunReport {
    *ledger() = None;
    let graph = compile(text);
    let plan = graph.plan().clone();
    let result = graph.start(runtime.system(), options).and_then(|run| runtime.block_on(run));
    let report = match result {
        Ok(report) => report,
        Err(error) => error.report().expect("it has begun").clone(),
    };
    let books = ledger().take().unwrap_or_default();
    let published = n_published(&plan, &books);
    let seen: u64 = books.seen.values().sum();
    let lost: u64 = report.losses.iter().map(|loss| loss.count).sum();
    assert_eq!(
        published,
        seen + lost,
        "{text}\n{who}: {published} published, {seen} seen, losses {:#?}",
        report.losses
    );
    report
}

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
            let report = check(&runtime, &text, options.clock(Clock::Virtual), &who);
            add_causes(&mut causes, &report);
            // After a fault, other workers may have gone further than one would.
            if report.stop != RunStopReason::Error {
                losses.push(report.losses);
            }
        }
        assert!(losses.windows(2).all(|pair| pair[0] == pair[1]), "seed {seed}: {losses:#?}");
    }
    for seed in 1..=n_graphs.div_ceil(10) {
        let options = RunOptions::steps(STEPS).tasks_max(3).clock(Clock::Wall).workers(4);
        let report = check(&runtime, &random_graph(seed), options, &format!("wall, seed {seed}"));
        add_causes(&mut causes, &report);
    }
    let options = RunOptions::steps(60).clock(Clock::Wall);
    let report = check(&runtime, TWO_CLOCKS, options, "two clocks");
    assert!(report.n_lost() > 0, "{:?}", report.losses);
    // The graphs are useful: they lose messages in every way.
    let unseen: Vec<_> =
        LossCause::ALL.iter().filter(|cause| !causes.contains_key(cause)).collect();
    assert!(unseen.is_empty(), "no graph loses a message by {unseen:?}: {causes:?}");
}
