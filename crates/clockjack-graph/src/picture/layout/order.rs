//! Crossing reduction: the order of the cells in each row. Sweeps down and up sort each row by the
//! barycenters of the neighbors in the row before (Sugiyama, Tagawa and Toda 1981); the best order
//! that a sweep has found is kept. Then neighbors are exchanged as long as that removes crossings
//! (Gansner, Koutsofios, North and Vo, "A technique for drawing directed graphs", 1993).
//!
//! Cells stay in their columns, and the title stays first.

use super::rows::{CellKind, Rows};

/// The maximum number of sweeps.
const SWEEPS_MAX: usize = 24;
/// The number of sweeps without improvement after which the search ends.
const SWEEPS_WITHOUT_GAIN_MAX: usize = 6;
/// The maximum number of passes that exchange neighbors.
const EXCHANGE_PASSES_MAX: usize = 12;
/// The width of a column in positions.
const COLUMN: i64 = 1 << 24;

/// Orders the cells of each row.
pub(super) fn reduce_crossings(rows: &mut Rows) {
    let mut best = rows.rows.clone();
    let mut n_best = n_crossings(rows);
    let mut n_without_gain = 0;
    for sweep in 0..SWEEPS_MAX {
        sort_rows(rows, sweep % 2 == 0);
        let n_crossings = n_crossings(rows);
        if n_crossings < n_best {
            (n_best, n_without_gain) = (n_crossings, 0);
            best.clone_from(&rows.rows);
        } else {
            n_without_gain += 1;
        }
        if n_best == 0 || n_without_gain > SWEEPS_WITHOUT_GAIN_MAX {
            break;
        }
    }
    rows.rows = best;
    exchange(rows);
}

/// The position of each cell: rows of different lengths are comparable, column by column.
fn positions(rows: &Rows) -> (Vec<i64>, Vec<i64>) {
    let (mut starts, mut widths) = (vec![0; rows.cells.len()], vec![0; rows.cells.len()]);
    for row in &rows.rows {
        for part in row.chunk_by(|a, b| rows.cells[*a].column == rows.cells[*b].column) {
            let slot = COLUMN / part.len() as i64;
            for (place, cell) in part.iter().enumerate() {
                starts[*cell] = rows.cells[*cell].column as i64 * COLUMN + place as i64 * slot;
                widths[*cell] = slot;
            }
        }
    }
    (starts, widths)
}

/// The position of a port within its cell, in parts of `of`.
fn share(port: i64, width: i64, of: i64) -> i64 {
    if width == 0 { of / 2 } else { of * port / width }
}

fn sort_rows(rows: &mut Rows, is_downward: bool) {
    let n_rows = rows.rows.len();
    let (mut starts, mut widths) = positions(rows);
    for at in 0..n_rows {
        let row = if is_downward { at } else { n_rows - 1 - at };
        let mut keyed: Vec<((usize, bool, i64), usize)> = rows.rows[row]
            .iter()
            .map(|cell| {
                let is_movable = rows.cells[*cell].kind != CellKind::Title;
                let barycenter = barycenter(rows, *cell, is_downward, &starts, &widths);
                ((rows.cells[*cell].column, is_movable, barycenter), *cell)
            })
            .collect();
        keyed.sort_by_key(|(key, _)| *key);
        rows.rows[row] = keyed.into_iter().map(|(_, cell)| cell).collect();
        for part in rows.rows[row].chunk_by(|a, b| rows.cells[*a].column == rows.cells[*b].column) {
            let slot = COLUMN / part.len() as i64;
            for (place, cell) in part.iter().enumerate() {
                starts[*cell] = rows.cells[*cell].column as i64 * COLUMN + place as i64 * slot;
                widths[*cell] = slot;
            }
        }
    }
}

/// The mean position of the cell's neighbors in the row from which the sweep comes. A cell without
/// such neighbors stays where it is.
fn barycenter(rows: &Rows, cell: usize, is_downward: bool, starts: &[i64], widths: &[i64]) -> i64 {
    let (mut sum, mut n) = (0, 0);
    let segments = if is_downward { &rows.up[cell] } else { &rows.down[cell] };
    for index in segments {
        let segment = &rows.segments[*index];
        let (other, port) = if is_downward {
            (segment.upper, segment.upper_port)
        } else {
            (segment.lower, segment.lower_port)
        };
        sum += starts[other] + share(port, rows.cells[other].width, widths[other]);
        n += 1;
    }
    if let CellKind::Wire(_) = rows.cells[cell].kind {
        for index in &rows.turns_at[cell] {
            let item = rows.turns[*index].item;
            sum += starts[item] + widths[item] / 2;
            n += 1;
        }
    }
    if n == 0 { starts[cell] + widths[cell] / 2 } else { sum / n }
}

/// The number of crossings between all rows, by counting inversions (Barth, Mutzel and Jünger,
/// "Simple and efficient bilayer cross counting", 2004).
fn n_crossings(rows: &Rows) -> u64 {
    let places = rows.places();
    let key = |cell: usize, port: i64| {
        (places[cell] as i64) * 1024 + share(port, rows.cells[cell].width, 1024)
    };
    let mut gaps: Vec<Vec<(i64, i64)>> = vec![Vec::new(); rows.rows.len()];
    for segment in &rows.segments {
        let upper = key(segment.upper, segment.upper_port);
        gaps[rows.cells[segment.upper].row].push((upper, key(segment.lower, segment.lower_port)));
    }
    gaps.into_iter().map(n_inversions).sum()
}

fn n_inversions(mut pairs: Vec<(i64, i64)>) -> u64 {
    pairs.sort_unstable();
    let mut lowers: Vec<i64> = pairs.iter().map(|(_, lower)| *lower).collect();
    lowers.sort_unstable();
    lowers.dedup();
    // A Fenwick tree over the places of the lower ends.
    let mut tree = vec![0_u64; lowers.len() + 1];
    let mut total = 0;
    for (n_before, (_, lower)) in pairs.iter().enumerate() {
        let place = lowers.partition_point(|one| one < lower) + 1;
        let (mut at, mut n_not_above) = (place, 0);
        while at > 0 {
            n_not_above += tree[at];
            at &= at - 1;
        }
        total += n_before as u64 - n_not_above;
        at = place;
        while at < tree.len() {
            tree[at] += 1;
            at += at & at.wrapping_neg();
        }
    }
    total
}

/// Exchanges neighbors in rows as long as that removes crossings.
fn exchange(rows: &mut Rows) {
    let mut places = rows.places();
    for _ in 0..EXCHANGE_PASSES_MAX {
        let mut has_gain = false;
        for row in 0..rows.rows.len() {
            for place in 1..rows.rows[row].len() {
                let (left, right) = (rows.rows[row][place - 1], rows.rows[row][place]);
                let is_fixed = rows.cells[left].kind == CellKind::Title;
                if is_fixed || rows.cells[left].column != rows.cells[right].column {
                    continue;
                }
                let (now, then) = pair_crossings(rows, left, right, &places);
                if then < now {
                    rows.rows[row].swap(place - 1, place);
                    places.swap(left, right);
                    has_gain = true;
                }
            }
        }
        if !has_gain {
            return;
        }
    }
}

/// The crossings between the links of two neighbors, now and if they are exchanged.
fn pair_crossings(rows: &Rows, left: usize, right: usize, places: &[usize]) -> (usize, usize) {
    let (mut now, mut then) = (0, 0);
    for is_down in [true, false] {
        let ends = |cell: usize| -> Vec<(usize, i64)> {
            let segments = if is_down { &rows.down[cell] } else { &rows.up[cell] };
            let end = |index: &usize| {
                let segment = &rows.segments[*index];
                if is_down {
                    (places[segment.lower], segment.lower_port)
                } else {
                    (places[segment.upper], segment.upper_port)
                }
            };
            segments.iter().map(end).collect()
        };
        let right_ends = ends(right);
        for a in ends(left) {
            for b in &right_ends {
                now += usize::from(a > *b);
                then += usize::from(a < *b);
            }
        }
    }
    (now, then)
}
