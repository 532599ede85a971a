//! Clockjack's graphs: built in code, run in virtual time on a runtime with one worker per core,
//! with all metrics.

use alloc::sync::Arc;
use core::sync::atomic::{AtomicU64, Ordering};
use std::io;

use clockjack_graph::describe::{BoundaryRole, In, Out};
use clockjack_graph::{
    Binder, Clock, Component, Config, ConfigError, Descriptor, Edge, Execute, Failure as Failed,
    Graph, GraphBuilder, GraphContext, Input, InputPort, Lane, Need, Output, Parallel, RunOptions,
    Setup, TraceLog, Trigger,
};
use clockjack_rt::Runtime;

use super::measure::{Figure, Gauge, Run};
use super::shape::{INPUTS_MAX, Kind, Node, Shape, mix_times};
use crate::failure::Failure;

pub(crate) const NAME: &str = "clockjack";

/// The number of records in a trace.
const TRACE_CAPACITY: usize = 1 << 16;

/// A call with more iterations than this is worth running in parallel.
const N_TURNS_SHORT: u32 = 1;

/// Returns the number of the epoch. The first source of a graph has the gauge.
#[derive(Component)]
#[component(type = "source", role = "input")]
struct Source {
    #[output]
    out: Output<u64>,
    n: u64,
    gauge: Option<Gauge>,
}

impl Execute for Source {
    fn execute(&mut self, cx: &mut GraphContext<'_>) -> Result<(), Failed> {
        self.n += 1;
        if let Some(gauge) = &mut self.gauge {
            gauge.at(self.n);
        }
        cx.publish(self.out, self.n)?;
        Ok(())
    }
}

/// Mixes its input.
#[derive(Component)]
#[component(type = "mix")]
struct Mix {
    #[input]
    from: Input<u64>,
    #[output]
    out: Output<u64>,
    n_turns: u32,
}

impl Execute for Mix {
    fn execute(&mut self, cx: &mut GraphContext<'_>) -> Result<(), Failed> {
        if let Some(&x) = cx.latest(self.from) {
            cx.publish(self.out, mix_times(x, self.n_turns))?;
        }
        Ok(())
    }
}

/// Sums its input, and publishes the sum when it stops.
#[derive(Component)]
#[component(type = "sink", role = "output")]
struct Sink {
    #[input]
    from: Input<u64>,
    sum: u64,
    total: Arc<AtomicU64>,
}

impl Execute for Sink {
    fn execute(&mut self, cx: &mut GraphContext<'_>) -> Result<(), Failed> {
        if let Some(&x) = cx.latest(self.from) {
            self.sum = self.sum.wrapping_add(x);
        }
        Ok(())
    }

    fn deactivate(&mut self) -> Result<(), Failed> {
        // Relaxed: the end of the run orders it.
        self.total.fetch_add(self.sum, Ordering::Relaxed);
        Ok(())
    }
}

/// A sink with several inputs; the derive macro does not support lists of ports.
struct WideSink {
    from: Vec<Input<u64>>,
    sum: u64,
    total: Arc<AtomicU64>,
}

impl WideSink {
    const INPUTS: [&str; INPUTS_MAX] = [
        "in00", "in01", "in02", "in03", "in04", "in05", "in06", "in07", "in08", "in09", "in10",
        "in11", "in12", "in13", "in14", "in15",
    ];

    fn inputs() -> [InputPort<u64>; INPUTS_MAX] {
        Self::INPUTS.map(InputPort::new)
    }
}

impl Component for WideSink {
    const TYPE: &'static str = "wide_sink";

    fn describe() -> Descriptor {
        let empty = Descriptor::new(Self::TYPE).role(BoundaryRole::Output);
        Self::inputs().into_iter().fold(empty, |all, port| all.input(port, Need::Optional))
    }

    fn bind(&mut self, ports: &mut Binder<'_>) {
        let n_inputs = self.from.len();
        self.from =
            Self::inputs().into_iter().take(n_inputs).map(|port| ports.input(port)).collect();
    }

    fn configure(&mut self, _config: &Config) -> Result<(), ConfigError> {
        Ok(())
    }
}

impl Execute for WideSink {
    fn execute(&mut self, cx: &mut GraphContext<'_>) -> Result<(), Failed> {
        for &from in &self.from {
            if let Some(&x) = cx.latest(from) {
                self.sum = self.sum.wrapping_add(x);
            }
        }
        Ok(())
    }

    fn deactivate(&mut self) -> Result<(), Failed> {
        // Relaxed: the end of the run orders it.
        self.total.fetch_add(self.sum, Ordering::Relaxed);
        Ok(())
    }
}

/// Runs a shape as a graph.
///
/// # Errors
///
/// If it cannot be started, or the sum is wrong.
pub(crate) fn run(run: &Run<'_>) -> Result<Figure, Failure> {
    let start = |what: String| Failure::start(NAME, io::Error::other(what));
    let runtime = Runtime::new("compare").map_err(|error| start(error.to_string()))?;
    let total = Arc::new(AtomicU64::new(0));
    let (gauge, spent) = Gauge::new(run);
    let graph = build(run.shape, gauge, &total).map_err(start)?;
    let mut options =
        RunOptions::steps(run.n_epochs()).clock(Clock::Virtual).parallel(Parallel::Auto);
    if run.traces {
        options = options.trace(&TraceLog::new(TRACE_CAPACITY));
    }
    let running = graph.start(runtime.system(), options).map_err(|e| start(e.to_string()))?;
    let report = runtime.block_on(running).map_err(|error| start(error.to_string()))?;
    let figure = run.figure(NAME, total.load(Ordering::Relaxed), spent.get().copied())?;
    Ok(Figure { overlap: Some(report.overlap_max), ..figure })
}

/// The graph of a shape: short calls on one lane, long calls on a lane with workers.
fn build(shape: &Shape, gauge: Gauge, total: &Arc<AtomicU64>) -> Result<Graph, String> {
    let mut graph = Graph::builder("compare");
    graph.lane("main", Lane::event_loop());
    graph.lane("pool", Lane::thread_pool(8));
    let mut gauge = Some(gauge);
    let mut outs = Vec::with_capacity(shape.nodes.len());
    for (index, Node { kind, inputs }) in shape.nodes.iter().enumerate() {
        let id = format!("n{index}");
        let (main, total) = (Setup::on("main"), Arc::clone(total));
        let out = match *kind {
            Kind::Source => {
                let source = Source { out: Output::default(), n: 0, gauge: gauge.take() };
                Some(graph.add(&id, source, main).out(Source::OUT))
            }
            Kind::Mix(n_turns) => {
                let lane = if n_turns > N_TURNS_SHORT { Setup::on("pool") } else { main };
                let mix = Mix { from: Input::default(), out: Output::default(), n_turns };
                let added = graph.add(&id, mix, lane.trigger(Trigger::AnyInput));
                connect(&mut graph, &outs, inputs[0], added.input(Mix::FROM));
                Some(added.out(Mix::OUT))
            }
            Kind::Sink if inputs.len() == 1 => {
                let sink = Sink { from: Input::default(), sum: 0, total };
                let added = graph.add(&id, sink, main.trigger(Trigger::AnyInput));
                connect(&mut graph, &outs, inputs[0], added.input(Sink::FROM));
                None
            }
            Kind::Sink => {
                let from = vec![Input::default(); inputs.len()];
                let sink = WideSink { from, sum: 0, total };
                let added = graph.add(&id, sink, main.trigger(Trigger::AllInputs));
                for (&input, port) in inputs.iter().zip(WideSink::inputs()) {
                    connect(&mut graph, &outs, input, added.input(port));
                }
                None
            }
        };
        outs.push(out);
    }
    graph.build().map_err(|faults| faults.to_string())
}

fn connect(graph: &mut GraphBuilder, outs: &[Option<Out<u64>>], from: usize, to: In<u64>) {
    let from = outs[from].clone().expect("no node reads a sink");
    graph.connect(from, to, Edge::immediate());
}
