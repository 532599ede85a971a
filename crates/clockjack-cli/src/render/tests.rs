//! Golden drawings of small plans; tests that no name can break an output format.

use std::sync::Arc;

use clockjack_graph::{
    compile::{
        LaneCapabilities, Plan, PlanComponent, PlanEdge, PlanLane, PlanLoop, PlanPort, PlanRegion,
    },
    describe::{
        BoundaryRole, BoundarySpec, ComponentSpec, ConfigMap, EdgeKind, EdgeMode, EdgePolicy,
        FieldSpans, GraphKind, HierarchyEntry, LaneSpec, LaneType, LoopSpec, LoopType,
    },
};

use super::*;

const FORMS: [Form; 5] = [Form::Ascii, Form::Svg, Form::Dot, Form::Mermaid, Form::Json];

fn port(name: &str) -> PlanPort {
    PlanPort { name: name.into(), schema: String::new(), edges: Vec::new() }
}

fn component(id: &str, component_type: &str, role: BoundaryRole) -> PlanComponent {
    let boundary = BoundarySpec { role, descriptor: String::new() };
    let spec = ComponentSpec {
        id: id.into(),
        component_type: component_type.into(),
        boundary,
        ..ComponentSpec::default()
    };
    PlanComponent {
        spec,
        descriptor: Arc::new(clockjack_graph::Descriptor::new(component_type)),
        lane: 0,
        region: 0,
        inputs: vec![port("in")],
        outputs: vec![port("out")],
        trigger_inputs: Vec::new(),
    }
}

fn edge(id: &str, kind: EdgeKind, mode: EdgeMode, from: usize, to: usize) -> PlanEdge {
    PlanEdge {
        id: id.into(),
        kind,
        policy: EdgePolicy { mode, ..EdgePolicy::default() },
        from: (from, 0),
        to: (to, 0),
        slow_reader_drop_risk: false,
        advisory_fields: Vec::new(),
    }
}

/// A plan of these components and edges, with these regions in order; a region of several
/// components is a loop.
fn plan(components: Vec<PlanComponent>, edges: Vec<PlanEdge>, regions: &[&[usize]]) -> Plan {
    let mut components = components;
    let mut planned = Vec::new();
    for (index, members) in regions.iter().enumerate() {
        let mut id = components[members[0]].spec.id.clone();
        for member in *members {
            components[*member].region = index;
        }
        let loop_policy = (members.len() > 1).then(|| {
            id = format!("{id}_loop");
            PlanLoop { spec: loop_spec(&id), order_is_declared: false }
        });
        planned.push(PlanRegion {
            id,
            components: members.to_vec(),
            loop_policy,
            incoming: Vec::new(),
            outgoing: Vec::new(),
            lane: 0,
            rank: 2,
            is_output: false,
        });
    }
    let lane = PlanLane {
        spec: LaneSpec::new("main", LaneType::EventLoop),
        regions: (0..planned.len()).collect(),
        domain: 0,
        capabilities: LaneCapabilities::default(),
    };
    Plan {
        name: "cell".into(),
        kind: GraphKind::Runnable,
        lanes: vec![lane],
        components,
        edges,
        regions: planned,
        chains: Vec::new(),
        immediate_sccs: Vec::new(),
        lifecycle: Vec::new(),
        n_domains: 1,
        hierarchy: Vec::new(),
        diagnostics: Vec::new(),
        config: ConfigMap::default(),
    }
}

fn loop_spec(id: &str) -> LoopSpec {
    LoopSpec {
        id: id.into(),
        components: Vec::new(),
        loop_type: LoopType::FixedPoint,
        max_iterations: 5,
        budget_ms: 0,
        convergence: None,
        residual_threshold: None,
        partial_success: None,
        order: Vec::new(),
        mode: clockjack_graph::describe::LoopMode::GaussSeidel,
        max_inflight: 0,
        drop_policy: None,
        min_interval_ms: 0,
        spans: FieldSpans::default(),
    }
}

/// A sensor, a loop of two components, an actuator in a subgraph, and a delayed feedback edge.
fn cell() -> Plan {
    let components = vec![
        component("sensor", "sensor", BoundaryRole::Input),
        component("estimator", "estimator", BoundaryRole::Processing),
        component("controller", "controller", BoundaryRole::Processing),
        component("arm.actuator", "actuator", BoundaryRole::Output),
    ];
    let edges = vec![
        edge("sense", EdgeKind::Immediate, EdgeMode::Latest, 0, 1),
        edge("state", EdgeKind::Immediate, EdgeMode::Latest, 1, 2),
        edge("residual", EdgeKind::Immediate, EdgeMode::Latest, 2, 1),
        edge("command", EdgeKind::Immediate, EdgeMode::Queue, 2, 3),
        edge("position", EdgeKind::Delay, EdgeMode::PreviousTick, 3, 1),
    ];
    let mut plan = plan(components, edges, &[&[0], &[1, 2], &[3]]);
    plan.hierarchy.push(HierarchyEntry {
        id: "arm".into(),
        template: Some("axis".into()),
        components: vec!["arm.actuator".into()],
        ..HierarchyEntry::default()
    });
    plan
}

#[test]
fn a_cell_is_drawn_as_expected_in_every_form() {
    for (form, ending) in FORMS.into_iter().zip(["txt", "svg", "dot", "mmd", "json"]) {
        crate::golden::check(&format!("render/cell.{ending}"), &draw(&cell(), form));
    }
}

#[test]
fn a_graph_without_anything_is_drawn_too() {
    let empty = plan(Vec::new(), Vec::new(), &[]);
    for form in FORMS {
        assert!(draw(&empty, form).contains(if form == Form::Mermaid { "TD" } else { "cell" }));
    }
}

#[test]
fn no_name_breaks_the_language_of_a_form() {
    let evil = "a\"]; <script>&\\\n`#--> b";
    let nodes = vec![
        component(evil, evil, BoundaryRole::Processing),
        component("end", "subgraph", BoundaryRole::Processing),
    ];
    let plan =
        plan(nodes, vec![edge(evil, EdgeKind::Immediate, EdgeMode::Latest, 0, 1)], &[&[0], &[1]]);
    let svg = draw(&plan, Form::Svg);
    assert!(!svg.contains("<script") && svg.contains("&lt;script&gt;"), "{svg}");
    let mermaid = draw(&plan, Form::Mermaid);
    assert_eq!(mermaid.lines().count(), 4, "{mermaid}");
    assert!(!mermaid.contains("<script") && mermaid.contains("#lt;script#gt;"), "{mermaid}");
    let dot = draw(&plan, Form::Dot);
    assert!(dot.contains(r#"label="a\"]; <script>&\\\n`#--> b:immediate/latest""#), "{dot}");
    let json: serde_json::Value =
        serde_json::from_str(&draw(&plan, Form::Json)).expect("it is JSON");
    assert_eq!(json["nodes"][0]["id"], evil);
    assert!(draw(&plan, Form::Ascii).chars().all(|c| c == '\n' || !c.is_control()));
}

#[test]
fn every_edge_is_in_every_picture_however_many_there_are() {
    let n = 60;
    let nodes: Vec<_> =
        (0..n).map(|i| component(&format!("c{i}"), "identity", BoundaryRole::Processing)).collect();
    // All edges are long, so that there are more edges than rails.
    let edges = (0..n / 2)
        .map(|i| edge(&format!("edge{i}x"), EdgeKind::Immediate, EdgeMode::Latest, i, n - 1 - i));
    let regions: Vec<Vec<usize>> = (0..n).map(|i| vec![i]).collect();
    let regions: Vec<&[usize]> = regions.iter().map(Vec::as_slice).collect();
    let plan = plan(nodes, edges.collect(), &regions);
    for form in FORMS {
        let drawn = draw(&plan, form);
        for i in 0..n / 2 {
            assert!(drawn.contains(&format!("edge{i}x:immediate/latest")), "{form:?} has no {i}");
        }
    }
    let width = draw(&plan, Form::Ascii).lines().map(|line| line.chars().count()).max();
    assert!(width < Some(140), "{width:?}");
}

#[test]
fn a_loop_of_a_subgraph_is_drawn_inside_of_it() {
    let mut plan = cell();
    plan.hierarchy[0].components.extend(["estimator".into(), "controller".into()]);
    plan.hierarchy[0].loops.push("estimator_loop".into());
    let mermaid = draw(&plan, Form::Mermaid);
    let at = |text: &str| mermaid.find(text).expect("it is there");
    assert!(at("hierarchy arm") < at("    subgraph b1"), "{mermaid}");
    assert_eq!(mermaid.matches("estimator<br/>").count(), 1, "{mermaid}");
}
