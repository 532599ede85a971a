//! Graphs built in code: errors are reported at build time, and valid graphs have a plan.

use core::time::Duration;

use clockjack_graph::{
    Component, Edge, Execute, Failure, Graph, GraphContext, Input, InputPort, Lane, Output, Setup,
    Trigger,
    describe::{ComponentPriority, ErrorPolicy, OverrunPolicy},
    diagnostic::Code,
};

/// Doubles its input.
#[derive(Component, Default)]
#[component(type = "gain")]
struct Gain {
    #[input]
    x: Input<f64>,
    #[output]
    y: Output<f64>,
}

impl Execute for Gain {
    fn execute(&mut self, cx: &mut GraphContext<'_>) -> Result<(), Failure> {
        if let Some(x) = cx.latest(self.x) {
            let twice = 2.0 * x;
            cx.publish(self.y, twice)?;
        }
        Ok(())
    }
}

const MS: Duration = Duration::from_millis(1);

fn codes(built: Result<Graph, clockjack_graph::Diagnostics>) -> Vec<(Code, String)> {
    let reported = built.expect_err("it is wrong");
    reported.list.into_iter().filter(|one| one.is_error()).map(|one| (one.code, one.path)).collect()
}

#[test]
fn a_graph_in_code_has_a_plan() {
    let mut g = Graph::builder("loop");
    g.lane("control", Lane::fixed_rate(10 * MS).overrun(OverrunPolicy::SkipNext));
    let a = g.add("a", Gain::default(), Setup::on("control").trigger(Trigger::AnyInput));
    g.connect(a.out(Gain::Y), a.input(Gain::X), Edge::delay());
    let graph = g.build().expect("it is right");
    let one = &graph.plan().components[0];
    assert_eq!((one.spec.id.as_str(), one.trigger_inputs.as_slice()), ("a", &[0][..]));
    assert_eq!(graph.plan().edges[0].id, "a.y:a.x");
}

#[test]
fn edges_without_an_id_have_different_ones() {
    let mut g = Graph::builder("three");
    g.lane("main", Lane::event_loop());
    let a = g.add("a", Gain::default(), Setup::on("main"));
    let b = g.add("b", Gain::default(), Setup::on("main").priority(ComponentPriority::Low));
    g.connect(a.out(Gain::Y), b.input(Gain::X), Edge::delay());
    g.connect(b.out(Gain::Y), a.input(Gain::X), Edge::delay().id("back"));
    let graph = g.build().expect("it is right");
    let ids: Vec<&str> = graph.plan().edges.iter().map(|edge| edge.id.as_str()).collect();
    assert_eq!(ids, ["a.y:b.x", "back"]);
}

#[test]
fn all_mistakes_are_told_at_build_time() {
    let mut g = Graph::builder("wrong");
    g.lane("main", Lane::fixed_rate(Duration::from_micros(1500)));
    g.lane("main", Lane::event_loop());
    let a = g.add("a b", Gain::default(), Setup::on("mian"));
    let other = g.add("a b", Gain::default(), Setup::on("main"));
    g.connect(a.out(Gain::Y), a.input(Gain::X), Edge::delay().id("e"));
    g.connect(other.out(Gain::Y), a.input(OutputPortOnly::Z), Edge::state().id("e"));
    let reported = codes(g.build());
    let has = |code: Code| reported.iter().any(|(one, _)| *one == code);
    for code in [
        Code::InvalidValue,
        Code::DuplicateId,
        Code::InvalidIdentifier,
        Code::UnknownLane,
        Code::UnknownPort,
    ] {
        assert!(has(code), "{code} in {reported:?}");
    }
    assert!(
        reported.contains(&(Code::InvalidValue, "lanes.main.period_ms".into())),
        "{reported:?}"
    );
}

/// A port that no component of this test has.
struct OutputPortOnly;

impl OutputPortOnly {
    const Z: InputPort<f64> = InputPort::new("z");
}

#[test]
fn only_what_a_call_makes_can_be_made_anew() {
    let setup = || Setup::on("main").restart(3, 10 * MS);
    let mut once = Graph::builder("once");
    once.lane("main", Lane::event_loop());
    let a = once.add("a", Gain::default(), setup());
    once.connect(a.out(Gain::Y), a.input(Gain::X), Edge::delay());
    assert!(codes(once.build()).iter().all(|(code, _)| *code == Code::UnsupportedErrorPolicy));
    let mut often = Graph::builder("often");
    often.lane("main", Lane::event_loop());
    let a = often.add_with("a", Gain::default, setup());
    often.connect(a.out(Gain::Y), a.input(Gain::X), Edge::delay());
    let graph = often.build().expect("it is right");
    let policy = graph.plan().components[0].spec.execution.on_error;
    assert_eq!((policy.policy, policy.backoff_ms), (ErrorPolicy::Restart, 10));
}
