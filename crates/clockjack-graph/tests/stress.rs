//! Lanes on their own threads under load: domains that publish to each other, values from many
//! threads, runs that are stopped at any time. Every accepted value is accounted for.
//!
//! No test checks how long anything takes; a test that does not end has lost something.

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    thread,
};

use clockjack_actor::ActorSystem;
use clockjack_graph::{
    Clock, CommitLog, Component, Execute, ExecuteShared, Failure, Graph, GraphContext, Input,
    Output, Parallel, Registry, RunOptions, RunStopReason, TraceLog, describe::GraphFile,
};
use clockjack_rt::{Runtime, RuntimeConfig};

/// What came to each component, in order.
type Received = Arc<Mutex<BTreeMap<String, Vec<f64>>>>;

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Publishes one number after the other.
#[derive(Component, Default)]
#[component(type = "count")]
struct Count {
    n: f64,
    #[output]
    out: Output<f64>,
}

impl Execute for Count {
    fn execute(&mut self, cx: &mut GraphContext<'_>) -> Result<(), Failure> {
        self.n += 1.0;
        cx.publish(self.out, self.n)?;
        Ok(())
    }
}

/// Hands on what comes; its invocations may overlap.
#[derive(Component, Default)]
#[component(type = "pass")]
struct Pass {
    n_calls: AtomicU64,
    #[input(multiple)]
    r#in: Input<f64>,
    #[output]
    out: Output<f64>,
}

impl ExecuteShared for Pass {
    fn execute(&self, cx: &mut GraphContext<'_>) -> Result<(), Failure> {
        // Relaxed: the count only decides when to yield.
        if self.n_calls.fetch_add(1, Relaxed).is_multiple_of(3) {
            thread::yield_now();
        }
        let values: Vec<f64> = cx.drain(self.r#in).copied().collect();
        for value in values {
            cx.publish(self.out, value)?;
        }
        Ok(())
    }
}

/// Keeps what comes.
#[derive(Component)]
#[component(type = "keep", role = "input")]
struct Keep {
    received: Received,
    #[input(multiple)]
    r#in: Input<f64>,
}

impl Execute for Keep {
    fn execute(&mut self, cx: &mut GraphContext<'_>) -> Result<(), Failure> {
        let id = cx.component_id().to_owned();
        let values: Vec<f64> = cx.drain(self.r#in).copied().collect();
        lock(&self.received).entry(id).or_default().extend(values);
        Ok(())
    }
}

fn runtime() -> Runtime {
    let config = RuntimeConfig { workers: Some(3), ..RuntimeConfig::DEFAULT };
    Runtime::start_with(ActorSystem::builder("stress"), config).expect("a few threads start")
}

fn compile(text: &str, received: &Received) -> Graph {
    let received = Arc::clone(received);
    let registry = Registry::new()
        .register::<Count>()
        .register_shared::<Pass>()
        .register_with(move || Keep { received: Arc::clone(&received), r#in: Input::default() });
    let file = GraphFile::parse("s.yaml", text).unwrap_or_else(|faults| panic!("{faults:#?}"));
    file.compile(&registry).unwrap_or_else(|faults| panic!("{faults:#?}"))
}

const ON_MESSAGE: &str =
    "event_sources: [{ type: message, input: in }], trigger_policy: { type: any_input }";
const LARGE: &str = "policy: { mode: queue, capacity: 65536, overflow: reject }";

/// Four lanes, each of which publishes to all others.
fn all_to_all() -> String {
    let lanes = ["main", "one", "two", "three"];
    let mut text = String::from(
        "schema_version: 1\ngraph: { name: stress, kind: internal_test }\nlanes:\n  \
         main: { type: event_loop }\n",
    );
    for lane in &lanes[1..] {
        text += &format!("  {lane}: {{ type: fixed_rate, hz: 1000, wall_clock_enabled: true }}\n");
    }
    text += "components:\n";
    let mut edges = String::from("edges:\n");
    for from in lanes {
        text += &format!(
            "  - {{ id: {from}, type: count, execution: {{ lane: {from} }}, \
             event_sources: [{{ type: timer, period_ms: 1 }}] }}\n"
        );
        for (nth, to) in lanes.into_iter().filter(|to| *to != from).enumerate() {
            text += &format!(
                "  - {{ id: {from}-{to}, type: keep, execution: {{ lane: {to} }}, \
                 boundary: {{ role: input }}, {ON_MESSAGE} }}\n"
            );
            let kind = ["delay", "async", "delay"][nth];
            edges += &format!(
                "  - {{ id: {from}-{to}, kind: {kind}, from: {from}.out, to: {from}-{to}.in, \
                 {LARGE} }}\n"
            );
        }
    }
    text + &edges
}

#[test]
fn what_lanes_publish_to_each_other_comes_once_and_in_order() {
    let (rt, text) = (runtime(), all_to_all());
    let mut n_taken = 0;
    for _ in 0..4 {
        let (received, trace) = (Received::default(), TraceLog::new(1 << 14));
        let options = RunOptions::steps(60).clock(Clock::Wall).trace(&trace);
        let options = options.commit_log(&CommitLog::in_memory());
        let graph = compile(&text, &received);
        let edges: Vec<String> = graph.plan().edges.iter().map(|edge| edge.id.clone()).collect();
        assert_eq!(edges.len(), 12);
        let run = graph.start(rt.system(), options).expect("it starts");
        let report = rt.block_on(run).expect("nobody fails");
        let received = lock(&received);
        // A lane may have made all its ticks before another lane ran at all: then it got nothing.
        for edge in &edges {
            let values = received.get(edge).map_or(&[][..], Vec::as_slice);
            let in_order = (1_u32..).map(f64::from);
            assert!(values.iter().copied().eq(in_order.take(values.len())), "{edge}: {values:?}");
            let delivered = report.metrics.get("runtime.channel.delivery_count", edge);
            assert_eq!(delivered.map(f64::to_bits), Some(count(values.len()).to_bits()), "{edge}");
            n_taken += values.len();
        }
    }
    assert!(n_taken > 0, "nobody got anything");
}

fn count(n: usize) -> f64 {
    f64::from(u32::try_from(n).expect("they are few"))
}

#[test]
fn values_from_many_threads_are_taken_once_or_refused_while_the_run_is_stopped() {
    const THREADS: u32 = 3;
    let text = format!(
        "schema_version: 1\ngraph: {{ name: stress, kind: internal_test }}\nlanes:\n  \
         main: {{ type: event_loop }}\n  \
         own: {{ type: fixed_rate, hz: 1000, wall_clock_enabled: true }}\n\
         components:\n  \
         - {{ id: src, type: count, execution: {{ lane: own }} }}\n  \
         - {{ id: dst, type: keep, execution: {{ lane: main }}, boundary: {{ role: input }}, \
         {ON_MESSAGE} }}\n\
         edges:\n  - {{ id: e, kind: async, from: src.out, to: dst.in, {LARGE} }}\n"
    );
    let rt = runtime();
    for round in 0..8_u32 {
        let received = Received::default();
        let run = compile(&text, &received).start(rt.system(), RunOptions::until_stopped());
        let run = run.expect("it starts");
        let stopper = run.stopper();
        let taken: Vec<Vec<f64>> = thread::scope(|scope| {
            let feeders: Vec<_> = (1..=THREADS)
                .map(|number| {
                    let feed = run.feed::<f64>("dst.in").expect("it can be fed");
                    scope.spawn(move || {
                        let mut taken = Vec::new();
                        for nth in 0..400_u32 {
                            let value = -f64::from(number * 1000 + nth);
                            match feed.publish(value) {
                                Ok(()) => taken.push(value),
                                Err(refused) if refused.is_full() => thread::yield_now(),
                                Err(_) => break,
                            }
                        }
                        taken
                    })
                })
                .collect();
            for _ in 0..round * 50 {
                thread::yield_now();
            }
            stopper.stop();
            feeders.into_iter().map(|one| one.join().expect("it ends")).collect()
        });
        let report = rt.block_on(run).expect("nobody fails");
        assert_eq!(report.stop, RunStopReason::StopRequested);
        let received = lock(&received);
        let got = received.get("dst").map_or(&[][..], Vec::as_slice);
        for (number, taken) in (1..=THREADS).zip(&taken) {
            let is_of = |value: &&f64| {
                **value <= -f64::from(number * 1000) && **value > -f64::from((number + 1) * 1000)
            };
            let mine: Vec<f64> = got.iter().filter(is_of).copied().collect();
            // Those that were taken last may lie there when the run ends.
            assert!(taken.starts_with(&mine), "{round}: {mine:?} of {taken:?}");
        }
        let others = got.iter().filter(|value| **value > 0.0).copied();
        let in_order = (1_u32..).map(f64::from);
        assert!(others.clone().eq(in_order.take(others.count())), "{got:?}");
    }
}

#[test]
fn a_producer_that_waits_for_a_lane_of_another_time_is_called_again() {
    const N_VALUES: usize = 150;
    let edge = |id: &str, from: &str| {
        format!(
            "  - {{ id: {id}, kind: async, from: {from}.out, to: {id}.in, \
             policy: {{ mode: queue, capacity: 3, overflow: block, allow_drop: false }} }}\n"
        )
    };
    let text = format!(
        "schema_version: 1\ngraph: {{ name: stress, kind: internal_test }}\nlanes:\n  \
         main: {{ type: event_loop }}\n  \
         one: {{ type: fixed_rate, hz: 4000, wall_clock_enabled: true }}\n  \
         two: {{ type: fixed_rate, hz: 3000, wall_clock_enabled: true }}\n\
         components:\n  \
         - {{ id: s, type: count, execution: {{ lane: main }} }}\n  \
         - {{ id: t, type: count, execution: {{ lane: one }} }}\n  \
         - {{ id: a, type: keep, execution: {{ lane: one }}, boundary: {{ role: input }}, \
         {ON_MESSAGE} }}\n  \
         - {{ id: b, type: keep, execution: {{ lane: two }}, boundary: {{ role: input }}, \
         {ON_MESSAGE} }}\n\
         edges:\n{}{}",
        edge("a", "s"),
        edge("b", "t")
    );
    let rt = runtime();
    for _ in 0..4 {
        let received = Received::default();
        let options = RunOptions::until_stopped().clock(Clock::Wall);
        let run = compile(&text, &received).start(rt.system(), options).expect("it starts");
        let has_all = |id: &str| lock(&received).get(id).is_some_and(|all| all.len() >= N_VALUES);
        while !(has_all("a") && has_all("b")) {
            thread::yield_now();
        }
        run.stop();
        let report = rt.block_on(run).expect("nobody fails");
        assert_eq!(report.metrics.total("runtime.channel.reject_count").to_bits(), 0);
        for values in lock(&received).values() {
            let in_order = (1_u32..).map(f64::from);
            assert!(values.iter().copied().eq(in_order.take(values.len())), "{values:?}");
        }
    }
}

#[test]
fn runs_beside_each_other_end_however_they_are_stopped() {
    let (rt, text) = (runtime(), all_to_all());
    for round in 0..6_u32 {
        let runs: Vec<_> = (0..3)
            .map(|_| {
                let received = Received::default();
                let options = RunOptions::until_stopped().clock(Clock::Wall);
                compile(&text, &received).start(rt.system(), options).expect("it starts")
            })
            .collect();
        thread::scope(|scope| {
            for (nth, run) in (1..).zip(&runs) {
                let stopper = run.stopper();
                scope.spawn(move || {
                    (0..round * nth * 20).for_each(|_| thread::yield_now());
                    stopper.stop();
                });
            }
        });
        for run in runs {
            let report = rt.block_on(run).expect("nobody fails");
            assert_eq!(report.stop, RunStopReason::StopRequested);
        }
    }
}

#[test]
fn all_who_work_on_an_epoch_commit_what_one_commits() {
    let mut text = String::from(
        "schema_version: 1\ngraph: { name: stress, kind: internal_test }\nlanes:\n  \
         pool: { type: thread_pool, max_threads: 4, queue_capacity: 64 }\n  \
         own: { type: isolated_thread }\n  main: { type: event_loop }\ncomponents:\n",
    );
    let mut edges = String::from("edges:\n");
    for nth in 0..4 {
        text += &format!(
            "  - {{ id: s{nth}, type: count, execution: {{ lane: pool }} }}\n  \
             - {{ id: p{nth}, type: pass, execution: {{ lane: pool, reentrant: true }}, \
             {ON_MESSAGE} }}\n  \
             - {{ id: k{nth}, type: keep, execution: {{ lane: {} }}, boundary: {{ role: input }}, \
             {ON_MESSAGE} }}\n",
            ["own", "main"][nth % 2]
        );
        for from in 0..=nth {
            edges += &format!(
                "  - {{ id: a{from}-{nth}, kind: immediate, from: s{from}.out, to: p{nth}.in, \
                 {LARGE} }}\n"
            );
        }
        edges += &format!(
            "  - {{ id: b{nth}, kind: immediate, from: p{nth}.out, to: k{nth}.in, {LARGE} }}\n"
        );
    }
    let (rt, text) = (runtime(), text + &edges);
    let log_of = |workers| {
        let log = CommitLog::in_memory();
        let options = RunOptions::steps(150).clock(Clock::Virtual).commit_log(&log);
        let options = options.workers(workers).parallel(Parallel::Always);
        let run = compile(&text, &Received::default()).start(rt.system(), options);
        let report = rt.block_on(run.expect("it starts")).expect("nobody fails");
        assert_eq!(report.epochs, 150);
        log.bytes()
    };
    let alone = log_of(1);
    for workers in [2, 3, 8] {
        assert!(log_of(workers) == alone, "{workers} workers commit something else");
    }
}
