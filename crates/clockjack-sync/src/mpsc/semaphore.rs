//! The semaphore of a queue: count, bound and close in one word, rules 6 to 9 of the
//! [protocol](super). It is the semaphore of tokio's mpsc channel, without a list of waiters.

use crate::{
    const_unless_loom,
    primitive::atomic::{
        AtomicUsize,
        Ordering::{AcqRel, Acquire, Relaxed, Release},
    },
    push_error::Refusal,
};

/// The lowest bit of `acquired`.
const CLOSED: usize = 1;
/// One item in `acquired` and `released`.
const ONE: usize = 2;
/// No bound. A real bound is below half of the count's range, so that differences keep their sign.
const UNBOUNDED: usize = usize::MAX;
/// The largest bound.
pub(crate) const BOUND_MAX: usize = usize::MAX >> 2;

/// Counts the permits that were acquired and those that were released, both modulo half of `usize`.
#[derive(Debug)]
pub(crate) struct Semaphore {
    acquired: AtomicUsize,
    released: AtomicUsize,
    bound: usize,
}

impl Semaphore {
    const_unless_loom! {
        /// A semaphore without a bound; both counts begin at `start`.
        pub(crate) const fn unbounded(start: usize) -> Self {
            Self::new(UNBOUNDED, start)
        }
    }

    const_unless_loom! {
        /// A semaphore of `bound` permits; both counts begin at `start`.
        pub(crate) const fn bounded(bound: usize, start: usize) -> Self {
            assert!(bound > 0, "a bound of zero admits nothing");
            assert!(bound <= BOUND_MAX, "the bound is above a quarter of usize");
            Self::new(bound, start)
        }
    }

    const_unless_loom! {
        const fn new(bound: usize, start: usize) -> Self {
            let start = start.wrapping_mul(ONE);
            Self { acquired: AtomicUsize::new(start), released: AtomicUsize::new(start), bound }
        }
    }

    /// Acquires `n` permits, all or none.
    #[inline]
    pub(crate) fn try_acquire(&self, n: usize) -> Result<(), Refusal> {
        if self.bound == UNBOUNDED {
            self.try_acquire_unbounded(n)
        } else {
            self.try_acquire_bounded(n)
        }
    }

    #[inline]
    fn try_acquire_unbounded(&self, n: usize) -> Result<(), Refusal> {
        // Acquire: pairs with `close`, so that a refused caller sees what came before it. This load
        // keeps the producers of a closed queue from changing the count again and again; the
        // addition below decides.
        if self.acquired.load(Acquire) & CLOSED != 0 {
            return Err(Refusal::Closed);
        }
        // Acquire: as above. No Release: the intrusive queue publishes the item.
        let before = self.acquired.fetch_add(n * ONE, Acquire);
        if before & CLOSED != 0 {
            // Relaxed: returns a permit under which nothing was published.
            self.acquired.fetch_sub(n * ONE, Relaxed);
            return Err(Refusal::Closed);
        }
        Ok(())
    }

    fn try_acquire_bounded(&self, n: usize) -> Result<(), Refusal> {
        // Acquire: pairs with `close`, and orders the load of `released` after it (rule 7).
        let mut acquired = self.acquired.load(Acquire);
        loop {
            if acquired & CLOSED != 0 {
                return Err(Refusal::Closed);
            }
            // Acquire: pairs with `release`: a producer that gets a permit sees that the consumer
            // is done with the item that held the permit before.
            let inside = difference(acquired, self.released.load(Acquire));
            // Negative: `acquired` is outdated, and the exchange will fail.
            if inside >= 0 && inside.cast_unsigned() + n > self.bound {
                return Err(Refusal::Full);
            }
            let after = acquired.wrapping_add(n * ONE);
            // Acquire: as for the first load.
            match self.acquired.compare_exchange_weak(acquired, after, Acquire, Acquire) {
                Ok(_) => return Ok(()),
                Err(now) => acquired = now,
            }
        }
    }

    /// Releases `n` permits. Only the consumer calls it, after it has unlinked the items.
    #[inline]
    pub(crate) fn release(&self, n: usize) {
        // Relaxed: only the consumer writes it.
        let released = self.released.load(Relaxed);
        // Release: pairs with `try_acquire_bounded` and `len`.
        self.released.store(released.wrapping_add(n * ONE), Release);
    }

    /// Whether all permits were released. Only the consumer calls it (rule 9).
    #[inline]
    pub(crate) fn is_idle(&self) -> bool {
        // Relaxed: only the consumer writes it.
        let released = self.released.load(Relaxed);
        // Acquire: pairs with `close`; a consumer that finds it closed sees what came before.
        self.acquired.load(Acquire) & !CLOSED == released
    }

    /// Refuses every acquisition from now on; returns whether this call closed the semaphore.
    pub(crate) fn close(&self) -> bool {
        // AcqRel: pairs with the loads of `acquired` in both directions; the closer sees what
        // happened before an earlier close.
        self.acquired.fetch_or(CLOSED, AcqRel) & CLOSED == 0
    }

    /// Whether it was closed.
    #[inline]
    pub(crate) fn is_closed(&self) -> bool {
        // Acquire: pairs with `close`.
        self.acquired.load(Acquire) & CLOSED != 0
    }

    /// How many permits are held: at least those that were acquired before the call and were not
    /// released yet.
    pub(crate) fn len(&self) -> usize {
        // Acquire: pairs with `release`; a thread that sees a permit released also sees it
        // acquired, so the difference is not negative.
        let released = self.released.load(Acquire);
        // Relaxed: a count.
        difference(self.acquired.load(Relaxed), released).max(0).cast_unsigned()
    }

    /// The bound, if there is one.
    pub(crate) const fn bound(&self) -> Option<usize> {
        if self.bound == UNBOUNDED { None } else { Some(self.bound) }
    }
}

/// By how many permits `acquired` is ahead of `released`, also across a wrap-around.
#[inline]
const fn difference(acquired: usize, released: usize) -> isize {
    (acquired & !CLOSED).wrapping_sub(released).cast_signed() / ONE.cast_signed()
}
