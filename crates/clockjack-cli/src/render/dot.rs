//! A Graphviz DOT file with clusters for hierarchy and loops.

use clockjack_graph::{
    describe::{BoundaryRole, EdgeKind},
    picture::{Frame, FrameKind, Node},
};

use super::{Picture, line};

pub(super) fn draw(picture: &Picture) -> String {
    let mut out = String::new();
    line(&mut out, format_args!("digraph {} {{", quoted(&picture.name)));
    line(&mut out, format_args!("  rankdir=TB;"));
    line(&mut out, format_args!("  node [shape=box, fontname=\"sans-serif\"];"));
    line(&mut out, format_args!("  edge [fontname=\"sans-serif\", fontsize=10];"));
    nodes(picture, None, 1, &mut out);
    boxes(picture, None, 1, &mut out);
    for edge in &picture.edges {
        let style = match edge.kind {
            EdgeKind::Immediate => "solid",
            EdgeKind::Delay => "dashed",
            EdgeKind::State => "bold",
            EdgeKind::Async => "dotted",
        };
        // Only immediate edges determine the order within an epoch, so only they constrain the
        // layout.
        let constraint = edge.kind == EdgeKind::Immediate;
        let (from, to, label) = (edge.from, edge.to, quoted(&edge.label));
        let ends =
            format!("taillabel={}, headlabel={}", quoted(&edge.from_port), quoted(&edge.to_port));
        line(
            &mut out,
            format_args!(
                "  n{from} -> n{to} [label={label}, {ends}, style={style}, \
                 constraint={constraint}];"
            ),
        );
    }
    out.push_str("}\n");
    out
}

fn boxes(picture: &Picture, parent: Option<usize>, depth: usize, out: &mut String) {
    for (index, Frame { label, kind, .. }) in picture.frames_in(parent) {
        let indent = "  ".repeat(depth);
        let style = match kind {
            FrameKind::Hierarchy => "solid",
            FrameKind::Loop => "rounded",
        };
        let label = quoted(&format!("{} {label}", kind.name()));
        line(out, format_args!("{indent}subgraph cluster_{index} {{"));
        line(out, format_args!("{indent}  label={label}; style={style};"));
        nodes(picture, Some(index), depth + 1, out);
        boxes(picture, Some(index), depth + 1, out);
        line(out, format_args!("{indent}}}"));
    }
}

fn nodes(picture: &Picture, frame: Option<usize>, depth: usize, out: &mut String) {
    let indent = "  ".repeat(depth);
    for (index, Node { id, component_type, lane, role, .. }) in picture.nodes_in(frame) {
        let lane = &picture.lanes[*lane].id;
        let label = quoted(&format!("{id}\n{component_type} on {lane}"));
        let shape = match role {
            BoundaryRole::Processing => "box",
            BoundaryRole::Input => "invhouse",
            BoundaryRole::Output => "house",
            BoundaryRole::InputOutput => "hexagon",
        };
        line(out, format_args!("{indent}n{index} [label={label}, shape={shape}];"));
    }
}

/// A DOT string: only quotes and backslashes are special, and `\n` is a line break.
fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for letter in text.chars() {
        match letter {
            '"' | '\\' => out.extend(['\\', letter]),
            '\n' => out.push_str("\\n"),
            letter if letter.is_control() => out.push(' '),
            letter => out.push(letter),
        }
    }
    out.push('"');
    out
}
