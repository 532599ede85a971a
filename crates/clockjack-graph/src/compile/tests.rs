//! Helpers that build small graphs for the tests of the compiler.

mod codes;
mod properties;
mod regions;
mod rules;
mod views;

use std::sync::Arc;

use super::{Plan, TypeCatalog, compile};
use crate::{
    component::{ConfigField, ConfigKind, Descriptor, Multiplicity, Need, PortDescriptor},
    describe::{
        BoundaryRole, ChainSpec, ComponentSpec, ConfigMap, ConfigValue, EdgeKind, EdgePolicy,
        EdgeSpec, EventSourceSpec, FieldSpans, GraphSpec, LaneSpec, LaneType, LoopSpec, LoopType,
        SourceType, Span,
    },
    diagnostic::{Code, Diagnostic},
};

/// The component types of these tests.
#[derive(Default)]
struct Types {
    needs_boundaries: bool,
}

fn port(name: &str, schema: &str, need: Need, multiplicity: Multiplicity) -> PortDescriptor {
    PortDescriptor { name: name.into(), schema: schema.into(), need, multiplicity }
}

fn descriptor(component_type: &str) -> Option<Descriptor> {
    let mut one = Descriptor::new(component_type);
    let input = |schema| port("in", schema, Need::Optional, Multiplicity::Multiple);
    let output = |schema| port("out", schema, Need::Optional, Multiplicity::Multiple);
    match component_type {
        "source" | "once" => one.outputs = vec![output("f64")],
        "sink" => one.inputs = vec![input("f64")],
        "mid" | "shared" => {
            one.reentrant = component_type == "shared";
            (one.inputs, one.outputs) = (vec![input("")], vec![output("")]);
        }
        "need" => one.inputs = vec![port("in", "f64", Need::Required, Multiplicity::Multiple)],
        "single" => one.inputs = vec![port("in", "f64", Need::Required, Multiplicity::Single)],
        "text_sink" => one.inputs = vec![input("text")],
        "frame_source" => one.outputs = vec![output("cam.frame_rgb")],
        "frame_sink" => one.inputs = vec![input("cam.frame_rgb")],
        "gate" => one = one.role(BoundaryRole::Input),
        "set" => {
            one = one
                .config(ConfigField::new("gain", ConfigKind::Float).required().between(0.0, 2.0))
                .config(ConfigField::new("count", ConfigKind::Int))
                .config(ConfigField::new("mode", ConfigKind::Text).one_of(&["fast", "slow"]));
        }
        "open" => one = one.open_config(),
        _ => return None,
    }
    Some(one)
}

impl TypeCatalog for Types {
    fn descriptor(&self, _: usize, spec: &ComponentSpec) -> Option<Arc<Descriptor>> {
        descriptor(&spec.component_type).map(Arc::new)
    }

    fn types(&self) -> Vec<&str> {
        vec!["source", "sink", "mid", "shared", "need", "single", "gate", "set"]
    }

    fn can_restart(&self, index: usize) -> bool {
        // By convention, the third component of a test cannot be restarted.
        index != 2
    }

    fn needs_boundaries(&self) -> bool {
        self.needs_boundaries
    }
}

/// A graph with one lane `main` and nothing else.
fn empty() -> GraphSpec {
    GraphSpec {
        name: "test".into(),
        lanes: vec![LaneSpec::new("main", LaneType::EventLoop)],
        ..GraphSpec::default()
    }
}

/// The smallest graph without any diagnostic: `source.out -> sink.in`, edge `e`.
fn pair() -> GraphSpec {
    let mut graph = empty();
    graph.add("source", "source");
    graph.add("sink", "sink");
    graph.edge("e", EdgeKind::Immediate, "source.out", "sink.in");
    graph
}

/// A ring of immediate edges through `a`, `b`, ..., without a loop.
fn ring(ids: &[&str]) -> GraphSpec {
    let mut graph = empty();
    for id in ids {
        graph.add(id, "mid");
    }
    for (at, id) in ids.iter().enumerate() {
        let next = ids[(at + 1) % ids.len()];
        let kind = EdgeKind::Immediate;
        graph.edge(&format!("{id}{next}"), kind, &format!("{id}.out"), &format!("{next}.in"));
    }
    graph
}

impl GraphSpec {
    fn add(&mut self, id: &str, component_type: &str) -> &mut ComponentSpec {
        let mut one = ComponentSpec {
            id: id.into(),
            component_type: component_type.into(),
            event_sources: vec![EventSourceSpec::default()],
            ..ComponentSpec::default()
        };
        one.execution.lane = "main".into();
        self.components.push(one);
        self.components.last_mut().unwrap()
    }

    fn edge(&mut self, id: &str, kind: EdgeKind, from: &str, to: &str) -> &mut EdgeSpec {
        self.edges.push(EdgeSpec {
            id: id.into(),
            kind,
            from: from.into(),
            to: to.into(),
            policy: EdgePolicy::default(),
            spans: FieldSpans::default(),
        });
        self.edges.last_mut().unwrap()
    }

    fn chain(&mut self, from: &str, to: &str, max_ms: u64) {
        let mut one =
            ChainSpec { from: from.into(), to: to.into(), max_ms, ..ChainSpec::default() };
        one.set_default_id();
        self.chains.push(one);
    }

    fn own(&mut self, id: &str, components: &[&str]) -> &mut LoopSpec {
        self.loops.push(LoopSpec {
            id: id.into(),
            components: components.iter().map(|one| (*one).into()).collect(),
            loop_type: LoopType::FixedPoint,
            max_iterations: 4,
            budget_ms: 0,
            convergence: None,
            residual_threshold: None,
            partial_success: None,
            order: Vec::new(),
            mode: crate::describe::LoopMode::default(),
            max_inflight: 0,
            drop_policy: None,
            min_interval_ms: 0,
            spans: FieldSpans::default(),
        });
        self.loops.last_mut().unwrap()
    }

    /// Makes a component wait for messages at `in`.
    fn on_messages(&mut self, at: usize, source_type: SourceType) -> &mut ComponentSpec {
        self.components[at].event_sources = vec![EventSourceSpec {
            source_type,
            inputs: vec!["in".into()],
            ..EventSourceSpec::default()
        }];
        &mut self.components[at]
    }
}

fn config(entries: &[(&str, ConfigValue)]) -> ConfigMap {
    let entries =
        entries.iter().map(|(key, value)| ((*key).into(), value.clone(), Span::NONE)).collect();
    ConfigMap { entries }
}

fn planned(graph: &GraphSpec) -> Plan {
    let (plan, list) = compile(graph, &Types::default());
    plan.unwrap_or_else(|| panic!("{list:#?}"))
}

fn findings(graph: &GraphSpec) -> Vec<Diagnostic> {
    let (plan, list) = compile(graph, &Types::default());
    assert_eq!(
        plan.is_none(),
        list.iter().any(Diagnostic::is_error),
        "there is a plan if and only if there is no error"
    );
    list
}

fn errors(graph: &GraphSpec) -> Vec<(Code, String)> {
    let mut list = findings(graph);
    list.retain(Diagnostic::is_error);
    list.into_iter().map(|one| (one.code, one.path)).collect()
}

fn order(plan: &Plan) -> Vec<&str> {
    plan.regions.iter().map(|one| one.id.as_str()).collect()
}
