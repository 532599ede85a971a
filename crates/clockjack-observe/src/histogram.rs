//! A log-linear histogram (as HdrHistogram by Gil Tene) of `u64` values: fixed memory, no locks, no
//! floating point.
//!
//! # Guarantees
//!
//! * **Range**: all of `u64`. **Error**: a quantile is never below the true value, and exceeds it
//!   by at most 1/`SUB` of it; minimum, maximum, count and sum are exact (with the restrictions
//!   below for 32-bit targets).
//! * **Cost**: recording takes a few integer instructions and accesses at most five cells,
//!   whatever the value.
//! * **Memory**: 64 × `SUB` + 4 words: 8.2 KiB for `SUB` = 16 on 64-bit targets and 4.1 KiB on
//!   32-bit targets; 1 KiB for `SUB` = 4 there.
//! * **Snapshot**: it contains every record that happened before it began and may contain some
//!   concurrent ones. It is not atomic: buckets are read one after another. But it is consistent
//!   in itself: its count is the sum of its buckets, and its sum, minimum, maximum and quantiles
//!   lie within them. Without concurrent records it is exact.
//!
//! # 32-bit targets
//!
//! Cells are `usize`. A bucket wraps after 2^32 records. Minimum and maximum are exact up to
//! `u32::MAX - 1`; beyond that they are the border of their bucket. The sum has two cells with a
//! carry and wraps at 2^64; a sum that wrapped, or that was read between the two updates, is
//! clamped to the bounds of the buckets, so it is then as exact as a quantile.

mod bucket;
mod quantile;
mod snapshot;

use core::{fmt, marker::PhantomData};

use clockjack_sync::primitive::atomic::{AtomicUsize, Ordering::Relaxed};

use bucket::{Layout, ROWS};
pub use quantile::Quantile;
use snapshot::LiveTotals;
pub use snapshot::{Bucket, Snapshot, Summary};

use crate::{
    construct::{const_fn, filled},
    mode::{Mode, Shared},
};

/// A live histogram with `SUB` buckets per octave: 2, 4, 8, .. 256. See the [module](self).
///
/// # Examples
///
/// ```
/// use clockjack_observe::{Histogram, Quantile, SingleWriter};
///
/// static LATENESS_NS: Histogram<16> = Histogram::new(); // any thread records
/// for ns in 1..=1000 {
///     LATENESS_NS.record(ns);
/// }
/// let seen = LATENESS_NS.snapshot();
/// assert_eq!(seen.count(), 1000);
/// assert_eq!(seen.max(), Some(1000));
/// let p50 = seen.quantile(Quantile::P50).unwrap();
/// assert!((500..=500 + 500 / 16).contains(&p50));
///
/// let own: Histogram<4, SingleWriter> = Histogram::new(); // one thread records, any thread reads
/// own.record(7);
/// ```
///
/// A number of buckets that is not a power of two does not compile:
///
/// ```compile_fail
/// let histogram: clockjack_observe::Histogram<10> = clockjack_observe::Histogram::new();
/// ```
pub struct Histogram<const SUB: usize, M = Shared> {
    counts: [[AtomicUsize; SUB]; ROWS],
    /// The low and the high half of the sum.
    sum: [AtomicUsize; 2],
    /// The minimum; `usize::MAX` for this value and all larger ones.
    min: AtomicUsize,
    /// The maximum; `usize::MAX` for this value and all larger ones.
    max: AtomicUsize,
    mode: PhantomData<fn() -> M>,
}

impl<const SUB: usize, M: Mode> Histogram<SUB, M> {
    const_fn! {
        /// Creates an empty histogram.
        pub fn new() -> Self {
            const { assert!(Layout::<SUB>::SUB_BITS >= 1, "SUB is checked") };
            Self {
                counts: filled![filled![AtomicUsize::new(0); SUB]; ROWS],
                sum: filled![AtomicUsize::new(0); 2],
                min: AtomicUsize::new(usize::MAX),
                max: AtomicUsize::new(0),
                mode: PhantomData,
            }
        }
    }

    /// Adds one value.
    #[inline]
    pub fn record(&self, value: u64) {
        M::add(&self.counts.as_flattened()[Layout::<SUB>::index_of(value)], 1);
        self.add_to_sum(value);
        let clipped = usize::try_from(value).unwrap_or(usize::MAX);
        M::raise(&self.max, clipped);
        M::lower(&self.min, clipped);
    }

    /// Everything recorded so far. The result takes 64 × `SUB` × 8 bytes on the stack; if that is
    /// too much, keep a snapshot in a `static` or a box and use [`add_to`](Self::add_to).
    #[must_use]
    pub fn snapshot(&self) -> Snapshot<SUB> {
        let mut snapshot = Snapshot::new();
        self.add_to(&mut snapshot);
        snapshot
    }

    /// Adds everything recorded so far to `snapshot`. This merges the histograms of several
    /// workers.
    pub fn add_to(&self, snapshot: &mut Snapshot<SUB>) {
        // Relaxed throughout: each cell is an independent number, and `merge_live` makes the
        // numbers consistent.
        let counts = self.counts.as_flattened().iter().map(|cell| cell.load(Relaxed) as u64);
        let sum =
            (self.sum[1].load(Relaxed) as u128) << usize::BITS | self.sum[0].load(Relaxed) as u128;
        let max = self.max.load(Relaxed);
        let live = LiveTotals {
            sum,
            min: match self.min.load(Relaxed) {
                // Unknown: use the lower border of the first bucket.
                usize::MAX if usize::BITS < u64::BITS => 0,
                min => min as u64,
            },
            max: (max != usize::MAX).then_some(max as u64),
        };
        snapshot.merge_live(live, counts);
    }

    #[inline(always)]
    #[expect(clippy::cast_possible_truncation, reason = "the halves are cut on purpose")]
    fn add_to_sum(&self, value: u64) {
        let low = value as usize;
        let before = M::add(&self.sum[0], low);
        let carry = usize::from(before.checked_add(low).is_none());
        let high = ((u128::from(value) >> usize::BITS) as usize).wrapping_add(carry);
        if high != 0 {
            M::add(&self.sum[1], high);
        }
    }
}

impl<const SUB: usize, M: Mode> Default for Histogram<SUB, M> {
    fn default() -> Self {
        Self::new()
    }
}

impl<const SUB: usize, M: Mode> fmt::Debug for Histogram<SUB, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Histogram").field(&self.snapshot().summary()).finish()
    }
}
