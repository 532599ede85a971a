//! Operations of `clockjack-graph`: epochs on the thread of the caller, in manual time.

use clockjack_graph::{
    Binder, Component, Config, ConfigError, Descriptor, Edge, Execute, Failure, Graph,
    GraphBuilder, GraphContext, GraphRun, Input, InputPort, Lane, Need, Output, RunOptions, Setup,
    TraceLog, Trigger, describe::Out,
};
use clockjack_testkit::ManualTime;

use crate::operation::{Operation, operation};

/// Every operation of the crate. All graphs have 17 components.
pub(crate) fn all() -> Vec<Operation> {
    vec![
        operation("graph/caterpillar/step", 1000, || {
            let (time, run) = start(caterpillar, RunOptions::until_stopped());
            move |n| (0..n).for_each(|_| step(&time, &run))
        }),
        operation("graph/caterpillar/step_traced", 1000, || {
            let (time, run) = start(caterpillar, traced());
            move |n| (0..n).for_each(|_| step(&time, &run))
        }),
        epochs("graph/caterpillar/epoch", caterpillar, RunOptions::until_stopped),
        epochs("graph/caterpillar/epoch_traced", caterpillar, traced),
        epochs("graph/chain/epoch", chain, RunOptions::until_stopped),
        epochs("graph/fan_out/epoch", fan_out, RunOptions::until_stopped),
        epochs("graph/fan_in/epoch", fan_in, RunOptions::until_stopped),
    ]
}

/// One epoch in which all 17 components are called, and one that finds nothing to do.
fn step(time: &ManualTime, run: &GraphRun) {
    run.step();
    time.settle();
}

/// One epoch of many consecutive ones: almost only the calls of all components.
fn epochs(
    name: &'static str,
    shape: fn(&mut GraphBuilder),
    options: fn() -> RunOptions,
) -> Operation {
    operation(name, 10_000, move || {
        let (time, run) = start(shape, options());
        move |n| {
            (0..n).for_each(|_| run.step());
            time.settle();
        }
    })
}

fn traced() -> RunOptions {
    RunOptions::until_stopped().trace(&TraceLog::new(1024))
}

/// A graph that steps only when the host calls it. It has already made so many steps that its
/// buffers no longer grow.
fn start(shape: fn(&mut GraphBuilder), options: RunOptions) -> (ManualTime, GraphRun) {
    let mut graph = Graph::builder("graph");
    graph.lane("main", Lane::manual_step());
    shape(&mut graph);
    let graph = graph.build().expect("the graph is valid");
    let time = ManualTime::start();
    let run = graph.start(time.system(), options).expect("it starts");
    time.settle();
    (0..200).for_each(|_| step(&time, &run));
    (time, run)
}

fn on_message() -> Setup {
    Setup::on("main").trigger(Trigger::AnyInput)
}

fn add_head(graph: &mut GraphBuilder, id: &str) -> Out<u64> {
    graph.add(id, Head::default(), Setup::on("main")).out(Head::OUT)
}

fn add_body(graph: &mut GraphBuilder, id: &str, from: Out<u64>) -> Out<u64> {
    let body = graph.add(id, Body::default(), on_message());
    graph.connect(from, body.input(Body::FROM), Edge::immediate());
    body.out(Body::OUT)
}

fn add_foot(graph: &mut GraphBuilder, id: &str, from: Out<u64>) {
    let foot = graph.add(id, Foot::default(), on_message());
    graph.connect(from, foot.input(Foot::FROM), Edge::immediate());
}

/// A head, and eight segments of a body and a foot.
fn caterpillar(graph: &mut GraphBuilder) {
    let mut last = add_head(graph, "head");
    for segment in 0..8 {
        last = add_body(graph, &format!("body{segment}"), last);
        add_foot(graph, &format!("foot{segment}"), last.clone());
    }
}

/// 17 components in a row.
fn chain(graph: &mut GraphBuilder) {
    let mut last = add_head(graph, "head");
    for segment in 0..15 {
        last = add_body(graph, &format!("body{segment}"), last);
    }
    add_foot(graph, "foot", last);
}

/// One component with 16 readers.
fn fan_out(graph: &mut GraphBuilder) {
    let head = add_head(graph, "head");
    for foot in 0..16 {
        add_foot(graph, &format!("foot{foot}"), head.clone());
    }
}

/// One component that reads 16 inputs in one call.
fn fan_in(graph: &mut GraphBuilder) {
    let wide = graph.add("wide", Wide::default(), Setup::on("main").trigger(Trigger::AllInputs));
    for (head, port) in Wide::inputs().into_iter().enumerate() {
        let from = add_head(graph, &format!("head{head}"));
        graph.connect(from, wide.input(port), Edge::immediate());
    }
}

/// A source that counts.
#[derive(Component, Default)]
#[component(type = "head")]
struct Head {
    #[output]
    out: Output<u64>,
    n: u64,
}

impl Execute for Head {
    fn execute(&mut self, cx: &mut GraphContext<'_>) -> Result<(), Failure> {
        self.n += 1;
        cx.publish(self.out, self.n)?;
        Ok(())
    }
}

/// Forwards its input.
#[derive(Component, Default)]
#[component(type = "body")]
struct Body {
    #[input]
    from: Input<u64>,
    #[output]
    out: Output<u64>,
}

impl Execute for Body {
    fn execute(&mut self, cx: &mut GraphContext<'_>) -> Result<(), Failure> {
        if let Some(&x) = cx.latest(self.from) {
            cx.publish(self.out, x + 1)?;
        }
        Ok(())
    }
}

/// Sums its input.
#[derive(Component, Default)]
#[component(type = "foot")]
struct Foot {
    #[input]
    from: Input<u64>,
    sum: u64,
}

impl Execute for Foot {
    fn execute(&mut self, cx: &mut GraphContext<'_>) -> Result<(), Failure> {
        if let Some(&x) = cx.latest(self.from) {
            self.sum = self.sum.wrapping_add(x);
        }
        Ok(())
    }
}

/// Sums its 16 inputs.
#[derive(Default)]
struct Wide {
    from: Vec<Input<u64>>,
    sum: u64,
}

impl Wide {
    const INPUTS: [&str; 16] = [
        "in00", "in01", "in02", "in03", "in04", "in05", "in06", "in07", "in08", "in09", "in10",
        "in11", "in12", "in13", "in14", "in15",
    ];

    fn inputs() -> [InputPort<u64>; 16] {
        Self::INPUTS.map(InputPort::new)
    }
}

impl Component for Wide {
    const TYPE: &'static str = "wide";

    fn describe() -> Descriptor {
        let empty = Descriptor::new(Self::TYPE);
        Self::inputs().into_iter().fold(empty, |all, port| all.input(port, Need::Required))
    }

    fn bind(&mut self, ports: &mut Binder<'_>) {
        self.from = Self::inputs().into_iter().map(|port| ports.input(port)).collect();
    }

    fn configure(&mut self, _config: &Config) -> Result<(), ConfigError> {
        Ok(())
    }
}

impl Execute for Wide {
    fn execute(&mut self, cx: &mut GraphContext<'_>) -> Result<(), Failure> {
        for &from in &self.from {
            if let Some(&x) = cx.latest(from) {
                self.sum = self.sum.wrapping_add(x);
            }
        }
        Ok(())
    }
}
