//! A snapshot of a histogram: plain numbers that can be queried, merged and printed.
//!
//! Invariant: sum, minimum and maximum always lie within the bounds of the buckets. So a record
//! that was written concurrently with the snapshot can never make it inconsistent.

use core::fmt;

use super::{
    bucket::{Layout, ROWS},
    quantile::Quantile,
};

/// A histogram without concurrent writers: the result of
/// [`Histogram::snapshot`](super::Histogram::snapshot), or one that the caller fills.
///
/// Size: 64 × `SUB` × 8 bytes and a few words, on every target.
#[derive(Clone, PartialEq, Eq)]
pub struct Snapshot<const SUB: usize> {
    counts: [[u64; SUB]; ROWS],
    count: u64,
    sum: u128,
    /// Greater than `max` if there is no value.
    min: u64,
    max: u64,
}

/// The most important numbers of a [`Snapshot`], without its precision parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Summary {
    /// The number of values; the other fields are 0 if it is 0.
    pub count: u64,
    /// The sum.
    pub sum: u128,
    /// The sum divided by the count, rounded down.
    pub mean: u64,
    /// The minimum.
    pub min: u64,
    /// The median.
    pub p50: u64,
    /// 90 %.
    pub p90: u64,
    /// 99 %.
    pub p99: u64,
    /// 99.9 %.
    pub p99_9: u64,
    /// The maximum.
    pub max: u64,
}

/// One bucket that holds at least one value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bucket {
    /// The smallest value it can hold.
    pub lowest: u64,
    /// The largest value it can hold.
    pub highest: u64,
    /// The number of values in it.
    pub count: u64,
}

impl<const SUB: usize> Snapshot<SUB> {
    /// Creates an empty snapshot.
    #[must_use]
    pub const fn new() -> Self {
        const { assert!(Layout::<SUB>::SUB_BITS >= 1, "SUB is checked") };
        Self { counts: [[0; SUB]; ROWS], count: 0, sum: 0, min: u64::MAX, max: 0 }
    }

    /// Adds one value.
    pub fn record(&mut self, value: u64) {
        self.record_n(value, 1);
    }

    /// Adds the same value `n` times. Counts saturate at `u64::MAX`, the sum at `u128::MAX`.
    pub fn record_n(&mut self, value: u64, n: u64) {
        if n == 0 {
            return;
        }
        let bucket = &mut self.counts.as_flattened_mut()[Layout::<SUB>::index_of(value)];
        *bucket = bucket.saturating_add(n);
        self.count = self.count.saturating_add(n);
        self.sum = self.sum.saturating_add(u128::from(value) * u128::from(n));
        self.min = self.min.min(value);
        self.max = self.max.max(value);
    }

    /// Adds all values of `other`.
    pub fn merge(&mut self, other: &Self) {
        let theirs = other.counts.as_flattened();
        for (mine, theirs) in self.counts.as_flattened_mut().iter_mut().zip(theirs) {
            *mine = mine.saturating_add(*theirs);
        }
        self.count = self.count.saturating_add(other.count);
        self.sum = self.sum.saturating_add(other.sum);
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
    }

    /// Adds the cells of a live histogram. Clamps `sum`, `min` and `max` to the bounds that the
    /// bucket counts set.
    pub(super) fn merge_live(&mut self, live: LiveTotals, counts: impl Iterator<Item = u64>) {
        let (mut count, mut sum_low, mut sum_high) = (0_u64, 0_u128, 0_u128);
        let (mut first, mut last) = (None, 0);
        for (index, (mine, n)) in self.counts.as_flattened_mut().iter_mut().zip(counts).enumerate()
        {
            if n == 0 {
                continue;
            }
            *mine = mine.saturating_add(n);
            count = count.saturating_add(n);
            sum_low =
                sum_low.saturating_add(u128::from(Layout::<SUB>::lowest(index)) * u128::from(n));
            sum_high =
                sum_high.saturating_add(u128::from(Layout::<SUB>::highest(index)) * u128::from(n));
            first.get_or_insert(index);
            last = index;
        }
        let Some(first) = first else { return };
        let min = live.min.clamp(Layout::<SUB>::lowest(first), Layout::<SUB>::highest(first));
        let max = live.max.unwrap_or(u64::MAX);
        let max = max.clamp(Layout::<SUB>::lowest(last), Layout::<SUB>::highest(last));
        // If there is one bucket, the two were read at different times and might cross.
        let max = max.max(min);
        let n = u128::from(count);
        let sum_low = sum_low.max(n.saturating_mul(u128::from(min)));
        let sum_high = sum_high.min(n.saturating_mul(u128::from(max)));
        self.count = self.count.saturating_add(count);
        self.sum = self.sum.saturating_add(live.sum.min(sum_high).max(sum_low));
        self.min = self.min.min(min);
        self.max = self.max.max(max);
    }

    /// The number of values.
    #[must_use]
    pub const fn count(&self) -> u64 {
        self.count
    }

    /// Whether there is no value.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The sum of all values.
    #[must_use]
    pub const fn sum(&self) -> u128 {
        self.sum
    }

    /// The mean, rounded down.
    #[must_use]
    pub fn mean(&self) -> Option<u64> {
        let mean = self.sum.checked_div(u128::from(self.count))?;
        Some(u64::try_from(mean).unwrap_or(u64::MAX))
    }

    /// The minimum, exact.
    #[must_use]
    pub const fn min(&self) -> Option<u64> {
        if self.is_empty() { None } else { Some(self.min) }
    }

    /// The maximum, exact.
    #[must_use]
    pub const fn max(&self) -> Option<u64> {
        if self.is_empty() { None } else { Some(self.max) }
    }

    /// The value at a quantile: never below the true value, and above it by at most the true value
    /// divided by `SUB`. `None` if there is no value.
    #[must_use]
    pub fn quantile(&self, quantile: Quantile) -> Option<u64> {
        if self.is_empty() {
            return None;
        }
        if quantile == Quantile::MIN {
            return Some(self.min);
        }
        let mut left = quantile.rank(self.count);
        for (index, n) in self.counts.as_flattened().iter().enumerate() {
            if let Some(rest) = left.checked_sub(*n)
                && rest > 0
            {
                left = rest;
            } else {
                return Some(Layout::<SUB>::highest(index).clamp(self.min, self.max));
            }
        }
        // Reached only if counts have saturated.
        Some(self.max)
    }

    /// The most important numbers.
    #[must_use]
    pub fn summary(&self) -> Summary {
        let at = |quantile| self.quantile(quantile).unwrap_or(0);
        Summary {
            count: self.count,
            sum: self.sum,
            mean: self.mean().unwrap_or(0),
            min: self.min().unwrap_or(0),
            p50: at(Quantile::P50),
            p90: at(Quantile::P90),
            p99: at(Quantile::P99),
            p99_9: at(Quantile::P99_9),
            max: self.max,
        }
    }

    /// The non-empty buckets, in ascending order.
    pub fn buckets(&self) -> impl Iterator<Item = Bucket> + '_ {
        self.counts.as_flattened().iter().enumerate().filter(|(_, n)| **n != 0).map(
            |(index, count)| Bucket {
                lowest: Layout::<SUB>::lowest(index),
                highest: Layout::<SUB>::highest(index),
                count: *count,
            },
        )
    }
}

impl<const SUB: usize> Default for Snapshot<SUB> {
    fn default() -> Self {
        Self::new()
    }
}

impl<const SUB: usize> fmt::Debug for Snapshot<SUB> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Snapshot").field(&self.summary()).finish()
    }
}

/// The cells of a live histogram, apart from its buckets.
pub(super) struct LiveTotals {
    pub(super) sum: u128,
    /// 0 if the cell does not know it.
    pub(super) min: u64,
    /// `None` if the cell does not know it.
    pub(super) max: Option<u64>,
}
