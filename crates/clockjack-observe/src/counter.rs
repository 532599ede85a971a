//! A monotonic counter.

use core::{fmt, marker::PhantomData};

use clockjack_sync::primitive::atomic::{AtomicUsize, Ordering::Relaxed};

use crate::{
    construct::const_fn,
    mode::{Mode, Shared},
};

/// A monotonic counter in one `usize` cell.
///
/// A read is one load, so it never tears and never blocks a writer. The count wraps at
/// `usize::MAX`: on 64-bit targets after 584 years at one per nanosecond, on 32-bit targets after
/// 71 minutes at one per microsecond. A reader that reads at least once per wrap computes
/// differences with [`since`](Self::since) and loses nothing.
///
/// # Examples
///
/// ```
/// use clockjack_observe::{Counter, SingleWriter};
///
/// static FIRED: Counter = Counter::new(); // any thread adds
/// FIRED.add(2);
/// assert_eq!(FIRED.get(), 2);
///
/// let steps: Counter<SingleWriter> = Counter::new(); // one thread adds, any thread reads
/// steps.increment();
/// assert_eq!(steps.get(), 1);
/// ```
pub struct Counter<M = Shared> {
    pub(crate) cell: AtomicUsize,
    mode: PhantomData<fn() -> M>,
}

impl<M: Mode> Counter<M> {
    const_fn! {
        /// Creates a counter at zero.
        pub fn new() -> Self {
            Self { cell: AtomicUsize::new(0), mode: PhantomData }
        }
    }

    /// Adds `n`, with wrap-around.
    #[inline(always)]
    pub fn add(&self, n: usize) {
        M::add(&self.cell, n);
    }

    /// Adds one.
    #[inline(always)]
    pub fn increment(&self) {
        self.add(1);
    }

    /// The current count.
    #[inline(always)]
    #[must_use]
    pub fn get(&self) -> usize {
        // Relaxed: an independent number, see `mode`.
        self.cell.load(Relaxed)
    }

    /// The amount added since an earlier [`get`](Self::get); correct across one wrap-around.
    #[inline]
    #[must_use]
    pub fn since(&self, earlier: usize) -> usize {
        self.get().wrapping_sub(earlier)
    }
}

impl<M: Mode> Default for Counter<M> {
    fn default() -> Self {
        Self::new()
    }
}

impl<M: Mode> fmt::Debug for Counter<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Counter").field(&self.get()).finish()
    }
}
