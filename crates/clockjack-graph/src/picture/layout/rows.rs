//! The rows of a level: cells for items, and cells through which links pass (the dummy nodes of
//! Sugiyama's method). A link that goes up leaves its item at the lower side, turns below it, goes
//! up through cells of its own, and turns above its target, which it enters at the upper side like
//! any other link.

use super::level::{Item, Level, Link};

/// What a cell contains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CellKind {
    Item(usize),
    /// A vertical part of a link at the left side of the cell; a label may be to the right of it.
    Wire(usize),
    /// The title of the level. It is first in the first row.
    Title,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Cell {
    pub(super) kind: CellKind,
    pub(super) row: usize,
    pub(super) column: usize,
    pub(super) width: i64,
    pub(super) height: i64,
    /// A preference for the initial order.
    pub(super) order: usize,
}

/// A part of a link between two cells of consecutive rows.
#[derive(Clone, Copy, Debug)]
pub(super) struct Segment {
    pub(super) link: usize,
    pub(super) upper: usize,
    pub(super) lower: usize,
    /// Where it leaves the upper cell, from the cell's left side.
    pub(super) upper_port: i64,
    /// Where it enters the lower cell, from the cell's left side.
    pub(super) lower_port: i64,
}

impl Segment {
    pub(super) fn upper_x(&self, xs: &[i64]) -> i64 {
        xs[self.upper] + self.upper_port
    }

    pub(super) fn lower_x(&self, xs: &[i64]) -> i64 {
        xs[self.lower] + self.lower_port
    }
}

/// The side of an item at which a link turns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Below,
    Above,
}

/// A part of a link between an item and a wire of the same row.
#[derive(Clone, Copy, Debug)]
pub(super) struct UTurn {
    pub(super) link: usize,
    pub(super) item: usize,
    pub(super) wire: usize,
    pub(super) side: Side,
    /// Where it touches the item, from the item's left side.
    pub(super) port: i64,
}

impl UTurn {
    pub(super) fn item_x(&self, xs: &[i64]) -> i64 {
        xs[self.item] + self.port
    }

    pub(super) fn wire_x(&self, rows: &Rows, xs: &[i64]) -> i64 {
        debug_assert!(matches!(rows.cells[self.wire].kind, CellKind::Wire(_)), "{self:?}");
        xs[self.wire]
    }
}

/// The way of a link, in its direction.
#[derive(Clone, Debug, Default)]
pub(super) struct Path {
    /// The cell of the item at the beginning, and the port; `None` is the upper border.
    pub(super) from: Option<(usize, i64)>,
    /// The cell of the item at the end, and the port; `None` is the lower border.
    pub(super) to: Option<(usize, i64)>,
    /// The wires.
    pub(super) cells: Vec<usize>,
    pub(super) segments: Vec<usize>,
    /// The turns below its beginning and above its end, if it goes up.
    pub(super) turns: Vec<usize>,
    /// The wire with the label.
    pub(super) label: Option<usize>,
}

impl Path {
    pub(super) fn is_upward(&self) -> bool {
        !self.turns.is_empty()
    }
}

#[derive(Debug)]
pub(super) struct Rows {
    pub(super) cells: Vec<Cell>,
    /// The cells of each row from left to right, column by column.
    pub(super) rows: Vec<Vec<usize>>,
    pub(super) segments: Vec<Segment>,
    pub(super) turns: Vec<UTurn>,
    pub(super) paths: Vec<Path>,
    /// The cell of each item.
    pub(super) item_cells: Vec<usize>,
    /// The segments that leave each cell at its lower side.
    pub(super) down: Vec<Vec<usize>>,
    /// The segments that enter each cell at its upper side.
    pub(super) up: Vec<Vec<usize>>,
    /// The turns at each cell.
    pub(super) turns_at: Vec<Vec<usize>>,
    heights: Vec<i64>,
}

impl Rows {
    pub(super) fn new(level: &Level<'_>, ranks: &[usize]) -> Self {
        let n_ranks = ranks.iter().max().map_or(0, |rank| rank + 1);
        let mut rows = Self {
            cells: Vec::new(),
            rows: vec![Vec::new(); 2 * n_ranks + 1],
            segments: Vec::new(),
            turns: Vec::new(),
            paths: Vec::new(),
            item_cells: Vec::new(),
            down: Vec::new(),
            up: Vec::new(),
            turns_at: Vec::new(),
            heights: vec![0; 2 * n_ranks + 1],
        };
        if let Some(width) = level.title_width {
            let height = level.metrics.title_height;
            let kind = CellKind::Title;
            rows.add(Cell { kind, row: 0, column: 0, width, height, order: 0 });
            *rows.heights.last_mut().expect("there is a row for the border") = level.metrics.border;
        }
        for (index, (Item { width, height, column, order }, rank)) in
            level.items.iter().zip(ranks).enumerate()
        {
            let cell = rows.add(Cell {
                kind: CellKind::Item(index),
                row: 2 * rank + 1,
                column: *column,
                width: *width,
                height: *height,
                order: 2 * order,
            });
            rows.item_cells.push(cell);
        }
        let mut load = vec![vec![0; level.columns.len()]; rows.rows.len()];
        for (index, link) in level.links.iter().enumerate() {
            let path = rows.add_path(level, index, link, &mut load);
            rows.paths.push(path);
        }
        rows.estimate_ports(level);
        rows.sort_initially();
        rows
    }

    pub(super) fn height(&self, row: usize) -> i64 {
        self.heights[row]
    }

    fn add(&mut self, cell: Cell) -> usize {
        let index = self.cells.len();
        self.rows[cell.row].push(index);
        self.heights[cell.row] = self.heights[cell.row].max(cell.height);
        self.cells.push(cell);
        self.down.push(Vec::new());
        self.up.push(Vec::new());
        self.turns_at.push(Vec::new());
        index
    }

    fn connect(&mut self, link: usize, upper: usize, lower: usize) -> usize {
        let index = self.segments.len();
        self.segments.push(Segment { link, upper, lower, upper_port: 0, lower_port: 0 });
        self.down[upper].push(index);
        self.up[lower].push(index);
        index
    }

    fn add_turn(&mut self, link: usize, item: usize, wire: usize, side: Side) -> usize {
        let index = self.turns.len();
        self.turns.push(UTurn { link, item, wire, side, port: 0 });
        self.turns_at[item].push(index);
        self.turns_at[wire].push(index);
        index
    }

    /// Adds the cells of a link. `load` is the total width of the labels of each row and column.
    fn add_path(
        &mut self,
        level: &Level<'_>,
        index: usize,
        link: &Link,
        load: &mut [Vec<i64>],
    ) -> Path {
        let from = link.from.map(|item| self.item_cells[item]);
        let to = link.to.map(|item| self.item_cells[item]);
        let first = from.map_or(0, |cell| self.cells[cell].row + 1);
        let end = to.map_or(self.rows.len(), |cell| self.cells[cell].row);
        let column = to.or(from).map_or(0, |cell| self.cells[cell].column);
        let is_upward = first > end;
        // The wires of a link that goes up are in the rows of both of its items, too.
        let wire_rows = if is_upward { end..first } else { first..end };
        let label_row = (link.label_width > 0).then(|| {
            let even = wire_rows.clone().filter(|row| row % 2 == 0);
            let row = even.min_by_key(|row| load[*row][column]).unwrap_or(wire_rows.start);
            load[row][column] += link.label_width;
            row
        });
        let order_of = |cell: Option<usize>| cell.map(|cell| self.cells[cell].order);
        let order = match (order_of(from), order_of(to)) {
            (Some(from), Some(to)) => from.midpoint(to) + 1,
            (from, to) => from.or(to).unwrap_or(0) + 1,
        };
        let m = level.metrics;
        let mut path = Path::default();
        for row in wire_rows {
            let is_label = label_row == Some(row);
            let width = if is_label { m.snapped(m.label_gap + link.label_width) } else { 0 };
            let height = if is_label { m.label_height } else { 0 };
            let cell =
                self.add(Cell { kind: CellKind::Wire(index), row, column, width, height, order });
            path.cells.push(cell);
            path.label = if is_label { Some(cell) } else { path.label };
        }
        let chain = path.cells.clone();
        path.segments =
            chain.windows(2).map(|pair| self.connect(index, pair[0], pair[1])).collect();
        path.from = from.map(|cell| (cell, 0));
        path.to = to.map(|cell| (cell, 0));
        if is_upward {
            self.turn_upward(index, &mut path);
        } else {
            self.attach(index, &mut path);
        }
        path
    }

    /// Connects the wires of a link that goes down to its items.
    fn attach(&mut self, link: usize, path: &mut Path) {
        let (first, last) = (path.cells.first().copied(), path.cells.last().copied());
        if let (Some((from, _)), Some(first)) = (path.from, first) {
            let segment = self.connect(link, from, first);
            path.segments.insert(0, segment);
        }
        if let (Some((to, _)), Some(last)) = (path.to, last) {
            let segment = self.connect(link, last, to);
            path.segments.push(segment);
        }
    }

    /// Connects the wires of a link that goes up to its items.
    fn turn_upward(&mut self, link: usize, path: &mut Path) {
        path.cells.reverse();
        path.segments.reverse();
        let (Some((from, _)), Some((to, _))) = (path.from, path.to) else {
            unreachable!("a link to or from the border goes down");
        };
        let (first, last) = (path.cells[0], path.cells[path.cells.len() - 1]);
        path.turns = vec![
            self.add_turn(link, from, first, Side::Below),
            self.add_turn(link, to, last, Side::Above),
        ];
    }

    /// The ports before the order is known: those that are given, and the centers of other items.
    fn estimate_ports(&mut self, level: &Level<'_>) {
        let port = |cell: &Cell, given: Option<i64>| match cell.kind {
            CellKind::Item(_) => given.unwrap_or(cell.width / 2),
            CellKind::Wire(_) | CellKind::Title => 0,
        };
        for segment in &mut self.segments {
            let link = &level.links[segment.link];
            segment.upper_port = port(&self.cells[segment.upper], link.from_port);
            segment.lower_port = port(&self.cells[segment.lower], link.to_port);
        }
    }

    fn sort_initially(&mut self) {
        let cells = &self.cells;
        for row in &mut self.rows {
            row.sort_by_key(|cell| {
                let Cell { kind, column, order, .. } = cells[*cell];
                (column, kind != CellKind::Title, order, *cell)
            });
        }
    }

    /// The place of each cell in its row.
    pub(super) fn places(&self) -> Vec<usize> {
        let mut places = vec![0; self.cells.len()];
        for row in &self.rows {
            for (place, cell) in row.iter().enumerate() {
                places[*cell] = place;
            }
        }
        places
    }

    /// Distributes the ends of links over the sides of their items, in the order in which the links
    /// continue.
    pub(super) fn assign_ports(&mut self, level: &Level<'_>) {
        let places = self.places();
        for (index, item) in level.items.iter().enumerate() {
            let cell = self.item_cells[index];
            for side in [Side::Below, Side::Above] {
                let mut ends = self.ends(cell, side, &places);
                ends.sort_unstable();
                let n_ports = ends.len() as i64 + 1;
                for (at, end) in ends.into_iter().enumerate() {
                    let given = match side {
                        Side::Below => level.links[self.link_of(end.2)].from_port,
                        Side::Above => level.links[self.link_of(end.2)].to_port,
                    };
                    let spread = item.width * (at as i64 + 1) / n_ports;
                    let pitch = level.metrics.pitch;
                    self.set_port(end.2, side, given.unwrap_or(spread / pitch * pitch));
                }
            }
        }
    }

    /// The ends of links at one side of an item, with their sort keys. Turns are outside of the
    /// other ends, and the nearest turn is the outermost, so that turns do not cross each other.
    fn ends(&self, cell: usize, side: Side, places: &[usize]) -> Vec<(i8, usize, End)> {
        let segments = if side == Side::Below { &self.down[cell] } else { &self.up[cell] };
        let mut ends: Vec<(i8, usize, End)> = Vec::new();
        for index in segments {
            let Segment { upper, lower, .. } = self.segments[*index];
            let other = if side == Side::Below { lower } else { upper };
            ends.push((0, places[other], End::Segment(*index)));
        }
        for index in &self.turns_at[cell] {
            let turn = self.turns[*index];
            if turn.item != cell || turn.side != side {
                continue;
            }
            let (wire, item) = (places[turn.wire], places[cell]);
            let key = if wire < item { (-1, item - wire) } else { (1, usize::MAX - (wire - item)) };
            ends.push((key.0, key.1, End::Turn(*index)));
        }
        ends
    }

    fn link_of(&self, end: End) -> usize {
        match end {
            End::Segment(index) => self.segments[index].link,
            End::Turn(index) => self.turns[index].link,
        }
    }

    fn set_port(&mut self, end: End, side: Side, port: i64) {
        let link = self.link_of(end);
        match (end, side) {
            (End::Segment(index), Side::Below) => self.segments[index].upper_port = port,
            (End::Segment(index), Side::Above) => self.segments[index].lower_port = port,
            (End::Turn(index), _) => self.turns[index].port = port,
        }
        let path = &mut self.paths[link];
        let touched = if side == Side::Below { &mut path.from } else { &mut path.to };
        if let Some((_, at)) = touched {
            *at = port;
        }
    }
}

/// The end of a link at an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum End {
    Segment(usize),
    Turn(usize),
}
