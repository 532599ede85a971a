//! The layered layout of one level: the items of the graph, or of one frame, which are boxes of
//! known size, and the links between them. The method is that of Sugiyama, Tagawa and Toda
//! ("Methods for visual understanding of hierarchical system structures", 1981): assign ranks,
//! order each rank, assign coordinates, route the links.
//!
//! Rows alternate: odd rows contain items, even rows contain the labels of links. The first and the
//! last row are the border of the level, where links enter and leave a frame.
//!
//! Invariant: every link is vertical inside a row, in a cell that is its own, and horizontal only
//! in the channels between rows. Therefore no link crosses an item or a label, whatever the ranks,
//! orders and coordinates are.

use super::{
    Metrics, Point, Rect,
    channel::{self, Wire},
    order, position, rank,
    rows::{Cell, CellKind, Path, Rows, Side},
};

/// A box of known size.
#[derive(Clone, Copy, Debug)]
pub(super) struct Item {
    pub(super) width: i64,
    pub(super) height: i64,
    /// The column to which it is confined.
    pub(super) column: usize,
    /// Its place in compiled order.
    pub(super) order: usize,
}

/// A connection from the lower side of an item to the upper side of an item.
#[derive(Clone, Copy, Debug)]
pub(super) struct Link {
    /// `None` is the upper border of the level.
    pub(super) from: Option<usize>,
    /// `None` is the lower border of the level.
    pub(super) to: Option<usize>,
    /// Where it leaves its item; `None` leaves the choice to the layout.
    pub(super) from_port: Option<i64>,
    /// Where it enters its item; `None` leaves the choice to the layout.
    pub(super) to_port: Option<i64>,
    /// Whether it determines the order within an epoch.
    pub(super) is_immediate: bool,
    /// The width of its label; zero means that it has none.
    pub(super) label_width: i64,
}

/// What is placed.
#[derive(Debug)]
pub(super) struct Level<'l> {
    pub(super) metrics: &'l Metrics,
    pub(super) items: &'l [Item],
    pub(super) links: &'l [Link],
    /// The minimum width of each column.
    pub(super) columns: &'l [i64],
    /// The width of the level's title, for which the first row has room.
    pub(super) title_width: Option<i64>,
    /// The maximum number of items per row and column, if the links permit it.
    pub(super) row_items_max: usize,
}

/// Where everything is.
#[derive(Debug)]
pub(super) struct Placed {
    pub(super) width: i64,
    pub(super) height: i64,
    /// The upper left corner of each item.
    pub(super) items: Vec<Point>,
    /// The corners of each link, from its beginning to its end.
    pub(super) links: Vec<Vec<Point>>,
    /// The label of each link that has one.
    pub(super) labels: Vec<Option<Rect>>,
    /// The left and the right side of each column.
    pub(super) columns: Vec<(i64, i64)>,
}

impl Level<'_> {
    /// Places everything.
    pub(super) fn place(&self) -> Placed {
        let ranks = rank::ranks(self.items, self.links, self.row_items_max);
        let mut rows = Rows::new(self, &ranks);
        order::reduce_crossings(&mut rows);
        rows.assign_ports(self);
        let xs = position::assign(&rows, self.metrics);
        let (xs, columns) = self.columns(&rows, xs);
        self.route(&rows, &xs, columns)
    }

    /// Moves the columns next to each other.
    fn columns(&self, rows: &Rows, mut xs: Vec<i64>) -> (Vec<i64>, Vec<(i64, i64)>) {
        let m = self.metrics;
        let mut extents: Vec<Option<(i64, i64)>> = vec![None; self.columns.len()];
        for (cell, x) in rows.cells.iter().zip(&xs) {
            let extent = extents[cell.column].get_or_insert((*x, x + cell.width));
            *extent = (extent.0.min(*x), extent.1.max(x + cell.width));
        }
        let (mut at, mut columns, mut offsets) = (0, Vec::new(), Vec::new());
        for (extent, width_min) in extents.iter().zip(self.columns) {
            let (left, right) = extent.unwrap_or((0, 0));
            let width = m.snapped((right - left + 2 * m.padding).max(*width_min));
            let start = at + (width - (right - left)) / (2 * m.pitch) * m.pitch;
            offsets.push(start - left);
            columns.push((at, at + width));
            at += width;
        }
        for (cell, x) in rows.cells.iter().zip(&mut xs) {
            *x = match cell.kind {
                CellKind::Title => m.padding,
                CellKind::Item(_) | CellKind::Wire(_) => *x + offsets[cell.column],
            };
        }
        (xs, columns)
    }

    fn route(&self, rows: &Rows, xs: &[i64], columns: Vec<(i64, i64)>) -> Placed {
        let m = self.metrics;
        let mut wires: Vec<Vec<Wire>> = vec![Vec::new(); rows.rows.len()];
        for (index, segment) in rows.segments.iter().enumerate() {
            let (upper, lower) = (segment.upper_x(xs), segment.lower_x(xs));
            wires[rows.cells[segment.upper].row].push(Wire::down(index, upper, lower));
        }
        for (index, turn) in rows.turns.iter().enumerate() {
            let (item_x, wire_x) = (turn.item_x(xs), turn.wire_x(rows, xs));
            let row = rows.cells[turn.item].row;
            match turn.side {
                Side::Below => wires[row].push(Wire::below(index, item_x, wire_x)),
                Side::Above => wires[row - 1].push(Wire::above(index, item_x, wire_x)),
            }
        }
        let mut y = 0;
        let mut tops = Vec::new();
        let mut bends = Bends {
            segments: vec![Vec::new(); rows.segments.len()],
            turns: vec![0; rows.turns.len()],
        };
        for (row, wires) in wires.into_iter().enumerate() {
            tops.push(y);
            y += rows.height(row);
            if row + 1 < rows.rows.len() {
                let tracks = channel::route(wires, m.pitch);
                let top = y + m.channel_top;
                for bend in &tracks.bends {
                    bends.add(bend, top, m.track);
                }
                y = top + m.track * (tracks.n_tracks - 1).max(0);
                y += if row % 2 == 0 { m.channel_arrow } else { m.channel_bottom };
            }
        }
        let view = View { level: self, rows, xs, tops: &tops, bends: &bends, height: y };
        Placed {
            width: columns.last().map_or(0, |(_, right)| *right),
            height: y,
            items: rows.item_cells.iter().map(|cell| view.corner(*cell)).collect(),
            links: rows.paths.iter().map(|path| view.points(path)).collect(),
            labels: rows.paths.iter().map(|path| view.label(path)).collect(),
            columns,
        }
    }
}

/// Where links are horizontal.
#[derive(Debug)]
struct Bends {
    /// For each segment: the height and the `x` from which and to which it goes, from top to
    /// bottom.
    segments: Vec<Vec<(i64, i64, i64)>>,
    /// For each turn: the height.
    turns: Vec<i64>,
}

impl Bends {
    fn add(&mut self, bend: &channel::Bend, top: i64, track_height: i64) {
        let y = top + bend.track * track_height;
        match bend.of {
            channel::WireOf::Segment(index) => {
                self.segments[index].push((y, bend.from_x, bend.to_x));
            }
            channel::WireOf::Turn(index) => self.turns[index] = y,
        }
    }
}

/// Everything that the points of a link depend on.
#[derive(Clone, Copy, Debug)]
struct View<'v> {
    level: &'v Level<'v>,
    rows: &'v Rows,
    xs: &'v [i64],
    tops: &'v [i64],
    bends: &'v Bends,
    height: i64,
}

impl View<'_> {
    fn cell(&self, index: usize) -> &Cell {
        &self.rows.cells[index]
    }

    fn corner(&self, cell: usize) -> Point {
        Point { x: self.xs[cell], y: self.tops[self.cell(cell).row] }
    }

    fn points(&self, path: &Path) -> Vec<Point> {
        let mut points = Vec::new();
        match path.from {
            Some((item, port)) => {
                let corner = self.corner(item);
                let y = corner.y + self.cell(item).height;
                points.push(Point { x: corner.x + port, y });
            }
            None => points.push(Point { x: self.xs[path.cells[0]], y: 0 }),
        }
        if path.is_upward() {
            let (below, above) = (&self.rows.turns[path.turns[0]], &self.rows.turns[path.turns[1]]);
            let turn = |index: usize, from: i64, to: i64| {
                let y = self.bends.turns[path.turns[index]];
                [Point { x: from, y }, Point { x: to, y }]
            };
            points.extend(turn(0, below.item_x(self.xs), below.wire_x(self.rows, self.xs)));
            for segment in &path.segments {
                for (y, upper, lower) in self.bends.segments[*segment].iter().rev() {
                    points.extend([Point { x: *lower, y: *y }, Point { x: *upper, y: *y }]);
                }
            }
            points.extend(turn(1, above.wire_x(self.rows, self.xs), above.item_x(self.xs)));
        } else {
            for segment in &path.segments {
                for (y, upper, lower) in &self.bends.segments[*segment] {
                    points.extend([Point { x: *upper, y: *y }, Point { x: *lower, y: *y }]);
                }
            }
        }
        match path.to {
            Some((item, port)) => {
                let corner = self.corner(item);
                points.push(Point { x: corner.x + port, y: corner.y });
            }
            None => {
                let cell = path.cells.last().expect("a link to the border has a cell there");
                points.push(Point { x: self.xs[*cell], y: self.height });
            }
        }
        points
    }

    fn label(&self, path: &Path) -> Option<Rect> {
        let (cell, m) = (path.label?, self.level.metrics);
        let row = self.cell(cell).row;
        Some(Rect {
            x: self.xs[cell] + m.label_gap,
            y: self.tops[row] + (self.rows.height(row) - m.label_height) / 2,
            width: self.cell(cell).width - m.label_gap,
            height: m.label_height,
        })
    }
}
