//! Components that are recreated after a failure, and settings that are validated before the start.

use core::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};
use std::sync::{Arc, Mutex};

use clockjack_graph::{
    Binder, Clock, Component, Config, ConfigError, Descriptor, Execute, Failure, GraphContext,
    Registry, RunError, RunOptions, RunReport, run::RunPhase,
};
use clockjack_testkit::ManualTime;

use crate::{
    acts::{Act, compile, with_acts},
    teller,
};

/// What has happened to the components of a run: when, in milliseconds, and what.
type Diary = Arc<Mutex<Vec<(u64, &'static str)>>>;

/// Fails when it is called.
struct Fragile {
    diary: Diary,
    now_ms: Arc<AtomicU64>,
    n_good: u64,
}

impl Fragile {
    fn note(&self, what: &'static str) {
        self.diary.lock().unwrap().push((self.now_ms.load(Ordering::Relaxed), what));
    }
}

impl Component for Fragile {
    const TYPE: &'static str = "fragile";

    fn describe() -> Descriptor {
        Descriptor { open_config: true, ..Descriptor::new(Self::TYPE) }
    }

    fn bind(&mut self, _ports: &mut Binder<'_>) {}

    fn configure(&mut self, config: &Config) -> Result<(), ConfigError> {
        self.n_good = config.get("n_good")?.unwrap_or(0);
        Ok(())
    }
}

impl Execute for Fragile {
    fn execute(&mut self, cx: &mut GraphContext<'_>) -> Result<(), Failure> {
        let now_ms = u64::try_from(cx.now().as_millis()).expect("it is small");
        self.now_ms.store(now_ms, Ordering::Relaxed);
        if let Some(left) = self.n_good.checked_sub(1) {
            self.n_good = left;
            return Ok(());
        }
        self.note("fails");
        Err(Failure::msg("told to fail"))
    }

    fn activate(&mut self) -> Result<(), Failure> {
        self.note("active");
        Ok(())
    }

    fn deactivate(&mut self) -> Result<(), Failure> {
        self.note("inactive");
        Ok(())
    }
}

type Ran = (Vec<(u64, &'static str)>, Result<RunReport, RunError>);

/// A component that fails at every tick of one millisecond, for so many epochs.
fn run(on_error: &str, config: &str, epochs: u64) -> Ran {
    let (diary, now_ms) = (Diary::default(), Arc::new(AtomicU64::new(0)));
    let made_with = Arc::clone(&diary);
    let types = Registry::new().register_with(move || Fragile {
        diary: Arc::clone(&made_with),
        now_ms: Arc::clone(&now_ms),
        n_good: 0,
    });
    let component = format!(
        "id: one, type: fragile, event_sources: [{{ type: timer, period_ms: 1 }}], \
         execution: {{ lane: main, on_error: {on_error} }}, config: {{ {config} }}"
    );
    let text = teller::graph("main: { type: event_loop }", &[&component], &[]);
    let time = ManualTime::start();
    let options = RunOptions::steps(epochs).clock(Clock::Virtual);
    let run = compile(&text, &types).start(time.system(), options).expect("it starts");
    let result = time.block_on(run);
    let diary = diary.lock().unwrap().clone();
    (diary, result)
}

fn failures((diary, _): &Ran) -> Vec<u64> {
    diary.iter().filter(|(_, what)| *what == "fails").map(|(at, _)| *at).collect()
}

#[test]
fn the_pause_before_a_restart_doubles_up_to_its_limit_and_one_more_failure_ends_the_run() {
    let policy = "{ policy: restart, max_restarts: 4, backoff_ms: 10, backoff_max_ms: 30 }";
    let ran = run(policy, "", 1000);
    let at = failures(&ran);
    let pauses: Vec<u64> = at.windows(2).map(|pair| pair[1] - pair[0]).collect();
    // The timer of a recreated component starts then.
    let first = pauses[0];
    assert!((10..=11).contains(&first), "{at:?}");
    assert_eq!(pauses, [first, first + 10, first + 20, first + 20], "{at:?}");
    let error = ran.1.as_ref().expect_err("five failures are too many");
    let fault = error.fault().expect("of a component");
    assert_eq!(fault.message, "told to fail (after 4 restarts)");
    let metrics = &error.report().expect("it has begun").metrics;
    assert_eq!(metrics.get("runtime.component.restart_count", "one"), Some(4.0));
    assert_eq!(metrics.get("runtime.component.error_count", "one"), Some(5.0));
}

#[test]
fn each_that_was_activated_is_deactivated_once() {
    let policy = "{ policy: restart, max_restarts: 2, backoff_ms: 1 }";
    let (diary, _) = run(policy, "", 1000);
    let words: Vec<&str> = diary.iter().map(|(_, what)| *what).collect();
    let life = ["active", "fails", "inactive"];
    assert_eq!(words, [life, life, life].concat());
}

#[test]
fn failures_that_are_far_apart_do_not_add_up() {
    // Fifty good calls, then a failure: never two within ten milliseconds.
    let policy = "{ policy: restart, max_restarts: 1, within_ms: 10, backoff_ms: 1 }";
    let ran = run(policy, "n_good: 50", 400);
    let report = ran.1.as_ref().expect("it goes on");
    assert!(failures(&ran).len() >= 5);
    assert_eq!(report.faults.len(), failures(&ran).len());
    let ran = run(policy, "n_good: 3", 400);
    assert_eq!(failures(&ran).len(), 2, "these are near");
    ran.1.expect_err("and too many");
}

#[test]
fn settings_are_looked_at_before_anything_is_activated() {
    let text = teller::graph(
        "main: { type: event_loop }",
        &["id: c, type: controller, execution: { lane: main }, boundary: { role: input }, \
           config: { min: 2.0, max: 1.0 }"],
        &[],
    );
    let time = ManualTime::start();
    let graph = compile(&text, &Registry::standard());
    let error = graph.start(time.system(), RunOptions::steps(1)).expect_err("min is above max");
    let fault = error.fault().expect("of a component");
    assert_eq!((fault.phase, fault.component.as_str()), (RunPhase::Configure, "c"));
    assert!(fault.message.contains("less than `min`"), "{fault}");
}

#[test]
fn one_whose_pause_is_over_and_for_whom_nothing_comes_does_not_hold_up_time() {
    let pause = "policy: restart, max_restarts: 5, within_ms: 0, backoff_ms: 2, backoff_max_ms: 2";
    let on_error = format!("lane: main, on_error: {{ {pause} }}");
    let timer = |id: &str, ms: u64, n: u64| {
        format!(
            "id: {id}, type: teller, execution: {{ lane: main }}, config: {{ n: {n} }}, \
             event_sources: [{{ type: timer, period_ms: {ms} }}]"
        )
    };
    let text = teller::graph(
        "main: { type: event_loop }, slow: { type: fixed_rate, period_ms: 4 }",
        &[
            &timer("src", 1_000, 1),
            &teller::reader("dst", ", config: { fails_at: 1 }").replace("lane: main", &on_error),
            &timer("beat", 10, 0),
            // No message comes here either, so there are epochs without calls.
            &teller::reader("quiet", "").replace("lane: main", "lane: slow"),
        ],
        &[
            "id: e, kind: immediate, from: src.out, to: dst.a",
            "id: f, kind: immediate, from: beat.out, to: quiet.a",
        ],
    );
    let told = teller::tell_alone(&text, RunOptions::steps(12));
    assert_eq!(told.count("dst", &teller::Said::Begins), 1);
    assert!(told.count("beat", &teller::Said::Begins) >= 3, "{:?}", told.story.lines);
}

#[test]
fn a_system_that_ends_under_a_run_leaves_nobody_active() {
    let diary = Diary::default();
    let made_with = Arc::clone(&diary);
    let types = Registry::new().register_with(move || Fragile {
        diary: Arc::clone(&made_with),
        now_ms: Arc::default(),
        n_good: 0,
    });
    let quiet = "event_sources: [{ type: timer, period_ms: 1, phase_ms: 1000 }]";
    let component = format!("id: one, type: fragile, {quiet}, execution: {{ lane: main }}");
    let text = teller::graph("main: { type: event_loop }", &[&component], &[]);
    let time = ManualTime::start();
    let options = RunOptions::until_stopped().clock(Clock::Wall);
    let run = compile(&text, &types).start(time.system(), options).expect("it starts");
    time.settle();
    drop(time.shutdown());
    let words: Vec<&str> = diary.lock().unwrap().iter().map(|(_, what)| *what).collect();
    assert_eq!(words, ["active", "inactive"]);
    drop(run);
}

/// `src` publishes one to four, once; the readers fail at the two and keep the others.
fn fails_at_two(seen: &Arc<Mutex<Vec<f64>>>) -> Act {
    let seen = Arc::clone(seen);
    Arc::new(move |cx, a, out| {
        if cx.component_id() == "src" {
            let all = if cx.epoch() == 1 { &[1.0, 2.0, 3.0, 4.0][..] } else { &[] };
            return all.iter().try_for_each(|x| Ok(cx.publish(out, *x)?));
        }
        if cx.latest(a) == Some(&2.0) {
            return Err(Failure::msg("told to fail"));
        }
        seen.lock().unwrap().extend(cx.drain(a).copied());
        Ok(())
    })
}

#[test]
fn what_one_was_not_called_with_before_it_failed_comes_to_the_next() {
    // With a budget it takes the general step; a pool has admitted others together with the one
    // that failed.
    for (execution, expected) in [
        ("lane: main", &[1.0, 3.0, 4.0][..]),
        ("lane: main, budget_ms: 1000", &[1.0, 3.0, 4.0]),
        ("lane: pool", &[1.0]),
    ] {
        let on_error = "{ policy: restart, max_restarts: 3, backoff_ms: 5 }";
        let text = teller::graph(
            "main: { type: event_loop }, pool: { type: thread_pool, queue_capacity: 8 }",
            &[
                "id: src, type: acts, execution: { lane: main }, \
                 event_sources: [{ type: timer, period_ms: 1 }]",
                &format!(
                    "id: dst, type: acts, execution: {{ {execution}, on_error: {on_error} }}, \
                     event_sources: [{{ type: message, input: a }}], \
                     trigger_policy: {{ type: any_input }}"
                ),
            ],
            &["id: e, kind: immediate, from: src.out, to: dst.a, \
               policy: { mode: queue, capacity: 8 }"],
        );
        let seen = Arc::new(Mutex::new(vec![]));
        let time = ManualTime::start();
        let graph = compile(&text, &with_acts(Registry::new(), fails_at_two(&seen)));
        let options = RunOptions::run_for(Duration::from_millis(20)).clock(Clock::Wall);
        let run = graph.start(time.system(), options).expect("it starts");
        let report = time.block_on(run).expect("it goes on");
        assert_eq!(*seen.lock().unwrap(), expected, "{execution}");
        let n_rejected = report.metrics.total("runtime.scheduler.rejected_count");
        assert_eq!(
            n_rejected,
            3.0 - f64::from(u8::try_from(expected.len()).unwrap()),
            "{execution}"
        );
    }
}

#[test]
fn what_fails_before_one_is_made_anew_is_one_failure_of_it() {
    // Five tasks of one call fail together; two restarts are allowed.
    let on_error = "{ policy: restart, max_restarts: 2, backoff_ms: 5 }";
    let one = format!(
        "id: one, type: acts, execution: {{ lane: main, on_error: {on_error} }}, \
         event_sources: [{{ type: timer, period_ms: 1 }}]"
    );
    let text = teller::graph("main: { type: event_loop }", &[&one], &[]);
    let n_calls = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&n_calls);
    let act: Act = Arc::new(move |cx, _, out| {
        let n_tasks = if counted.fetch_add(1, Ordering::Relaxed) == 0 { 5 } else { 0 };
        (0..n_tasks).try_for_each(|_| {
            let fails = async { Err::<f64, _>(Failure::msg("told to fail")) };
            Ok(cx.submit_task(out, fails)?)
        })
    });
    let time = ManualTime::start();
    let graph = compile(&text, &with_acts(Registry::new(), act));
    let options = RunOptions::steps(20).clock(Clock::Virtual);
    let run = graph.start(time.system(), options).expect("it starts");
    let report = time.block_on(run).expect("it was made anew once");
    assert_eq!(report.faults.len(), 5);
    assert_eq!(report.metrics.get("runtime.component.error_count", "one"), Some(5.0));
    assert_eq!(report.metrics.get("runtime.component.restart_count", "one"), Some(1.0));
}

#[test]
fn one_without_a_pause_is_made_anew_at_once_whichever_way_it_is_called() {
    for execution in ["lane: main", "lane: main, budget_ms: 1000"] {
        let on_error = "{ policy: restart, max_restarts: 3, backoff_ms: 0, backoff_max_ms: 0 }";
        let reads = "event_sources: [{ type: message, input: a }], \
                     trigger_policy: { type: any_input }";
        let text = teller::graph(
            "main: { type: event_loop }",
            &[
                "id: src, type: acts, execution: { lane: main }, \
                 event_sources: [{ type: timer, period_ms: 10000 }]",
                &format!(
                    "id: dst, type: acts, execution: {{ {execution}, on_error: {on_error} }}, \
                     {reads}"
                ),
            ],
            &["id: e, kind: immediate, from: src.out, to: dst.a, \
               policy: { mode: queue, capacity: 8 }"],
        );
        let seen = Arc::new(Mutex::new(vec![]));
        let time = ManualTime::start();
        let graph = compile(&text, &with_acts(Registry::new(), fails_at_two(&seen)));
        let options = RunOptions::until_stopped().clock(Clock::Wall);
        let run = graph.start(time.system(), options).expect("it starts");
        time.settle();
        assert_eq!(*seen.lock().unwrap(), [1.0, 3.0, 4.0], "{execution}");
        run.stop();
        time.block_on(run).expect("it goes on");
    }
}
