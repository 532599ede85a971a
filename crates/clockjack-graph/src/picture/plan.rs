//! Converts a plan to a picture.

use std::collections::BTreeMap;

use super::{Arrow, Frame, FrameKind, Node, NodeKind, Picture, PictureLane};
use crate::{
    compile::{Plan, PlanLane},
    describe::EdgeMode,
};

impl Picture {
    /// The picture of a plan, with every component.
    #[must_use]
    pub fn of(plan: &Plan) -> Self {
        let (frames, frame_of) = frames(plan);
        let order: Vec<usize> =
            plan.regions.iter().flat_map(|region| region.components.iter().copied()).collect();
        let mut node_of = vec![0; plan.components.len()];
        for (node, component) in order.iter().enumerate() {
            node_of[*component] = node;
        }
        let nodes = order.iter().map(|index| {
            let component = &plan.components[*index];
            Node {
                id: component.spec.id.clone(),
                component_type: component.spec.component_type.clone(),
                lane: component.lane,
                role: component.spec.boundary.role,
                frame: frame_of[*index],
                kind: NodeKind::Component,
            }
        });
        let edges = plan.edges.iter().map(|edge| Arrow {
            id: edge.id.clone(),
            kind: edge.kind,
            from: node_of[edge.from.0],
            from_port: plan.components[edge.from.0].outputs[edge.from.1].name.clone(),
            to: node_of[edge.to.0],
            to_port: plan.components[edge.to.0].inputs[edge.to.1].name.clone(),
            label: format!("{}:{}/{}", edge.id, edge.kind, edge.policy.mode),
            caption: if edge.policy.mode == EdgeMode::default() {
                edge.id.clone()
            } else {
                format!("{} ({})", edge.id, edge.policy.mode)
            },
        });
        Self {
            name: plan.name.clone(),
            lanes: plan.lanes.iter().map(lane).collect(),
            nodes: nodes.collect(),
            edges: edges.collect(),
            n_edges: plan.edges.len(),
            frames,
        }
    }
}

fn lane(lane: &PlanLane) -> PictureLane {
    let spec = &lane.spec;
    let detail = if spec.period_ms == 0 {
        spec.lane_type.to_string()
    } else {
        format!("{}, {} ms", spec.lane_type, spec.period_ms)
    };
    PictureLane { id: spec.id.clone(), detail }
}

/// All frames, and the innermost frame of each component. A loop is inside the subgraph that
/// declares it; a loop over several subgraphs is inside none of them and contains its members.
fn frames(plan: &Plan) -> (Vec<Frame>, Vec<Option<usize>>) {
    let mut frames = Vec::new();
    let mut frame_of = vec![None; plan.components.len()];
    let mut owner_of_loop = BTreeMap::new();
    let index_of: BTreeMap<&str, usize> = plan
        .components
        .iter()
        .enumerate()
        .map(|(index, component)| (component.spec.id.as_str(), index))
        .collect();
    for entry in &plan.hierarchy {
        let label = match &entry.template {
            Some(template) => format!("{} ({template})", entry.id),
            None => entry.id.clone(),
        };
        let frame = frames.len();
        frames.push(Frame {
            id: entry.id.clone(),
            label,
            kind: FrameKind::Hierarchy,
            parent: None,
        });
        for id in &entry.components {
            if let Some(index) = index_of.get(id.as_str()) {
                frame_of[*index] = Some(frame);
            }
        }
        for id in &entry.loops {
            owner_of_loop.insert(id.as_str(), frame);
        }
    }
    for region in &plan.regions {
        let Some(of) = &region.loop_policy else { continue };
        let label = format!("{} ({})", region.id, of.spec.loop_type);
        let parent = owner_of_loop.get(region.id.as_str()).copied();
        let frame = frames.len();
        frames.push(Frame { id: region.id.clone(), label, kind: FrameKind::Loop, parent });
        for component in &region.components {
            frame_of[*component] = Some(frame);
        }
    }
    (frames, frame_of)
}
