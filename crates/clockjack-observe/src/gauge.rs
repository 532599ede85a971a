//! A gauge: a level that rises and falls, or a high-water mark.

use core::fmt;

use clockjack_sync::primitive::atomic::Ordering::Relaxed;

use crate::{
    construct::const_fn,
    counter::Counter,
    mode::{Mode, Shared},
};

/// A level in one `usize` cell, from 0 to `isize::MAX`.
///
/// A read is one load and never tears. With several writers, a decrease may be visible before the
/// increase that belongs to it; a level that is below zero for a moment reads as 0, and nothing is
/// lost.
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
        /// Creates a gauge at zero.
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

    /// Sets the level. If other threads [`add`](Self::add) or [`sub`](Self::sub) concurrently, the
    /// last operation in the cell's modification order wins.
    #[inline(always)]
    pub fn set(&self, level: usize) {
        // Relaxed: an independent number, see `mode`.
        self.0.cell.store(level, Relaxed);
    }

    /// Raises the level to at least `level`: a high-water mark. Not for a gauge that also falls.
    #[inline(always)]
    pub fn raise(&self, level: usize) {
        M::raise(&self.0.cell, level);
    }

    /// The current level.
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
