//! A layered layout (Sugiyama style): regions are in layers from top to bottom, so that immediate
//! edges go down. Within a layer, the barycenter heuristic places regions near their neighbors.
//! Members of a loop are stacked in one box. Integers only: equal pictures give equal positions on
//! every machine.

use super::Picture;

pub(super) const NODE_HEIGHT: i64 = 44;
const CHAR_WIDTH: i64 = 8;
const NODE_PADDING: i64 = 28;
const GAP_X: i64 = 70;
const GAP_Y: i64 = 76;
/// The gap between members of a loop, and between the members and their box.
pub(super) const LOOP_GAP: i64 = 34;
/// The number of barycenter sweeps; more sweeps change little.
const SWEEPS: usize = 4;

/// A rectangle.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Rect {
    pub(super) x: i64,
    pub(super) y: i64,
    pub(super) width: i64,
    pub(super) height: i64,
}

impl Rect {
    pub(super) const fn center_x(&self) -> i64 {
        self.x + self.width / 2
    }

    pub(super) const fn bottom(&self) -> i64 {
        self.y + self.height
    }
}

/// The positions of all nodes and regions.
#[derive(Debug)]
pub(super) struct Layout {
    pub(super) nodes: Vec<Rect>,
    /// Indexed by region.
    pub(super) regions: Vec<Rect>,
    pub(super) width: i64,
    pub(super) height: i64,
}

pub(super) fn layout(picture: &Picture, is_loop: &[bool]) -> Layout {
    let n_regions = is_loop.len();
    let mut members: Vec<Vec<usize>> = vec![Vec::new(); n_regions];
    for (index, node) in picture.nodes.iter().enumerate() {
        members[node.region].push(index);
    }
    let layers = ordered(picture, layers(picture, n_regions), n_regions);
    let sizes: Vec<Rect> =
        (0..n_regions).map(|region| size(picture, &members[region], is_loop[region])).collect();
    let row_width = |layer: &Vec<usize>| {
        let widths: i64 = layer.iter().map(|region| sizes[*region].width + GAP_X).sum();
        widths - GAP_X
    };
    let width = layers.iter().map(row_width).max().unwrap_or(0);
    let mut placed = Layout {
        nodes: vec![Rect::default(); picture.nodes.len()],
        regions: sizes.clone(),
        width,
        height: 0,
    };
    let mut y = 0;
    for layer in &layers {
        let mut x = (width - row_width(layer)) / 2;
        let mut height = 0;
        for region in layer {
            let rect = &mut placed.regions[*region];
            (rect.x, rect.y) = (x, y);
            let rect = *rect;
            place_members(picture, &members[*region], rect, is_loop[*region], &mut placed.nodes);
            x += rect.width + GAP_X;
            height = height.max(rect.height);
        }
        y += height + GAP_Y;
    }
    placed.height = (y - GAP_Y).max(0);
    placed
}

fn node_width(picture: &Picture, node: usize) -> i64 {
    let node = &picture.nodes[node];
    let second = node.component_type.chars().count() + node.lane.chars().count() + 4;
    let n_chars = node.id.chars().count().max(second);
    i64::try_from(n_chars).unwrap_or(i64::MAX / 1024) * CHAR_WIDTH + NODE_PADDING
}

fn size(picture: &Picture, members: &[usize], is_loop: bool) -> Rect {
    let widest = members.iter().map(|node| node_width(picture, *node)).max().unwrap_or(0);
    let n_members = i64::try_from(members.len()).unwrap_or(1);
    let border = if is_loop { LOOP_GAP } else { 0 };
    Rect {
        x: 0,
        y: 0,
        width: widest + 2 * border,
        height: n_members * NODE_HEIGHT + (n_members - 1).max(0) * LOOP_GAP + 2 * border,
    }
}

fn place_members(
    picture: &Picture,
    members: &[usize],
    within: Rect,
    is_loop: bool,
    nodes: &mut [Rect],
) {
    let mut y = within.y + if is_loop { LOOP_GAP } else { 0 };
    for node in members {
        let width = node_width(picture, *node);
        let x = within.x + (within.width - width) / 2;
        nodes[*node] = Rect { x, y, width, height: NODE_HEIGHT };
        y += NODE_HEIGHT + LOOP_GAP;
    }
}

/// The layer of each region: one below the lowest layer that it reads from. Regions are in compiled
/// order, so one pass is enough.
fn layers(picture: &Picture, n_regions: usize) -> Vec<usize> {
    let mut incoming: Vec<Vec<usize>> = vec![Vec::new(); n_regions];
    for (from, to) in flows(picture) {
        if from < to {
            incoming[to].push(from);
        }
    }
    let mut layer_of: Vec<usize> = vec![0; n_regions];
    for region in 0..n_regions {
        let above = incoming[region].iter().map(|from| layer_of[*from] + 1).max();
        layer_of[region] = above.unwrap_or(0);
    }
    layer_of
}

/// The pairs of regions with an immediate edge.
fn flows(picture: &Picture) -> impl Iterator<Item = (usize, usize)> {
    let immediate = picture
        .edges
        .iter()
        .filter(|edge| edge.kind == clockjack_graph::describe::EdgeKind::Immediate);
    immediate.map(|edge| (picture.nodes[edge.from].region, picture.nodes[edge.to].region))
}

/// The regions of each layer from left to right, each near the barycenter of its neighbors.
fn ordered(picture: &Picture, layer_of: Vec<usize>, n_regions: usize) -> Vec<Vec<usize>> {
    let n_layers = layer_of.iter().max().map_or(0, |layer| layer + 1);
    let mut layers: Vec<Vec<usize>> = vec![Vec::new(); n_layers];
    for (region, layer) in layer_of.iter().enumerate() {
        layers[*layer].push(region);
    }
    let mut neighbours: Vec<Vec<usize>> = vec![Vec::new(); n_regions];
    for edge in &picture.edges {
        let (from, to) = (picture.nodes[edge.from].region, picture.nodes[edge.to].region);
        neighbours[from].push(to);
        neighbours[to].push(from);
    }
    // Positions in millionths of a layer's width, so that layers of different lengths are
    // comparable.
    let mut position = vec![0_u64; n_regions];
    for sweep in 0..SWEEPS {
        for at in 0..n_layers {
            let layer = if sweep % 2 == 0 { at } else { n_layers - 1 - at };
            if sweep > 0 {
                let middle = |region: &usize| {
                    let near = &neighbours[*region];
                    let sum: u64 = near.iter().map(|other| position[*other]).sum();
                    sum.checked_div(near.len() as u64).unwrap_or(position[*region])
                };
                layers[layer].sort_by_key(middle);
            }
            let len = layers[layer].len() as u64;
            for (index, region) in layers[layer].iter().enumerate() {
                position[*region] = (2 * index as u64 + 1) * 1_000_000 / (2 * len);
            }
        }
    }
    layers
}
