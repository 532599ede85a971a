//! What is reported about a run: to observers after it has ended, in its own metrics, in its log.
//! None of it changes the run.

use core::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;

use clockjack_graph::{
    Clock, CommitLog, ComponentLog, Failure, LogLevel, MemoryObserver, Observation, Observer,
    Parallel, Registry, RunError, RunOptions, RunReport, RunStopReason, TraceLog, run::Observed,
};
use clockjack_testkit::ManualTime;

use crate::{
    acts::{Act, compile, with_acts},
    basics::CHAIN,
    parts::{Seen, registry},
    teller,
};

/// Runs a chain whose middle fails at two, and goes on.
fn run(options: RunOptions) -> Result<RunReport, RunError> {
    let text = CHAIN
        .replace("KIND", "immediate")
        .replace("k: 2.0", "k: 2.0, fails_at: 2.0")
        .replace("{ lane: main }\n    config", "{ lane: main, on_error: continue }\n    config");
    let time = ManualTime::start();
    let graph = compile(&text, &registry(&Seen::default()));
    let run = graph.start(time.system(), options.clock(Clock::Virtual)).expect("it starts");
    time.block_on(run)
}

#[test]
fn an_observer_is_shown_traces_metrics_errors_and_at_last_the_result() {
    let (observer, trace) = (MemoryObserver::with_capacity(4096), TraceLog::new(1024));
    let options = RunOptions::steps(3).observer(observer.clone()).trace(&trace);
    let report = run(options).expect("it goes on");
    let seen = observer.take();
    assert_eq!(seen.last(), Some(&Observed::Result(RunStopReason::TickBound, 3)));
    let errors: Vec<String> = seen
        .iter()
        .filter_map(|one| if let Observed::Error(fault) = one { Some(fault) } else { None })
        .map(ToString::to_string)
        .collect();
    assert_eq!(errors, ["`twice` failed in execute, epoch 2: told to fail"]);
    let is_count = |one: &&Observed| {
        matches!(one, Observed::Metric(metric)
            if metric.name == "runtime.component.execution_count" && metric.value == 3.0)
    };
    assert_eq!(seen.iter().filter(is_count).count(), 1, "of the source");
    let n_traced = seen.iter().filter(|one| matches!(one, Observed::Trace(_))).count();
    assert_eq!(n_traced, trace.take().len(), "what it was shown is still there");
    assert!(n_traced > 0);
    assert_eq!(report.metrics.total("runtime.observer.failure_count"), 0.0);
    assert_eq!(report.metrics.total("runtime.observer.dropped_event_count"), 0.0);
}

#[test]
fn the_error_that_ended_a_run_is_shown_last_of_all_errors() {
    let observer = MemoryObserver::new();
    let text = CHAIN.replace("KIND", "immediate").replace("k: 2.0", "k: 2.0, fails_at: 2.0");
    let time = ManualTime::start();
    let graph = compile(&text, &registry(&Seen::default()));
    let options = RunOptions::steps(3).observer(observer.clone());
    let run = graph.start(time.system(), options).expect("it starts");
    time.block_on(run).expect_err("it is told to fail");
    let seen = observer.take();
    let [.., Observed::Error(fault), Observed::Result(stop, _)] = seen.as_slice() else {
        panic!("{:?}", seen.last());
    };
    assert!(fault.is_fatal);
    assert_eq!(*stop, RunStopReason::Error);
}

#[test]
fn an_observer_of_256_keeps_the_newest_and_counts_what_it_has_lost() {
    let observer = MemoryObserver::new();
    let trace = TraceLog::new(1024);
    let options = RunOptions::steps(50).observer(observer.clone()).trace(&trace);
    let report = run(options).expect("it goes on");
    assert_eq!(observer.with(|kept| kept.len()), 256);
    let n_lost = report.metrics.total("runtime.observer.dropped_event_count");
    assert!(n_lost > 0.0);
    assert_eq!(observer.take().last(), Some(&Observed::Result(RunStopReason::TickBound, 50)));
}

/// Fails or panics at each observation.
struct Bad {
    panics: bool,
    n_called: Arc<AtomicUsize>,
}

impl Observer for Bad {
    fn observe(&mut self, _seen: Observation<'_>) -> Result<(), Failure> {
        self.n_called.fetch_add(1, Ordering::Relaxed);
        assert!(!self.panics, "told to panic");
        Err(Failure::msg("told to fail"))
    }
}

#[test]
fn an_observer_that_fails_or_panics_harms_nobody_and_is_counted() {
    let plain = CommitLog::in_memory();
    run(RunOptions::steps(3).commit_log(&plain)).expect("it goes on");
    for panics in [false, true] {
        let (n_called, after) = (Arc::new(AtomicUsize::new(0)), MemoryObserver::new());
        let bad = Bad { panics, n_called: Arc::clone(&n_called) };
        let watched = CommitLog::in_memory();
        let options = RunOptions::steps(3).commit_log(&watched);
        let report = run(options.observer(bad).observer(after.clone())).expect("it goes on");
        assert_eq!(plain.bytes(), watched.bytes());
        let n_called = n_called.load(Ordering::Relaxed);
        #[expect(clippy::cast_precision_loss, reason = "it is small")]
        let n_expected = n_called as f64;
        let n_failed = report.metrics.total("runtime.observer.failure_count");
        assert_eq!(n_failed, n_expected);
        let n_lost = report.metrics.total("runtime.observer.dropped_event_count");
        if panics {
            assert_eq!(n_called, 1, "who has panicked is not called again");
            assert!(n_lost > 0.0);
        }
        assert_eq!(after.take().last(), Some(&Observed::Result(RunStopReason::TickBound, 3)));
    }
}

fn telling() -> Act {
    Arc::new(|cx, _, _| {
        cx.counter("calls")?.add(1);
        #[expect(clippy::cast_precision_loss, reason = "it is small")]
        let epoch = cx.epoch() as f64;
        cx.histogram("epoch")?.record(epoch);
        let (graph, id) = (cx.graph_name().to_owned(), cx.component_id().to_owned());
        cx.log(LogLevel::Info, format_args!("{id} of {graph} is called"));
        cx.log(LogLevel::Debug, "and says so twice");
        if cx.counter("runtime.mine").is_err() && cx.histogram("calls").is_err() {
            cx.counter("refusals")?.add(2);
        }
        Ok(())
    })
}

const WIDE: &str = "main: { type: event_loop }, pool: { type: thread_pool, max_threads: 4 }";

fn wide() -> String {
    teller::graph(
        WIDE,
        &[
            "id: b, type: acts, execution: { lane: pool }",
            "id: a, type: acts, execution: { lane: pool }",
        ],
        &[],
    )
}

#[test]
fn numbers_of_a_components_own_are_in_the_report_by_name_and_component() {
    let time = ManualTime::start();
    let graph = compile(&wide(), &with_acts(Registry::new(), telling()));
    let run = graph.start(time.system(), RunOptions::steps(5).clock(Clock::Virtual));
    let metrics = time.block_on(run.expect("it starts")).expect("nothing fails").metrics;
    for id in ["a", "b"] {
        assert_eq!(metrics.get("calls", id), Some(5.0));
        assert_eq!(metrics.get("refusals", id), Some(10.0));
        for (part, value) in [
            ("count", 5.0),
            ("min", 1.0),
            ("max", 5.0),
            ("avg", 3.0),
            ("p50", 3.0),
            ("p95", 4.8),
            ("p99", 4.96),
        ] {
            let found = metrics.get(&format!("epoch.{part}"), id).expect("it is reported");
            assert!((found - value).abs() < 1e-9, "{part}: {found}");
        }
    }
    assert_eq!(metrics.total("calls"), 10.0);
    let ids: Vec<&str> =
        metrics.user.iter().map(|one| one.label.as_ref().expect("it has one").1.as_str()).collect();
    assert!(ids.is_sorted_by(|a, b| a >= b), "in the order of the description: {ids:?}");
}

#[test]
fn the_seed_of_a_run_is_that_of_what_draws_numbers() {
    let text = teller::graph(
        "main: { type: event_loop }",
        &[
            "id: noise, type: noise, execution: { lane: main }",
            "id: out, type: output, execution: { lane: main }, boundary: { role: output }, \
             event_sources: [{ type: message, input: in }], trigger_policy: { type: any_input }",
        ],
        &["id: e, kind: immediate, from: noise.out, to: out.in"],
    );
    let log = |seed: u64| {
        let (time, log) = (ManualTime::start(), CommitLog::in_memory());
        let options = RunOptions::steps(5).clock(Clock::Virtual).seed(seed).commit_log(&log);
        let graph = compile(&text, &Registry::standard());
        let run = graph.start(time.system(), options).expect("it starts");
        time.block_on(run).expect("nothing fails");
        log.bytes()
    };
    assert_eq!(log(7), log(7));
    assert_ne!(log(7), log(8));
}

#[test]
fn the_journal_is_the_same_for_any_number_of_workers() {
    let log = ComponentLog::new(64);
    let time = ManualTime::start();
    let graph = || compile(&wide(), &with_acts(Registry::new(), telling()));
    let options = RunOptions::steps(3).clock(Clock::Virtual).component_log(&log);
    let run = graph().start(time.system(), options).expect("it starts");
    time.block_on(run).expect("nothing fails");
    let expected = log.take();
    assert_eq!(expected.len(), 12);
    assert_eq!(expected[0].to_string(), "info laws/b, epoch 1: b of laws is called");
    assert_eq!(expected[3].to_string(), "debug laws/a, epoch 1: and says so twice");
    let runtime = teller::runtime();
    let options = RunOptions::steps(3).clock(Clock::Virtual).component_log(&log);
    let options = options.workers(4).parallel(Parallel::Always);
    let run = graph().start(runtime.system(), options).expect("it starts");
    runtime.block_on(run).expect("nothing fails");
    assert_eq!(log.take(), expected);
    assert_eq!(log.n_dropped(), 0);
}
