//! A closable, intrusive Treiber stack: many threads push, and one swap drains the whole stack.
//!
//! The algorithm is that of R. K. Treiber ("Systems programming: coping with parallelism", IBM RJ
//! 5118, 1986). No thread pops a single node, so the ABA problem of a pop does not arise.
//!
//! The stack is one word. The links live in the nodes ([`Linked`]), so nothing here allocates. It
//! suits a queue that most owners never use, such as the signals of a process.
//!
//! # Protocol
//!
//! Roles: *producers*, any number, and *consumers*; usually there is one consumer. A node is
//! *outside* (its handle owns it), *on the stack* (the stack owns it) or *in a drain* (one
//! [`Drained`] owns it). The head is null, the newest node, or CLOSED.
//!
//! ```text
//!   head ──► c ──► b ──► a ──► null         push(d):  d.next = c, then head: c → d
//!                                           drain():  head: d → null, yields a, b, c, d
//!                                           close():  head: d → CLOSED, yields the same
//! ```
//!
//! 1. *Push.* A producer loads the head, writes it into the link of its node, and exchanges the
//!    head from that value to its node. If the exchange fails, the producer writes the link again
//!    and retries. If the producer reads CLOSED, the push is refused and returns the handle.
//!    Linearization point: the exchange that succeeds, or the load that reads CLOSED.
//! 2. *Drain.* A consumer takes the whole list by one swap with null, and then reverses the list,
//!    so that nodes come out in the order of their exchanges. Linearization point: the swap.
//! 3. *Close.* A consumer swaps in CLOSED and gets every node that was accepted before. CLOSED is
//!    the last value of the head: no producer replaces it (rule 1), and no consumer drains after
//!    the close. Linearization point: the swap.
//! 4. A drain reads the link of a node before it returns the handle; from then on the node may be
//!    freed, or pushed again, also to the same stack.
//!
//! *Why nothing is lost*: the head is one word, so each push is before or after the swap that
//! closes the stack. A push before the swap is in the list that this swap or an earlier one takes;
//! a push after the swap fails its exchange, reads CLOSED and returns the node. A producer
//! publishes its node by `Release`, and a consumer takes the list by `Acquire`. The pushes in
//! between are read-modify-writes of the head and continue the release sequence, so the consumer
//! sees the link and the contents of *every* node in the list. A producer that is refused reads
//! CLOSED by `Acquire`, so it sees what the consumer did before the close.
//!
//! *Why there is no ABA problem*: no thread removes a single node. Suppose producer A loads the
//! head *x*; a consumer then drains *x*, frees it, and producer B pushes another node at the same
//! address; then A's exchange succeeds. The link that A wrote is correct: it names what is the head
//! at the moment of the exchange. A never reads through the pointer that it has loaded.
//!
//! *Provenance*: in that case the address in A's link is right, but the pointer that A has loaded
//! belongs to the freed node, and a consumer must not follow it. So a link is only an address. A
//! producer exposes the provenance of its node before it publishes the node, and a consumer makes
//! the pointer to the next node from the address, with the exposed provenance of the node that is
//! there now. The head needs none of this: a swap returns the pointer that the last push has
//! stored. Strict provenance has no form for a list whose nodes are linked by an exchange that
//! compares addresses; the model of the language, of which exposed provenance is a part, does.
//!
//! *Why nothing hangs*: no operation waits for another thread. A producer repeats its exchange only
//! if another push, a drain or the close succeeded in between (lock-free), or if a weak exchange
//! failed spuriously. A drain and a close are one instruction and a walk over a private list. So an
//! interrupt may push.
//!
//! The stack wakes nobody. A producer whose node was accepted notifies the consumer afterwards, and
//! the consumer acknowledges the notification before it drains: then a node that the drain misses
//! is followed by a notification that the consumer has not acknowledged yet.
#![expect(unsafe_code, reason = "follows the pointers that `Linked` promises to be valid")]

use core::{
    fmt,
    iter::FusedIterator,
    marker::PhantomData,
    mem::needs_drop,
    ptr::{self, NonNull},
};

use crate::{
    const_unless_loom,
    link::{Link, Linked},
    primitive::atomic::{
        AtomicPtr,
        Ordering::{AcqRel, Acquire, Relaxed, Release},
    },
};

/// The head of a closed stack. No link has this address, because links are aligned.
const CLOSED: *mut Link = ptr::without_provenance_mut(usize::MAX);

/// A closable stack of intrusive nodes; see the [module](self) for the protocol.
///
/// Dropping the stack drops the nodes that are left on it.
///
/// # Examples
///
/// ```
/// # #[cfg(feature = "alloc")] {
/// use clockjack_sync::{
///     link::{Boxed, Node},
///     stack::ClosableStack,
/// };
///
/// let stack = ClosableStack::<Boxed<u32>>::new();
/// assert_eq!(stack.push(Node::new(1)).ok(), Some(true)); // the stack was empty
/// assert_eq!(stack.push(Node::new(2)).ok(), Some(false));
/// let drained: Vec<u32> = stack.drain().map(|node| node.into_value()).collect();
/// assert_eq!(drained, [1, 2]); // the oldest first
///
/// assert!(stack.close().next().is_none());
/// let refused = stack.push(Node::new(3)).unwrap_err();
/// assert_eq!(refused.into_value(), 3);
/// # }
/// ```
pub struct ClosableStack<N: Linked> {
    head: AtomicPtr<Link>,
    _owns: PhantomData<N::Handle>,
}

// SAFETY: the stack owns its nodes and passes each from one producer to one consumer, by release
// and acquire; it never gives two threads access to a node. So it sends handles and nothing else.
unsafe impl<N: Linked> Send for ClosableStack<N> where N::Handle: Send {}
// SAFETY: as above: a shared reference pushes handles and drains them.
unsafe impl<N: Linked> Sync for ClosableStack<N> where N::Handle: Send {}

impl<N: Linked> ClosableStack<N> {
    const_unless_loom! {
        /// An empty stack.
        #[must_use]
        pub const fn new() -> Self {
            Self { head: AtomicPtr::new(ptr::null_mut()), _owns: PhantomData }
        }
    }

    /// Pushes a node (rule 1) and says whether the stack was empty.
    ///
    /// # Errors
    ///
    /// Returns the handle if the stack is closed.
    pub fn push(&self, handle: N::Handle) -> Result<bool, N::Handle> {
        let node = N::into_link(handle);
        // For the consumer that makes a pointer to this node from its address.
        node.as_ptr().expose_provenance();
        // Acquire: a producer that is refused sees what the consumer did before the close.
        let mut seen = self.head.load(Acquire);
        loop {
            if seen == CLOSED {
                // SAFETY: the link came from `into_link` above, and was never published.
                return Err(unsafe { N::from_link(node) });
            }
            // SAFETY: the node is valid (`Linked`, 1), and this thread owns it until the exchange
            // succeeds.
            let link = unsafe { node.as_ref() };
            // Only the address, because `seen` may belong to a node that was freed meanwhile.
            // Relaxed: the exchange publishes the link.
            link.next.store(ptr::without_provenance_mut(seen.addr()), Relaxed);
            // Release: publishes the node to the swap of the consumer. Acquire: as above.
            match self.head.compare_exchange_weak(seen, node.as_ptr(), Release, Acquire) {
                Ok(_) => return Ok(seen.is_null()),
                Err(now) => seen = now,
            }
        }
    }

    /// Takes every node off the stack (rule 2), the oldest first.
    ///
    /// Not to be called after [`close`](Self::close): this would open the stack again. Debug builds
    /// panic then.
    pub fn drain(&self) -> Drained<N> {
        let newest = self.swap(ptr::null_mut());
        debug_assert!(newest != CLOSED, "a closed stack is drained");
        Drained::reversed(newest)
    }

    /// Accepts nothing from here on, and takes every node off the stack (rule 3), the oldest first.
    /// A second call yields nothing.
    pub fn close(&self) -> Drained<N> {
        Drained::reversed(self.swap(CLOSED))
    }

    fn swap(&self, new: *mut Link) -> *mut Link {
        // Acquire: pairs with the exchanges of the producers. Release: a producer that is refused
        // sees what this thread did before the close.
        self.head.swap(new, AcqRel)
    }

    /// Whether the stack is open and has no node. Only a hint, unless the caller has acknowledged
    /// the notification of the producer that it looks for.
    #[must_use]
    #[inline]
    pub fn is_empty(&self) -> bool {
        // Relaxed: a notification orders this load, if one is needed.
        self.head.load(Relaxed).is_null()
    }

    /// Whether the stack is closed, which is final.
    #[must_use]
    #[inline]
    pub fn is_closed(&self) -> bool {
        // Acquire: as for a push that is refused.
        self.head.load(Acquire) == CLOSED
    }
}

impl<N: Linked> Default for ClosableStack<N> {
    fn default() -> Self {
        Self::new()
    }
}

impl<N: Linked> Drop for ClosableStack<N> {
    fn drop(&mut self) {
        if needs_drop::<N::Handle>() {
            // Relaxed: the caller has exclusive access, so the nodes are visible to it.
            drop(Drained::<N>::reversed(self.head.load(Relaxed)));
        }
    }
}

impl<N: Linked> fmt::Debug for ClosableStack<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClosableStack")
            .field("is_empty", &self.is_empty())
            .field("is_closed", &self.is_closed())
            .finish_non_exhaustive()
    }
}

/// The nodes that one drain has taken off a stack, the oldest first. Dropping it drops the nodes
/// that are left.
#[must_use = "dropping it drops the nodes"]
pub struct Drained<N: Linked> {
    /// The oldest node; its link leads to the next newer one.
    first: *mut Link,
    _owns: PhantomData<N::Handle>,
}

// SAFETY: it owns its nodes, so sending it sends handles and nothing else.
unsafe impl<N: Linked> Send for Drained<N> where N::Handle: Send {}
// SAFETY: a shared reference gives no access to a node.
unsafe impl<N: Linked> Sync for Drained<N> {}

impl<N: Linked> Drained<N> {
    /// No nodes.
    pub const fn new() -> Self {
        Self { first: ptr::null_mut(), _owns: PhantomData }
    }

    /// Whether there are none left.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.first.is_null()
    }

    /// Reverses a list that this thread has taken off a stack.
    fn reversed(newest: *mut Link) -> Self {
        let mut drained = Self::new();
        let mut rest = if newest == CLOSED { ptr::null_mut() } else { newest };
        while let Some(node) = NonNull::new(rest) {
            // SAFETY: this thread has taken the list, so it owns the node, which is valid
            // (`Linked`, 1). The pointer is the head, or was made below from the address of a node
            // whose producer has exposed its provenance, before the exchange that the swap has
            // acquired; no other node can be at the address as long as the list owns this one.
            let link = unsafe { node.as_ref() };
            // Relaxed: the swap has acquired what the producers published.
            rest = ptr::with_exposed_provenance_mut(link.next.load(Relaxed).addr());
            link.next.store(drained.first, Relaxed);
            drained.first = node.as_ptr();
        }
        drained
    }
}

impl<N: Linked> Default for Drained<N> {
    fn default() -> Self {
        Self::new()
    }
}

impl<N: Linked> Iterator for Drained<N> {
    type Item = N::Handle;

    fn next(&mut self) -> Option<N::Handle> {
        let node = NonNull::new(self.first)?;
        // SAFETY: the list owns the node, which is valid (`Linked`, 1).
        let link = unsafe { node.as_ref() };
        // Relaxed: this thread wrote the link, or got the list from the thread that did. The link
        // is read before the handle is returned (rule 4).
        self.first = link.next.load(Relaxed);
        // SAFETY: the link came from `into_link`, and the list does not contain it any more.
        Some(unsafe { N::from_link(node) })
    }
}

impl<N: Linked> FusedIterator for Drained<N> {}

impl<N: Linked> Drop for Drained<N> {
    /// Drops every node, also if the drop of one panics.
    fn drop(&mut self) {
        struct DropRemaining<'a, N: Linked>(&'a mut Drained<N>);
        impl<N: Linked> Drop for DropRemaining<'_, N> {
            fn drop(&mut self) {
                self.0.by_ref().for_each(drop);
            }
        }
        if needs_drop::<N::Handle>() {
            let remaining = DropRemaining(self);
            remaining.0.by_ref().for_each(drop);
        }
    }
}

impl<N: Linked> fmt::Debug for Drained<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Drained").field("is_empty", &self.is_empty()).finish_non_exhaustive()
    }
}
