//! Operations of `clockjack-graph`: epochs on the thread of the caller, in manual time.

use clockjack_graph::{
    Component, Edge, Execute, Failure, Graph, GraphContext, GraphRun, Input, Lane, Output,
    RunOptions, Setup, TraceLog, Trigger, describe::Out,
};
use clockjack_testkit::ManualTime;

use crate::operation::{Operation, operation};

/// Every operation of the crate.
pub(crate) fn all() -> Vec<Operation> {
    vec![
        operation("graph/caterpillar/step", 1000, || {
            let (time, run) = caterpillar(RunOptions::until_stopped());
            move |n| (0..n).for_each(|_| step(&time, &run))
        }),
        operation("graph/caterpillar/step_traced", 1000, || {
            let (time, run) = caterpillar(RunOptions::until_stopped().trace(&TraceLog::new(1024)));
            move |n| (0..n).for_each(|_| step(&time, &run))
        }),
    ]
}

/// One epoch in which all 17 components are called, and one that finds nothing to do.
fn step(time: &ManualTime, run: &GraphRun) {
    run.step();
    time.settle();
}

/// A head, and eight segments of a body and a foot, called when the host says so. It has made so
/// many steps that nothing grows any more.
fn caterpillar(options: RunOptions) -> (ManualTime, GraphRun) {
    let mut graph = Graph::builder("caterpillar");
    graph.lane("main", Lane::manual_step());
    let on_message = || Setup::on("main").trigger(Trigger::AnyInput);
    let mut last: Out<u64> = graph.add("head", Head::default(), Setup::on("main")).out(Head::OUT);
    for segment in 0..8 {
        let body = graph.add(&format!("body{segment}"), Body::default(), on_message());
        graph.connect(last, body.input(Body::FROM), Edge::immediate());
        let foot = graph.add(&format!("foot{segment}"), Foot::default(), on_message());
        graph.connect(body.out(Body::OUT), foot.input(Foot::FROM), Edge::immediate());
        last = body.out(Body::OUT);
    }
    let graph = graph.build().expect("it is a graph");
    let time = ManualTime::start();
    let run = graph.start(time.system(), options).expect("it starts");
    time.settle();
    (0..200).for_each(|_| step(&time, &run));
    (time, run)
}

/// Counts.
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

/// Passes on.
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

/// Adds up.
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
