//! Random pictures, and pictures in the shape of a plant with many equal cells.

use crate::{
    describe::{BoundaryRole, EdgeKind},
    picture::{Arrow, Frame, FrameKind, Node, NodeKind, Picture, PictureLane},
};

/// SplitMix64 (Steele, Lea and Flood, 2014).
#[derive(Debug)]
struct Rng(u64);

impl Rng {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((z ^ (z >> 31)) % n as u64).expect("it is below a usize")
    }

    fn kind(&mut self) -> EdgeKind {
        [EdgeKind::Delay, EdgeKind::State, EdgeKind::Async][self.below(3)]
    }
}

/// A random picture of at most this many components.
pub(super) fn picture(seed: u64, n_nodes_max: usize) -> Picture {
    let n_nodes = 1 + Rng(!seed).below(n_nodes_max);
    of_size(seed, n_nodes)
}

/// A random picture: lanes, subgraphs on one or several lanes and inside each other, loops in and
/// outside of subgraphs, edges of all kinds in all directions, several edges between the same
/// components, and edges from a component to itself.
pub(super) fn of_size(seed: u64, n_nodes: usize) -> Picture {
    let mut rng = Rng(seed);
    let n_lanes = 1 + rng.below(5);
    let n_frames = rng.below(n_nodes / 6 + 1);
    // Every second subgraph is inside of an earlier one, so they nest several levels deep.
    let parent =
        |index: usize, rng: &mut Rng| (index > 0 && rng.below(2) > 0).then(|| rng.below(index));
    let frames =
        (0..n_frames).map(|index| frame(format!("sub{index}"), parent(index, &mut rng))).collect();
    let mut picture = Picture {
        name: format!("random {seed}"),
        lanes: (0..n_lanes).map(|index| lane(&format!("lane{index}"))).collect(),
        frames,
        nodes: Vec::new(),
        edges: Vec::new(),
        n_edges: 0,
    };
    let mut loops: Vec<Vec<usize>> = Vec::new();
    while picture.nodes.len() < n_nodes {
        let lane = rng.below(n_lanes);
        let frame = (n_frames > 0 && rng.below(3) > 0).then(|| rng.below(n_frames));
        let n_members = if rng.below(8) == 0 { 1 + rng.below(5) } else { 0 };
        let first = picture.nodes.len();
        if n_members == 0 {
            let name = "n".repeat(1 + rng.below(20));
            picture.nodes.push(node(format!("{name}{first}"), lane, frame));
            continue;
        }
        let kind = FrameKind::Loop;
        let id = format!("loop{first}");
        picture.frames.push(Frame { label: id.clone(), id, kind, parent: frame });
        let inner = Some(picture.frames.len() - 1);
        let members = first..(first + n_members).min(n_nodes);
        picture.nodes.extend(members.clone().map(|at| node(format!("環{at}"), lane, inner)));
        loops.push(members.collect());
    }
    for _ in 0..rng.below(2 * n_nodes + 1) {
        let (a, b) = (rng.below(n_nodes), rng.below(n_nodes));
        if a < b && rng.below(3) > 0 {
            connect(&mut picture, EdgeKind::Immediate, a, b);
        } else {
            let kind = rng.kind();
            connect(&mut picture, kind, a, b);
        }
    }
    for members in loops {
        for at in 0..members.len() {
            connect(
                &mut picture,
                EdgeKind::Immediate,
                members[at],
                members[(at + 1) % members.len()],
            );
        }
    }
    picture.n_edges = picture.edges.len();
    picture
}

/// Components in chains of four, with feedback; `cell_len` of them are a subgraph, or none are.
pub(super) fn plant(n_nodes: usize, cell_len: usize) -> Picture {
    let n_frames = n_nodes.checked_div(cell_len).unwrap_or(0);
    let mut picture = Picture {
        name: "plant".into(),
        lanes: vec![lane("control"), lane("perception")],
        frames: (0..n_frames).map(|index| frame(format!("cell{index}"), None)).collect(),
        nodes: Vec::new(),
        edges: Vec::new(),
        n_edges: 0,
    };
    for index in 0..n_nodes {
        let frame = index.checked_div(cell_len).filter(|frame| *frame < n_frames);
        picture.nodes.push(node(format!("c{index}"), usize::from(index % 8 > 5), frame));
        if index % 4 > 0 {
            connect(&mut picture, EdgeKind::Immediate, index - 1, index);
        }
        if index % 4 == 3 {
            connect(&mut picture, EdgeKind::Delay, index, index - 3);
        }
        if index % 40 == 20 {
            connect(&mut picture, EdgeKind::Async, index - 20, index);
        }
    }
    picture.n_edges = picture.edges.len();
    picture
}

fn lane(id: &str) -> PictureLane {
    PictureLane { id: id.into(), detail: "event_loop".into() }
}

fn frame(id: String, parent: Option<usize>) -> Frame {
    Frame { label: id.clone(), id, kind: FrameKind::Hierarchy, parent }
}

fn node(id: String, lane: usize, frame: Option<usize>) -> Node {
    let (component_type, role) = ("identity".into(), BoundaryRole::Processing);
    Node { id, component_type, lane, role, frame, kind: NodeKind::Component }
}

fn connect(picture: &mut Picture, kind: EdgeKind, from: usize, to: usize) {
    let id = format!("e{}", picture.edges.len());
    picture.edges.push(Arrow {
        kind,
        from,
        from_port: "out".into(),
        to,
        to_port: "in".into(),
        label: format!("{id}:{kind}/latest"),
        caption: id.clone(),
        id,
    });
}
