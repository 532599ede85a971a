//! Memory: after its first epochs a run allocates nothing more, whatever is recorded.
//!
//! Counted per thread, so that concurrent tests do not disturb each other. A run in manual time is
//! on the thread of its test; what is counted is everything between two calls of its first
//! component.

use core::{cell::Cell, fmt::Write as _};
use std::io;

use clockjack_graph::{
    CommitLog, Component, Execute, ExecuteShared, Failure, GraphContext, Input, Output, Registry,
    RunOptions, RunReport, TraceLog, describe::GraphFile,
};
use clockjack_testing::allocation::Counting;
use clockjack_testkit::ManualTime;

#[global_allocator]
static COUNTING: Counting = Counting::new();

thread_local! {
    static AT_FIRST: Cell<u64> = const { Cell::new(0) };
    static AT_LAST: Cell<u64> = const { Cell::new(0) };
}

/// Epochs before anything is counted.
const WARM_UP: u64 = 100;

/// Epochs in which nothing may be allocated.
const COUNTED: u64 = 10_000;

/// Publishes the number of its epoch, and looks how much was allocated.
#[derive(Component, Default)]
#[component(type = "meter")]
struct Meter {
    #[output]
    out: Output<f64>,
}

impl Execute for Meter {
    fn execute(&mut self, cx: &mut GraphContext<'_>) -> Result<(), Failure> {
        match cx.epoch() {
            WARM_UP => AT_FIRST.set(COUNTING.allocations()),
            epoch if epoch == WARM_UP + COUNTED => AT_LAST.set(COUNTING.allocations()),
            _ => {}
        }
        #[expect(clippy::cast_precision_loss, reason = "epochs are few")]
        cx.publish(self.out, cx.epoch() as f64)?;
        Ok(())
    }
}

/// Adds up what comes.
#[derive(Component, Default)]
#[component(type = "sum")]
struct Sum {
    #[input(multiple)]
    a: Input<f64>,
    #[output]
    out: Output<f64>,
}

impl Execute for Sum {
    fn execute(&mut self, cx: &mut GraphContext<'_>) -> Result<(), Failure> {
        let sum: f64 = cx.drain(self.a).sum();
        cx.publish(self.out, sum * 0.5)?;
        Ok(())
    }
}

/// A graph that begins with a meter; `parts` are the other components and the edges.
fn text(lane: &str, parts: &[(&str, &str)], edges: &[(&str, &str, &str, &str)]) -> String {
    let mut text = String::from("schema_version: 1\ngraph: { name: g, kind: internal_test }\n");
    writeln!(text, "lanes: {{ main: {{ {lane} }} }}\ncomponents:").unwrap();
    text.push_str("  - { id: s0, type: meter, execution: { lane: main } }\n");
    for (id, policy) in parts {
        writeln!(
            text,
            "  - {{ id: {id}, type: sum, execution: {{ lane: main }}, \
             event_sources: [{{ type: message, input: a }}], trigger_policy: {{ {policy} }} }}"
        )
        .unwrap();
    }
    text.push_str("edges:\n");
    for (at, (kind, from, to, policy)) in edges.iter().enumerate() {
        writeln!(
            text,
            "  - {{ id: e{at}, kind: {kind}, from: {from}.out, to: {to}.a, \
             policy: {{ {policy} }} }}"
        )
        .unwrap();
    }
    text
}

/// A chain of nine with a leg at each but the last: seventeen.
fn caterpillar(lane: &str) -> String {
    let names: Vec<(String, String, String)> =
        (0..8).map(|at| (format!("s{at}"), format!("s{}", at + 1), format!("leg{at}"))).collect();
    let (mut parts, mut edges) = (Vec::new(), Vec::new());
    for (from, next, leg) in &names {
        for to in [next, leg] {
            parts.push((to.as_str(), "type: any_input"));
            edges.push(("immediate", from.as_str(), to.as_str(), ""));
        }
    }
    text(lane, &parts, &edges)
}

/// Runs a text, and says how much was allocated in the epochs that count.
fn allocated(text: &str, options: RunOptions) -> (u64, RunReport) {
    let registry = Registry::new().register::<Meter>().register::<Sum>().register_shared::<Plus>();
    let file = GraphFile::parse("test.yaml", text).unwrap_or_else(|faults| panic!("{faults:#?}"));
    let graph = file.compile(&registry).unwrap_or_else(|faults| panic!("{faults:#?}"));
    let time = ManualTime::start();
    time.set_rounds_max(usize::MAX);
    let run = graph.start(time.system(), options).unwrap();
    let report = time.block_on(run).unwrap();
    let n_allocations = AT_LAST.get() - AT_FIRST.get();
    assert!(AT_FIRST.get() > 0, "it was looked at");
    (n_allocations, report)
}

fn steps() -> RunOptions {
    RunOptions::steps(WARM_UP + COUNTED)
}

#[test]
fn a_caterpillar_with_metrics_allocates_nothing_per_epoch() {
    let text = caterpillar("type: event_loop");
    let (n_allocations, report) = allocated(&text, steps().timing_every(1));
    assert_eq!(n_allocations, 0);
    assert_eq!(report.executions, 17 * (WARM_UP + COUNTED));
    let counted = report.metrics.total("runtime.component.execution_count");
    #[expect(clippy::cast_precision_loss, reason = "it is small")]
    let executions = report.executions as f64;
    assert!((counted - executions).abs() < 0.5, "metrics are on: {counted}");
}

#[test]
fn a_caterpillar_with_a_trace_allocates_nothing_per_epoch() {
    let trace = TraceLog::new(1024);
    let (n_allocations, _) = allocated(&caterpillar("type: event_loop"), steps().trace(&trace));
    assert_eq!(n_allocations, 0);
    assert!(trace.n_dropped() > 100_000 && trace.take().len() == 1024, "it was written");
}

#[test]
fn a_caterpillar_with_a_commit_log_allocates_nothing_per_epoch() {
    let log = CommitLog::to(io::sink());
    let text = caterpillar("type: event_loop");
    let (n_allocations, _) = allocated(&text, steps().commit_log(&log));
    assert_eq!(n_allocations, 0);
    log.flush().unwrap();
}

#[test]
fn a_caterpillar_on_any_lane_allocates_nothing_per_epoch() {
    for lane in [
        "type: fixed_rate, period_ms: 2",
        "type: thread_pool, max_threads: 4, queue_capacity: 8",
        "type: isolated_thread",
    ] {
        let (n_allocations, _) = allocated(&caterpillar(lane), steps());
        assert_eq!(n_allocations, 0, "{lane}");
    }
}

#[test]
fn edges_of_all_kinds_and_modes_allocate_nothing_per_epoch() {
    let any = "type: any_input";
    let parts = [
        ("delayed", any),
        ("stated", any),
        ("asynchronous", "type: task_ready"),
        ("queued", "type: batch, batch_size: 3"),
        ("latched", "type: debounce"),
        ("barred", any),
        ("before", "type: watermark"),
        ("joined", "type: all_inputs"),
        ("late", any),
    ];
    let edges = [
        ("delay", "s0", "delayed", "mode: queue, capacity: 4"),
        ("state", "s0", "stated", ""),
        ("async", "s0", "asynchronous", "mode: queue, capacity: 4, max_inflight: 2"),
        ("immediate", "s0", "queued", "mode: queue, capacity: 4, overflow: block"),
        ("immediate", "s0", "latched", "mode: latched"),
        ("immediate", "s0", "barred", "mode: barrier, capacity: 3"),
        ("immediate", "s0", "before", "mode: previous_tick"),
        ("immediate", "delayed", "joined", "mode: ring_buffer, capacity: 2"),
        ("delay", "joined", "delayed", "mode: queue, capacity: 2, overflow: drop_newest"),
        ("immediate", "s0", "late", "lifespan_ms: 1, deadline_ms: 1"),
    ];
    // A task is waited for at an async edge only.
    let text = text("type: fixed_rate, period_ms: 1", &parts, &edges)
        .replace("type: message, input: a }], trigger_policy: { type: task_ready", {
            "type: task_ready, input: a }], trigger_policy: { type: task_ready"
        });
    let (log, trace) = (CommitLog::to(io::sink()), TraceLog::new(256));
    let (n_allocations, report) = allocated(&text, steps().commit_log(&log).trace(&trace));
    assert_eq!(n_allocations, 0);
    assert!(report.executions > 7 * COUNTED, "{}", report.executions);
}

#[test]
fn a_loop_allocates_nothing_per_epoch() {
    let any = "type: any_input";
    let parts = [("x", any), ("y", any), ("z", any)];
    let edges = [
        ("immediate", "s0", "x", ""),
        ("immediate", "x", "y", ""),
        ("immediate", "y", "x", ""),
        ("immediate", "y", "z", "mode: queue, capacity: 8"),
    ];
    for mode in ["gauss_seidel", "jacobi"] {
        let mut text = text("type: event_loop", &parts, &edges);
        writeln!(
            text,
            "composite_loops: [{{ id: l, components: [x, y], \
             loop_policy: {{ type: fixed_point, mode: {mode}, max_iterations: 6 }} }}]"
        )
        .unwrap();
        let (n_allocations, report) = allocated(&text, steps());
        assert_eq!(n_allocations, 0, "{mode}");
        assert!(report.metrics.total("runtime.loop.iterations") > 10_000.0);
    }
}

/// Adds one to what comes; its invocations may overlap.
#[derive(Component, Default)]
#[component(type = "plus")]
struct Plus {
    #[input(multiple)]
    a: Input<f64>,
    #[output]
    out: Output<f64>,
}

impl ExecuteShared for Plus {
    fn execute(&self, cx: &mut GraphContext<'_>) -> Result<(), Failure> {
        while let Some(value) = cx.take(self.a) {
            cx.publish(self.out, value + 1.0)?;
        }
        Ok(())
    }
}

#[test]
fn overlapping_calls_allocate_nothing_per_epoch() {
    let mut text = String::from(
        "schema_version: 1\ngraph: { name: g, kind: internal_test }\n\
         lanes: { main: { type: event_loop }, \
         pool: { type: thread_pool, max_threads: 4, queue_capacity: 8 } }\ncomponents:\n\
         \x20 - { id: s0, type: meter, execution: { lane: main } }\n\
         \x20 - { id: wide, type: plus, execution: { lane: pool, reentrant: true } }\n",
    );
    text.push_str("edges:\n");
    for n in 0..8 {
        writeln!(text, "  - {{ id: e{n}, kind: immediate, from: s0.out, to: wide.a }}").unwrap();
    }
    let (n_allocations, report) = allocated(&text, steps());
    assert_eq!(n_allocations, 0);
    assert_eq!(report.executions, 9 * (WARM_UP + COUNTED));
}
