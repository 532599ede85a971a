//! The owner's side: push, pop, overflow.
#![expect(unsafe_code, reason = "moves items into and out of slots by the rules of the protocol")]

use core::{cell::Cell, fmt, marker::PhantomData};

use super::{CAPACITY, Overflow, Thief, head::Head, slots::Slots};
use crate::{
    Arc,
    primitive::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release},
    push_error::{PushError, Refusal},
};

/// The one handle that pushes and pops; see the [module](super) for the protocol.
///
/// It can be sent to another thread, not shared or cloned. When it is dropped, the waiting items
/// stay for the thieves; the last handle drops the rest.
///
/// # Examples
///
/// ```
/// use clockjack_sync::ring::{Owner, Steal};
///
/// let mut mine = Owner::<u32, 4>::new();
/// let mut spilled = Vec::new();
/// for n in 0..5 {
///     mine.push(n, |items| spilled.extend(items));
/// }
/// assert_eq!(spilled, [0, 1, 4]); // half of the ring, and the item that found no room
///
/// mine.push(5, |_| unreachable!("there is room again"));
/// let mut other = Owner::<u32, 4>::new();
/// let Steal::Item { item, moved } = mine.thief().steal_into(&mut other) else { panic!() };
/// assert_eq!((item, moved), (2, 1)); // two of three, the oldest in hand
/// assert_eq!(other.pop(), Some(3));
/// assert_eq!(mine.pop(), Some(5));
/// ```
pub struct Owner<T, const N: usize = CAPACITY> {
    slots: Arc<Slots<T, N>>,
    /// Not `Sync`: there is one owner at a time.
    _alone: PhantomData<Cell<()>>,
}

impl<T, const N: usize> Owner<T, N> {
    /// An empty ring. The capacity `N` must be a power of two, from 2 to 65536; else the code does
    /// not compile.
    #[must_use]
    pub fn new() -> Self {
        Self::starting_at(0)
    }

    /// As [`new`](Self::new), with positions that begin at `start`, so that a test reaches their
    /// wrap-around.
    #[doc(hidden)]
    #[must_use]
    pub fn starting_at(start: u32) -> Self {
        Self { slots: Arc::new(Slots::new(start)), _alone: PhantomData }
    }

    /// A handle for stealing from this ring.
    #[must_use]
    pub fn thief(&self) -> Thief<T, N> {
        Thief::new(self.slots.clone())
    }

    /// Appends an item. If the ring is full, `overflow` gets half of the items and the new item,
    /// the oldest first; or the new item alone, if a steal is in progress.
    ///
    /// The hook runs when the ring is consistent again; it may panic. Items that it does not take
    /// are dropped.
    #[inline]
    pub fn push(&mut self, item: T, overflow: impl FnOnce(Overflow<'_, T, N>)) {
        if let Err(refused) = self.try_push(item) {
            self.push_full(refused.into_inner(), overflow);
        }
    }

    /// Appends an item if there is room.
    ///
    /// # Errors
    ///
    /// Returns the item to the caller if the ring is full.
    #[inline]
    pub fn try_push(&mut self, item: T) -> Result<(), PushError<T>> {
        let tail = self.tail();
        // Acquire: pairs with the finish of a steal; the thief is done with the slots before
        // `steal` (rule 1).
        let head = self.slots.head(Acquire);
        if tail.wrapping_sub(head.steal) == Slots::<T, N>::CAPACITY {
            return Err(PushError::new(item, Refusal::Full));
        }
        // SAFETY: the slot is not between `steal` and `tail`, so it is free, and only the owner
        // fills slots (rule 1).
        unsafe { self.slots.put(tail, item) };
        self.publish(tail.wrapping_add(1));
        Ok(())
    }

    /// Takes the oldest item.
    #[inline]
    pub fn pop(&mut self) -> Option<T> {
        let tail = self.tail();
        // Acquire: pairs with the exchanges of thieves, as in `try_push`.
        let mut head = self.slots.head(Acquire);
        loop {
            if head.next == tail {
                return None;
            }
            let next = head.next.wrapping_add(1);
            let after = if head.is_stealing() {
                debug_assert_ne!(head.steal, next, "a steal is not longer than the ring");
                Head { steal: head.steal, next }
            } else {
                Head::idle(next)
            };
            // Release: a thief that acquires this head sees the tail before it (rule 3). Acquire:
            // pairs with the finish of a steal.
            match self.slots.move_head(head, after, AcqRel) {
                // SAFETY: `next` was before `tail`, so there is an item, and this exchange moved
                // `next` over it (rule 2).
                Ok(()) => return Some(unsafe { self.slots.take(head.next) }),
                Err(now) => head = now,
            }
        }
    }

    /// How many items wait. Thieves may change the number at any time.
    #[must_use]
    pub fn len(&self) -> usize {
        self.slots.len()
    }

    /// Whether none wait.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many items can certainly be pushed without an overflow. Thieves only increase the
    /// number.
    #[must_use]
    pub fn room(&self) -> usize {
        // Acquire: as in `try_push`; a push that relies on the result checks again.
        let taken = self.tail().wrapping_sub(self.slots.head(Acquire).steal);
        (Slots::<T, N>::CAPACITY - taken) as usize
    }

    /// How many items the ring holds at most.
    #[must_use]
    pub const fn capacity(&self) -> usize {
        N
    }

    #[inline]
    pub(super) fn slots(&self) -> &Arc<Slots<T, N>> {
        &self.slots
    }

    #[inline]
    pub(super) fn tail(&self) -> u32 {
        // Relaxed: only the owner writes it.
        self.slots.tail.load(Relaxed)
    }

    /// Makes the items before `tail` visible.
    #[inline]
    pub(super) fn publish(&mut self, tail: u32) {
        // Release: publishes the slots to the load of `tail` in a claim.
        self.slots.tail.store(tail, Release);
    }

    /// Rule 6, or rule 1 if a thief has made room meanwhile.
    #[cold]
    fn push_full(&mut self, mut item: T, overflow: impl FnOnce(Overflow<'_, T, N>)) {
        loop {
            // Acquire: as in `try_push`.
            let head = self.slots.head(Acquire);
            if head.is_stealing() {
                // SAFETY: nothing is claimed.
                return overflow(unsafe { Overflow::new(&self.slots, head.next, 0, item) });
            }
            let half = Slots::<T, N>::CAPACITY / 2;
            if self.tail().wrapping_sub(head.next) == Slots::<T, N>::CAPACITY {
                let after = Head::idle(head.next.wrapping_add(half));
                // AcqRel: as in `pop`.
                let is_claimed = self.slots.move_head(head, after, AcqRel).is_ok();
                if is_claimed {
                    // SAFETY: the exchange moved the head over `half` items, and the owner is
                    // borrowed until the hook returns, so it pushes nothing.
                    return overflow(unsafe { Overflow::new(&self.slots, head.next, half, item) });
                }
            }
            // A thief was faster. Either its steal is in progress, or it has freed slots: only the
            // owner fills the ring, so the loop repeats at most once.
            match self.try_push(item) {
                Ok(()) => return,
                Err(refused) => item = refused.into_inner(),
            }
        }
    }
}

impl<T, const N: usize> Default for Owner<T, N> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T, const N: usize> fmt::Debug for Owner<T, N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Owner").field("len", &self.len()).finish_non_exhaustive()
    }
}
