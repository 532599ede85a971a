//! The thief's side: claim, copy, finish.
#![expect(unsafe_code, reason = "moves claimed items from ring to ring")]

use core::fmt;

use super::{CAPACITY, Owner, head::Head, slots::Slots};
use crate::{
    Arc,
    primitive::atomic::Ordering::{AcqRel, Acquire},
};

/// The result of an attempt to steal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Steal<T> {
    /// The oldest item, and how many more were moved to the thief's own ring.
    Item {
        /// To be run first.
        item: T,
        /// The number of items that followed it into the thief's ring.
        moved: usize,
    },
    /// Nothing waited.
    Empty,
    /// Another thief is stealing from this ring. Try the next victim, but do not assume that this
    /// ring is empty.
    Retry,
}

impl<T> Steal<T> {
    /// The stolen item, if there is one.
    pub fn item(self) -> Option<T> {
        match self {
            Self::Item { item, .. } => Some(item),
            Self::Empty | Self::Retry => None,
        }
    }
}

/// A handle for stealing from the ring of an [`Owner`]; see the [module](super) for the protocol.
pub struct Thief<T, const N: usize = CAPACITY> {
    slots: Arc<Slots<T, N>>,
}

impl<T, const N: usize> Thief<T, N> {
    pub(super) const fn new(slots: Arc<Slots<T, N>>) -> Self {
        Self { slots }
    }

    /// Steals half of the waiting items, rounded up: returns the oldest item and appends the others
    /// to `into`, in order, as far as there is room.
    ///
    /// It does not wait: it backs off if another steal is in progress. A ring does not steal from
    /// itself; it returns [`Steal::Empty`].
    #[inline]
    pub fn steal_into(&self, into: &mut Owner<T, N>) -> Steal<T> {
        if Arc::ptr_eq(&self.slots, into.slots()) {
            return Steal::Empty;
        }
        #[expect(clippy::cast_possible_truncation, reason = "room is at most the capacity")]
        let room = into.room() as u32;
        let first = into.tail();
        let stolen = self.steal(room + 1, |offset, item| {
            // SAFETY: `room` slots from the tail on were free, thieves of `into` only make more
            // free, and its owner is borrowed exclusively, so no other thread fills them.
            unsafe { into.slots().put(first.wrapping_add(offset), item) };
        });
        if let Steal::Item { moved, .. } = &stolen {
            #[expect(clippy::cast_possible_truncation, reason = "moved is at most room")]
            into.publish(first.wrapping_add(*moved as u32));
        }
        stolen
    }

    /// Steals only the oldest item, for a thief that has no ring to steal into.
    pub fn steal_one(&self) -> Steal<T> {
        self.steal(1, |_, _| {})
    }

    /// How many items wait. Other threads may change the number at any time.
    #[must_use]
    pub fn len(&self) -> usize {
        self.slots.len()
    }

    /// Whether no item waits; a steal may still find one.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Rules 3 to 5 for at most `max` items, at least one. `put` gets the items after the first
    /// with their offset; it must not panic (rule 7).
    #[inline]
    fn steal(&self, max: u32, mut put: impl FnMut(u32, T)) -> Steal<T> {
        // Acquire: pairs with the exchanges of the owner, so that the tail loaded next is not
        // behind this head, and with the finish of an earlier steal.
        let mut head = self.slots.head(Acquire);
        let n = loop {
            if head.is_stealing() {
                return Steal::Retry;
            }
            // Acquire: pairs with the owner's store; the items before this tail are readable.
            let waiting = self.slots.tail.load(Acquire).wrapping_sub(head.next);
            if waiting == 0 {
                return Steal::Empty;
            }
            // Between the two loads the owner may have lapped the ring. Then the claim will fail.
            let n = (waiting - waiting / 2).min(max).min(Slots::<T, N>::CAPACITY);
            let claim = Head { steal: head.next, next: head.next.wrapping_add(n) };
            // Acquire: orders the copying after the claim. Release: as the owner's exchanges, for a
            // thief that acquires this head.
            match self.slots.move_head(head, claim, AcqRel) {
                Ok(()) => break n,
                Err(now) => head = now,
            }
        };
        let first = head.next;
        // SAFETY: the claim moved `next` over the items `first..first + n`, which were before the
        // tail; no other thread takes them, and this takes each once (rule 3).
        let item = unsafe { self.slots.take(first) };
        for offset in 1..n {
            // SAFETY: as above.
            let item = unsafe { self.slots.take(first.wrapping_add(offset)) };
            put(offset - 1, item);
        }
        self.finish(Head { steal: first, next: first.wrapping_add(n) });
        Steal::Item { item, moved: n as usize - 1 }
    }

    /// Rule 5: frees the slots of the claim. The owner may have advanced `next`.
    #[inline]
    fn finish(&self, claim: Head) {
        let mut head = claim;
        // Release: the items were moved out before the owner fills the slots again; pairs with its
        // loads of the head. Acquire: as in the claim.
        while let Err(now) = self.slots.move_head(head, Head::idle(head.next), AcqRel) {
            head = now;
        }
    }
}

impl<T, const N: usize> Clone for Thief<T, N> {
    fn clone(&self) -> Self {
        Self { slots: self.slots.clone() }
    }
}

impl<T, const N: usize> fmt::Debug for Thief<T, N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Thief").field("len", &self.len()).finish_non_exhaustive()
    }
}
