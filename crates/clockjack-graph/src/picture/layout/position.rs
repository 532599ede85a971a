//! Horizontal coordinates: Brandes and Köpf, "Fast and simple horizontal coordinate assignment"
//! (2001), one column at a time. Cells are aligned with their median neighbors in four ways: from
//! above and from below, to the left and to the right; the result is the mean of the two middle
//! positions. The wires of a long link are aligned with priority, so that long links are straight.
//!
//! There are two differences from the paper. Cells are aligned by the ports of their links, not by
//! their centers. And the blocks of aligned cells are compacted by longest paths over the graph of
//! blocks instead of by classes, which always keeps the distances (compare the erratum by Brandes,
//! Walter and Zink, 2020).
//!
//! All widths, ports and distances are multiples of the pitch, and so are the coordinates.

use super::{
    Metrics,
    rows::{CellKind, Rows},
};

/// The left side of each cell. In each row, cells of one column have their distances; the
/// positions of columns relative to each other have no meaning.
pub(super) fn assign(rows: &Rows, metrics: &Metrics) -> Vec<i64> {
    let n_columns = rows.cells.iter().map(|cell| cell.column + 1).max().unwrap_or(0);
    let mut xs = vec![0; rows.cells.len()];
    for column in 0..n_columns {
        let parts: Vec<Vec<usize>> = rows
            .rows
            .iter()
            .map(|row| {
                row.iter().copied().filter(|cell| rows.cells[*cell].column == column).collect()
            })
            .collect();
        Column { rows, metrics, parts }.assign(&mut xs);
    }
    xs
}

/// The distance between two neighbors of a row.
fn gap(rows: &Rows, metrics: &Metrics, left: usize, right: usize) -> i64 {
    let is_item = |cell: usize| matches!(rows.cells[cell].kind, CellKind::Item(_));
    if is_item(left) && is_item(right) { metrics.item_gap } else { metrics.wire_gap }
}

/// A segment as one of the four alignments sees it.
#[derive(Clone, Copy, Debug)]
struct Arc {
    before: usize,
    after: usize,
    before_port: i64,
    after_port: i64,
    /// Whether both ends are wires.
    is_inner: bool,
}

#[derive(Debug)]
struct Column<'c> {
    rows: &'c Rows,
    metrics: &'c Metrics,
    parts: Vec<Vec<usize>>,
}

impl Column<'_> {
    fn assign(&self, xs: &mut [i64]) {
        let cells: Vec<usize> = self.parts.iter().flatten().copied().collect();
        if cells.is_empty() {
            return;
        }
        let mut found: Vec<Vec<i64>> = Vec::new();
        for is_upward in [false, true] {
            for is_mirrored in [false, true] {
                found.push(self.aligned(is_upward, is_mirrored));
            }
        }
        // All alignments are moved to the narrowest one: those to the left by their left side,
        // those to the right by their right side.
        let extent = |xs: &Vec<i64>| {
            let left = cells.iter().map(|cell| xs[*cell]).min().unwrap_or(0);
            let right = cells.iter().map(|cell| xs[*cell] + self.rows.cells[*cell].width).max();
            (left, right.unwrap_or(0))
        };
        let extents: Vec<(i64, i64)> = found.iter().map(extent).collect();
        let (left, right) =
            extents.iter().copied().min_by_key(|(left, right)| right - left).unwrap_or((0, 0));
        for (index, xs) in found.iter_mut().enumerate() {
            let is_mirrored = index % 2 == 1;
            let offset =
                if is_mirrored { right - extents[index].1 } else { left - extents[index].0 };
            cells.iter().for_each(|cell| xs[*cell] += offset);
        }
        let pitch = self.metrics.pitch;
        for cell in cells {
            let mut at = [found[0][cell], found[1][cell], found[2][cell], found[3][cell]];
            at.sort_unstable();
            xs[cell] = at[1].midpoint(at[2]).div_euclid(pitch) * pitch;
        }
    }

    /// One of the four alignments.
    fn aligned(&self, is_upward: bool, is_mirrored: bool) -> Vec<i64> {
        let width = |cell: usize| self.rows.cells[cell].width;
        let mut parts = self.parts.clone();
        if is_upward {
            parts.reverse();
        }
        if is_mirrored {
            parts.iter_mut().for_each(|part| part.reverse());
        }
        let arcs = self.arcs(is_upward, is_mirrored);
        let blocks = Blocks::new(self.rows.cells.len(), &parts, &arcs);
        let distance =
            |left: usize, right: usize| width(left) + gap(self.rows, self.metrics, left, right);
        let mut xs = blocks.compact(&parts, distance);
        if is_mirrored {
            for cell in parts.iter().flatten() {
                xs[*cell] = -(xs[*cell] + width(*cell));
            }
        }
        xs
    }

    /// For each cell, the arcs from the row before.
    fn arcs(&self, is_upward: bool, is_mirrored: bool) -> Vec<Vec<Arc>> {
        let mut arcs = vec![Vec::new(); self.rows.cells.len()];
        let cells = &self.rows.cells;
        for cell in self.parts.iter().flatten() {
            let segments = if is_upward { &self.rows.down[*cell] } else { &self.rows.up[*cell] };
            for index in segments {
                let one = &self.rows.segments[*index];
                if cells[one.upper].column != cells[one.lower].column {
                    continue;
                }
                let port = |cell: usize, port: i64| {
                    if is_mirrored { cells[cell].width - port } else { port }
                };
                let upper = (one.upper, port(one.upper, one.upper_port));
                let lower = (one.lower, port(one.lower, one.lower_port));
                let (before, after) = if is_upward { (lower, upper) } else { (upper, lower) };
                let is_wire = |cell: usize| matches!(cells[cell].kind, CellKind::Wire(_));
                arcs[*cell].push(Arc {
                    before: before.0,
                    after: after.0,
                    before_port: before.1,
                    after_port: after.1,
                    is_inner: is_wire(before.0) && is_wire(after.0),
                });
            }
        }
        arcs
    }
}

/// Blocks of aligned cells.
#[derive(Debug)]
struct Blocks {
    /// The first cell of each cell's block.
    root: Vec<usize>,
    /// The position of each cell relative to its root.
    shift: Vec<i64>,
}

impl Blocks {
    fn new(n_cells: usize, parts: &[Vec<usize>], arcs: &[Vec<Arc>]) -> Self {
        let mut blocks = Self { root: (0..n_cells).collect(), shift: vec![0; n_cells] };
        let mut places = vec![0; n_cells];
        for part in parts {
            part.iter().enumerate().for_each(|(place, cell)| places[*cell] = place);
        }
        let mut is_aligned = vec![false; n_cells];
        for part in parts {
            // Two passes in one order would let another link cross a straight wire: the inner arcs
            // are known first, and no other arc may cross one of them.
            let inner: Vec<(usize, usize)> = part
                .iter()
                .flat_map(|cell| &arcs[*cell])
                .filter(|arc| arc.is_inner)
                .map(|arc| (places[arc.before], places[arc.after]))
                .collect();
            let mut next_free = 0;
            for cell in part {
                let mut sorted: Vec<&Arc> = arcs[*cell].iter().collect();
                sorted.sort_by_key(|arc| (places[arc.before], arc.before_port));
                let Some(last) = sorted.len().checked_sub(1) else { continue };
                for median in [last / 2, last.div_ceil(2)] {
                    let arc = sorted[median];
                    let (before, after) = (places[arc.before], places[arc.after]);
                    let crosses = !arc.is_inner
                        && inner.iter().any(|(b, a)| (*b < before) != (*a < after) && *b != before);
                    if is_aligned[*cell] || crosses || before < next_free {
                        continue;
                    }
                    is_aligned[*cell] = true;
                    blocks.root[*cell] = blocks.root[arc.before];
                    blocks.shift[*cell] =
                        blocks.shift[arc.before] + arc.before_port - arc.after_port;
                    next_free = before + 1;
                }
            }
        }
        blocks
    }

    /// The leftmost positions that keep all distances; blocks then move right as far as their right
    /// neighbors permit, so that no gap is wider than necessary.
    fn compact(&self, parts: &[Vec<usize>], distance: impl Fn(usize, usize) -> i64) -> Vec<i64> {
        let n_cells = self.root.len();
        let mut after: Vec<Vec<(usize, i64)>> = vec![Vec::new(); n_cells];
        let mut n_before = vec![0_usize; n_cells];
        for part in parts {
            for pair in part.windows(2) {
                let (left, right) = (pair[0], pair[1]);
                let least = self.shift[left] + distance(left, right) - self.shift[right];
                after[self.root[left]].push((self.root[right], least));
                n_before[self.root[right]] += 1;
            }
        }
        let mut order: Vec<usize> =
            (0..n_cells).filter(|cell| self.root[*cell] == *cell && n_before[*cell] == 0).collect();
        let mut xs = vec![0_i64; n_cells];
        let mut at = 0;
        while let Some(block) = order.get(at).copied() {
            at += 1;
            for (next, least) in &after[block] {
                xs[*next] = xs[*next].max(xs[block] + least);
                n_before[*next] -= 1;
                if n_before[*next] == 0 {
                    order.push(*next);
                }
            }
        }
        let n_blocks = (0..n_cells).filter(|cell| self.root[*cell] == *cell).count();
        assert_eq!(order.len(), n_blocks, "aligned cells do not cross, so blocks have an order");
        for block in order.iter().rev() {
            let most = after[*block].iter().map(|(next, least)| xs[*next] - least).min();
            xs[*block] = most.map_or(xs[*block], |most| most.max(xs[*block]));
        }
        (0..n_cells).map(|cell| xs[self.root[cell]] + self.shift[cell]).collect()
    }
}
