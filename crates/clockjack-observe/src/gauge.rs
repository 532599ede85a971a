//! A level that rises and falls: things that exist now, or the highest that was seen.

use core::fmt;

use clockjack_sync::prim::atomic::Ordering::Relaxed;

use crate::{
    construct::const_fn,
    counter::Counter,
    mode::{Mode, Shared},
};

/// A level in one `usize` cell, from 0 to `isize::MAX`.
///
/// A read is one load and never tears. With several writers a fall may be seen before the rise that
/// belongs to it; such a moment below zero reads as 0, and nothing is lost by it.
///
/// # Examples
///
/// ```
/// use clockjack_observe::Gauge;
///
/// static ARMED: Gauge = Gauge::new();
/// ARMED.add(3);
/// ARMED.sub(1);
/// assert_eq!(ARMED.get(), 2);
/// ```
pub struct Gauge<M = Shared>(Counter<M>);

impl<M: Mode> Gauge<M> {
    const_fn! {
        /// A gauge at zero.
        pub fn new() -> Self {
            Self(Counter::new())
        }
    }

    /// Raises the level by `n`.
    #[inline(always)]
    pub fn add(&self, n: usize) {
        self.0.add(n);
    }

    /// Lowers the level by `n`.
    #[inline(always)]
    pub fn sub(&self, n: usize) {
        self.0.add(n.wrapping_neg());
    }

    /// Sets the level. Beside [`add`](Self::add) or [`sub`](Self::sub) on other threads, whichever
    /// comes last in the cell's own order stands.
    #[inline(always)]
    pub fn set(&self, level: usize) {
        // Relaxed: a number by itself, see `mode`.
        self.0.cell.store(level, Relaxed);
    }

    /// Makes the level at least `level`: a high-water mark. Not for a gauge that also falls.
    #[inline(always)]
    pub fn raise(&self, level: usize) {
        M::raise(&self.0.cell, level);
    }

    /// The level now.
    #[inline(always)]
    #[must_use]
    pub fn get(&self) -> usize {
        let level = self.0.get();
        if level > isize::MAX as usize { 0 } else { level }
    }
}

impl<M: Mode> Default for Gauge<M> {
    fn default() -> Self {
        Self::new()
    }
}

impl<M: Mode> fmt::Debug for Gauge<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Gauge").field(&self.get()).finish()
    }
}
