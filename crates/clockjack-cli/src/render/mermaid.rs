//! A Mermaid flowchart, top down: boxes for hierarchy and loops, labels `id:kind/mode`. Nodes are
//! numbered, so that no id can collide with a Mermaid keyword.

use clockjack_graph::{
    describe::{BoundaryRole, EdgeKind},
    picture::{Frame, Node},
};

use super::{Picture, line};

pub(super) fn draw(picture: &Picture) -> String {
    let mut out = String::from("flowchart TD\n");
    nodes(picture, None, 1, &mut out);
    boxes(picture, None, 1, &mut out);
    for edge in &picture.edges {
        let arrow = match edge.kind {
            EdgeKind::Immediate => "-->",
            EdgeKind::Delay | EdgeKind::State | EdgeKind::Async => "-.->",
        };
        let label = text(&edge.label);
        line(&mut out, format_args!("  n{} {arrow}|\"{label}\"| n{}", edge.from, edge.to));
    }
    out
}

fn boxes(picture: &Picture, parent: Option<usize>, depth: usize, out: &mut String) {
    for (index, Frame { label, kind, .. }) in picture.frames_in(parent) {
        let indent = "  ".repeat(depth);
        let (kind, label) = (kind.name(), text(label));
        line(out, format_args!("{indent}subgraph b{index} [\"{kind} {label}\"]"));
        nodes(picture, Some(index), depth + 1, out);
        boxes(picture, Some(index), depth + 1, out);
        line(out, format_args!("{indent}end"));
    }
}

fn nodes(picture: &Picture, frame: Option<usize>, depth: usize, out: &mut String) {
    let indent = "  ".repeat(depth);
    for (index, Node { id, component_type, role, .. }) in picture.nodes_in(frame) {
        let label = format!("{}<br/>{}", text(id), text(component_type));
        let (open, close) = match role {
            BoundaryRole::Processing => ("[", "]"),
            BoundaryRole::Input => ("([", "])"),
            BoundaryRole::Output => ("[[", "]]"),
            BoundaryRole::InputOutput => ("{{", "}}"),
        };
        line(out, format_args!("{indent}n{index}{open}\"{label}\"{close}"));
    }
}

/// Escapes all characters that are special in Mermaid or HTML.
fn text(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '"' => out.push_str("#quot;"),
            '#' => out.push_str("#35;"),
            '&' => out.push_str("#amp;"),
            '<' => out.push_str("#lt;"),
            '>' => out.push_str("#gt;"),
            '`' => out.push_str("#96;"),
            letter if letter.is_control() => out.push(' '),
            letter => out.push(letter),
        }
    }
    out
}
