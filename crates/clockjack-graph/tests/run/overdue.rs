//! Calls that do not return within `max_callback_ms`: reported while they run.

use core::sync::atomic::{AtomicBool, Ordering};
use std::{
    sync::{Arc, Mutex},
    thread,
};

use clockjack_actor::ActorSystem;
use clockjack_graph::{
    Clock, ComponentLog, Graph, LogLevel, Parallel, Registry, RunOptions, RunReport, TraceLog,
    run::{HealthKind, TraceName, TraceRecord},
};
use clockjack_rt::{Runtime, RuntimeConfig};

use crate::{
    acts::{Act, compile, with_acts},
    teller::graph,
};

/// The lane allows this much.
const LIMIT_MS: u64 = 20;

/// The epoch in which a call hangs.
const HANGS_AT: u64 = 2;

fn runtime(workers: usize) -> Runtime {
    let config = RuntimeConfig { workers: Some(workers), ..RuntimeConfig::DEFAULT };
    Runtime::start_with(ActorSystem::builder("overdue"), config).unwrap()
}

/// A component whose call hangs in one epoch until `is_over`. The runner's time-out ends a test in
/// which that never happens.
fn hanging(is_over: impl Fn() -> bool + Send + Sync + 'static) -> Graph {
    let act: Act = Arc::new(move |cx, _, _| {
        while cx.epoch() == HANGS_AT && !is_over() {
            thread::yield_now();
        }
        Ok(())
    });
    let lane = format!("main: {{ type: event_loop, max_callback_ms: {LIMIT_MS} }}");
    let text = graph(&lane, &["id: c, type: acts, execution: { lane: main }"], &[]);
    compile(&text, &with_acts(Registry::new(), act))
}

/// The health events of the report that are about overdue calls.
fn n_overdue(report: &RunReport) -> u64 {
    let health = report.health.iter().filter(|event| event.kind == HealthKind::CallbackOverdue);
    let health: Vec<_> = health.collect();
    assert!(health.iter().all(|event| event.component.as_deref() == Some("c")), "{health:?}");
    health.iter().map(|event| event.occurrence_count).sum()
}

#[test]
fn a_callback_that_hangs_is_in_the_log_and_on_the_health_stream_while_it_hangs() {
    let (log, trace) = (ComponentLog::new(8), TraceLog::new(1 << 10));
    let lines = Arc::new(Mutex::new(Vec::new()));
    let (seen, also, traced) = (Arc::clone(&lines), log.clone(), trace.clone());
    // The callback itself waits for the reports, so they are made while it hangs.
    let graph = hanging(move || {
        let mut seen = seen.lock().unwrap();
        seen.extend(also.take());
        let is_health = |record: &TraceRecord| {
            record.name == TraceName::HealthEvent
                && record.health_kind() == Some(HealthKind::CallbackOverdue)
        };
        !seen.is_empty() && traced.take().iter().any(is_health)
    });
    let runtime = runtime(2);
    let options = RunOptions::steps(4).clock(Clock::Virtual).component_log(&log).trace(&trace);
    let options = options.parallel(Parallel::Always);
    let report = runtime.block_on(graph.start(runtime.system(), options).unwrap()).unwrap();
    let lines = lines.lock().unwrap();
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert_eq!((lines[0].level, lines[0].epoch), (LogLevel::Error, HANGS_AT));
    assert_eq!(lines[0].component, "c");
    assert!(lines[0].line.ends_with("its lane allows 20 ms"), "{}", lines[0].line);
    assert_eq!(n_overdue(&report), 1);
    assert_eq!(report.metrics.total("runtime.component.timeout_budget_exceeded_count"), 1.0);
}

#[test]
fn a_host_sees_a_callback_that_hangs_even_if_it_has_the_only_worker() {
    let is_released = Arc::new(AtomicBool::new(false));
    let released = Arc::clone(&is_released);
    // Relaxed: the flag publishes nothing else.
    let graph = hanging(move || released.load(Ordering::Relaxed));
    let (runtime, log) = (runtime(1), ComponentLog::new(8));
    let options = RunOptions::steps(4).clock(Clock::Virtual).component_log(&log);
    let run = graph.start(runtime.system(), options).unwrap();
    let stopper = run.stopper();
    let call = loop {
        if let Some(call) = stopper.overdue_calls().pop() {
            break call;
        }
        thread::yield_now();
    };
    assert_eq!((call.component.as_str(), call.lane.as_str(), call.epoch), ("c", "main", HANGS_AT));
    assert!(call.running_for > call.limit && call.limit.as_millis() == u128::from(LIMIT_MS));
    assert_eq!(stopper.overdue_calls().len(), 1, "as long as it hangs");
    assert_eq!(log.take().len(), 1, "reported once");
    is_released.store(true, Ordering::Relaxed);
    let report = runtime.block_on(run).unwrap();
    assert_eq!(stopper.overdue_calls(), []);
    assert_eq!(n_overdue(&report), 1);
}
