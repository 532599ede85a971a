//! A Treiber stack of indices: many threads push, and one swap drains the whole stack.
//!
//! The algorithm is that of R. K. Treiber ("Systems programming: coping with parallelism", IBM RJ
//! 5118, 1986). No thread pops a single element, so the ABA problem of a pop does not arise.
//!
//! The stack owns no memory besides its head: the links live with the user, one `u32` per element,
//! reached through [`Links`]. It returns elements to their owner, such as the slots of timers that
//! another thread has cancelled.
//!
//! # Protocol
//!
//! Roles: any number of *pushers*, any number of *drainers*. An element is *outside*, *on the
//! stack* or *in a drain*. [`IndexStack::push`] moves an element from outside to the stack,
//! [`IndexStack::drain`] moves everything on the stack into one drain, and an element that the
//! drain yields is outside again.
//!
//! ```text
//!   head ──► 7 ──► 3 ──► 5 ──► NIL          push(9):  next[9] = 7, then head: 7 → 9
//!                                           drain():  head: 9 → NIL, the drainer owns the list
//! ```
//!
//! 1. An index is pushed by at most one thread at a time, and again only after a drain yielded it.
//! 2. A pusher first writes the link of its element and then publishes the element by a
//!    compare-exchange of the head with `Release`. If the exchange fails, the pusher writes the
//!    link again.
//! 3. A drainer takes the whole list by one `swap` with `Acquire`. Later pushes are
//!    read-modify-writes of the head, so they continue the release sequence of earlier ones: the
//!    drainer sees the link of *every* element, and everything that its pusher wrote before the
//!    push.
//! 4. A drain reads the link of an element before it yields the element; then the element may be
//!    used and pushed again at once.
//!
//! There is no ABA problem, because no thread removes a single element. If another thread drains
//! the stack and pushes the same index between a pusher's load and its exchange, the link that the
//! pusher wrote is still right. A pusher repeats only when another push or a drain succeeded
//! (lock-free); a drain is one instruction. An interrupt may push: it never waits for the code that
//! it interrupted.
//!
//! Breaking rule 1 cannot break memory safety, because the stack contains only indices. It can lose
//! elements, or make the list cyclic, so that a drain does not end.

use core::fmt;

use crate::{
    const_unless_loom,
    pad::Padded,
    primitive::atomic::{
        AtomicU32, AtomicUsize,
        Ordering::{Acquire, Relaxed, Release},
    },
};

/// The index that names no element: the end of a chain.
pub const NIL: u32 = u32::MAX;

/// Where the links of a [`IndexStack`] live.
///
/// Both calls may be relaxed accesses of an atomic: the head of the stack publishes them.
pub trait Links {
    /// Stores the index that follows `index`, or [`NIL`].
    fn set_next(&self, index: u32, next: u32);

    /// The index last stored for `index`.
    fn next(&self, index: u32) -> u32;
}

/// The head of a stack of returned indices; see the [module](self) for the protocol.
///
/// # Examples
///
/// ```
/// use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
///
/// use clockjack_sync::index_stack::{Links, NIL, IndexStack};
///
/// struct Slots([AtomicU32; 4]);
///
/// impl Links for Slots {
///     fn set_next(&self, index: u32, next: u32) {
///         self.0[index as usize].store(next, Relaxed);
///     }
///
///     fn next(&self, index: u32) -> u32 {
///         self.0[index as usize].load(Relaxed)
///     }
/// }
///
/// let slots = Slots([const { AtomicU32::new(NIL) }; 4]);
/// let returned = IndexStack::new();
/// assert_eq!(returned.push(2, &slots), 1);
/// assert_eq!(returned.push(0, &slots), 2);
/// assert_eq!(returned.drain(&slots).collect::<Vec<_>>(), [0, 2]); // the newest first
/// assert!(returned.is_empty());
/// ```
pub struct IndexStack {
    head: Padded<Head>,
}

struct Head {
    first: AtomicU32,
    /// How many elements were pushed, ever. In the same cache line as `first`, which every push
    /// changes.
    pushed: AtomicUsize,
    /// `pushed` at the last drain.
    drained: AtomicUsize,
}

impl IndexStack {
    const_unless_loom! {
        /// An empty stack.
        #[must_use]
        pub const fn new() -> Self {
            let (pushed, drained) = (AtomicUsize::new(0), AtomicUsize::new(0));
            Self { head: Padded(Head { first: AtomicU32::new(NIL), pushed, drained }) }
        }
    }

    /// Puts `index` on the stack and gives the approximate depth after that.
    ///
    /// Between two drains no two pushes get the same depth, so "the push that makes it *n* deep" is
    /// at most one. A drain that overlaps a push may leave the count wrong by that push, until the
    /// next drain that finds something.
    ///
    /// The index must not be on the stack already, nor be pushed by another thread meanwhile.
    ///
    /// # Panics
    ///
    /// If `index` is [`NIL`]. Debug builds also panic if `index` is on top of the stack already.
    pub fn push<L: Links + ?Sized>(&self, index: u32, links: &L) -> usize {
        assert!(index != NIL, "NIL names no element");
        // Before the count of this push, so that the difference below is not negative. Acquire:
        // pairs with the release in `drain`, whose count of pushes this push then exceeds.
        let drained = self.head.drained.load(Acquire);
        // Relaxed: the value is only stored as a link; nothing behind it is read.
        let mut first = self.head.first.load(Relaxed);
        loop {
            debug_assert_ne!(first, index, "the index is on the stack already");
            links.set_next(index, first);
            // Release: publishes the link and the element to the swap in `drain` (rule 2).
            match self.head.first.compare_exchange_weak(first, index, Release, Relaxed) {
                Ok(_) => break,
                Err(now) => first = now,
            }
        }
        // Relaxed: a count that publishes nothing.
        self.head.pushed.fetch_add(1, Relaxed).wrapping_add(1).wrapping_sub(drained)
    }

    /// Takes everything off the stack by one swap and yields it, the newest first.
    ///
    /// The link of an element is read before the element is yielded, so the caller may use it again
    /// at once. What a dropped drain did not yield is on no stack any more: exhaust it.
    pub fn drain<'l, L: Links + ?Sized>(&self, links: &'l L) -> Drain<'l, L> {
        // Relaxed: a hint that spares the read-modify-write; what it misses is for the next drain.
        if self.head.first.load(Relaxed) == NIL {
            return Drain { next: NIL, links };
        }
        // Relaxed: an approximate count. It is reset first, so that a push after the swap counts.
        // Release: pairs with `push` and `depth`.
        self.head.drained.store(self.head.pushed.load(Relaxed), Release);
        // Acquire: pairs with the exchanges in `push`, all of them (rule 3).
        let next = self.head.first.swap(NIL, Acquire);
        Drain { next, links }
    }

    /// Whether nothing was on the stack at some moment of the call.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        // Relaxed: a hint. Who parks on it orders it by its own fence.
        self.head.first.load(Relaxed) == NIL
    }

    /// The approximate number of elements on the stack, as [`push`](Self::push) counts them.
    #[must_use]
    pub fn depth(&self) -> usize {
        // In this order, so that the difference is not negative. Acquire: pairs with the release
        // in `drain`. Relaxed: a count that publishes nothing.
        let drained = self.head.drained.load(Acquire);
        self.head.pushed.load(Relaxed).wrapping_sub(drained)
    }

    /// How many elements were pushed, ever; wraps.
    #[must_use]
    pub fn n_pushed(&self) -> usize {
        // Relaxed: a count that publishes nothing.
        self.head.pushed.load(Relaxed)
    }
}

impl Default for IndexStack {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for IndexStack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IndexStack").field("depth", &self.depth()).finish_non_exhaustive()
    }
}

/// The elements that one [`IndexStack::drain`] took, the newest first.
#[must_use = "elements that are not taken out of a drain are lost"]
pub struct Drain<'l, L: Links + ?Sized> {
    next: u32,
    links: &'l L,
}

impl<L: Links + ?Sized> Iterator for Drain<'_, L> {
    type Item = u32;

    fn next(&mut self) -> Option<u32> {
        let index = self.next;
        if index == NIL {
            return None;
        }
        self.next = self.links.next(index);
        Some(index)
    }
}

impl<L: Links + ?Sized> core::iter::FusedIterator for Drain<'_, L> {}

impl<L: Links + ?Sized> fmt::Debug for Drain<'_, L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Drain").field("next", &self.next).finish_non_exhaustive()
    }
}
