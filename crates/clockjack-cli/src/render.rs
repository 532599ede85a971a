//! Drawings of a plan. A plan is first converted to a [`Picture`], which is independent of the
//! output format; each format then draws the same picture. Equal plans give equal bytes.

mod ascii;
mod dot;
mod json;
mod mermaid;
mod svg;
mod svg_layout;

use core::fmt::Write as _;
use std::collections::BTreeMap;

use clockjack_graph::{
    compile::Plan,
    describe::{BoundaryRole, EdgeKind},
};

/// The output format of a drawing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    Ascii,
    Svg,
    Dot,
    Mermaid,
    Json,
}

/// Draws a plan.
pub(crate) fn draw(plan: &Plan, form: Form) -> String {
    let picture = Picture::of(plan);
    match form {
        Form::Ascii => ascii::draw(&picture),
        Form::Svg => svg::draw(&picture),
        Form::Dot => dot::draw(&picture),
        Form::Mermaid => mermaid::draw(&picture),
        Form::Json => json::draw(&picture),
    }
}

/// The contents of a drawing: boxes, nodes in compiled order, and edges in declaration order.
#[derive(Debug)]
struct Picture {
    name: String,
    boxes: Vec<Frame>,
    nodes: Vec<Node>,
    edges: Vec<Edge>,
}

/// A box around nodes: a subgraph, a template instance or a loop.
#[derive(Debug)]
struct Frame {
    id: String,
    label: String,
    kind: FrameKind,
    /// The enclosing box, which has a smaller index.
    parent: Option<usize>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FrameKind {
    Hierarchy,
    Loop,
}

impl FrameKind {
    const fn name(self) -> &'static str {
        match self {
            Self::Hierarchy => "hierarchy",
            Self::Loop => "loop",
        }
    }
}

/// A component.
#[derive(Debug)]
struct Node {
    id: String,
    component_type: String,
    lane: String,
    role: BoundaryRole,
    frame: Option<usize>,
    /// The index of its region in compiled order.
    region: usize,
}

/// An edge. `from` and `to` are indices of nodes.
#[derive(Debug)]
struct Edge {
    id: String,
    kind: EdgeKind,
    from: usize,
    from_port: String,
    to: usize,
    to_port: String,
    /// `id:kind/mode`.
    label: String,
}

impl Picture {
    fn of(plan: &Plan) -> Self {
        let (boxes, frame_of) = frames(plan);
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
                lane: plan.lanes[component.lane].spec.id.clone(),
                role: component.spec.boundary.role,
                frame: frame_of[*index],
                region: component.region,
            }
        });
        let edges = plan.edges.iter().map(|edge| Edge {
            id: edge.id.clone(),
            kind: edge.kind,
            from: node_of[edge.from.0],
            from_port: plan.components[edge.from.0].outputs[edge.from.1].name.clone(),
            to: node_of[edge.to.0],
            to_port: plan.components[edge.to.0].inputs[edge.to.1].name.clone(),
            label: format!("{}:{}/{}", edge.id, edge.kind, edge.policy.mode),
        });
        Self { name: plan.name.clone(), nodes: nodes.collect(), edges: edges.collect(), boxes }
    }

    /// The nodes whose innermost box is this one; `None` selects the nodes outside all boxes.
    fn nodes_in(&self, frame: Option<usize>) -> impl Iterator<Item = (usize, &Node)> {
        self.nodes.iter().enumerate().filter(move |(_, node)| node.frame == frame)
    }

    /// The boxes directly inside this one; `None` selects the outermost boxes.
    fn boxes_in(&self, parent: Option<usize>) -> impl Iterator<Item = (usize, &Frame)> {
        self.boxes.iter().enumerate().filter(move |(_, frame)| frame.parent == parent)
    }
}

/// All boxes, and the innermost box of each component. A loop is inside the subgraph that declares
/// it; a loop over several subgraphs is inside none of them and contains its members.
fn frames(plan: &Plan) -> (Vec<Frame>, Vec<Option<usize>>) {
    let mut boxes = Vec::new();
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
        let frame = boxes.len();
        boxes.push(Frame { id: entry.id.clone(), label, kind: FrameKind::Hierarchy, parent: None });
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
        let frame = boxes.len();
        boxes.push(Frame { id: region.id.clone(), label, kind: FrameKind::Loop, parent });
        for component in &region.components {
            frame_of[*component] = Some(frame);
        }
    }
    (boxes, frame_of)
}

/// Appends a line.
fn line(out: &mut String, text: core::fmt::Arguments<'_>) {
    out.write_fmt(text).expect("writing to a string cannot fail");
    out.push('\n');
}

#[cfg(test)]
mod tests;
