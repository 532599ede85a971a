//! Admission to a queue: count, bound and close in one word, rules 6 to 9 of the [protocol](super).

use crate::{
    const_unless_loom, mutant,
    prim::atomic::{
        AtomicUsize,
        Ordering::{AcqRel, Acquire, Relaxed, Release},
    },
    push_error::Refusal,
};

/// The lowest bit of `admitted`.
const CLOSED: usize = 1;
/// One item in `admitted` and `left`.
const ONE: usize = 2;
/// No bound. A true bound is below half of the count's range, so that differences keep their sign.
const UNBOUNDED: usize = usize::MAX;
/// The largest bound.
pub(crate) const BOUND_MAX: usize = usize::MAX >> 2;

/// Counts what was admitted and what has left, both modulo half of `usize`.
#[derive(Debug)]
pub(crate) struct Gate {
    admitted: AtomicUsize,
    left: AtomicUsize,
    bound: usize,
}

impl Gate {
    const_unless_loom! {
        /// A gate that lets everything in; both counts begin at `start`.
        pub(crate) const fn unbounded(start: usize) -> Self {
            Self::new(UNBOUNDED, start)
        }
    }

    const_unless_loom! {
        /// A gate that lets in what leaves at most `bound` inside; both counts begin at `start`.
        pub(crate) const fn bounded(bound: usize, start: usize) -> Self {
            assert!(bound > 0, "a bound of zero admits nothing");
            assert!(bound <= BOUND_MAX, "the bound is above a quarter of usize");
            Self::new(bound, start)
        }
    }

    const_unless_loom! {
        const fn new(bound: usize, start: usize) -> Self {
            let start = start.wrapping_mul(ONE);
            Self { admitted: AtomicUsize::new(start), left: AtomicUsize::new(start), bound }
        }
    }

    /// Admits `n` items, all or none.
    #[inline]
    pub(crate) fn enter(&self, n: usize) -> Result<(), Refusal> {
        if self.bound == UNBOUNDED { self.enter_unbounded(n) } else { self.enter_bounded(n) }
    }

    #[inline]
    fn enter_unbounded(&self, n: usize) -> Result<(), Refusal> {
        // Acquire: pairs with `close`, so that a refused caller sees what came before it. This look
        // keeps producers of a closed queue from shaking the count for ever; the one that counts is
        // the addition.
        if self.admitted.load(Acquire) & CLOSED != 0 {
            return Err(Refusal::Closed);
        }
        // Acquire: as above. No Release: the chain publishes the item.
        let before = self.admitted.fetch_add(n * ONE, Acquire);
        if before & CLOSED != 0 && !mutant!("mpsc-closed-not-rechecked") {
            // Relaxed: takes back what was never published.
            self.admitted.fetch_sub(n * ONE, Relaxed);
            return Err(Refusal::Closed);
        }
        Ok(())
    }

    fn enter_bounded(&self, n: usize) -> Result<(), Refusal> {
        // Acquire: pairs with `close`, and orders the load of `left` after it (rule 7).
        let mut admitted = self.admitted.load(Acquire);
        loop {
            if admitted & CLOSED != 0 {
                return Err(Refusal::Closed);
            }
            // Acquire: pairs with `leave`, so that a producer that found room sees that the
            // consumer is done with the item whose room it takes.
            let inside = difference(admitted, self.left.load(Acquire));
            // Negative: `admitted` was read too long ago, and the exchange will fail.
            if inside >= 0 && inside.cast_unsigned() + n > self.bound {
                return Err(Refusal::Full);
            }
            let after = admitted.wrapping_add(n * ONE);
            // Acquire: as for the first load.
            match self.admitted.compare_exchange_weak(admitted, after, Acquire, Acquire) {
                Ok(_) => return Ok(()),
                Err(_) if mutant!("mpsc-bound-by-load") => {
                    self.admitted.fetch_add(n * ONE, Acquire);
                    return Ok(());
                }
                Err(now) => admitted = now,
            }
        }
    }

    /// Counts `n` items out. Only the consumer calls it, after it has taken them off the chain.
    #[inline]
    pub(crate) fn leave(&self, n: usize) {
        // Relaxed: only the consumer writes it.
        let left = self.left.load(Relaxed);
        // Release: pairs with `enter_bounded` and `len`.
        self.left.store(left.wrapping_add(n * ONE), Release);
    }

    /// Whether everything admitted has left. Only the consumer's question (rule 9).
    #[inline]
    pub(crate) fn is_settled(&self) -> bool {
        if mutant!("mpsc-empty-ignores-admitted") {
            return true;
        }
        // Relaxed: only the consumer writes it.
        let left = self.left.load(Relaxed);
        // Acquire: pairs with `close`; a consumer that finds it closed sees what came before.
        self.admitted.load(Acquire) & !CLOSED == left
    }

    /// Refuses everything from now on; says whether this call did it.
    pub(crate) fn close(&self) -> bool {
        // AcqRel: pairs with the loads of `admitted` in both directions; the closer sees what came
        // before an earlier closing.
        self.admitted.fetch_or(CLOSED, AcqRel) & CLOSED == 0
    }

    /// Whether it was closed.
    #[inline]
    pub(crate) fn is_closed(&self) -> bool {
        // Acquire: pairs with `close`.
        self.admitted.load(Acquire) & CLOSED != 0
    }

    /// How many are inside: never too few of those admitted before the call and not yet gone.
    pub(crate) fn len(&self) -> usize {
        // Acquire: pairs with `leave`; whoever sees an item leave also sees it admitted, so the
        // difference is not negative.
        let left = self.left.load(Acquire);
        // Relaxed: a count.
        difference(self.admitted.load(Relaxed), left).max(0).cast_unsigned()
    }

    /// The bound, if there is one.
    pub(crate) const fn bound(&self) -> Option<usize> {
        if self.bound == UNBOUNDED { None } else { Some(self.bound) }
    }
}

/// The items by which `admitted` is ahead of `left`, whatever has wrapped around.
#[inline]
const fn difference(admitted: usize, left: usize) -> isize {
    (admitted & !CLOSED).wrapping_sub(left).cast_signed() / ONE.cast_signed()
}
