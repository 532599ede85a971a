//! The counts of an injector and its close, in two words: rules 2 to 4 of the [protocol](super).

use crate::{
    const_unless_loom,
    primitive::atomic::{
        AtomicUsize,
        Ordering::{AcqRel, Acquire, Relaxed, Release},
    },
    push_error::Refusal,
};

/// The lowest bit of `pushed`.
const CLOSED: usize = 1;
/// One item in `pushed` and `taken`.
const ONE: usize = 2;

/// Counts the items that were admitted and those that were taken, both modulo half of `usize`.
#[derive(Debug)]
pub(super) struct PushCount {
    pushed: AtomicUsize,
    taken: AtomicUsize,
}

impl PushCount {
    const_unless_loom! {
        pub(super) const fn new() -> Self {
            Self { pushed: AtomicUsize::new(0), taken: AtomicUsize::new(0) }
        }
    }

    /// Admits `n` items, unless the injector is closed.
    #[inline]
    pub(super) fn admit(&self, n: usize) -> Result<(), Refusal> {
        // Acquire: pairs with `close`, so that a refused caller sees what came before it. This load
        // keeps the pushers of a closed injector from changing the count again and again; the
        // addition below decides.
        if self.pushed.load(Acquire) & CLOSED != 0 {
            return Err(Refusal::Closed);
        }
        // Acquire: as above. No Release: the intrusive queue publishes the item.
        let before = self.pushed.fetch_add(n * ONE, Acquire);
        if before & CLOSED != 0 {
            // Relaxed: takes back a count under which nothing was published.
            self.pushed.fetch_sub(n * ONE, Relaxed);
            return Err(Refusal::Closed);
        }
        Ok(())
    }

    /// Counts an item as taken. Only the consumer calls it, after it has unlinked the item.
    #[inline]
    pub(super) fn take_one(&self) {
        // Relaxed: only the consumer writes it.
        let taken = self.taken.load(Relaxed);
        // Release: pairs with `len`.
        self.taken.store(taken.wrapping_add(ONE), Release);
    }

    /// Whether every admitted item was taken. Only the consumer calls it (rule 4).
    #[inline]
    pub(super) fn is_even(&self) -> bool {
        // Relaxed: only the consumer writes it.
        let taken = self.taken.load(Relaxed);
        // Acquire: pairs with `close`; a consumer that finds it closed sees what came before.
        self.pushed.load(Acquire) & !CLOSED == taken
    }

    /// Refuses every item from now on; returns whether this call closed the injector.
    pub(super) fn close(&self) -> bool {
        // AcqRel: pairs with the loads of `pushed` in both directions; the closer sees what
        // happened before an earlier close.
        self.pushed.fetch_or(CLOSED, AcqRel) & CLOSED == 0
    }

    pub(super) fn is_closed(&self) -> bool {
        // Acquire: pairs with `close`.
        self.pushed.load(Acquire) & CLOSED != 0
    }

    /// How many items are inside, or admitted and not yet linked.
    pub(super) fn len(&self) -> usize {
        // Acquire: pairs with `take_one`; a thread that sees an item taken also sees it admitted,
        // so the difference is not negative.
        let taken = self.taken.load(Acquire);
        // Relaxed: a count.
        let pushed = self.pushed.load(Relaxed) & !CLOSED;
        (pushed.wrapping_sub(taken).cast_signed() / ONE.cast_signed()).max(0).cast_unsigned()
    }
}
