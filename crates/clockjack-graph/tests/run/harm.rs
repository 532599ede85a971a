//! User code that panics in unexpected places: a run is not affected, or ends and reports why.

use core::task::{Context, Waker};
use std::{sync::Arc, task::Wake};

use clockjack_graph::{
    Binder, Clock, Component, Config, ConfigError, Data, DataError, Descriptor, Execute, Failure,
    GraphContext, Output, Registry, RunError, RunOptions, RunReport, RunStopReason, Snapshot,
    run::RunPhase,
};
use clockjack_testkit::ManualTime;

use crate::{
    acts::compile,
    parts::{Seen, registry},
    teller::graph,
};

/// A component that panics in one of its hooks.
struct PanickingHooks(&'static str);

impl PanickingHooks {
    fn at(&self, hook: &str) {
        assert!(self.0 != hook, "in {hook}");
    }
}

impl Component for PanickingHooks {
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

impl Execute for PanickingHooks {
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

impl Drop for PanickingHooks {
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
        PanickingHooks(hook)
    });
    let time = ManualTime::start();
    let options = RunOptions::steps(2).snapshots().reset().clock(Clock::Virtual);
    time.block_on(compile(&text, &types).start(time.system(), options)?)
}

#[test]
fn a_panic_before_the_first_call_refuses_the_run() {
    for (hook, phase) in [
        ("make", RunPhase::Configure),
        ("bind", RunPhase::Configure),
        ("configure", RunPhase::Configure),
        ("activate", RunPhase::Activate),
        ("reset", RunPhase::Reset),
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
        ("snapshot", RunPhase::Snapshot),
        ("deactivate", RunPhase::Deactivate),
        ("drop", RunPhase::Deactivate),
    ] {
        let report = run(hook).expect("its work was done");
        let told: Vec<_> = report.faults.iter().map(|one| (one.phase, &*one.component)).collect();
        assert_eq!(told, [(phase, "c"), (phase, "b")], "{hook}");
    }
}

/// A waker that panics.
struct PanickingWaker;

impl Wake for PanickingWaker {
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
    let waker = Waker::from(Arc::new(PanickingWaker));
    let mut cx = Context::from_waker(&waker);
    let mut sends = Box::pin(feed.send(2.0));
    assert!(sends.as_mut().poll(&mut cx).is_pending());
    let mut changes = Box::pin(run.reconfigure().set("in", "k", 2.0).commit());
    assert!(changes.as_mut().poll(&mut cx).is_pending());
    time.settle();
    // Both wakers were called.
    time.block_on(sends).expect("there is room");
    assert_eq!(time.block_on(changes), Ok(1));
    time.settle();
    run.stop();
    let report = time.block_on(run).expect("nothing fails");
    assert_eq!((report.stop, report.executions), (RunStopReason::StopRequested, 2));
}

/// A value that panics when it is dropped.
struct PanickingDrop;

impl Data for PanickingDrop {
    const SCHEMA: &'static str = "glass";

    fn encode(&self, _out: &mut Vec<u8>) {}

    fn decode(_bytes: &[u8]) -> Result<Self, DataError> {
        Ok(Self)
    }
}

impl Drop for PanickingDrop {
    fn drop(&mut self) {
        panic!("it breaks");
    }
}

/// Publishes one in every call.
#[derive(Component, Default)]
#[component(type = "glazier")]
struct DropSource {
    #[output]
    out: Output<PanickingDrop>,
}

impl Execute for DropSource {
    fn execute(&mut self, cx: &mut GraphContext<'_>) -> Result<(), Failure> {
        let published = cx.publish(self.out, PanickingDrop);
        published.map_err(|refused| {
            core::mem::forget(refused.into_inner());
            Failure::msg("there is no room")
        })
    }
}

/// Reads nothing.
#[derive(Component, Default)]
#[component(type = "shelf")]
struct DropSink {
    #[input]
    a: clockjack_graph::Input<PanickingDrop>,
}

impl Execute for DropSink {
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
            // No component reads what it keeps: the values are dropped at the end.
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
    let types = Registry::new().register::<DropSource>().register::<DropSink>();
    let time = ManualTime::start();
    let options = RunOptions::steps(6).clock(Clock::Virtual);
    let run = compile(&text, &types).start(time.system(), options).expect("it starts");
    let report = time.block_on(run).expect("nothing fails");
    assert_eq!(report.executions, 18);
    assert_eq!(report.metrics.get("runtime.channel.drop_count", "f"), Some(3.0));
}
