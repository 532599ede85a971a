//! A drawing with box-drawing characters, for a terminal. It has the layout of the SVG if the width
//! permits that; otherwise it leaves out the captions of edges and lists the edges below, and if
//! even that is too wide, it is a wiring diagram.

use super::{
    Arrow, Fold, FrameKind, Layout, Metrics, Node, NodeKind, Picture, Point, Rect, caption, fold,
    layout::{Captions, Route, metrics::columns_of},
    sheet::EDGES_MAX,
    wiring,
};
use crate::describe::{BoundaryRole, EdgeKind};

/// The width of a drawing whose reader has no known width.
pub const COLUMNS_DEFAULT: usize = 100;

/// The number of components above which a drawing is folded.
const BOXES_MAX: usize = 120;
/// The number of boxes of a folded drawing.
const FOLDED_BOXES_MAX: usize = 40;
/// The numbers of boxes per row that are tried, beginning with the best one.
const ROW_ITEMS: [usize; 3] = [5, 3, 2];

/// Draws a picture that is at most this wide, if a wiring diagram can be.
#[must_use]
pub fn draw(picture: &Picture, fold: Fold, columns: usize) -> String {
    let few_lanes = fold::without_many_lanes(picture);
    let picture = few_lanes.as_ref().unwrap_or(picture);
    if fold == Fold::Never || picture.nodes.len() <= BOXES_MAX {
        return draw_whole(picture, columns);
    }
    let folded = fold::fold(picture, FOLDED_BOXES_MAX);
    let mut out = draw_whole(&folded.picture, columns);
    out.push_str("\nA box with a number of components is folded. To draw its components, use\n");
    out.push_str(
        "`--only NAME` with the name of a subgraph, loop or component, or `--fold never`.\n",
    );
    out
}

fn draw_whole(picture: &Picture, columns: usize) -> String {
    if picture.edges.len() > EDGES_MAX {
        return wiring::draw(picture, columns);
    }
    let columns_max = i64::try_from(columns).unwrap_or(i64::MAX);
    for captions in [Captions::Shown, Captions::Hidden] {
        for row_items in ROW_ITEMS {
            let layout = Layout::with_rows(picture, &Metrics::CELLS, captions, row_items);
            if layout.width <= columns_max {
                return draw_layout(picture, &layout, captions);
            }
        }
    }
    wiring::draw(picture, columns)
}

fn draw_layout(picture: &Picture, layout: &Layout, captions: Captions) -> String {
    let mut canvas = Canvas::new(layout.width, layout.height);
    for (index, band) in layout.bands.iter().enumerate() {
        let Rect { x, y, height, .. } = band.rect;
        if index > 0 {
            (y..y + height).for_each(|y| canvas.set(x, y, '·'));
        }
        canvas.text(x + 2, y, &caption::lane(&picture.lanes[band.lane]));
    }
    for one in &layout.frames {
        let frame = &picture.frames[one.frame];
        let border = match frame.kind {
            FrameKind::Hierarchy => ['┏', '┓', '┗', '┛', '━', '┃'],
            FrameKind::Loop => ['╔', '╗', '╚', '╝', '═', '║'],
        };
        canvas.rect(&one.rect, border);
        canvas.text(one.title.x, one.title.y, &caption::frame(frame));
    }
    for (edge, route) in picture.edges.iter().zip(&layout.edges) {
        canvas.line(edge, route);
    }
    for (node, rect) in picture.nodes.iter().zip(&layout.nodes) {
        draw_node(node, rect, &mut canvas);
    }
    for (edge, route) in picture.edges.iter().zip(&layout.edges) {
        canvas.ends(route);
        if let Some(label) = route.label {
            canvas.text(label.x, label.y, &caption::plain(&edge.caption));
        }
    }
    let mut out = format!("{}\n\n{}", caption::heading(picture), canvas.into_text());
    out.push_str(&legend(picture));
    if captions == Captions::Hidden {
        out.push_str(&list(picture));
    }
    out
}

fn draw_node(node: &Node, rect: &Rect, canvas: &mut Canvas) {
    let border = match node.kind {
        NodeKind::Component | NodeKind::Folded(_) => ['┌', '┐', '└', '┘', '─', '│'],
        NodeKind::Outside => ['┌', '┐', '└', '┘', '╌', '╎'],
    };
    canvas.rect(rect, border);
    let [name, detail] = caption::lines(node);
    for (line, text) in [name, detail].iter().enumerate() {
        let width: i64 = text.chars().map(columns_of).sum();
        canvas.text(rect.x + (rect.width - width) / 2, rect.y + 1 + line as i64, text);
    }
    if matches!(node.role, BoundaryRole::Input | BoundaryRole::InputOutput) {
        canvas.set(rect.x, rect.y + 1, '▶');
    }
    if matches!(node.role, BoundaryRole::Output | BoundaryRole::InputOutput) {
        canvas.set(rect.right() - 1, rect.y + 1, '▶');
    }
}

/// What the lines mean, if there is more than one kind.
fn legend(picture: &Picture) -> String {
    let kinds = [EdgeKind::Immediate, EdgeKind::Delay, EdgeKind::State, EdgeKind::Async];
    let used = kinds.into_iter().filter(|kind| picture.edges.iter().any(|edge| edge.kind == *kind));
    let entries: Vec<String> =
        used.map(|kind| format!("{0}{0} {kind}", strokes(kind)[1])).collect();
    if entries.len() > 1 { format!("\n{}\n", entries.join("   ")) } else { String::new() }
}

/// The edges, if the drawing has no captions.
fn list(picture: &Picture) -> String {
    let mut out = String::from("\n");
    for edge in &picture.edges {
        let (from, to) = (&picture.nodes[edge.from].id, &picture.nodes[edge.to].id);
        let ends = format!("{from}.{} → {to}.{}", edge.from_port, edge.to_port);
        out.push_str(&format!("{}  {}\n", caption::plain(&edge.label), caption::plain(&ends)));
    }
    out
}

/// The characters of vertical and horizontal lines.
const fn strokes(kind: EdgeKind) -> [char; 2] {
    match kind {
        EdgeKind::Immediate => ['│', '─'],
        EdgeKind::Delay => ['╎', '╌'],
        EdgeKind::State => ['┃', '━'],
        EdgeKind::Async => ['┊', '┈'],
    }
}

/// A cell of the canvas.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Glyph {
    /// A character.
    One(char),
    /// A vertical or a horizontal part of a line.
    Vertical(char),
    Horizontal(char),
    /// The right half of a wide character.
    Covered,
}

#[derive(Debug)]
struct Canvas {
    rows: Vec<Vec<Glyph>>,
}

impl Canvas {
    fn new(width: i64, height: i64) -> Self {
        let n_columns = usize::try_from(width).unwrap_or(0);
        let n_rows = usize::try_from(height).unwrap_or(0);
        Self { rows: vec![vec![Glyph::One(' '); n_columns]; n_rows] }
    }

    fn at(&mut self, x: i64, y: i64) -> Option<&mut Glyph> {
        let row = self.rows.get_mut(usize::try_from(y).ok()?)?;
        row.get_mut(usize::try_from(x).ok()?)
    }

    fn set(&mut self, x: i64, y: i64, letter: char) {
        if let Some(glyph) = self.at(x, y) {
            *glyph = Glyph::One(letter);
        }
    }

    fn text(&mut self, x: i64, y: i64, text: &str) {
        let mut at = x;
        for letter in text.chars() {
            let width = columns_of(letter);
            if width == 0 {
                continue;
            }
            self.set(at, y, letter);
            if let (2, Some(glyph)) = (width, self.at(at + 1, y)) {
                *glyph = Glyph::Covered;
            }
            at += width;
        }
    }

    /// A border: its four corners, its horizontal sides and its vertical sides.
    fn rect(&mut self, rect: &Rect, border: [char; 6]) {
        let [upper_left, upper_right, lower_left, lower_right, horizontal, vertical] = border;
        let (right, bottom) = (rect.right() - 1, rect.bottom() - 1);
        for y in rect.y + 1..bottom {
            for x in rect.x + 1..right {
                self.set(x, y, ' ');
            }
            self.set(rect.x, y, vertical);
            self.set(right, y, vertical);
        }
        for x in rect.x + 1..right {
            self.set(x, rect.y, horizontal);
            self.set(x, bottom, horizontal);
        }
        self.set(rect.x, rect.y, upper_left);
        self.set(right, rect.y, upper_right);
        self.set(rect.x, bottom, lower_left);
        self.set(right, bottom, lower_right);
    }

    /// The line of an edge, without its ends.
    fn line(&mut self, edge: &Arrow, route: &Route) {
        let [vertical, horizontal] = strokes(edge.kind);
        let mut points = route.points.clone();
        if let Some(first) = points.first().copied() {
            // The line begins in the border of the box, so that a turn directly below has a corner.
            points.insert(0, Point { x: first.x, y: first.y - 1 });
        }
        for pair in points.windows(2) {
            let (a, b) = (pair[0], pair[1]);
            for y in a.y.min(b.y)..=a.y.max(b.y) {
                for x in a.x.min(b.x)..=a.x.max(b.x) {
                    let Some(glyph) = self.at(x, y) else { continue };
                    *glyph = match (a.x == b.x, *glyph) {
                        (true, Glyph::Horizontal(_)) | (false, Glyph::Vertical(_)) => {
                            Glyph::One('┼')
                        }
                        (true, _) => Glyph::Vertical(vertical),
                        (false, _) => Glyph::Horizontal(horizontal),
                    };
                }
            }
        }
        for three in points.windows(3) {
            let (before, corner, after) = (three[0], three[1], three[2]);
            if before.x == after.x || before.y == after.y {
                continue;
            }
            let side = if before.y == corner.y { before } else { after };
            let end = if before.y == corner.y { after } else { before };
            let letter = match (side.x > corner.x, end.y > corner.y) {
                (true, true) => '╭',
                (false, true) => '╮',
                (true, false) => '╰',
                (false, false) => '╯',
            };
            self.set(corner.x, corner.y, letter);
        }
    }

    /// The arrow head of an edge, and the place where it leaves its box.
    fn ends(&mut self, route: &Route) {
        if let [first, .., last] = route.points[..] {
            self.set(first.x, first.y - 1, '┬');
            self.set(last.x, last.y - 1, '▼');
        }
    }

    fn into_text(self) -> String {
        let mut out = String::new();
        for row in self.rows {
            let line: String = row
                .into_iter()
                .filter_map(|glyph| match glyph {
                    Glyph::One(letter) | Glyph::Vertical(letter) | Glyph::Horizontal(letter) => {
                        Some(letter)
                    }
                    Glyph::Covered => None,
                })
                .collect();
            out.push_str(line.trim_end());
            out.push('\n');
        }
        out
    }
}
