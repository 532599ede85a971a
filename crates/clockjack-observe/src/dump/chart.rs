//! A histogram as horizontal bars of `#`.

use core::fmt::{self, Write};

use super::scale::Unit;
use crate::histogram::{Layout, Quantile, Snapshot};

/// The options of a chart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chart {
    /// The width of the longest bar; 0 means 1.
    pub width: usize,
    /// The maximum number of rows; 0 means 1. Neighbouring buckets are merged until they fit.
    pub rows_max: usize,
    /// The unit of the values.
    pub unit: Unit,
}

impl Chart {
    /// Fits a terminal of eighty columns.
    pub const DEFAULT: Self = Self { width: 40, rows_max: 20, unit: Unit::Nanoseconds };
}

/// The width of a bucket border.
const BORDER_COLUMNS: usize = 8;

/// Writes a histogram as bars, then a line with a summary.
///
/// Each row shows its minimum and maximum, the count, the share in percent, and a bar whose length
/// is relative to the fullest row; every non-empty row has a bar. Rows follow the logarithmic
/// buckets: rows of equal height cover ranges of different width.
///
/// # Errors
///
/// The error of `out`.
///
/// # Examples
///
/// ```
/// use clockjack_observe::Snapshot;
/// use clockjack_observe::dump::{Chart, write_histogram};
///
/// let mut lateness: Snapshot<16> = Snapshot::new();
/// (0..1000).for_each(|n| lateness.record(n * n));
/// let mut text = String::new();
/// write_histogram(&mut text, &lateness, Chart { rows_max: 10, ..Chart::DEFAULT })?;
/// assert!(text.lines().count() <= 11);
/// # Ok::<(), core::fmt::Error>(())
/// ```
pub fn write_histogram<const SUB: usize>(
    out: &mut dyn Write,
    snapshot: &Snapshot<SUB>,
    chart: Chart,
) -> fmt::Result {
    let (Some(min), Some(max)) = (snapshot.min(), snapshot.max()) else {
        return writeln!(out, "no values");
    };
    let (first, last) = (Layout::<SUB>::index_of(min), Layout::<SUB>::index_of(max));
    let joined = joined_buckets(first, last, chart.rows_max.max(1));
    let rows = || {
        (first / joined..=last / joined).map(|row| {
            let (from, to) = (row * joined, ((row + 1) * joined).min(Layout::<SUB>::BUCKETS));
            let count = (from..to).fold(0_u64, |n, i| n.saturating_add(snapshot.bucket_count(i)));
            let lowest = Layout::<SUB>::lowest(from).max(min);
            (lowest, Layout::<SUB>::highest(to - 1).min(max), count)
        })
    };
    let fullest = rows().map(|(_, _, count)| count).max().unwrap_or(1).max(1);
    let count_columns = fullest.ilog10() as usize + 1;
    for (lowest, highest, count) in rows() {
        let (lowest, highest) = (chart.unit.scale(lowest), chart.unit.scale(highest));
        write!(out, "{lowest:>BORDER_COLUMNS$} .. {highest:>BORDER_COLUMNS$} ")?;
        let per_mille = share(count, snapshot.count(), 1000);
        write!(out, "{count:>count_columns$} {:>3}.{}%", per_mille / 10, per_mille % 10)?;
        let bar = share(count, fullest, chart.width.max(1) as u64).max(u64::from(count != 0));
        write!(out, "{}", if bar == 0 { "" } else { " " })?;
        for _ in 0..bar {
            out.write_char('#')?;
        }
        writeln!(out)?;
    }
    write_footer(out, snapshot, chart.unit)
}

/// The smallest power of two of neighbouring buckets that must share a row.
fn joined_buckets(first: usize, last: usize, rows_max: usize) -> usize {
    let mut joined = 1;
    while last / joined - first / joined >= rows_max {
        joined *= 2;
    }
    joined
}

/// `of` × `part` / `whole`, rounded down.
fn share(part: u64, whole: u64, of: u64) -> u64 {
    let share = u128::from(part) * u128::from(of) / u128::from(whole.max(1));
    u64::try_from(share).unwrap_or(u64::MAX)
}

fn write_footer<const SUB: usize>(
    out: &mut dyn Write,
    snapshot: &Snapshot<SUB>,
    unit: Unit,
) -> fmt::Result {
    write!(out, "count {}  mean {}", snapshot.count(), unit.scale(snapshot.mean().unwrap_or(0)))?;
    for quantile in [Quantile::P50, Quantile::P90, Quantile::P99, Quantile::P99_9] {
        write!(out, "  {quantile} {}", unit.scale(snapshot.quantile(quantile).unwrap_or(0)))?;
    }
    writeln!(out, "  max {}", unit.scale(snapshot.max().unwrap_or(0)))
}
