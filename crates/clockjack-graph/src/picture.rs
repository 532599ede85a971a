//! Drawings of a plan. A plan is first converted to a [`Picture`], which is independent of the
//! output format; [`Layout`] then assigns positions in abstract units. [`svg`] and [`text`] draw
//! the layout for a browser and for a terminal, so both show the same drawing. Equal plans give
//! equal bytes.
//!
//! A picture with too many components to be readable is folded first: a [`Sheet`] has an overview
//! and one panel per folded box.

mod caption;
mod fold;
pub mod layout;
mod plan;
mod sheet;
pub mod svg;
#[cfg(test)]
mod tests;
pub mod text;
mod wiring;

use crate::describe::{BoundaryRole, EdgeKind};
pub use fold::UnknownPart;
pub use layout::{Layout, Metrics, Point, Rect};
pub use sheet::{Fold, Panel, Sheet};

/// The contents of a drawing: lanes, frames, nodes in compiled order, and edges in declaration
/// order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Picture {
    /// The name of the graph, or of the part of the graph that is drawn.
    pub name: String,
    /// The lanes, in the order of the description.
    pub lanes: Vec<PictureLane>,
    /// The subgraphs, template instances and loops.
    pub frames: Vec<Frame>,
    /// The components, in compiled order.
    pub nodes: Vec<Node>,
    /// The edges.
    pub edges: Vec<Arrow>,
    /// The number of edges, including those that are folded.
    pub n_edges: usize,
}

/// A lane, which is drawn as a band.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PictureLane {
    /// The id of the lane.
    pub id: String,
    /// The type of the lane, with its period if it has one.
    pub detail: String,
}

/// A box around nodes: a subgraph, a template instance or a loop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// The id of the subgraph, instance or loop.
    pub id: String,
    /// The id, followed by the template or the type of the loop.
    pub label: String,
    /// What the box contains.
    pub kind: FrameKind,
    /// The enclosing box, which has a smaller index.
    pub parent: Option<usize>,
}

/// What a frame contains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameKind {
    /// A subgraph or a template instance.
    Hierarchy,
    /// A composite loop.
    Loop,
}

impl FrameKind {
    /// The name of this kind in output formats.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Hierarchy => "hierarchy",
            Self::Loop => "loop",
        }
    }
}

/// A component, or several components that are folded into one box.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// The id of the component.
    pub id: String,
    /// The type of the component; for folded components, their number.
    pub component_type: String,
    /// The index of its lane.
    pub lane: usize,
    /// Whether it is a boundary of the graph.
    pub role: BoundaryRole,
    /// The innermost frame that contains it.
    pub frame: Option<usize>,
    /// What the box stands for.
    pub kind: NodeKind,
}

/// What a node stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeKind {
    /// One component.
    Component,
    /// This many components of the picture.
    Folded(usize),
    /// Components outside of the part that is drawn.
    Outside,
}

/// An edge, or several edges between the same two nodes of a folded picture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arrow {
    /// The id of the edge.
    pub id: String,
    /// When published values become visible.
    pub kind: EdgeKind,
    /// The index of the producer.
    pub from: usize,
    /// The output of the producer.
    pub from_port: String,
    /// The index of the consumer.
    pub to: usize,
    /// The input of the consumer.
    pub to_port: String,
    /// `id:kind/mode`.
    pub label: String,
    /// The text next to the line: the id, and the mode unless it is the default.
    pub caption: String,
}

impl Picture {
    /// The nodes whose innermost frame is this one; `None` selects the nodes outside all frames.
    pub fn nodes_in(&self, frame: Option<usize>) -> impl Iterator<Item = (usize, &Node)> {
        self.nodes.iter().enumerate().filter(move |(_, node)| node.frame == frame)
    }

    /// The frames directly inside this one; `None` selects the outermost frames.
    pub fn frames_in(&self, parent: Option<usize>) -> impl Iterator<Item = (usize, &Frame)> {
        self.frames.iter().enumerate().filter(move |(_, frame)| frame.parent == parent)
    }

    /// The number of components, including those that are folded.
    #[must_use]
    pub fn n_components(&self) -> usize {
        let count = |node: &Node| match node.kind {
            NodeKind::Component => 1,
            NodeKind::Folded(n_components) => n_components,
            NodeKind::Outside => 0,
        };
        self.nodes.iter().map(count).sum()
    }
}
