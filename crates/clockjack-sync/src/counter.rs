//! A striped counter (compare `Striped64` and `LongAdder` of Java), for statistics that many
//! threads write and few read.
//!
//! It is not a synchronisation tool: a change publishes nothing, and [`StripedCounter::sum`] is no
//! snapshot.

use core::fmt;

use crate::{
    const_unless_loom,
    pad::Padded,
    primitive::{
        self,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    primitive_array,
};

/// The number of stripes; a power of two, so that a mask reduces a hint. One is enough for one
/// core.
pub const STRIPES: usize = primitive::scaled(2, 1, 32);

const _: () = assert!(STRIPES.is_power_of_two());

/// A counter of 32 stripes, each alone on its cache line.
///
/// A thread changes the stripe that its *hint* selects, for instance its worker number, and so does
/// not contend with other threads. Any hint is correct; a shared one only costs speed.
///
/// Arithmetic wraps, for each stripe and for the sum. So a thread may add on one stripe and another
/// thread may subtract on another: a stripe then holds a "negative" number, and the sum is still
/// correct, as long as the true total stays within `0..=isize::MAX`.
///
/// It takes 32 cache lines, 4 KiB on x86-64; on a microcontroller there is one stripe.
///
/// # Examples
///
/// ```
/// use clockjack_sync::counter::StripedCounter;
///
/// let live = StripedCounter::new();
/// live.add(0, 3); // by worker 0
/// live.sub(7, 1); // by worker 7
/// assert_eq!(live.sum(), 2);
/// ```
pub struct StripedCounter {
    stripes: [Padded<AtomicUsize>; STRIPES],
}

impl StripedCounter {
    const_unless_loom! {
        /// A counter at zero.
        #[must_use]
        pub const fn new() -> Self {
            Self { stripes: primitive_array![Padded(AtomicUsize::new(0)); STRIPES] }
        }
    }

    /// Adds `n` on the stripe of `stripe_hint`, wrapping.
    #[inline]
    pub fn add(&self, stripe_hint: usize, n: usize) {
        // Relaxed: a statistic; nothing is published.
        self.stripe(stripe_hint).fetch_add(n, Relaxed);
    }

    /// Subtracts `n` on the stripe of `stripe_hint`, wrapping.
    #[inline]
    pub fn sub(&self, stripe_hint: usize, n: usize) {
        // Relaxed: a statistic; nothing is published.
        self.stripe(stripe_hint).fetch_sub(n, Relaxed);
    }

    /// The sum of all stripes, each read once, one after the other.
    ///
    /// It is exact when no thread writes meanwhile. Else it contains every change that happened
    /// before the call and some of the concurrent ones, in no particular combination: a `sub` may
    /// be included without the `add` before it. A sum that would be negative is returned as zero.
    #[must_use]
    pub fn sum(&self) -> usize {
        // Relaxed: a statistic; nothing is published.
        let sum = self.stripes.iter().fold(0, |sum: usize, s| sum.wrapping_add(s.load(Relaxed)));
        if sum.cast_signed() < 0 { 0 } else { sum }
    }

    #[inline]
    fn stripe(&self, hint: usize) -> &AtomicUsize {
        &self.stripes[hint & (STRIPES - 1)]
    }
}

impl Default for StripedCounter {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for StripedCounter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("StripedCounter").field(&self.sum()).finish()
    }
}
