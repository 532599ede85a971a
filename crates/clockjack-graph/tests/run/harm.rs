//! Code of users that panics where nobody expects it: a run takes no harm, or ends and says why.

use core::task::{Context, Waker};
use std::{sync::Arc, task::Wake};

use clockjack_graph::{
    Binder, Clock, Component, Config, ConfigError, Data, DecodeError, Descriptor, Execute, Failure,
    GraphContext, Output, Registry, RunError, RunOptions, RunReport, Snapshot, StopReason,
    run::Phase,
};
use clockjack_testkit::ManualTime;

use crate::{
    acts::compile,
    parts::{Seen, registry},
    teller::graph,
};

/// A component that panics in one of its hooks.
struct Bomb(&'static str);

impl Bomb {
    fn at(&self, hook: &str) {
        assert!(self.0 != hook, "in {hook}");
    }
}

impl Component for Bomb {
    const TYPE: &'static str = "bomb";

    fn describe() -> Descriptor {
        Descriptor::new(Self::TYPE)
    }

    fn bind(&mut self, _ports: &mut Binder<'_>) {
        self.at("bind");
    }

    fn configure(&mut self, _config: &Config) -> Result<(), ConfigError> {
        self.at("configure");
        Ok(())
    }
}

impl Execute for Bomb {
    fn execute(&mut self, _cx: &mut GraphContext<'_>) -> Result<(), Failure> {
        Ok(())
    }

    fn activate(&mut self) -> Result<(), Failure> {
        self.at("activate");
        Ok(())
    }

    fn deactivate(&mut self) -> Result<(), Failure> {
        self.at("deactivate");
        Ok(())
    }

    fn reset(&mut self) -> Result<(), Failure> {
        self.at("reset");
        Ok(())
    }

    fn snapshot(&mut self) -> Result<Option<Snapshot>, Failure> {
        self.at("snapshot");
        Ok(None)
    }
}

impl Drop for Bomb {
    fn drop(&mut self) {
        self.at("drop");
    }
}

/// A run of two components that panic there.
fn run(hook: &'static str) -> Result<RunReport, RunError> {
    let one = |id: &str| format!("id: {id}, type: bomb, execution: {{ lane: main }}");
    let text = graph("main: { type: event_loop }", &[&one("b"), &one("c")], &[]);
    let types = Registry::new().register_with(move || {
        assert!(hook != "make", "in make");
        Bomb(hook)
    });
    let time = ManualTime::start();
    let options = RunOptions::steps(2).snapshots().reset().clock(Clock::Virtual);
    time.block_on(compile(&text, &types).start(time.system(), options)?)
}

#[test]
fn a_panic_before_the_first_call_refuses_the_run() {
    for (hook, phase) in [
        ("make", Phase::Configure),
        ("bind", Phase::Configure),
        ("configure", Phase::Configure),
        ("activate", Phase::Activate),
        ("reset", Phase::Reset),
    ] {
        let error = run(hook).expect_err("it panics");
        let fault = error.fault().expect("of a component");
        assert_eq!((fault.phase, fault.component.as_str()), (phase, "b"));
        assert!(fault.message.ends_with(&format!("panicked: in {hook}")), "{fault}");
    }
}

#[test]
fn a_panic_after_the_last_call_is_told_for_each() {
    for (hook, phase) in [
        ("snapshot", Phase::Snapshot),
        ("deactivate", Phase::Deactivate),
        ("drop", Phase::Deactivate),
    ] {
        let report = run(hook).expect("its work was done");
        let told: Vec<_> = report.faults.iter().map(|one| (one.phase, &*one.component)).collect();
        assert_eq!(told, [(phase, "c"), (phase, "b")], "{hook}");
    }
}

/// A waker that panics.
struct Bell;

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        panic!("told to panic");
    }
}

#[test]
fn a_waker_of_somebody_who_feeds_or_changes_settings_may_panic() {
    let text = graph(
        "main: { type: event_loop }",
        &["id: in, type: add, execution: { lane: main }, boundary: { role: input }, \
           event_sources: [{ type: message, input: a }], trigger_policy: { type: any_input }"],
        &[],
    );
    let time = ManualTime::start();
    let options = RunOptions::until_stopped().clock(Clock::Virtual).feed_max(1);
    let graph = compile(&text, &registry(&Seen::default()));
    let run = graph.start(time.system(), options).expect("it starts");
    let feed = run.feed::<f64>("in.a").expect("it can be fed");
    feed.publish(1.0).expect("there is room");
    let waker = Waker::from(Arc::new(Bell));
    let mut cx = Context::from_waker(&waker);
    let mut sends = Box::pin(feed.send(2.0));
    assert!(sends.as_mut().poll(&mut cx).is_pending());
    let mut changes = Box::pin(run.reconfigure().set("in", "k", 2.0).commit());
    assert!(changes.as_mut().poll(&mut cx).is_pending());
    time.settle();
    // Both were woken, in vain.
    time.block_on(sends).expect("there is room");
    assert_eq!(time.block_on(changes), Ok(1));
    time.settle();
    run.stop();
    let report = time.block_on(run).expect("nothing fails");
    assert_eq!((report.stop, report.executions), (StopReason::StopRequested, 2));
}

/// A value that panics when it is dropped.
struct Glass;

impl Data for Glass {
    const SCHEMA: &'static str = "glass";

    fn encode(&self, _out: &mut Vec<u8>) {}

    fn decode(_bytes: &[u8]) -> Result<Self, DecodeError> {
        Ok(Self)
    }
}

impl Drop for Glass {
    fn drop(&mut self) {
        panic!("it breaks");
    }
}

/// Publishes one in every call.
#[derive(Component, Default)]
#[component(type = "glazier")]
struct Glazier {
    #[output]
    out: Output<Glass>,
}

impl Execute for Glazier {
    fn execute(&mut self, cx: &mut GraphContext<'_>) -> Result<(), Failure> {
        let published = cx.publish(self.out, Glass);
        published.map_err(|refused| {
            core::mem::forget(refused.into_inner());
            Failure::msg("there is no room")
        })
    }
}

/// Looks at nothing.
#[derive(Component, Default)]
#[component(type = "shelf")]
struct Shelf {
    #[input]
    a: clockjack_graph::Input<Glass>,
}

impl Execute for Shelf {
    fn execute(&mut self, cx: &mut GraphContext<'_>) -> Result<(), Failure> {
        cx.latest(self.a).map(|_| ()).ok_or_else(|| Failure::msg("there is none"))
    }
}

#[test]
fn values_that_panic_when_they_are_dropped_harm_nobody() {
    let text = graph(
        "main: { type: event_loop }",
        &[
            "id: a, type: glazier, execution: { lane: main }",
            "id: b, type: shelf, execution: { lane: main }, \
             event_sources: [{ type: message, input: a }], trigger_policy: { type: any_input }",
            // Nobody reads what it keeps: that is dropped at the end.
            "id: c, type: glazier, execution: { lane: main }",
            "id: d, type: shelf, execution: { lane: never }, \
             event_sources: [{ type: message, input: a }], trigger_policy: { type: any_input }",
        ],
        &[
            "id: e, kind: immediate, from: a.out, to: b.a, policy: { copy_policy: move_only }",
            "id: f, kind: delay, from: c.out, to: d.a, \
             policy: { mode: queue, capacity: 2, overflow: drop_oldest, copy_policy: move_only }",
        ],
    );
    let text = text.replace("lanes: {", "lanes: { never: { type: manual_step },");
    let types = Registry::new().register::<Glazier>().register::<Shelf>();
    let time = ManualTime::start();
    let options = RunOptions::steps(6).clock(Clock::Virtual);
    let run = compile(&text, &types).start(time.system(), options).expect("it starts");
    let report = time.block_on(run).expect("nothing fails");
    assert_eq!(report.executions, 18);
    assert_eq!(report.metrics.get("runtime.channel.drop_count", "f"), Some(3.0));
}
