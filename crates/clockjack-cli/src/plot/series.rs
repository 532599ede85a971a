//! The values of an edge over time, in bounded memory.
//!
//! Values are collected in buckets of equal duration; empty buckets are not stored. A bucket keeps
//! the smallest, the largest and the last value, so that no peak vanishes. When there are too many
//! buckets, their duration doubles and pairs are merged, as in a round-robin database (T. Oetiker,
//! RRDtool). A short series is exact: at first a bucket is one nanosecond long.

use core::mem::take;

/// The largest number of buckets: more than a picture has columns.
pub(crate) const BUCKETS_MAX: usize = 4096;

/// The values in a range of time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Bucket {
    /// The time of the first value.
    pub(crate) at_ns: u64,
    /// The smallest and the largest finite value; none if all values are NaN or infinite.
    pub(crate) range: Option<(f64, f64)>,
    /// The last value; none if it is NaN or infinite.
    pub(crate) last: Option<f64>,
}

/// A curve: a value is valid until the next one.
#[derive(Clone, Debug, Default)]
pub(crate) struct Series {
    buckets: Vec<Bucket>,
    /// The duration of a bucket is 2 to the power of this number, in nanoseconds.
    log2_width: u32,
    n_values: u64,
    n_not_finite: u64,
    n_unreadable: u64,
}

impl Series {
    /// Adds a value. Times do not decrease; an earlier time counts as that of the value before.
    pub(crate) fn push(&mut self, at_ns: u64, value: f64) {
        self.n_values += 1;
        self.n_not_finite += u64::from(!value.is_finite());
        let finite = Some(value).filter(|value| value.is_finite());
        let new = Bucket { at_ns, range: finite.map(|value| (value, value)), last: finite };
        let width = self.log2_width;
        match self.buckets.last_mut() {
            Some(last) if at_ns >> width <= last.at_ns >> width => last.merge(&new),
            _ => self.buckets.push(new),
        }
        while self.buckets.len() > BUCKETS_MAX {
            self.halve();
        }
    }

    /// Counts a value that does not have the item which is shown.
    pub(crate) fn skip(&mut self) {
        self.n_values += 1;
        self.n_unreadable += 1;
    }

    /// How many values there were.
    pub(crate) fn n_values(&self) -> u64 {
        self.n_values
    }

    /// How many of them were NaN or infinite.
    pub(crate) fn n_not_finite(&self) -> u64 {
        self.n_not_finite
    }

    /// How many of them did not have the item that is shown.
    pub(crate) fn n_unreadable(&self) -> u64 {
        self.n_unreadable
    }

    /// The smallest and the largest finite value.
    pub(crate) fn range(&self) -> Option<(f64, f64)> {
        self.buckets.iter().filter_map(|one| one.range).reduce(wider)
    }

    /// The curve in each of `n` columns of equal duration until `end_ns`: from its lowest to its
    /// highest point, or none where it has no finite value.
    pub(crate) fn columns(&self, n: usize, end_ns: u64) -> Vec<Option<(f64, f64)>> {
        let mut columns = vec![None; n];
        let (mut held, mut next) = (None, 0);
        for bucket in &self.buckets {
            let at = column_of(bucket.at_ns, n, end_ns);
            if next <= at {
                // The value before is valid until this one, so it is also the start of this column.
                columns[next..=at].fill(held);
            }
            columns[at] = both(columns[at], bucket.range);
            (held, next) = (bucket.last.map(|value| (value, value)), at + 1);
        }
        if let Some(rest) = columns.get_mut(next..) {
            rest.fill(held);
        }
        columns
    }

    /// Doubles the duration of buckets.
    fn halve(&mut self) {
        self.log2_width += 1;
        let width = self.log2_width;
        let mut merged: Vec<Bucket> = Vec::with_capacity(self.buckets.len());
        for bucket in take(&mut self.buckets) {
            match merged.last_mut() {
                Some(last) if last.at_ns >> width == bucket.at_ns >> width => last.merge(&bucket),
                _ => merged.push(bucket),
            }
        }
        self.buckets = merged;
    }
}

/// The column of a time.
fn column_of(at_ns: u64, n: usize, end_ns: u64) -> usize {
    let at = u128::from(at_ns) * n as u128 / u128::from(end_ns.max(1));
    usize::try_from(at).unwrap_or(usize::MAX).min(n.saturating_sub(1))
}

/// The range that covers both.
pub(crate) fn wider(a: (f64, f64), b: (f64, f64)) -> (f64, f64) {
    (a.0.min(b.0), a.1.max(b.1))
}

/// The same, of ranges that may be empty.
fn both(a: Option<(f64, f64)>, b: Option<(f64, f64)>) -> Option<(f64, f64)> {
    match (a, b) {
        (Some(a), Some(b)) => Some(wider(a, b)),
        (one, other) => one.or(other),
    }
}

impl Bucket {
    /// Adds a later bucket.
    fn merge(&mut self, later: &Self) {
        self.range = both(self.range, later.range);
        self.last = later.last;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn series(values: impl IntoIterator<Item = (u64, f64)>) -> Series {
        let mut series = Series::default();
        values.into_iter().for_each(|(at_ns, value)| series.push(at_ns, value));
        series
    }

    #[test]
    fn a_short_series_is_exact() {
        let values = [(0, 1.0), (7, -2.5), (1_000_000_007, 4.0)];
        let series = series(values);
        let found = series.buckets.iter().map(|one| (one.at_ns, one.last));
        assert!(found.eq(values.map(|(at_ns, value)| (at_ns, Some(value)))));
    }

    #[test]
    fn a_value_is_valid_until_the_next_one() {
        let found = series([(20, 1.0), (60, 3.0)]).columns(5, 100);
        let flat = |value| Some((value, value));
        assert_eq!(found, [None, flat(1.0), flat(1.0), Some((1.0, 3.0)), flat(3.0)]);
    }

    #[test]
    fn a_million_values_need_bounded_memory_and_keep_their_peaks() {
        let mut series = Series::default();
        for n in 0..1_000_000_u64 {
            // One peak up, one down, each a single value.
            let value = match n {
                123_457 => 99.0,
                765_432 => -99.0,
                _ => 1.0,
            };
            series.push(n * 1_000_000, value);
            assert!(series.buckets.len() <= BUCKETS_MAX, "{}", series.buckets.len());
        }
        assert!(series.buckets.len() > BUCKETS_MAX / 3, "{}", series.buckets.len());
        assert_eq!((series.n_values(), series.range()), (1_000_000, Some((-99.0, 99.0))));
        let found = series.columns(100, 1_000_000_000_000);
        assert_eq!(found[12], Some((1.0, 99.0)));
        assert_eq!(found[76], Some((-99.0, 1.0)));
        let is_flat = |column: &&Option<(f64, f64)>| **column == Some((1.0, 1.0));
        assert_eq!(found.iter().filter(is_flat).count(), 98);
    }

    #[test]
    fn what_is_not_finite_is_a_gap_and_is_counted() {
        let values = [(0, 1.0), (30, f64::NAN), (50, f64::INFINITY), (80, 2.0)];
        let series = series(values);
        assert_eq!(series.n_not_finite(), 2);
        assert_eq!(series.range(), Some((1.0, 2.0)));
        let flat = |value| Some((value, value));
        let gap = [flat(1.0), flat(1.0), flat(1.0), flat(1.0), None, None, None, None];
        let found = series.columns(10, 100);
        assert_eq!(found[..8], gap);
        assert_eq!(found[8..], [flat(2.0), flat(2.0)]);
    }

    #[test]
    fn values_of_one_moment_are_one_bucket() {
        let series = series([(5, 1.0), (5, 9.0), (5, 2.0), (3, 0.5)]);
        let bucket = Bucket { at_ns: 5, range: Some((0.5, 9.0)), last: Some(0.5) };
        assert_eq!(series.buckets, [bucket]);
    }

    #[test]
    fn nothing_is_drawn_of_no_value_and_a_line_of_one() {
        assert_eq!(Series::default().columns(3, 10), [None; 3]);
        assert_eq!(series([(0, 4.0)]).columns(3, 0), [Some((4.0, 4.0)); 3]);
        assert_eq!(series([(10, 4.0)]).columns(2, 10), [None, Some((4.0, 4.0))]);
    }
}
