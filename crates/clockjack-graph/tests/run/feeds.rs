//! Values from outside: to inputs without an edge, refused when there is no room, never lost.

use core::{
    pin::pin,
    task::{Context, Poll, Waker},
    time::Duration,
};

use clockjack_graph::{Clock, GraphRun, Registry, RunOptions, RunReport};
use clockjack_testkit::ManualTime;

use crate::{
    acts::compile,
    parts::{Seen, registry},
    teller::graph,
};

const LANES: &str = "main: { type: event_loop }, step: { type: manual_step }";
const OUT: &str = "id: out, type: keep, execution: { lane: main }, boundary: { role: output }, \
                   event_sources: [{ type: message, input: in }], \
                   trigger_policy: { type: any_input }";

/// An input that waits for what it is fed with, in this lane, and `out` behind it.
fn fed(lane: &str) -> String {
    let input = format!(
        "id: in, type: add, execution: {{ lane: {lane} }}, boundary: {{ role: input }}, \
         event_sources: [{{ type: message, input: a }}], trigger_policy: {{ type: any_input }}"
    );
    graph(
        LANES,
        &[&input, OUT],
        &["id: e, kind: immediate, from: in.out, to: out.in, \
           policy: { mode: queue, capacity: 64 }"],
    )
}

struct Running {
    time: ManualTime,
    seen: Seen,
    run: GraphRun,
}

fn start(text: &str, registry: impl FnOnce(&Seen) -> Registry, options: RunOptions) -> Running {
    let (time, seen) = (ManualTime::start(), Seen::default());
    let graph = compile(text, &registry(&seen));
    let run = graph.start(time.system(), options.clock(Clock::Virtual)).expect("it starts");
    Running { time, seen, run }
}

impl Running {
    /// The values that have come out since the last call.
    fn out(&self) -> Vec<f64> {
        self.time.settle();
        self.seen.lock().unwrap().drain(..).map(|(_, _, x)| x).collect()
    }

    fn stop(self) -> RunReport {
        self.run.stop();
        self.time.block_on(self.run).expect("nothing fails")
    }
}

#[test]
fn an_input_at_the_border_needs_no_edge_to_be_fed() {
    let running = start(&fed("main"), registry, RunOptions::until_stopped());
    let feed = running.run.feed::<f64>("in.a").expect("it can be fed");
    assert!(running.out().is_empty());
    feed.publish(1.0).expect("there is room");
    feed.publish(2.0).expect("there is room");
    assert_eq!(running.out(), [1.0, 2.0]);
    feed.clone().publish(3.0).expect("there is room");
    assert_eq!(running.out(), [3.0]);
    let metrics = running.stop().metrics;
    assert_eq!(metrics.get("runtime.channel.delivery_count", "feed:in.a"), Some(3.0));
    assert!(feed.publish(4.0).expect_err("it is over").is_ended());
}

#[test]
fn all_that_was_fed_beside_the_trigger_is_in_the_invocation() {
    let text = graph(
        LANES,
        &[
            "id: in, type: input, execution: { lane: main }, boundary: { role: input }, \
             config: { pattern: none }",
            OUT,
        ],
        &["id: e, kind: immediate, from: in.out, to: out.in, policy: { mode: queue, capacity: 8 }"],
    );
    let types = |seen: &Seen| {
        let seen = seen.clone();
        Registry::standard().register_with(move || crate::parts::Keep::new(&seen))
    };
    let running = start(&text, types, RunOptions::steps(2));
    let feed = running.run.feed::<f64>("in.feed").expect("it can be fed");
    for value in [1.0, 2.0, 3.0] {
        feed.publish(value).expect("there is room");
    }
    let Running { time, seen, run } = running;
    time.block_on(run).expect("nothing fails");
    let seen: Vec<_> = seen.lock().unwrap().iter().map(|(epoch, _, x)| (*epoch, *x)).collect();
    assert_eq!(seen, [(1, 1.0), (1, 2.0), (1, 3.0)]);
}

#[test]
fn what_a_full_feed_refuses_comes_back() {
    let running = start(&fed("main"), registry, RunOptions::until_stopped().feed_max(2));
    let feed = running.run.feed::<f64>("in.a").expect("it can be fed");
    feed.publish(1.0).expect("there is room");
    feed.publish(2.0).expect("there is room");
    let refused = feed.publish(3.0).expect_err("two wait already");
    assert!(refused.is_full() && !refused.is_ended());
    assert_eq!(refused.into_inner(), 3.0);
    assert_eq!(running.out(), [1.0, 2.0]);
    feed.publish(3.0).expect("there is room again");
    assert_eq!(running.out(), [3.0]);
    running.stop();
}

#[test]
fn who_sends_waits_for_room() {
    let running = start(&fed("main"), registry, RunOptions::until_stopped().feed_max(1));
    let feed = running.run.feed::<f64>("in.a").expect("it can be fed");
    running.time.block_on(async {
        for value in [1.0, 2.0, 3.0, 4.0] {
            feed.send(value).await.expect("the run goes on");
        }
    });
    assert_eq!(running.out(), [1.0, 2.0, 3.0, 4.0]);
    feed.publish(5.0).expect("there is room");
    let (waits, run) = (feed.send(6.0), &running.run);
    let refused = running.time.block_on(async {
        run.stop();
        waits.await
    });
    // Either it was accepted before the end, or it is returned.
    if let Err(refused) = refused {
        assert!(refused.is_ended());
        assert_eq!(refused.into_inner(), 6.0);
    }
    running.stop();
}

#[test]
fn what_is_fed_waits_while_its_reader_has_no_room_and_keeps_its_order() {
    let running = start(&fed("step"), registry, RunOptions::until_stopped().feed_max(2));
    let feed = running.run.feed::<f64>("in.a").expect("it can be fed");
    let publish = |value: f64| {
        running.time.settle();
        feed.publish(value)
    };
    // Two in the channel of the input, two before it.
    for value in [1.0, 2.0, 3.0, 4.0] {
        publish(value).expect("there is room");
    }
    assert!(publish(5.0).expect_err("nobody has read anything").is_full());
    running.run.step();
    assert_eq!(running.out(), [1.0, 2.0]);
    publish(5.0).expect("there is room again");
    running.run.step();
    assert_eq!(running.out(), [3.0, 4.0]);
    running.run.step();
    assert_eq!(running.out(), [5.0]);
    let metrics = running.stop().metrics;
    assert_eq!(metrics.total("runtime.channel.drop_count"), 0.0);
    assert_eq!(metrics.total("runtime.channel.reject_count"), 0.0);
}

#[test]
fn what_was_fed_and_not_taken_at_the_end_is_counted() {
    let running = start(&fed("step"), registry, RunOptions::until_stopped().feed_max(2));
    let feed = running.run.feed::<f64>("in.a").expect("it can be fed");
    // Two in the channel of the input, two before it.
    for value in [1.0, 2.0, 3.0, 4.0] {
        running.time.settle();
        feed.publish(value).expect("there is room");
    }
    let report = running.stop();
    assert_eq!(report.n_fed_dropped, 2);
    // With those in the channel.
    let lost: Vec<String> = report.losses.iter().map(ToString::to_string).collect();
    assert_eq!(
        lost,
        ["edge feed:in.a: 4 messages not read when the run ended; run longer, or until idle"]
    );
    // At an output: for each of its edges.
    let running = start(&fed("step"), registry, RunOptions::until_stopped().feed_max(2));
    let feed = running.run.feed::<f64>("in.out").expect("it can be fed");
    running.time.settle();
    running.run.stop();
    feed.publish(1.0).expect("the run has not seen yet that it is to end");
    let report = running.time.block_on(running.run).expect("nothing fails");
    let lost: Vec<String> = report.losses.iter().map(ToString::to_string).collect();
    assert_eq!(lost, ["edge e: 1 message not read when the run ended; run longer, or until idle"]);
    let running = start(&fed("main"), registry, RunOptions::until_stopped());
    let feed = running.run.feed::<f64>("in.a").expect("it can be fed");
    feed.publish(1.0).expect("there is room");
    assert_eq!(running.out(), [1.0]);
    assert_eq!(running.stop().n_fed_dropped, 0);
}

#[test]
fn what_cannot_be_fed_is_told() {
    let running = start(&fed("main"), registry, RunOptions::until_stopped());
    let wrong = running.run.feed::<u64>("in.a").expect_err("it is a number with a fraction");
    assert!(wrong.is_of_other_type());
    for (endpoint, why) in [
        ("nobody.a", "cannot feed `nobody.a`: there is no component `nobody`"),
        ("in.x", "cannot feed `in.x`: `in` has no port `x`"),
    ] {
        let error = running.run.feed::<f64>(endpoint).expect_err("it is not there");
        assert!(!error.is_of_other_type());
        assert_eq!(error.to_string(), why);
    }
    running.stop();
}

/// Whether a change of settings is answered at once.
fn is_answered(run: &GraphRun, component: &str) -> bool {
    let mut change = pin!(run.reconfigure().set(component, "k", 2.0).commit());
    change.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready()
}

#[test]
fn a_lane_that_has_ended_takes_nothing_more_while_others_go_on() {
    let own = |period_ms| {
        format!("{{ type: fixed_rate, period_ms: {period_ms}, wall_clock_enabled: true }}")
    };
    let text = graph(
        &format!("fast: {}, slow: {}", own(1), own(100)),
        &[
            "id: f, type: add, execution: { lane: fast }, boundary: { role: input }",
            "id: s, type: count, execution: { lane: slow }, boundary: { role: input }",
        ],
        &["id: e, kind: delay, from: s.out, to: f.b"],
    );
    let (time, seen) = (ManualTime::start(), Seen::default());
    let graph = compile(&text, &registry(&seen));
    let run = graph.start(time.system(), RunOptions::steps(10)).expect("it starts");
    let feed = run.feed::<f64>("f.a").expect("it can be fed");
    feed.publish(1.0).expect("it has not begun");
    time.advance(Duration::from_millis(50));
    assert!(feed.publish(2.0).expect_err("its ten epochs are over").is_ended());
    assert!(is_answered(&run, "f"));
    let report = time.block_on(run).expect("nothing fails");
    assert_eq!(report.epochs, 20);
}

#[test]
fn nobody_waits_for_a_run_whose_system_has_ended() {
    let (time, seen) = (ManualTime::start(), Seen::default());
    let graph = compile(&fed("step"), &registry(&seen));
    let options = RunOptions::until_stopped().clock(Clock::Virtual).feed_max(1);
    let run = graph.start(time.system(), options).expect("it starts");
    let feed = run.feed::<f64>("in.a").expect("it can be fed");
    time.settle();
    feed.publish(1.0).expect("there is room");
    let mut sends = pin!(feed.send(2.0));
    let mut cx = Context::from_waker(Waker::noop());
    assert!(sends.as_mut().poll(&mut cx).is_pending());
    drop(time.shutdown());
    let Poll::Ready(Err(refused)) = sends.as_mut().poll(&mut cx) else { panic!("it is over") };
    assert!(refused.is_ended());
    assert_eq!(refused.into_inner(), 2.0);
    assert!(is_answered(&run, "in"));
    let Poll::Ready(Err(error)) = pin!(run).poll(&mut cx) else { panic!("it is over") };
    assert!(error.is_stopped(), "{error}");
}
