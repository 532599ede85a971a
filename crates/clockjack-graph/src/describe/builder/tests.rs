//! The same graph in code and in a file gives the same description.

use core::time::Duration;

use super::*;
use crate::{
    Failure,
    component::{Binder, Config, ConfigError, Input, Need, Output},
    describe::{
        GraphFile,
        spec::{
            BoundaryRole, ComponentPriority, Condition, EdgeMode, EdgeOverflow, ErrorPolicy,
            FieldSpans, LoopMode, OverrunPolicy,
        },
    },
    run::GraphContext,
};

#[derive(Default)]
struct Piece {
    a: Input<f64>,
    b: Input<f64>,
    out: Output<f64>,
}

impl Piece {
    const A: InputPort<f64> = InputPort::new("a");
    const B: InputPort<f64> = InputPort::new("b");
    const OUT: OutputPort<f64> = OutputPort::new("out");
}

impl Component for Piece {
    const TYPE: &'static str = "part";

    fn describe() -> Descriptor {
        Descriptor::new(Self::TYPE)
            .input(Self::A, Need::Optional)
            .input(Self::B, Need::Optional)
            .output(Self::OUT)
    }

    fn bind(&mut self, ports: &mut Binder<'_>) {
        (self.a, self.b) = (ports.input(Self::A), ports.input(Self::B));
        self.out = ports.output(Self::OUT);
    }

    fn configure(&mut self, _config: &Config) -> Result<(), ConfigError> {
        Ok(())
    }
}

impl Execute for Piece {
    fn execute(&mut self, _cx: &mut GraphContext<'_>) -> Result<(), Failure> {
        Ok(())
    }
}

const TEXT: &str = "\
schema_version: 1
graph: {name: both, config: {n: 3}, clock: {event_domain: device}}
lanes:
  fast: {type: fixed_rate, period_ms: 10, tick_budget_ms: 8, wall_clock_enabled: true,
         overrun_policy: skip_next}
  pool: {type: thread_pool, max_threads: 4, queue_capacity: 2, overflow: drop_oldest}
  host: {type: manual_step}
components:
  - id: source
    type: part
    event_sources: [{type: timer, period_ms: 5, phase_ms: 1}]
    execution: {lane: fast, priority: high, budget_ms: 2}
    boundary: {role: input}
    config: {gain: 0.5, on: true, name: x}
  - id: join
    type: part
    event_sources: [{type: message, inputs: [a, b]}]
    trigger_policy: {type: time_sync, sync_slop_ms: 3, max_latency_ms: 50}
    execution: {lane: fast, on_error: {policy: restart, max_restarts: 4, backoff_ms: 10}}
    depends_on: [source]
  - id: batch
    type: part
    event_sources: [{type: message, inputs: [b]}]
    trigger_policy: {type: batch, batch_size: 8, batch_window_ms: 20}
    execution: {lane: fast, on_error: isolate, burst: 2}
  - id: gate
    type: part
    event_sources: [{type: message, inputs: [b]}]
    trigger_policy: {type: condition, condition: any_input_ready, coalesce: true}
    execution: {lane: fast}
edges:
  - {id: 'source.out:join.a', kind: immediate, from: source.out, to: join.a}
  - {id: back, kind: delay, from: join.out, to: join.b,
     policy: {mode: queue, capacity: 8, overflow: block, deadline_ms: 6, max_silence_ms: 7,
              allow_drop: false}}
  - {id: 'join.out:batch.b', kind: async, from: join.out, to: batch.b, policy: {max_inflight: 2}}
  - {id: 'join.out:batch.b:2', kind: state, from: join.out, to: batch.b}
  - {id: 'batch.out:gate.b', kind: immediate, from: batch.out, to: gate.b}
composite_loops:
  - id: loop
    components: [batch, gate]
    order: [gate, batch]
    loop_policy: {type: solver_iteration, residual_threshold: 0.1, max_iterations: 9, mode: jacobi}
chains:
  - {from: source, to: gate, max_ms: 40}
";

fn built() -> GraphBuilder {
    let ms = Duration::from_millis;
    let mut g = Graph::builder("both");
    g.event_domain(ClockDomain::Device).config("n", 3);
    let fast = Lane::fixed_rate(ms(10)).tick_budget(ms(8)).wall_clock();
    g.lane("fast", fast.overrun(OverrunPolicy::SkipNext));
    let pool = Lane::thread_pool(4).queue_capacity(2);
    g.lane("pool", pool.overflow(crate::describe::LaneOverflow::DropOldest));
    g.lane("host", Lane::manual_step());
    let source = g.add(
        "source",
        Piece::default(),
        Setup::on("fast")
            .every_from(ms(5), ms(1))
            .priority(ComponentPriority::High)
            .budget(ms(2))
            .boundary(BoundaryRole::Input)
            .config("gain", 0.5)
            .config("on", true)
            .config("name", "x"),
    );
    let join = Setup::on("fast").trigger(Trigger::TimeSync(ms(3))).max_latency(ms(50));
    let join = g.add_with("join", Piece::default, join.restart(4, ms(10)).after(&source));
    let batch = Setup::on("fast").trigger(Trigger::BatchWindow(8, ms(20))).burst(2);
    let batch = g.add("batch", Piece::default(), batch.on_error(ErrorPolicy::Isolate));
    let gate = Setup::on("fast").trigger(Trigger::Condition(Condition::AnyInputReady));
    let gate = g.add("gate", Piece::default(), gate.coalesce().input(Piece::B));
    g.connect(source.out(Piece::OUT), join.input(Piece::A), Edge::immediate());
    let back = Edge::delay().id("back").mode(EdgeMode::Queue, 8).overflow(EdgeOverflow::Block);
    g.connect(join.out(Piece::OUT), join.input(Piece::B), {
        back.deadline(ms(6)).max_silence(ms(7)).no_drop()
    });
    let notice = Edge::asynchronous().max_inflight(2);
    g.connect(join.out(Piece::OUT), batch.input(Piece::B), notice);
    g.connect(join.out(Piece::OUT), batch.input(Piece::B), Edge::state());
    g.connect(batch.out(Piece::OUT), gate.input(Piece::B), Edge::immediate());
    let policy = Loop::solver(0.1).max_iterations(9).mode(LoopMode::Jacobi);
    g.loop_of("loop", &[&batch, &gate], policy.order(&[&gate, &batch]));
    g.chain(&source, &gate, ms(40));
    g
}

/// Removes what only a text has.
fn unmarked(mut spec: GraphSpec) -> GraphSpec {
    spec.source = None;
    spec.spans = FieldSpans::default();
    spec.lanes.iter_mut().for_each(|one| one.spans = FieldSpans::default());
    spec.edges.iter_mut().for_each(|one| one.spans = FieldSpans::default());
    spec.loops.iter_mut().for_each(|one| one.spans = FieldSpans::default());
    spec.chains.iter_mut().for_each(|one| one.spans = FieldSpans::default());
    let maps = spec.components.iter_mut().map(|one| &mut one.config).chain([&mut spec.config]);
    maps.flat_map(|map| &mut map.entries).for_each(|entry| entry.2 = Span::NONE);
    for component in &mut spec.components {
        component.spans = FieldSpans::default();
        component.trigger.spans = FieldSpans::default();
        component.event_sources.iter_mut().for_each(|one| one.spans = FieldSpans::default());
    }
    spec
}

#[test]
fn a_file_and_a_builder_give_the_same_description() {
    let file = GraphFile::parse("both", TEXT).expect("it is right");
    let (spec, parts, diagnostics) = built().into_parts();
    assert_eq!(diagnostics, Vec::new());
    assert_eq!(parts.len(), spec.components.len());
    let from_file = unmarked(file.into_spec());
    assert_eq!(spec.components, from_file.components);
    assert_eq!(spec.edges, from_file.edges);
    assert_eq!(spec, from_file);
}
