//! Sick programs on a pool of workers, whose watchdog and samples are needed.

use core::{
    sync::atomic::{AtomicBool, Ordering::SeqCst},
    time::Duration,
};
use std::{
    sync::{Arc, mpsc},
    thread,
    time::Instant,
};

use clockjack_actor::{ActorRef, ActorSystem, Failure, Mailbox, Next, Props};
use clockjack_console::{
    Target, Watcher,
    findings::Thresholds,
    inspect,
    query::{ActorQuery, Query},
    view::{ActorState, Finding},
};
use clockjack_graph::{
    Binder, Component, Config, ConfigError, Descriptor, Execute, GraphContext, Registry,
    RunOptions, describe::GraphFile,
};
use clockjack_rt::{BlockingConfig, Runtime, RuntimeConfig};

/// How long a finding may take.
const PATIENCE: Duration = Duration::from_secs(30);

/// The codes of all findings, the worst first.
fn codes(target: &Target) -> Vec<String> {
    inspect::findings(target).into_iter().map(|one| one.code).collect()
}

fn runtime(workers: usize) -> Runtime {
    let blocking = BlockingConfig { threads_max: 2, ..BlockingConfig::DEFAULT };
    let config = RuntimeConfig { workers: Some(workers), blocking, ..RuntimeConfig::DEFAULT };
    Runtime::start_with(ActorSystem::builder("sick"), config).unwrap()
}

/// Looks again and again until this finding comes first.
fn until(watcher: &Watcher, code: &str) -> Finding {
    let target = watcher.target();
    let begin = Instant::now();
    let mut next = begin;
    loop {
        watcher.sample(target.now_ns());
        watcher.sweep(target.now_ns());
        if Instant::now() >= next {
            next = Instant::now() + Duration::from_millis(150);
            watcher.advance(target.now_ns());
            let found = inspect::findings(target);
            if let Some(first) = found.first().filter(|first| first.code == code) {
                return first.clone();
            }
            let late = begin.elapsed() > PATIENCE;
            assert!(!late, "{code} was expected first, and not {found:#?}");
        }
        thread::sleep(Duration::from_millis(2));
    }
}

/// Looks for so long, and returns all codes that were seen.
fn codes_within(watcher: &Watcher, within: Duration) -> Vec<String> {
    let target = watcher.target();
    let begin = Instant::now();
    let mut seen = Vec::new();
    while begin.elapsed() < within {
        watcher.sample(target.now_ns());
        watcher.sweep(target.now_ns());
        watcher.advance(target.now_ns());
        seen.extend(codes(target));
        thread::sleep(Duration::from_millis(20));
    }
    seen.sort();
    seen.dedup();
    seen
}

#[test]
fn s01_names_a_handler_that_does_not_return_even_if_it_began_before_anybody_looked() {
    let rt = runtime(2);
    let (release, wait) = mpsc::channel::<()>();
    let wait = Arc::new(std::sync::Mutex::new(wait));
    let (entered, entries) = mpsc::channel();
    let till = rt
        .spawn(
            "till",
            Props::from_fn(move |_cx, _order: u32| {
                entered.send(()).unwrap();
                let _ = wait.lock().unwrap().recv();
                Ok::<_, Failure>(Next::Stay)
            }),
        )
        .unwrap();
    till.tell(1).unwrap();
    entries.recv().unwrap();
    let target = Target::of(&rt);
    let watcher = Watcher::new(&target);
    let found = until(&watcher, "S01");
    assert_eq!(found.subject, "/user/till");
    assert!(found.text.contains("u32"), "{}", found.text);
    let detail = inspect::actor(&target, &ActorQuery::Path("/user/till".into())).unwrap();
    assert_eq!(detail.actor.state, ActorState::Stuck);
    assert_eq!(detail.handling.unwrap().message_type, "u32");
    let workers = inspect::workers(&target);
    let running: Vec<_> = workers.rows.iter().filter_map(|row| row.running.as_ref()).collect();
    assert!(running.iter().any(|running| running.name == "/user/till"), "{workers:?}");
    // The walk knows it, too.
    while !watcher.sweep(target.now_ns()) {}
    thread::sleep(Duration::from_millis(600));
    while !watcher.sweep(target.now_ns()) {}
    let rows = inspect::actors(&target, &Query::default()).rows;
    assert!(rows.iter().any(|row| row.state == ActorState::Stuck), "{rows:?}");
    release.send(()).unwrap();
    let begin = Instant::now();
    loop {
        thread::sleep(Duration::from_millis(120));
        watcher.advance(target.now_ns());
        if !codes(&target).contains(&"S01".to_owned()) {
            break;
        }
        assert!(begin.elapsed() < PATIENCE, "it has returned, and is told all the same");
    }
}

#[test]
fn s01_does_not_date_later_polls_back_to_a_report() {
    let config = RuntimeConfig {
        workers: Some(2),
        // Only the report of this test is meant, however loaded the machine is.
        stuck_after: Duration::from_secs(3_600),
        ..RuntimeConfig::DEFAULT
    };
    let rt = Runtime::start_with(ActorSystem::builder("busy"), config).unwrap();
    let target = Target::of(&rt);
    let mut thresholds = Thresholds::default();
    thresholds.stuck_ns = u64::MAX;
    target.set_thresholds(thresholds);
    let watcher = Watcher::new(&target);
    let is_over = Arc::new(AtomicBool::new(false));
    let busy = spinner(&rt, "busy", &is_over, Duration::from_millis(20));
    let handled = || {
        let read = inspect::actor(&target, &ActorQuery::Path("/user/busy".into())).unwrap();
        read.actor.handled.or_zero()
    };
    watcher.sample(target.now_ns());
    let before = handled();
    rt.system().report_stuck(busy.pid(), Duration::from_secs(2));
    // Each look finds the actor running, but not in the poll of the report.
    let mut at_last = Vec::new();
    while handled() < before + 10.0 {
        thread::sleep(Duration::from_millis(10));
        watcher.sample(target.now_ns());
        watcher.advance(target.now_ns());
        at_last = codes(&target);
    }
    is_over.store(true, SeqCst);
    assert!(!at_last.contains(&"S01".to_owned()), "{at_last:?}");
}

/// An actor that computes until it is told to end.
fn spinner(rt: &Runtime, name: &str, is_over: &Arc<AtomicBool>, long: Duration) -> ActorRef<()> {
    let is_over = Arc::clone(is_over);
    let spinner = rt
        .spawn(
            name,
            Props::from_fn(move |cx, ()| {
                let begin = Instant::now();
                while begin.elapsed() < long {
                    core::hint::spin_loop();
                }
                if !is_over.load(SeqCst) {
                    cx.self_ref().tell(())?;
                }
                Ok::<_, Failure>(Next::Stay)
            }),
        )
        .unwrap();
    spinner.tell(()).unwrap();
    spinner
}

#[test]
fn s06_names_the_actors_that_saturate_the_workers() {
    let rt = runtime(1);
    let target = Target::of(&rt);
    let mut thresholds = Thresholds::default();
    thresholds.busy_for_ns = 300_000_000;
    // The machine that runs the tests may be loaded.
    thresholds.late_ticks = u64::MAX;
    target.set_thresholds(thresholds);
    let watcher = Watcher::new(&target);
    let is_over = Arc::new(AtomicBool::new(false));
    spinner(&rt, "render", &is_over, Duration::from_millis(20));
    let (target_of_thread, over) = (rt.system().clone(), Arc::clone(&is_over));
    let feeder = thread::spawn(move || {
        // More and more tasks wait for the worker.
        while !over.load(SeqCst) {
            let task = target_of_thread.executor().spawn_future(async {
                for _ in 0..1_000 {
                    let mut is_first = true;
                    core::future::poll_fn(|cx| {
                        cx.waker().wake_by_ref();
                        if core::mem::take(&mut is_first) {
                            core::task::Poll::Pending
                        } else {
                            core::task::Poll::Ready(())
                        }
                    })
                    .await;
                }
            });
            drop(task);
            thread::sleep(Duration::from_millis(10));
        }
    });
    let found = until(&watcher, "S06");
    is_over.store(true, SeqCst);
    feeder.join().unwrap();
    assert!(found.text.contains("/user/render"), "{}", found.text);
}

#[test]
fn s07_names_the_worker_that_delays_timers() {
    let rt = runtime(1);
    let target = Target::of(&rt);
    let mut thresholds = Thresholds::default();
    thresholds.busy_for_ns = u64::MAX;
    target.set_thresholds(thresholds);
    let watcher = Watcher::new(&target);
    let is_over = Arc::new(AtomicBool::new(false));
    spinner(&rt, "long", &is_over, Duration::from_millis(100));
    let over = Arc::clone(&is_over);
    let handle = rt.system().executor();
    let _ticker = rt.spawn_future(async move {
        while !over.load(SeqCst) {
            let _ = handle.sleep(Duration::from_millis(5)).await;
        }
    });
    let found = until(&watcher, "S07");
    is_over.store(true, SeqCst);
    assert!(found.text.contains("worker 0"), "{}", found.text);
}

#[test]
fn s12_tells_that_no_thread_is_left_for_blocking_work() {
    let rt = runtime(1);
    let target = Target::of(&rt);
    let watcher = Watcher::new(&target);
    let is_over = Arc::new(AtomicBool::new(false));
    for _ in 0..3 {
        let is_over = Arc::clone(&is_over);
        let work = rt.spawn_blocking(move || {
            while !is_over.load(SeqCst) {
                thread::sleep(Duration::from_millis(1));
            }
        });
        assert!(work.is_ok());
    }
    let found = until(&watcher, "S12");
    is_over.store(true, SeqCst);
    assert!(found.text.starts_with("2 of 2 threads"), "{}", found.text);
}

/// Takes longer than its lane allows.
#[derive(Default)]
struct Slow;

impl Component for Slow {
    const TYPE: &'static str = "slow";

    fn describe() -> Descriptor {
        Descriptor::new(Self::TYPE)
    }

    fn bind(&mut self, _ports: &mut Binder<'_>) {}

    fn configure(&mut self, _: &Config) -> Result<(), ConfigError> {
        Ok(())
    }
}

impl Execute for Slow {
    fn execute(&mut self, _cx: &mut GraphContext<'_>) -> Result<(), Failure> {
        thread::sleep(Duration::from_millis(20));
        Ok(())
    }
}

#[test]
fn s08_names_a_lane_that_overruns_and_its_slowest_component() {
    let rt = runtime(2);
    let text = "schema_version: 1\n\
                graph: { name: cell, kind: internal_test }\n\
                lanes:\n  control: { type: fixed_rate, period_ms: 5, tick_budget_ms: 2 }\n\
                components:\n  - { id: arm, type: slow, execution: { lane: control } }\n\
                edges: []\n";
    let file = GraphFile::parse("t.yaml", text).unwrap_or_else(|faults| panic!("{faults:#?}"));
    let registry = Registry::new().register::<Slow>();
    let graph = file.compile(&registry).unwrap_or_else(|faults| panic!("{faults:#?}"));
    let run = graph.start(rt.system(), RunOptions::until_stopped()).unwrap();
    let target = Target::of(&rt);
    target.add_graph("cell", &run);
    let watcher = Watcher::new(&target);
    let found = until(&watcher, "S08");
    run.stop();
    assert_eq!(found.subject, "cell/control");
    assert!(found.text.contains("arm"), "{}", found.text);
}

#[test]
fn a_healthy_pool_has_no_finding() {
    let rt = runtime(2);
    let target = Target::of(&rt);
    let mut thresholds = Thresholds::default();
    // The machine that runs the tests may be loaded: then its timers are late.
    thresholds.late_ticks = u64::MAX;
    target.set_thresholds(thresholds);
    let watcher = Watcher::new(&target);
    let echo = rt
        .spawn(
            "echo",
            Props::from_fn(|_cx, ()| Ok::<_, Failure>(Next::Stay)).mailbox(Mailbox::bounded(1_000)),
        )
        .unwrap();
    for _ in 0..500 {
        echo.tell(()).unwrap();
    }
    let mut seen = codes_within(&watcher, Duration::from_secs(2));
    // That the sampling of this test is late, or that the machine stands still and its clock jumps,
    // says nothing about the program.
    seen.retain(|code| code != "S14" && code != "S13");
    assert_eq!(seen, Vec::<String>::new());
}

#[test]
fn all_messages_from_four_threads_are_counted() {
    let rt = runtime(2);
    let target = Target::of(&rt);
    let watcher = Watcher::new(&target);
    let sinks: Vec<_> = (0..4)
        .map(|n| {
            let props = Props::from_fn(|_cx, ()| Ok::<_, Failure>(Next::Stay));
            rt.spawn(&format!("s{n}"), props.mailbox(Mailbox::unbounded())).unwrap()
        })
        .collect();
    let path = |n: usize| ActorQuery::Path(format!("/user/s{n}"));
    let threads: Vec<_> = sinks
        .iter()
        .map(|sink| {
            let sink = sink.clone();
            thread::spawn(move || (0..50_000).for_each(|_| sink.tell(()).unwrap()))
        })
        .collect();
    let total = || -> f64 {
        let one = |n| inspect::actor(&target, &path(n)).unwrap().mailbox.freed.or_zero();
        (0..4).map(one).sum()
    };
    let begin = Instant::now();
    while total() < 200_000.0 {
        watcher.sweep(target.now_ns());
        assert!(begin.elapsed() < PATIENCE);
        thread::sleep(Duration::from_millis(1));
    }
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    assert!((total() - 200_000.0).abs() < 0.5);
    for n in 0..4 {
        let mailbox = inspect::actor(&target, &path(n)).unwrap().mailbox;
        assert_eq!((mailbox.claimed.value, mailbox.depth.value), (Some(50_000.0), Some(0.0)));
    }
}
