//! Folding: a picture with too many boxes becomes a picture with few. A subgraph becomes one box
//! per lane; if there are still too many boxes, neighbors in compiled order become one box. Edges
//! between the same two boxes become one line.

use core::{error::Error, fmt};
use std::collections::BTreeMap;

use super::{Arrow, Node, NodeKind, Picture, PictureLane};
use crate::{
    describe::{BoundaryRole, EdgeKind},
    nearest::nearest,
};

/// The maximum number of lanes that are drawn as bands. More bands are wider than any screen.
const LANES_MAX: usize = 12;
/// The maximum number of boxes for components outside of a part.
const OUTSIDE_MAX: usize = 12;

/// A folded picture.
#[derive(Debug)]
pub(super) struct Folded {
    pub(super) picture: Picture,
    /// The nodes of the original picture that each node stands for.
    pub(super) members: Vec<Vec<usize>>,
}

/// Several nodes that become one box, or a node that stays.
#[derive(Clone, Debug)]
struct Unit {
    lane: usize,
    frame: Option<usize>,
    nodes: Vec<usize>,
}

/// Folds a picture to at most about this many boxes.
pub(super) fn fold(picture: &Picture, boxes_max: usize) -> Folded {
    let units = chunks(picture, units(picture), boxes_max);
    let mut unit_of = vec![0; picture.nodes.len()];
    for (index, unit) in units.iter().enumerate() {
        unit.nodes.iter().for_each(|node| unit_of[*node] = index);
    }
    let nodes = units.iter().map(|unit| node(picture, unit)).collect();
    let folded = Picture {
        name: picture.name.clone(),
        lanes: picture.lanes.clone(),
        frames: Vec::new(),
        nodes,
        edges: merged(&picture.edges, |edge| Some((unit_of[edge.from], unit_of[edge.to]))),
        n_edges: picture.n_edges,
    };
    Folded { picture: folded, members: units.into_iter().map(|unit| unit.nodes).collect() }
}

/// The subgraphs and loops in each lane, and the nodes outside of them, in compiled order.
fn units(picture: &Picture) -> Vec<Unit> {
    let mut units: Vec<Unit> = Vec::new();
    let mut known = BTreeMap::new();
    for (index, node) in picture.nodes.iter().enumerate() {
        let frame = outermost(picture, node);
        let unit = match frame {
            Some(frame) => *known.entry((frame, node.lane)).or_insert(units.len()),
            None => units.len(),
        };
        if unit == units.len() {
            units.push(Unit { lane: node.lane, frame, nodes: Vec::new() });
        }
        units[unit].nodes.push(index);
    }
    units
}

/// The outermost subgraph or loop that contains a node.
fn outermost(picture: &Picture, node: &Node) -> Option<usize> {
    let mut frame = node.frame;
    while let Some(parent) = frame.and_then(|frame| picture.frames[frame].parent) {
        frame = Some(parent);
    }
    frame
}

/// Joins neighbors of one lane until there are few enough units. What is outside stays as it is.
fn chunks(picture: &Picture, units: Vec<Unit>, boxes_max: usize) -> Vec<Unit> {
    let is_outside = |unit: &Unit| picture.nodes[unit.nodes[0]].kind == NodeKind::Outside;
    let (mut joined, units): (Vec<Unit>, Vec<Unit>) = units.into_iter().partition(is_outside);
    if units.len() <= boxes_max {
        joined.extend(units);
        joined.sort_by_key(|unit| unit.nodes[0]);
        return joined;
    }
    let mut by_lane: BTreeMap<usize, Vec<Unit>> = BTreeMap::new();
    let n_units = units.len();
    for index in depth_first(picture, &units) {
        by_lane.entry(units[index].lane).or_default().push(units[index].clone());
    }
    // At least two, so that each part is smaller than the whole.
    let n_chunks = boxes_max.saturating_sub(by_lane.len()).max(2);
    let chunk_len = n_units.div_ceil(n_chunks).max(2);
    for (lane, units) in by_lane {
        for chunk in units.chunks(chunk_len) {
            let frame = if let [unit] = chunk { unit.frame } else { None };
            let nodes = chunk.iter().flat_map(|unit| unit.nodes.iter().copied()).collect();
            joined.push(Unit { lane, frame, nodes });
        }
    }
    joined.sort_by_key(|unit| unit.nodes[0]);
    joined
}

/// The units in depth-first order along immediate edges, so that a chain stays together.
fn depth_first(picture: &Picture, units: &[Unit]) -> Vec<usize> {
    let mut unit_of = vec![None; picture.nodes.len()];
    for (index, unit) in units.iter().enumerate() {
        unit.nodes.iter().for_each(|node| unit_of[*node] = Some(index));
    }
    let mut next: Vec<Vec<usize>> = vec![Vec::new(); units.len()];
    for edge in picture.edges.iter().filter(|edge| edge.kind == EdgeKind::Immediate) {
        if let (Some(from), Some(to)) = (unit_of[edge.from], unit_of[edge.to]) {
            next[from].push(to);
        }
    }
    let mut is_seen = vec![false; units.len()];
    let mut order = Vec::with_capacity(units.len());
    for first in 0..units.len() {
        let mut open = vec![first];
        while let Some(unit) = open.pop() {
            if !core::mem::replace(&mut is_seen[unit], true) {
                order.push(unit);
                open.extend(next[unit].iter().rev());
            }
        }
    }
    order
}

fn node(picture: &Picture, unit: &Unit) -> Node {
    let first = &picture.nodes[unit.nodes[0]];
    if unit.nodes.len() == 1 {
        return Node { frame: None, ..first.clone() };
    }
    let last = &picture.nodes[unit.nodes[unit.nodes.len() - 1]];
    let id = match unit.frame {
        Some(frame) => picture.frames[frame].label.clone(),
        None => {
            // Parts of two subgraphs have the names of these.
            let part = |node| outermost(picture, node).map(|frame| &picture.frames[frame].label);
            let [from, to] = [first, last].map(|node| part(node).unwrap_or(&node.id));
            if from == to {
                format!("{} … {}", first.id, last.id)
            } else {
                format!("{from} … {to}")
            }
        }
    };
    let parts = unit.nodes.iter().map(|node| match picture.nodes[*node].kind {
        NodeKind::Folded(n_components) => n_components,
        NodeKind::Component => 1,
        NodeKind::Outside => 0,
    });
    let n_components = parts.sum();
    Node {
        id,
        component_type: format!("{n_components} components"),
        lane: unit.lane,
        role: BoundaryRole::Processing,
        frame: None,
        kind: NodeKind::Folded(n_components),
    }
}

/// The edges between the nodes that `ends` returns. Edges of one kind between the same two nodes
/// are one; edges from a node to itself are inside of it, unless they are in the original picture.
fn merged(edges: &[Arrow], ends: impl Fn(&Arrow) -> Option<(usize, usize)>) -> Vec<Arrow> {
    let mut merged: Vec<(Arrow, usize)> = Vec::new();
    let mut known: BTreeMap<(usize, usize, EdgeKind), usize> = BTreeMap::new();
    for edge in edges {
        let Some((from, to)) = ends(edge) else { continue };
        if from == to {
            continue;
        }
        let index = *known.entry((from, to, edge.kind)).or_insert(merged.len());
        if index == merged.len() {
            merged.push((Arrow { from, to, ..edge.clone() }, 1));
        } else {
            merged[index].1 += 1;
        }
    }
    let merged = merged.into_iter().map(|(edge, n_edges)| {
        if n_edges == 1 {
            return edge;
        }
        let caption = format!("{n_edges} edges");
        let label = format!("{caption}:{}", edge.kind);
        Arrow { id: caption.clone(), caption, label, ..edge }
    });
    merged.collect()
}

/// The part of a picture that one box stands for, and boxes for what it is connected to.
pub(super) fn part(picture: &Picture, folded: &Folded, index: usize) -> Picture {
    let members = &folded.members[index];
    let mut place_of = vec![None; picture.nodes.len()];
    let mut nodes: Vec<Node> = Vec::new();
    for member in members {
        place_of[*member] = Some(nodes.len());
        nodes.push(picture.nodes[*member].clone());
    }
    let outside = outside(picture, folded, &place_of);
    let mut outside_place = BTreeMap::new();
    for unit in &outside {
        let neighbor = &folded.picture.nodes[*unit];
        outside_place.insert(*unit, nodes.len());
        let lane = nodes[0].lane;
        let (kind, frame) = (NodeKind::Outside, None);
        nodes.push(Node { kind, lane, frame, role: BoundaryRole::Processing, ..neighbor.clone() });
    }
    let unit_of = unit_of(picture, folded);
    let place = |node: usize| {
        place_of[node].or_else(|| outside_place.get(&unit_of[node]).copied()).unwrap_or(nodes.len())
    };
    let is_inside = |node: usize| place_of[node].is_some();
    let inner = |edge: &&Arrow| is_inside(edge.from) && is_inside(edge.to);
    let mut edges: Vec<Arrow> = picture
        .edges
        .iter()
        .filter(inner)
        .map(|edge| Arrow { from: place(edge.from), to: place(edge.to), ..edge.clone() })
        .collect();
    let n_edges = edges.len();
    edges.extend(merged(&picture.edges, |edge| {
        let is_crossing = is_inside(edge.from) != is_inside(edge.to);
        is_crossing.then(|| (place(edge.from), place(edge.to)))
    }));
    let n_nodes = nodes.len();
    if edges.iter().any(|edge| edge.from == n_nodes || edge.to == n_nodes) {
        nodes.push(Node {
            id: "elsewhere".into(),
            component_type: "other parts of the graph".into(),
            lane: nodes[0].lane,
            role: BoundaryRole::Processing,
            frame: None,
            kind: NodeKind::Outside,
        });
    }
    let name = folded.picture.nodes[index].id.clone();
    let (lanes, frames) = (picture.lanes.clone(), picture.frames.clone());
    without_common_frame(Picture { name, lanes, frames, nodes, edges, n_edges })
}

impl Picture {
    /// The part of the picture with this name: a subgraph, a loop, a lane, or a component with its
    /// neighbors. What the part is connected to is drawn as boxes outside of it.
    ///
    /// # Errors
    ///
    /// If there is no such part.
    pub fn part(&self, name: &str) -> Result<Self, UnknownPart> {
        let is_named = |node: &Node| {
            let mut frame = node.frame;
            while let Some(index) = frame {
                if self.frames[index].id == name {
                    return true;
                }
                frame = self.frames[index].parent;
            }
            false
        };
        let all = || 0..self.nodes.len();
        let mut members: Vec<usize> = all().filter(|node| is_named(&self.nodes[*node])).collect();
        if members.is_empty() {
            let is_on_lane = |node: &usize| self.lanes[self.nodes[*node].lane].id == name;
            members = all().filter(is_on_lane).collect();
        }
        if let Some(node) = self.nodes.iter().position(|node| node.id == name) {
            let is_near = |other: &usize| {
                let ends = |edge: &Arrow| {
                    (edge.from, edge.to) == (node, *other) || (edge.from, edge.to) == (*other, node)
                };
                *other == node || self.edges.iter().any(ends)
            };
            members = all().filter(is_near).collect();
        }
        if members.is_empty() {
            return Err(UnknownPart::new(self, name));
        }
        let others = all().filter(|node| members.binary_search(node).is_err());
        let mut units = vec![members.clone()];
        units.extend(others.map(|node| vec![node]));
        let one = |unit: &Vec<usize>| Node { frame: None, ..self.nodes[unit[0]].clone() };
        let nodes = units.iter().map(one).collect();
        let (frames, edges) = (Vec::new(), Vec::new());
        let lanes = self.lanes.clone();
        let picture = Self { name: name.into(), lanes, frames, nodes, edges, n_edges: 0 };
        let part = part(self, &Folded { picture, members: units }, 0);
        Ok(Self { name: format!("{}, {name}", self.name), ..part })
    }
}

/// The picture has no part with this name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownPart {
    name: String,
    nearest: Option<String>,
}

impl UnknownPart {
    fn new(picture: &Picture, name: &str) -> Self {
        let frames = picture.frames.iter().map(|frame| frame.id.as_str());
        let lanes = picture.lanes.iter().map(|lane| lane.id.as_str());
        let nodes = picture.nodes.iter().map(|node| node.id.as_str());
        let found = nearest(name, frames.chain(lanes).chain(nodes));
        Self { name: name.into(), nearest: found.map(Into::into) }
    }
}

impl fmt::Display for UnknownPart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the graph has no subgraph, loop, lane or component `{}`", self.name)?;
        match &self.nearest {
            Some(nearest) => write!(f, "; did you mean `{nearest}`?"),
            None => Ok(()),
        }
    }
}

impl Error for UnknownPart {}

fn unit_of(picture: &Picture, folded: &Folded) -> Vec<usize> {
    let mut unit_of = vec![0; picture.nodes.len()];
    for (unit, members) in folded.members.iter().enumerate() {
        members.iter().for_each(|member| unit_of[*member] = unit);
    }
    unit_of
}

/// The boxes to which the members are connected; none if there are too many.
fn outside(picture: &Picture, folded: &Folded, place_of: &[Option<usize>]) -> Vec<usize> {
    let unit_of = unit_of(picture, folded);
    let mut found = Vec::new();
    for edge in &picture.edges {
        let other = match (place_of[edge.from], place_of[edge.to]) {
            (Some(_), None) => edge.to,
            (None, Some(_)) => edge.from,
            _ => continue,
        };
        if !found.contains(&unit_of[other]) {
            found.push(unit_of[other]);
        }
    }
    if found.len() > OUTSIDE_MAX { Vec::new() } else { found }
}

/// Removes the frames that contain all components: the panel is that frame.
pub(super) fn without_common_frame(mut picture: Picture) -> Picture {
    while let Some(common) = common_frame(&picture) {
        for node in &mut picture.nodes {
            node.frame = node.frame.filter(|frame| *frame != common);
        }
        for frame in &mut picture.frames {
            frame.parent = frame.parent.filter(|parent| *parent != common);
        }
    }
    picture
}

/// The outermost frame that contains all components.
fn common_frame(picture: &Picture) -> Option<usize> {
    let top = |mut frame: usize| {
        while let Some(parent) = picture.frames[frame].parent {
            frame = parent;
        }
        frame
    };
    let mut members = picture.nodes.iter().filter(|node| node.kind != NodeKind::Outside);
    let common = members.next().and_then(|node| node.frame).map(top)?;
    members.all(|node| node.frame.map(top) == Some(common)).then_some(common)
}

/// The picture without bands if it has too many lanes.
pub(super) fn without_many_lanes(picture: &Picture) -> Option<Picture> {
    let mut is_used = vec![false; picture.lanes.len()];
    picture.nodes.iter().for_each(|node| is_used[node.lane] = true);
    let n_lanes = is_used.iter().filter(|is_used| **is_used).count();
    if n_lanes <= LANES_MAX {
        return None;
    }
    let mut picture = picture.clone();
    picture.nodes.iter_mut().for_each(|node| node.lane = 0);
    picture.lanes =
        vec![PictureLane { id: format!("{n_lanes} lanes"), detail: "not drawn apart".into() }];
    Some(picture)
}
