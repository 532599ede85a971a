//! Tasks that run when their graph ends: awaited or cancelled, counted, and dropped.

use core::{future::pending, time::Duration};
use std::sync::{Arc, Mutex};

use clockjack_graph::{Clock, Failure, Registry, RunOptions, RunReport, ShutdownPolicy};
use clockjack_testkit::ManualTime;

use crate::{
    acts::{Act, compile, with_acts},
    teller,
};

/// A component that is called in every epoch, or at every tick of ten milliseconds.
fn text(sources: &str) -> String {
    teller::graph(
        "main: { type: event_loop }",
        &[&format!("id: one, type: acts, execution: {{ lane: main }}{sources}")],
        &[],
    )
}

const TICKS: &str = ", event_sources: [{ type: timer, period_ms: 10 }]";

/// What tasks do: they wait so long, or for ever.
type Waits = Option<Duration>;

/// The result of a run whose component has begun tasks.
struct Ended {
    report: RunReport,
    elapsed: Duration,
    /// Tasks that were begun, by number.
    begun: Vec<u64>,
}

impl Ended {
    fn count(&self, name: &str) -> f64 {
        self.report.metrics.total(&format!("runtime.async.{name}_count"))
    }
}

/// Runs a component that submits one task a call. When the run has ended, none of them is alive.
fn ended(
    sources: &str,
    options: RunOptions,
    waits: impl Fn(u64) -> Waits + Send + Sync + 'static,
) -> Ended {
    let time = ManualTime::start();
    let (alive, begun) = (Arc::new(()), Arc::new(Mutex::new(vec![])));
    let (token, noted) = (Arc::clone(&alive), Arc::clone(&begun));
    let delays = time.system().scheduler().jobs().delays();
    let act: Act = Arc::new(move |cx, _, out| {
        let (token, noted, number) = (Arc::clone(&token), Arc::clone(&noted), cx.epoch());
        let (delays, waits) = (delays.clone(), waits(number));
        cx.submit_task(out, async move {
            noted.lock().unwrap().push(number);
            match waits {
                Some(after) => delays.delay(after).await?,
                None => pending().await,
            }
            drop(token);
            Ok(1.0)
        })?;
        Ok(())
    });
    let graph = compile(&text(sources), &with_acts(Registry::new(), act));
    let run = graph.start(time.system(), options).expect("it starts");
    let report = time.block_on(run).expect("nothing fails");
    assert_eq!(Arc::strong_count(&alive), 1, "nothing of the run is alive");
    let begun = begun.lock().unwrap().clone();
    Ended { report, elapsed: time.elapsed(), begun }
}

#[test]
fn tasks_are_waited_for_at_the_end_and_nobody_sees_what_they_give() {
    let options = RunOptions::steps(1).clock(Clock::Virtual);
    let ended = ended("", options, |_| Some(Duration::from_millis(300)));
    assert_eq!(ended.elapsed, Duration::from_millis(300));
    assert_eq!((ended.count("accepted"), ended.count("completed")), (1.0, 1.0));
    assert_eq!(ended.count("cancelled"), 0.0);
    assert_eq!(ended.count("in_flight"), 0.0);
}

#[test]
fn tasks_that_take_too_long_at_the_end_are_cancelled() {
    let options = RunOptions::steps(1).clock(Clock::Virtual).drain_max(Duration::from_millis(50));
    let ended = ended("", options, |_| None);
    assert_eq!(ended.elapsed, Duration::from_millis(50));
    assert_eq!((ended.count("completed"), ended.count("cancelled")), (0.0, 1.0));
}

#[test]
fn cancelled_tasks_are_dropped_at_once() {
    let options = RunOptions::steps(3).clock(Clock::Wall).shutdown_policy(ShutdownPolicy::Cancel);
    let ended = ended(TICKS, options, |_| None);
    assert_eq!((ended.count("accepted"), ended.count("cancelled")), (3.0, 3.0));
    assert_eq!(ended.count("in_flight"), 0.0);
    assert!(ended.elapsed < Duration::from_millis(50), "{:?}", ended.elapsed);
}

#[test]
fn of_pending_tasks_those_that_have_begun_are_waited_for() {
    let options =
        RunOptions::steps(2).clock(Clock::Wall).shutdown_policy(ShutdownPolicy::CancelPending);
    let ended = ended(TICKS, options, |_| Some(Duration::from_millis(100)));
    // The second was submitted in the last epoch, and was never polled.
    assert_eq!((ended.count("completed"), ended.count("cancelled")), (1.0, 1.0));
    assert_eq!(ended.begun, [1]);
    assert!(ended.elapsed >= Duration::from_millis(100));
}

#[test]
fn a_task_that_fails_at_the_end_is_told_and_ends_nothing() {
    let time = ManualTime::start();
    let act: Act = Arc::new(|cx, _, out| {
        let failed = async { Err::<f64, _>(Failure::msg("too late")) };
        cx.submit_task(out, failed).map_err(Failure::from)
    });
    let graph = compile(&text(""), &with_acts(Registry::new(), act));
    let run = graph.start(time.system(), RunOptions::steps(1).clock(Clock::Virtual));
    let report = time.block_on(run.expect("it starts")).expect("it had ended");
    assert_eq!(report.faults[0].to_string(), "`one` failed in execute, epoch 1: too late");
    assert!(!report.faults[0].is_fatal);
    assert_eq!(report.metrics.get("runtime.component.error_count", "one"), Some(1.0));
}

#[test]
fn nothing_of_a_stopped_run_is_alive_on_a_pool() {
    let runtime = teller::runtime();
    for policy in [ShutdownPolicy::Cancel, ShutdownPolicy::CancelPending, ShutdownPolicy::Drain] {
        let alive = Arc::new(());
        let token = Arc::clone(&alive);
        let act: Act = Arc::new(move |cx, _, out| {
            let token = Arc::clone(&token);
            cx.submit_task(out, async move {
                pending::<()>().await;
                drop(token);
                Ok(1.0)
            })
            .map_err(Failure::from)
        });
        let graph = compile(&text(", event_sources: [{ type: timer, period_ms: 1 }]"), &{
            with_acts(Registry::new(), act)
        });
        let options = RunOptions::steps(8)
            .clock(Clock::Wall)
            .shutdown_policy(policy)
            .drain_max(Duration::from_millis(20));
        let run = graph.start(runtime.system(), options).expect("it starts");
        let report = runtime.block_on(run).expect("nothing fails");
        assert_eq!(Arc::strong_count(&alive), 1, "{policy}");
        let n_begun = report.metrics.total("runtime.async.accepted_count");
        assert_eq!(report.metrics.total("runtime.async.cancelled_count"), n_begun, "{policy}");
        assert!(n_begun >= 1.0);
    }
}
