//! Frames inside frames: each level is placed by itself, from the inside out, and becomes a box of
//! the level around it.

use std::collections::BTreeMap;

use super::{
    Band, Captions, FrameBox, Layout, Metrics, Point, Rect, Route,
    level::{Item, Level, Link, Placed},
    metrics::Font,
};
use crate::{
    describe::EdgeKind,
    picture::{Picture, caption},
};

/// The maximum number of lanes of which every order is tried.
const PERMUTED_LANES_MAX: usize = 6;

/// The lanes that have nodes, in the order in which they are drawn: the first of those orders in
/// which the edges between lanes pass the fewest other lanes.
pub(super) fn lane_order(picture: &Picture) -> Vec<usize> {
    let mut is_used = vec![false; picture.lanes.len()];
    picture.nodes.iter().for_each(|node| is_used[node.lane] = true);
    let lanes: Vec<usize> = (0..picture.lanes.len()).filter(|lane| is_used[*lane]).collect();
    if lanes.len() > PERMUTED_LANES_MAX {
        return lanes;
    }
    let mut traffic: BTreeMap<(usize, usize), usize> = BTreeMap::new();
    for edge in &picture.edges {
        let (from, to) = (picture.nodes[edge.from].lane, picture.nodes[edge.to].lane);
        *traffic.entry((from.min(to), from.max(to))).or_default() += 1;
    }
    let cost = |order: &Vec<usize>| -> usize {
        let place = |lane: usize| order.iter().position(|one| *one == lane).unwrap_or(0);
        traffic.iter().map(|((a, b), n_edges)| n_edges * place(*a).abs_diff(place(*b))).sum()
    };
    let mut orders = Vec::new();
    permute(&mut Vec::new(), &lanes, &mut orders);
    orders.into_iter().min_by_key(cost).unwrap_or_default()
}

/// All orders of the lanes, the given one first.
fn permute(begun: &mut Vec<usize>, lanes: &[usize], orders: &mut Vec<Vec<usize>>) {
    if begun.len() == lanes.len() {
        orders.push(begun.clone());
    }
    for lane in lanes {
        if !begun.contains(lane) {
            begun.push(*lane);
            permute(begun, lanes, orders);
            begun.pop();
        }
    }
}

/// A frame in one lane; the first group is the whole picture.
#[derive(Debug)]
struct Group {
    /// The frame and the lane; `None` for the whole picture.
    frame: Option<(usize, usize)>,
    parent: usize,
    depth: i64,
    children: Vec<Child>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Child {
    Node(usize),
    Group(usize),
}

/// A part of an edge in one level.
#[derive(Clone, Copy, Debug)]
struct Part {
    edge: usize,
    /// The place of this part in the edge: the parts that leave frames have negative steps, the one
    /// with both ends is zero, and the parts that enter frames have positive steps.
    step: i64,
    from: Option<Child>,
    to: Option<Child>,
}

/// A placed level.
#[derive(Debug)]
struct PlacedGroup {
    placed: Placed,
    parts: Vec<Part>,
    items: Vec<Item>,
    title_width: i64,
}

/// The groups of a picture.
#[derive(Debug)]
pub(super) struct Tree<'t> {
    picture: &'t Picture,
    metrics: &'t Metrics,
    captions: Captions,
    row_items_max: usize,
    lanes: Vec<usize>,
    groups: Vec<Group>,
    group_of_node: Vec<usize>,
}

impl<'t> Tree<'t> {
    pub(super) fn new(
        picture: &'t Picture,
        metrics: &'t Metrics,
        captions: Captions,
        row_items_max: usize,
    ) -> Self {
        let whole = Group { frame: None, parent: 0, depth: 0, children: Vec::new() };
        let mut tree = Self {
            picture,
            metrics,
            captions,
            row_items_max,
            lanes: lane_order(picture),
            groups: vec![whole],
            group_of_node: Vec::new(),
        };
        let mut known = BTreeMap::new();
        for (index, node) in picture.nodes.iter().enumerate() {
            let group = tree.group(node.frame, node.lane, &mut known);
            tree.groups[group].children.push(Child::Node(index));
            tree.group_of_node.push(group);
        }
        tree
    }

    /// The group of a frame in a lane.
    fn group(
        &mut self,
        frame: Option<usize>,
        lane: usize,
        known: &mut BTreeMap<(usize, usize), usize>,
    ) -> usize {
        let Some(frame) = frame else { return 0 };
        if let Some(group) = known.get(&(frame, lane)) {
            return *group;
        }
        let parent = self.group(self.picture.frames[frame].parent, lane, known);
        let group = self.groups.len();
        let depth = self.groups[parent].depth + 1;
        let frame_in_lane = Some((frame, lane));
        self.groups.push(Group { frame: frame_in_lane, parent, depth, children: Vec::new() });
        self.groups[parent].children.push(Child::Group(group));
        known.insert((frame, lane), group);
        group
    }

    /// The parts of all edges in each group.
    fn parts(&self) -> Vec<Vec<Part>> {
        let mut parts: Vec<Vec<Part>> = vec![Vec::new(); self.groups.len()];
        for (edge, arrow) in self.picture.edges.iter().enumerate() {
            let mut from = (self.group_of_node[arrow.from], Child::Node(arrow.from));
            let mut to = (self.group_of_node[arrow.to], Child::Node(arrow.to));
            while from.0 != to.0 {
                let (from_depth, to_depth) = (self.groups[from.0].depth, self.groups[to.0].depth);
                if from_depth >= to_depth {
                    let (step, group) = (-from_depth, from.0);
                    parts[group].push(Part { edge, step, from: Some(from.1), to: None });
                    from = (self.groups[group].parent, Child::Group(group));
                } else {
                    let (step, group) = (to_depth, to.0);
                    parts[group].push(Part { edge, step, from: None, to: Some(to.1) });
                    to = (self.groups[group].parent, Child::Group(group));
                }
            }
            parts[from.0].push(Part { edge, step: 0, from: Some(from.1), to: Some(to.1) });
        }
        parts
    }

    pub(super) fn place(&self) -> Layout {
        let mut parts = self.parts();
        let mut placed: Vec<Option<PlacedGroup>> = self.groups.iter().map(|_| None).collect();
        // A group is created after its parent.
        for group in (0..self.groups.len()).rev() {
            let parts = core::mem::take(&mut parts[group]);
            placed[group] = Some(self.place_group(group, parts, &placed));
        }
        let placed: Vec<PlacedGroup> = placed.into_iter().flatten().collect();
        self.assemble(&placed)
    }

    fn place_group(
        &self,
        group: usize,
        parts: Vec<Part>,
        placed: &[Option<PlacedGroup>],
    ) -> PlacedGroup {
        let m = self.metrics;
        let children = &self.groups[group].children;
        let place_of: BTreeMap<(bool, usize), usize> =
            children.iter().enumerate().map(|(place, child)| (key(*child), place)).collect();
        let items: Vec<Item> =
            children.iter().map(|child| self.item(*child, group, &parts, placed)).collect();
        let links: Vec<Link> = parts
            .iter()
            .map(|part| {
                let edge = &self.picture.edges[part.edge];
                let is_labeled = part.step == 0 && self.captions == Captions::Shown;
                let width = (m.text_width)(&caption::plain(&edge.caption), Font::Label);
                Link {
                    from: part.from.map(|child| place_of[&key(child)]),
                    to: part.to.map(|child| place_of[&key(child)]),
                    from_port: part.from.and_then(|child| port(child, part.edge, placed, false)),
                    to_port: part.to.and_then(|child| port(child, part.edge, placed, true)),
                    is_immediate: edge.kind == EdgeKind::Immediate,
                    label_width: if is_labeled { width } else { 0 },
                }
            })
            .collect();
        let title = |group: &Group| {
            let (frame, _) = group.frame?;
            Some((m.text_width)(&caption::frame(&self.picture.frames[frame]), Font::Title))
        };
        let title_width = title(&self.groups[group]);
        let columns: Vec<i64> = match title_width {
            Some(width) => vec![width + 2 * m.padding],
            None => self.lanes.iter().map(|lane| self.band_width(*lane)).collect(),
        };
        let row_items_max = match self.groups[group].frame {
            Some(_) => (items.len() + items.len() / 2).isqrt().clamp(2, self.row_items_max.max(2)),
            None => self.row_items_max,
        };
        let level = Level {
            metrics: m,
            items: &items,
            links: &links,
            columns: &columns,
            title_width: title_width.map(|width| m.snapped(width)),
            row_items_max,
        };
        let (placed, title_width) = (level.place(), title_width.unwrap_or(0));
        PlacedGroup { placed, parts, items, title_width }
    }

    fn band_width(&self, lane: usize) -> i64 {
        let title = caption::lane(&self.picture.lanes[lane]);
        (self.metrics.text_width)(&title, Font::Title) + 2 * self.metrics.padding
    }

    fn item(
        &self,
        child: Child,
        group: usize,
        parts: &[Part],
        placed: &[Option<PlacedGroup>],
    ) -> Item {
        let m = self.metrics;
        let (lane, order, width, height) = match child {
            Child::Node(index) => {
                let node = &self.picture.nodes[index];
                let n_out = parts.iter().filter(|part| part.from == Some(child)).count();
                let n_in = parts.iter().filter(|part| part.to == Some(child)).count();
                let [name, detail] = caption::lines(node);
                let width = (m.text_width)(&name, Font::Name);
                let width = width.max((m.text_width)(&detail, Font::Detail)) + 2 * m.box_padding;
                let width = width.max((n_out.max(n_in) as i64 + 1) * m.pitch);
                (node.lane, index, m.snapped(width), m.box_height)
            }
            Child::Group(inner) => {
                let (_, lane) = self.groups[inner].frame.expect("only the first group has none");
                let inner_placed = &placed[inner].as_ref().expect("inner groups come first").placed;
                (lane, self.first_node(inner), inner_placed.width, inner_placed.height)
            }
        };
        let column = if self.groups[group].frame.is_some() {
            0
        } else {
            self.lanes.iter().position(|one| *one == lane).unwrap_or(0)
        };
        Item { width, height, column, order }
    }

    fn first_node(&self, group: usize) -> usize {
        let first = |child: &Child| match child {
            Child::Node(index) => *index,
            Child::Group(inner) => self.first_node(*inner),
        };
        self.groups[group].children.iter().map(first).min().unwrap_or(0)
    }

    /// Moves all levels to their places.
    fn assemble(&self, placed: &[PlacedGroup]) -> Layout {
        let m = self.metrics;
        let whole = &placed[0].placed;
        let height = whole.height + m.band_title_height;
        let mut layout = Layout {
            width: whole.width,
            height,
            bands: Vec::new(),
            frames: Vec::new(),
            nodes: vec![Rect::default(); self.picture.nodes.len()],
            edges: vec![Route::default(); self.picture.edges.len()],
        };
        for (lane, (left, right)) in self.lanes.iter().zip(&whole.columns) {
            let rect = Rect { x: *left, y: 0, width: right - left, height };
            layout.bands.push(Band { lane: *lane, rect });
        }
        let mut origins = vec![Point { x: 0, y: m.band_title_height }; self.groups.len()];
        let mut pieces: Vec<Vec<(i64, Vec<Point>)>> = vec![Vec::new(); self.picture.edges.len()];
        for (group, one) in placed.iter().enumerate() {
            let PlacedGroup { placed: level, parts, items, title_width } = one;
            let origin = origins[group];
            let moved = |point: &Point| Point { x: point.x + origin.x, y: point.y + origin.y };
            if let Some((frame, lane)) = self.groups[group].frame {
                let rect = Rect { x: 0, y: 0, width: level.width, height: level.height };
                let title =
                    Rect { x: m.padding, y: 0, width: *title_width, height: m.title_height };
                let (rect, title) = (rect.moved(origin), title.moved(origin));
                layout.frames.push(FrameBox { frame, lane, rect, title });
            }
            let children = self.groups[group].children.iter();
            for ((child, at), item) in children.zip(&level.items).zip(items) {
                match child {
                    Child::Group(inner) => origins[*inner] = moved(at),
                    Child::Node(node) => {
                        let Point { x, y } = moved(at);
                        let Item { width, height, .. } = *item;
                        layout.nodes[*node] = Rect { x, y, width, height };
                    }
                }
            }
            for ((part, points), label) in parts.iter().zip(&level.links).zip(&level.labels) {
                pieces[part.edge].push((part.step, points.iter().map(moved).collect()));
                if let Some(label) = label {
                    layout.edges[part.edge].label = Some(label.moved(origin));
                }
            }
        }
        for (route, mut pieces) in layout.edges.iter_mut().zip(pieces) {
            pieces.sort_by_key(|(step, _)| *step);
            route.points = simplified(pieces.into_iter().flat_map(|(_, points)| points));
        }
        layout
    }
}

fn key(child: Child) -> (bool, usize) {
    match child {
        Child::Node(index) => (false, index),
        Child::Group(index) => (true, index),
    }
}

/// Where an edge crosses the border of an inner group.
fn port(child: Child, edge: usize, placed: &[Option<PlacedGroup>], is_entry: bool) -> Option<i64> {
    let Child::Group(inner) = child else { return None };
    let group = placed[inner].as_ref()?;
    let is_this = |part: &Part| part.edge == edge && part.from.is_none() == is_entry;
    let part = group.parts.iter().position(is_this)?;
    let points = &group.placed.links[part];
    let point = if is_entry { points.first() } else { points.last() };
    point.map(|point| point.x)
}

/// The corners without repeated points and without points in the middle of a straight line.
fn simplified(points: impl Iterator<Item = Point>) -> Vec<Point> {
    let mut corners: Vec<Point> = Vec::new();
    for point in points {
        if corners.last() == Some(&point) {
            continue;
        }
        if let [.., a, b] = corners[..]
            && ((a.x == b.x && b.x == point.x) || (a.y == b.y && b.y == point.y))
        {
            corners.pop();
        }
        corners.push(point);
    }
    corners
}
