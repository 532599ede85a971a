//! Full edges: a producer is called only as often as a blocking edge has room, values without room
//! wait outside, and an edge with `fail_fast` ends the run.

use core::time::Duration;
use std::sync::Arc;

use clockjack_graph::{
    Binder, Clock, Component, Config, ConfigError, Descriptor, Execute, ExecuteShared, Failure,
    GraphContext, Input, InputPort, Need, Output, OutputPort, Registry, RunOptions, RunStopReason,
};
use clockjack_testkit::ManualTime;

use crate::{
    acts::{Act, compile, with_acts},
    parts::{Seen, registry},
    teller::graph,
};

const MAIN: &str = "main: { type: event_loop }";

/// What keeps all that comes over an edge.
const OUT: &str = "id: out, type: keep, execution: { lane: main }, boundary: { role: output }, \
                   event_sources: [{ type: message, input: in }], \
                   trigger_policy: { type: any_input }";

/// Called for each message at `a`.
const READS: &str =
    "event_sources: [{ type: message, input: a }], trigger_policy: { type: any_input }";

fn values(seen: &Seen) -> Vec<f64> {
    seen.lock().unwrap().iter().map(|(_, _, x)| *x).collect()
}

/// `src` publishes these in the first epoch, all others hand on what comes.
fn first(values: &'static [f64]) -> Act {
    Arc::new(move |cx, a, out| {
        if cx.component_id() != "src" {
            let come: Vec<f64> = cx.drain(a).copied().collect();
            return come.into_iter().try_for_each(|x| Ok(cx.publish(out, x)?));
        }
        let all = if cx.epoch() == 1 { values } else { &[] };
        all.iter().try_for_each(|x| Ok(cx.publish(out, *x)?))
    })
}

/// Passes messages on; invocations may overlap.
#[derive(Default)]
struct Hands {
    a: Input<f64>,
    out: Output<f64>,
}

impl Hands {
    const A: InputPort<f64> = InputPort::new("a");
    const OUT: OutputPort<f64> = OutputPort::new("out");
}

impl Component for Hands {
    const TYPE: &'static str = "hands";

    fn describe() -> Descriptor {
        Descriptor::new(Self::TYPE).inputs(Self::A, Need::Required).output(Self::OUT)
    }

    fn bind(&mut self, ports: &mut Binder<'_>) {
        (self.a, self.out) = (ports.input(Self::A), ports.output(Self::OUT));
    }

    fn configure(&mut self, _config: &Config) -> Result<(), ConfigError> {
        Ok(())
    }
}

impl ExecuteShared for Hands {
    fn execute(&self, cx: &mut GraphContext<'_>) -> Result<(), Failure> {
        let come: Vec<f64> = cx.drain(self.a).copied().collect();
        come.into_iter().try_for_each(|x| Ok(cx.publish(self.out, x)?))
    }
}

#[test]
fn a_producer_is_called_only_as_often_as_a_blocking_edge_has_room() {
    let pool = "pool: { type: thread_pool, max_threads: 4, queue_capacity: 16 }";
    for (kind, execution, of_type) in [
        ("immediate", "lane: main", "acts"),
        ("immediate", "lane: main, on_error: { policy: restart, backoff_ms: 1 }", "acts"),
        ("delay", "lane: main", "acts"),
        ("immediate", "lane: pool", "acts"),
        ("immediate", "lane: pool, reentrant: true", "hands"),
        ("async", "lane: pool, reentrant: true", "hands"),
    ] {
        let text = graph(
            &format!("{MAIN}, {pool}"),
            &[
                "id: src, type: acts, execution: { lane: main }",
                &format!("id: mid, type: {of_type}, execution: {{ {execution} }}, {READS}"),
                OUT,
            ],
            &[
                "id: e, kind: immediate, from: src.out, to: mid.a, \
                 policy: { mode: queue, capacity: 8 }",
                &format!(
                    "id: f, kind: {kind}, from: mid.out, to: out.in, \
                     policy: {{ mode: queue, capacity: 2, overflow: block }}"
                ),
            ],
        );
        for clock in [Clock::Virtual, Clock::Wall] {
            let (time, seen) = (ManualTime::start(), Seen::default());
            let types = with_acts(registry(&seen), first(&[1.0, 2.0, 3.0, 4.0, 5.0]));
            let graph = compile(&text, &types.register_shared::<Hands>());
            let options = RunOptions::steps(9).clock(clock);
            let run = graph.start(time.system(), options).expect("it starts");
            let report = time.block_on(run).expect("nothing fails");
            let case = format!("{kind}, {execution}, {clock:?}");
            assert_eq!(values(&seen), [1.0, 2.0, 3.0, 4.0, 5.0], "{case}");
            assert!(report.faults.is_empty(), "{case}: {:?}", report.faults);
            assert_eq!(report.metrics.total("runtime.channel.reject_count"), 0.0, "{case}");
        }
    }
}

#[test]
fn what_waits_for_room_is_called_as_soon_as_there_is_some() {
    // By the clock of the system, and with a timer far away that would call for an epoch.
    let text = graph(
        MAIN,
        &[
            "id: src, type: acts, execution: { lane: main }, \
             event_sources: [{ type: timer, period_ms: 10000 }]",
            &format!("id: mid, type: acts, execution: {{ lane: main }}, {READS}"),
            OUT,
        ],
        &[
            "id: e, kind: immediate, from: src.out, to: mid.a, \
             policy: { mode: queue, capacity: 8 }",
            "id: f, kind: immediate, from: mid.out, to: out.in, \
             policy: { mode: queue, capacity: 1, overflow: block }",
        ],
    );
    let (time, seen) = (ManualTime::start(), Seen::default());
    let graph = compile(&text, &with_acts(registry(&seen), first(&[1.0, 2.0, 3.0])));
    let options = RunOptions::until_stopped().clock(Clock::Wall);
    let run = graph.start(time.system(), options).expect("it starts");
    time.settle();
    assert_eq!(values(&seen), [1.0, 2.0, 3.0]);
    run.stop();
    time.block_on(run).expect("nothing fails");
}

/// `src` begins these tasks in the first epoch; their results go to `out`, one at a time.
fn tasks(reader: &str, options: RunOptions) -> (Vec<f64>, clockjack_graph::RunReport) {
    let act: Act = Arc::new(|cx, _, out| {
        let all = if cx.epoch() == 1 { &[1.0, 2.0, 3.0][..] } else { &[] };
        all.iter().copied().try_for_each(|x| Ok(cx.submit_task(out, async move { Ok(x) })?))
    });
    let text = graph(
        MAIN,
        &[
            "id: src, type: acts, execution: { lane: main }, \
             event_sources: [{ type: timer, period_ms: 1 }]",
            reader,
            OUT,
            // Time goes on also while `src` waits.
            "id: beat, type: count, execution: { lane: main }, boundary: { role: input }, \
             event_sources: [{ type: timer, period_ms: 1 }]",
        ],
        &[
            "id: e, kind: immediate, from: src.out, to: mid.a, \
             policy: { mode: queue, capacity: 1, overflow: block }",
            "id: f, kind: immediate, from: mid.out, to: out.in, \
             policy: { mode: queue, capacity: 8 }",
        ],
    );
    let (time, seen) = (ManualTime::start(), Seen::default());
    let graph = compile(&text, &with_acts(registry(&seen), act));
    let run = graph.start(time.system(), options).expect("it starts");
    let report = time.block_on(run).expect("nothing fails");
    (values(&seen), report)
}

#[test]
fn what_tasks_give_waits_for_room_and_keeps_its_order() {
    let reader = format!("id: mid, type: add, execution: {{ lane: main }}, {READS}");
    for clock in [Clock::Virtual, Clock::Wall] {
        let options = RunOptions::run_for(Duration::from_millis(9)).clock(clock);
        let (seen, report) = tasks(&reader, options);
        assert_eq!(seen, [1.0, 2.0, 3.0], "{clock:?}");
        assert_eq!(report.metrics.total("runtime.channel.reject_count"), 0.0);
        assert_eq!(report.metrics.total("runtime.async.completed_count"), 3.0);
        assert_eq!(report.metrics.total("runtime.async.in_flight_count"), 0.0);
    }
}

#[test]
fn what_waits_for_a_reader_that_pauses_does_not_hold_up_time() {
    let reader = |on_error: &str| {
        format!(
            "id: mid, type: add, execution: {{ lane: main, on_error: {on_error} }}, \
             config: {{ fails_at: 1.0 }}, {READS}"
        )
    };
    let pauses = reader("{ policy: restart, max_restarts: 9, backoff_ms: 5, backoff_max_ms: 5 }");
    let options = || RunOptions::run_for(Duration::from_millis(40)).clock(Clock::Virtual);
    let (seen, _) = tasks(&pauses, options());
    assert_eq!(seen, [2.0, 3.0], "the first was what it failed at");
    // A reader that never reads again does not block the run.
    let (seen, report) = tasks(&reader("isolate"), options());
    assert!(seen.is_empty());
    assert_eq!(report.stop, RunStopReason::DurationBound);
}

#[test]
fn what_is_fed_past_a_blocking_edge_is_seen_as_soon_as_there_is_room() {
    let text = graph(
        MAIN,
        &[
            "id: src, type: acts, execution: { lane: main }, \
             event_sources: [{ type: timer, period_ms: 10000 }]",
            OUT,
        ],
        &["id: e, kind: immediate, from: src.out, to: out.in, \
           policy: { mode: queue, capacity: 1, overflow: block }"],
    );
    let (time, seen) = (ManualTime::start(), Seen::default());
    let graph = compile(&text, &with_acts(registry(&seen), first(&[])));
    let options = RunOptions::until_stopped().clock(Clock::Wall);
    let run = graph.start(time.system(), options).expect("it starts");
    time.settle();
    let feed = run.feed::<f64>("src.out").expect("it can be fed");
    for x in [1.0, 2.0, 3.0] {
        feed.publish(x).expect("there is room");
    }
    time.settle();
    assert_eq!(values(&seen), [1.0, 2.0, 3.0], "without waiting for the timer");
    run.stop();
    time.block_on(run).expect("nothing fails");
}

#[test]
fn what_is_fed_to_a_previous_tick_is_seen_although_nothing_else_happens() {
    let text = graph(
        MAIN,
        &[
            &format!(
                "id: src, type: add, execution: {{ lane: main }}, \
                 boundary: {{ role: input }}, {READS}"
            ),
            OUT,
        ],
        &["id: e, kind: immediate, from: src.out, to: out.in, policy: { mode: previous_tick }"],
    );
    for clock in [Clock::Virtual, Clock::Wall] {
        let (time, seen) = (ManualTime::start(), Seen::default());
        let graph = compile(&text, &registry(&seen));
        let options = RunOptions::until_stopped().clock(clock);
        let run = graph.start(time.system(), options).expect("it starts");
        time.settle();
        run.feed::<f64>("src.out").expect("it can be fed").publish(1.0).expect("there is room");
        time.settle();
        assert_eq!(values(&seen), [1.0], "{clock:?}");
        run.stop();
        time.block_on(run).expect("nothing fails");
    }
}

#[test]
fn a_full_edge_that_fails_the_run_does_so_whatever_its_producer_makes_of_it() {
    for on_error in ["fail_fast", "continue", "isolate"] {
        let text = graph(
            MAIN,
            &[
                &format!("id: src, type: acts, execution: {{ lane: main, on_error: {on_error} }}"),
                OUT,
            ],
            &["id: e, kind: immediate, from: src.out, to: out.in, \
               policy: { mode: queue, capacity: 2, overflow: fail_fast }"],
        );
        let time = ManualTime::start();
        let types = with_acts(registry(&Seen::default()), first(&[1.0, 2.0, 3.0]));
        let options = RunOptions::steps(3).clock(Clock::Virtual);
        let run = compile(&text, &types).start(time.system(), options).expect("it starts");
        let error = time.block_on(run).expect_err("there were three");
        let fault = error.fault().expect("of a component");
        assert_eq!((fault.component.as_str(), fault.epoch), ("src", 1), "{on_error}");
        assert_eq!(fault.message, "an edge with overflow `fail_fast` was full");
    }
}

/// Begins one task that gives a text.
#[derive(Component, Default)]
#[component(type = "writer")]
struct Writer {
    #[output]
    out: Output<String>,
}

impl Execute for Writer {
    fn execute(&mut self, cx: &mut GraphContext<'_>) -> Result<(), Failure> {
        Ok(cx.submit_task(self.out, async { Ok(String::from("whole")) })?)
    }
}

/// Takes a text, itself.
#[derive(Component, Default)]
#[component(type = "taker")]
struct Taker {
    #[input]
    a: Input<String>,
}

impl Execute for Taker {
    fn execute(&mut self, cx: &mut GraphContext<'_>) -> Result<(), Failure> {
        cx.take(self.a).map(drop).ok_or_else(|| Failure::msg("it cannot be taken"))
    }
}

#[test]
fn what_a_task_gives_over_an_edge_that_moves_can_be_taken() {
    let text = graph(
        MAIN,
        &[
            "id: src, type: writer, execution: { lane: main }",
            &format!("id: dst, type: taker, execution: {{ lane: main }}, {READS}"),
        ],
        &["id: e, kind: async, from: src.out, to: dst.a, policy: { copy_policy: move_only }"],
    );
    let types = Registry::new().register::<Writer>().register::<Taker>();
    let time = ManualTime::start();
    let options = RunOptions::steps(3).clock(Clock::Virtual);
    let run = compile(&text, &types).start(time.system(), options).expect("it starts");
    let report = time.block_on(run).expect("each is taken");
    assert_eq!(report.metrics.get("runtime.component.execution_count", "dst"), Some(2.0));
}

/// Lanes with their own clocks, with a tick per this number of milliseconds.
const APART: &str = "main: { type: event_loop }, \
     fast: { type: fixed_rate, period_ms: 1, wall_clock_enabled: true }, \
     slow: { type: fixed_rate, period_ms: 10, wall_clock_enabled: true }";

/// `src`, and `out`, which keeps what comes to it in a lane with another clock than that of `src`.
fn apart(src: &str, reader: &str, kind: &str) -> String {
    let out = OUT.replace("lane: main", &format!("lane: {reader}"));
    let edge = format!(
        "id: e, kind: {kind}, from: src.out, to: out.in, \
         policy: {{ mode: queue, capacity: 3, overflow: block, allow_drop: false }}"
    );
    graph(
        APART,
        &[&format!("id: src, type: count, boundary: {{ role: input }}, {src}"), &out],
        &[&edge],
    )
}

#[test]
fn a_blocking_edge_between_lanes_of_different_times_loses_nothing() {
    let ticks = "execution: { lane: main }, event_sources: [{ type: timer, period_ms: 1 }]";
    for (src, reader) in [
        ("execution: { lane: fast }", "slow"),
        ("execution: { lane: slow }", "fast"),
        ("execution: { lane: main }", "slow"),
        (ticks, "slow"),
    ] {
        for kind in ["delay", "state", "async"] {
            let (time, seen) = (ManualTime::start(), Seen::default());
            let graph = compile(&apart(src, reader, kind), &registry(&seen));
            let options = RunOptions::until_stopped().clock(Clock::Wall);
            let run = graph.start(time.system(), options).expect("it starts");
            time.advance(Duration::from_millis(95));
            run.stop();
            let report = time.block_on(run).expect("nothing fails");
            let (case, seen) = (format!("{src}, {reader}, {kind}"), values(&seen));
            let all = (1_u32..).map(f64::from).take(seen.len()).collect::<Vec<_>>();
            assert_eq!(seen, all, "{case}");
            assert!(seen.len() >= if reader == "slow" { 20 } else { 9 }, "{case}: {seen:?}");
            assert_eq!(report.metrics.total("runtime.channel.reject_count"), 0.0, "{case}");
            assert_eq!(report.metrics.total("runtime.channel.drop_count"), 0.0, "{case}");
        }
    }
}

#[test]
fn what_is_fed_to_a_lane_of_another_time_waits_for_room_there() {
    let far = "execution: { lane: main }, event_sources: [{ type: timer, period_ms: 10000, \
               phase_ms: 10000 }]";
    let (time, seen) = (ManualTime::start(), Seen::default());
    let graph = compile(&apart(far, "slow", "delay"), &registry(&seen));
    let options = RunOptions::until_stopped().clock(Clock::Wall);
    let run = graph.start(time.system(), options).expect("it starts");
    let feed = run.feed::<f64>("src.out").expect("it can be fed");
    for x in 1..=10_u8 {
        feed.publish(x.into()).expect("there is room");
    }
    time.advance(Duration::from_millis(95));
    assert_eq!(values(&seen), (1..=10_u8).map(f64::from).collect::<Vec<_>>());
    run.stop();
    let report = time.block_on(run).expect("nothing fails");
    assert_eq!(report.metrics.total("runtime.channel.reject_count"), 0.0);
}

#[test]
fn nobody_waits_for_room_in_a_lane_that_has_ended() {
    // The fast lane ends after nine ticks, and `src` goes on for many more.
    let text = apart("execution: { lane: slow }", "fast", "delay");
    let (time, seen) = (ManualTime::start(), Seen::default());
    let graph = compile(&text, &registry(&seen));
    let run = graph.start(time.system(), RunOptions::steps(9).clock(Clock::Described));
    let report = time.block_on(run.expect("it starts")).expect("nothing fails");
    assert_eq!(report.metrics.get("runtime.component.execution_count", "src"), Some(9.0));
}

#[test]
fn one_that_was_isolated_holds_nobody_up() {
    // `src` publishes to `sick`, which fails at its first call, and to `out`.
    for overflow in ["block", "reject", "fail_fast", "drop_newest"] {
        for (kind, lane) in [("immediate", "main"), ("delay", "main"), ("delay", "slow")] {
            let text = graph(
                APART,
                &[
                    "id: src, type: count, boundary: { role: input }, \
                     execution: { lane: main }, event_sources: [{ type: timer, period_ms: 1 }]",
                    &format!(
                        "id: sick, type: add, config: {{ fails_at: 1.0 }}, {READS}, \
                         execution: {{ lane: {lane}, on_error: isolate }}"
                    ),
                    OUT,
                ],
                &[
                    &format!(
                        "id: e, kind: {kind}, from: src.out, to: sick.a, \
                         policy: {{ mode: queue, capacity: 20, overflow: {overflow} }}"
                    ),
                    "id: f, kind: immediate, from: src.out, to: out.in",
                ],
            );
            let (time, seen) = (ManualTime::start(), Seen::default());
            let graph = compile(&text, &registry(&seen));
            let options = RunOptions::until_stopped().clock(Clock::Wall);
            let run = graph.start(time.system(), options).expect("it starts");
            time.advance(Duration::from_millis(99));
            run.stop();
            let report = time.block_on(run).expect("nobody else fails");
            let case = format!("{overflow}, {kind}, {lane}");
            assert_eq!(values(&seen).len(), 100, "{case}");
            let metrics = &report.metrics;
            let count = |name: &str| {
                metrics.get(&format!("runtime.channel.{name}_count"), "e").expect("it is counted")
            };
            assert_eq!(count("reject"), 0.0, "{case}");
            assert_eq!(count("publish"), count("drop") + count("delivery"), "{case}");
        }
    }
}
