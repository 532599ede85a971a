//! A self-contained SVG drawing: no script, no font, no style sheet. Immediate edges are solid and
//! go down; the others are dashed and may go up.

use clockjack_graph::describe::{BoundaryRole, EdgeKind};

use super::{
    Edge, FrameKind, Picture, line,
    svg_layout::{Layout, NODE_HEIGHT, Rect, layout},
};

const MARGIN: i64 = 40;
/// How far an upward edge bends to the side.
const DETOUR: i64 = 60;

pub(super) fn draw(picture: &Picture) -> String {
    let n_regions = picture.nodes.iter().map(|node| node.region + 1).max().unwrap_or(0);
    let mut loop_of: Vec<Option<usize>> = vec![None; n_regions];
    for node in &picture.nodes {
        let frame = node.frame.filter(|frame| picture.boxes[*frame].kind == FrameKind::Loop);
        loop_of[node.region] = loop_of[node.region].or(frame);
    }
    let is_loop: Vec<bool> = loop_of.iter().map(Option::is_some).collect();
    let layout = layout(picture, &is_loop);
    let (width, height) =
        (layout.width + 2 * MARGIN + 2 * DETOUR, layout.height + 2 * MARGIN + DETOUR / 2);
    let mut out = String::new();
    line(
        &mut out,
        format_args!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" \
             width=\"{width}\" height=\"{height}\" font-family=\"sans-serif\" font-size=\"13\">"
        ),
    );
    line(&mut out, format_args!("<title>{}</title>", text(&picture.name)));
    out.push_str(
        "<defs><marker id=\"arrow\" viewBox=\"0 0 8 8\" refX=\"8\" refY=\"4\" markerWidth=\"8\" \
         markerHeight=\"8\" orient=\"auto\"><path d=\"M0 0 L8 4 L0 8 z\" fill=\"#445\"/></marker>\
         </defs>\n",
    );
    line(&mut out, format_args!("<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>"));
    line(&mut out, format_args!("<g transform=\"translate({},{MARGIN})\">", MARGIN + DETOUR));
    for (region, frame) in loop_of.iter().enumerate() {
        if let Some(frame) = frame {
            draw_loop(&layout.regions[region], &picture.boxes[*frame].label, &mut out);
        }
    }
    for edge in &picture.edges {
        draw_edge(edge, &layout, &mut out);
    }
    for (index, node) in picture.nodes.iter().enumerate() {
        let below = format!("{} on {}", node.component_type, node.lane);
        draw_node(&layout.nodes[index], &node.id, &below, node.role, &mut out);
    }
    out.push_str("</g>\n</svg>\n");
    out
}

fn draw_loop(rect: &Rect, label: &str, out: &mut String) {
    let Rect { x, y, width, height } = rect;
    line(
        out,
        format_args!(
            "<rect x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\" rx=\"10\" \
             fill=\"#f4f1fb\" stroke=\"#86a\" stroke-dasharray=\"2 3\"/>"
        ),
    );
    let label = text(label);
    line(
        out,
        format_args!("<text x=\"{}\" y=\"{}\" fill=\"#64a\">loop {label}</text>", x + 10, y + 18),
    );
}

fn draw_node(rect: &Rect, id: &str, below: &str, role: BoundaryRole, out: &mut String) {
    let Rect { x, y, width, .. } = rect;
    let fill = match role {
        BoundaryRole::Processing => "#eef3fa",
        BoundaryRole::Input => "#e7f6ea",
        BoundaryRole::Output => "#fdf1e3",
        BoundaryRole::InputOutput => "#f6f6dd",
    };
    line(
        out,
        format_args!(
            "<rect x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{NODE_HEIGHT}\" rx=\"6\" \
             fill=\"{fill}\" stroke=\"#445\"/>"
        ),
    );
    let (center, first, second) = (rect.center_x(), y + 19, y + 35);
    line(
        out,
        format_args!(
            "<text x=\"{center}\" y=\"{first}\" text-anchor=\"middle\" font-weight=\"bold\">{}\
             </text><text x=\"{center}\" y=\"{second}\" text-anchor=\"middle\" fill=\"#556\" \
             font-size=\"11\">{}</text>",
            text(id),
            text(below)
        ),
    );
}

fn draw_edge(edge: &Edge, layout: &Layout, out: &mut String) {
    let (from, to) = (&layout.nodes[edge.from], &layout.nodes[edge.to]);
    let dashes = match edge.kind {
        EdgeKind::Immediate => "",
        EdgeKind::Delay => " stroke-dasharray=\"6 4\"",
        EdgeKind::State => " stroke-dasharray=\"10 3\"",
        EdgeKind::Async => " stroke-dasharray=\"2 3\"",
    };
    let (path, x, y) = if from.bottom() <= to.y {
        let (x1, y1, x2, y2) = (from.center_x(), from.bottom(), to.center_x(), to.y);
        let bend = (y2 - y1) / 2;
        let path = format!("M{x1} {y1} C{x1} {} {x2} {} {x2} {y2}", y1 + bend, y2 - bend);
        (path, i64::midpoint(x1, x2), i64::midpoint(y1, y2))
    } else {
        // Upward, or within the same layer: leaves and enters at the right side.
        let (x1, y1) = (from.x + from.width, from.y + NODE_HEIGHT / 2);
        let (x2, y2) = (to.x + to.width, to.y + NODE_HEIGHT / 3);
        let side = x1.max(x2) + DETOUR;
        let path = format!("M{x1} {y1} C{side} {y1} {side} {y2} {x2} {y2}");
        (path, side - DETOUR / 4, i64::midpoint(y1, y2))
    };
    line(
        out,
        format_args!(
            "<path d=\"{path}\" fill=\"none\" stroke=\"#445\"{dashes} marker-end=\"url(#arrow)\">\
             <title>{}</title></path>",
            text(&format!("{} ({} to {})", edge.label, edge.from_port, edge.to_port))
        ),
    );
    line(
        out,
        format_args!(
            "<text x=\"{x}\" y=\"{y}\" text-anchor=\"middle\" font-size=\"10\" fill=\"#445\" \
             stroke=\"#fff\" stroke-width=\"3\" paint-order=\"stroke\">{}</text>",
            text(&edge.label)
        ),
    );
}

/// Escapes text for an element or an attribute.
fn text(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            letter if letter.is_control() => out.push(' '),
            letter => out.push(letter),
        }
    }
    out
}
