//! A self-contained SVG drawing: no script and no font. Colors follow the color scheme of the
//! reader. A folded box is a link to its panel, which is below in the same file.

use core::fmt::Write as _;

use super::{
    Fold, FrameKind, Metrics, NodeKind, Panel, Picture, Point, Rect, Sheet, caption,
    layout::{Band, FrameBox, Route, metrics::Font},
};
use crate::describe::{BoundaryRole, EdgeKind};

/// The distance between the drawing and the sides of the image.
const MARGIN: i64 = 24;
/// The height of the heading of a panel.
const HEADING_HEIGHT: i64 = 30;
/// The distance between panels.
const PANEL_GAP: i64 = 40;
/// The height of the legend.
const LEGEND_HEIGHT: i64 = 28;
/// The length of the lines of the legend.
const LEGEND_LINE: i64 = 36;
/// The radius of the corners of lines.
const CORNER: i64 = 5;
/// The maximum width of the image, if the picture is folded.
const WIDTH_MAX: i64 = 4000;
/// The maximum width of a panel.
pub(super) const PANEL_WIDTH_MAX: i64 = WIDTH_MAX - 2 * MARGIN;

const KINDS: [EdgeKind; 4] =
    [EdgeKind::Immediate, EdgeKind::Delay, EdgeKind::State, EdgeKind::Async];

const STYLE: &str = include_str!("svg.css");

/// Draws a picture.
#[must_use]
pub fn draw(picture: &Picture, fold: Fold) -> String {
    let sheet = Sheet::new(picture, &Metrics::PIXELS, fold, PANEL_WIDTH_MAX);
    draw_sheet(&sheet, picture)
}

/// Draws a sheet.
pub(super) fn draw_sheet(sheet: &Sheet, whole: &Picture) -> String {
    let kinds: Vec<EdgeKind> = KINDS
        .into_iter()
        .filter(|kind| sheet.panels.iter().any(|panel| uses(&panel.picture, *kind)))
        .collect();
    let legend_width = kinds.iter().map(|kind| legend_entry(*kind)).sum();
    let (places, size) = places(sheet);
    let width = size.x.max(legend_width) + 2 * MARGIN;
    let legend_y = MARGIN + size.y + 8;
    let height = legend_y + LEGEND_HEIGHT + MARGIN / 2;
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" \
         width=\"{width}\" height=\"{height}\" role=\"img\" aria-labelledby=\"title desc\">\n"
    );
    let _ = writeln!(out, "<title id=\"title\">Graph {}</title>", text(&whole.name));
    let _ = writeln!(out, "<desc id=\"desc\">{}</desc>", text(&description(whole)));
    let _ = writeln!(out, "<style>\n{STYLE}</style>");
    markers(&kinds, &mut out);
    let _ = writeln!(out, "<rect class=\"page\" width=\"100%\" height=\"100%\"/>");
    for (index, (panel, place)) in sheet.panels.iter().zip(&places).enumerate() {
        draw_panel(panel, index, *place, &mut out);
    }
    legend(&kinds, legend_y, &mut out);
    out.push_str("</svg>\n");
    out
}

/// The upper left corners of the panels inside of the margin, and the size of all of them. The
/// overview is alone; the panels below it are next to each other as far as they fit.
pub(super) fn places(sheet: &Sheet) -> (Vec<Point>, Point) {
    let (mut places, mut size) = (Vec::new(), Point { x: 0, y: 0 });
    let (mut next, mut row_height) = (Point { x: 0, y: 0 }, 0);
    for (index, panel) in sheet.panels.iter().enumerate() {
        let width = panel.layout.width.max(heading_width(&panel.picture));
        if index == 1 || (index > 1 && next.x + width > PANEL_WIDTH_MAX) {
            next = Point { x: 0, y: next.y + row_height + PANEL_GAP };
            row_height = 0;
        }
        places.push(next);
        row_height = row_height.max(HEADING_HEIGHT + panel.layout.height);
        size = Point { x: size.x.max(next.x + width), y: size.y.max(next.y + row_height) };
        next.x += width + PANEL_GAP;
    }
    (places, size)
}

fn uses(picture: &Picture, kind: EdgeKind) -> bool {
    picture.edges.iter().any(|edge| edge.kind == kind)
}

fn heading_width(picture: &Picture) -> i64 {
    // A panel of a part has an arrow before its heading.
    (Metrics::PIXELS.text_width)(&caption::heading(picture), Font::Name) + 20
}

/// The contents in words, for readers who do not see the drawing.
fn description(picture: &Picture) -> String {
    let mut out = format!("{}.", caption::heading(picture));
    if picture.lanes.len() > 1 {
        let lanes: Vec<&str> = picture.lanes.iter().map(|lane| lane.id.as_str()).collect();
        let _ = write!(out, " Lanes: {}.", lanes.join(", "));
    }
    let frames: Vec<&str> = picture.frames.iter().map(|frame| frame.label.as_str()).collect();
    if !frames.is_empty() {
        let _ = write!(out, " Subgraphs and loops: {}.", frames.join(", "));
    }
    out
}

fn markers(kinds: &[EdgeKind], out: &mut String) {
    out.push_str("<defs>\n");
    for kind in kinds {
        let _ = writeln!(
            out,
            "<marker id=\"arrow-{kind}\" viewBox=\"0 0 10 8\" refX=\"10\" refY=\"4\" \
             markerWidth=\"10\" markerHeight=\"8\" markerUnits=\"userSpaceOnUse\" orient=\"auto\">\
             <path class=\"head {kind}\" d=\"M0 0 L10 4 L0 8 z\"/></marker>"
        );
    }
    out.push_str("</defs>\n");
}

fn draw_panel(panel: &Panel, index: usize, place: Point, out: &mut String) {
    let Panel { picture, layout, parent, links } = panel;
    let (left, top) = (MARGIN + place.x, MARGIN + place.y);
    let _ = writeln!(out, "<g id=\"panel-{index}\" transform=\"translate({left},{top})\">");
    let heading = text(&caption::heading(picture));
    let _ = match parent {
        Some(parent) => writeln!(
            out,
            "<a href=\"#panel-{parent}\"><text class=\"heading\" y=\"14\">↑ {heading}</text></a>"
        ),
        None => writeln!(out, "<text class=\"heading\" y=\"14\">{heading}</text>"),
    };
    let _ = writeln!(out, "<g transform=\"translate(0,{HEADING_HEIGHT})\">");
    for (index, band) in layout.bands.iter().enumerate() {
        draw_band(picture, band, index, out);
    }
    for frame in &layout.frames {
        draw_frame(picture, frame, out);
    }
    for (edge, route) in picture.edges.iter().zip(&layout.edges) {
        let name = format!("{} ({} to {})", edge.label, edge.from_port, edge.to_port);
        let _ = writeln!(
            out,
            "<path class=\"edge {kind}\" d=\"{}\" marker-end=\"url(#arrow-{kind})\"><title>{}\
             </title></path>",
            path(route),
            text(&name),
            kind = edge.kind,
        );
    }
    for (index, rect) in layout.nodes.iter().enumerate() {
        draw_node(picture, index, rect, links[index], out);
    }
    for (edge, route) in picture.edges.iter().zip(&layout.edges) {
        if let Some(Rect { x, y, .. }) = route.label {
            let _ = writeln!(
                out,
                "<text class=\"label {}\" x=\"{x}\" y=\"{}\">{}</text>",
                edge.kind,
                y + 12,
                text(&caption::plain(&edge.caption))
            );
        }
    }
    out.push_str("</g>\n</g>\n");
}

fn draw_band(picture: &Picture, band: &Band, index: usize, out: &mut String) {
    let Rect { x, y, width, height } = band.rect;
    let parity = if index.is_multiple_of(2) { "even" } else { "odd" };
    let lane = &picture.lanes[band.lane];
    let _ = writeln!(
        out,
        "<rect class=\"band {parity}\" x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\"/>\
         <text class=\"lane\" x=\"{}\" y=\"{}\">{}</text>",
        x + 12,
        y + 20,
        text(&caption::lane(lane))
    );
}

fn draw_frame(picture: &Picture, one: &FrameBox, out: &mut String) {
    let frame = &picture.frames[one.frame];
    let Rect { x, y, width, height } = one.rect;
    let class = match frame.kind {
        FrameKind::Hierarchy => "subgraph",
        FrameKind::Loop => "loop",
    };
    let _ = writeln!(
        out,
        "<rect class=\"{class}\" x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\" \
         rx=\"8\"><title>{}</title></rect>\
         <text class=\"{class}-title\" x=\"{}\" y=\"{}\">{}</text>",
        text(&frame.label),
        one.title.x,
        one.title.y + 18,
        text(&caption::frame(frame))
    );
}

fn draw_node(picture: &Picture, index: usize, rect: &Rect, link: Option<usize>, out: &mut String) {
    let node = &picture.nodes[index];
    let Rect { x, y, width, height } = *rect;
    let class = match (node.kind, node.role) {
        (NodeKind::Folded(_), _) => "folded",
        (NodeKind::Outside, _) => "outside",
        (NodeKind::Component, BoundaryRole::Processing) => "processing",
        (NodeKind::Component, BoundaryRole::Input) => "input",
        (NodeKind::Component, BoundaryRole::Output) => "output",
        (NodeKind::Component, BoundaryRole::InputOutput) => "both",
    };
    if let Some(panel) = link {
        let _ = write!(out, "<a href=\"#panel-{panel}\">");
    }
    let [name, detail] = caption::lines(node);
    let lane = &picture.lanes[node.lane].id;
    let whole = format!("{} ({} on {lane})", node.id, node.component_type);
    let _ = write!(out, "<g class=\"node {class}\"><title>{}</title>", text(&whole));
    if class == "folded" {
        let (x, y) = (x + 4, y + 4);
        let _ = write!(
            out,
            "<rect x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\" rx=\"6\"/>"
        );
    }
    let center = x + width / 2;
    let _ = write!(
        out,
        "<rect x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\" rx=\"6\"/>\
         <text class=\"name\" x=\"{center}\" y=\"{}\">{}</text>\
         <text class=\"detail\" x=\"{center}\" y=\"{}\">{}</text></g>",
        y + 19,
        text(&name),
        y + 35,
        text(&detail)
    );
    out.push_str(if link.is_some() { "</a>\n" } else { "\n" });
}

fn legend(kinds: &[EdgeKind], y: i64, out: &mut String) {
    let _ = writeln!(out, "<g transform=\"translate({MARGIN},{y})\">");
    let mut x = 0;
    for kind in kinds {
        let _ = writeln!(
            out,
            "<path class=\"edge {kind}\" d=\"M{x} 10 H{}\" marker-end=\"url(#arrow-{kind})\"/>\
             <text class=\"label {kind}\" x=\"{}\" y=\"14\">{kind}</text>",
            x + LEGEND_LINE,
            x + LEGEND_LINE + 6,
        );
        x += legend_entry(*kind);
    }
    out.push_str("</g>\n");
}

fn legend_entry(kind: EdgeKind) -> i64 {
    LEGEND_LINE + 24 + (Metrics::PIXELS.text_width)(kind.name(), Font::Label)
}

/// The line of an edge, with round corners.
fn path(route: &Route) -> String {
    let points = &route.points;
    let mut out = String::new();
    for (index, point) in points.iter().enumerate() {
        let _ = match (index, points.get(index + 1)) {
            (0, _) => write!(out, "M{} {}", point.x, point.y),
            (_, None) => write!(out, " L{} {}", point.x, point.y),
            (_, Some(next)) => {
                let before = toward(*point, points[index - 1]);
                let after = toward(*point, *next);
                write!(
                    out,
                    " L{} {} Q{} {} {} {}",
                    before.x, before.y, point.x, point.y, after.x, after.y
                )
            }
        };
    }
    out
}

/// The point at the beginning or at the end of a round corner.
fn toward(corner: Point, other: Point) -> Point {
    let (dx, dy) = (other.x - corner.x, other.y - corner.y);
    let radius = CORNER.min((dx.abs() + dy.abs()) / 2);
    Point { x: corner.x + dx.signum() * radius, y: corner.y + dy.signum() * radius }
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
