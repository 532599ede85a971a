//! The intrusive queue behind its semaphore: bounded or not, counted, closable.
#![expect(unsafe_code, reason = "passes the promise of the only consumer to the intrusive queue")]

use core::fmt;

use super::{
    handles::{Consumer, Producer},
    intrusive_queue::{IntrusiveQueue, Pop},
    semaphore::Semaphore,
};
use crate::{
    const_unless_loom,
    link::{Batch, Link, Linked},
    push_error::PushError,
};

/// An intrusive queue with a bound and a close; see the [module](super) for the protocol.
///
/// Six words, without padding, because it is meant to be part of each actor. Any thread with a
/// reference may push. Only one consumer may pop: with [`split`](Self::split), or on the heap with
/// `share`, the types guarantee that; with the unsafe [`pop`](Self::pop) the caller does.
///
/// Dropping the queue drops each node inside once.
pub struct Queue<N: Linked> {
    semaphore: Semaphore,
    list: IntrusiveQueue<N>,
}

impl<N: Linked> Queue<N> {
    const_unless_loom! {
        /// A queue without a bound, in which a push is wait-free.
        #[must_use]
        pub const fn unbounded() -> Self {
            Self { semaphore: Semaphore::unbounded(0), list: IntrusiveQueue::new() }
        }
    }

    const_unless_loom! {
        /// A queue for at most `bound` items.
        ///
        /// # Panics
        ///
        /// If `bound` is zero or above `usize::MAX / 4`.
        #[must_use]
        pub const fn bounded(bound: usize) -> Self {
            Self { semaphore: Semaphore::bounded(bound, 0), list: IntrusiveQueue::new() }
        }
    }

    const_unless_loom! {
        /// As [`bounded`](Self::bounded), with counts that begin at `start`, so that a test reaches
        /// their wrap-around.
        #[doc(hidden)]
        #[must_use]
        pub const fn bounded_from(bound: usize, start: usize) -> Self {
            Self { semaphore: Semaphore::bounded(bound, start), list: IntrusiveQueue::new() }
        }
    }

    /// Appends a node.
    ///
    /// Unbounded: one addition, one swap, one store, whatever other threads do; an interrupt may
    /// call it. Bounded: the addition is a compare-exchange that repeats when another push or a
    /// close was faster; an interrupt may call it, because it never waits for the code that it
    /// interrupted.
    ///
    /// # Errors
    ///
    /// Returns the handle to the caller if the queue is closed or full.
    #[inline]
    pub fn push(&self, handle: N::Handle) -> Result<(), PushError<N::Handle>> {
        match self.semaphore.try_acquire(1) {
            Ok(()) => {
                self.list.push(handle);
                Ok(())
            }
            Err(refusal) => Err(PushError::new(handle, refusal)),
        }
    }

    /// Appends all nodes of a batch, in order and with nothing in between, or none of them.
    ///
    /// # Errors
    ///
    /// Returns the batch to the caller if the queue is closed or has not enough room for all.
    pub fn push_batch(&self, batch: Batch<N>) -> Result<(), PushError<Batch<N>>> {
        match self.semaphore.try_acquire(batch.len()) {
            Ok(()) => {
                self.list.push_batch(batch);
                Ok(())
            }
            Err(refusal) => Err(PushError::new(batch, refusal)),
        }
    }

    /// Takes the oldest node. It never waits.
    ///
    /// # Safety
    ///
    /// The caller is the only consumer: no two calls of `pop` or `pop_batch` on one queue run at
    /// the same time, and a call happens before the next one, for instance by being made on the
    /// same thread or under a lock.
    #[inline]
    pub unsafe fn pop(&self) -> Pop<N::Handle> {
        // SAFETY: the caller is the only consumer.
        let popped = unsafe { self.pop_link() };
        popped.map(|link| {
            // SAFETY: the link was made by `into_link` in a push, and the queue does not keep it.
            unsafe { N::from_link(link) }
        })
    }

    /// Takes up to `max` of the oldest nodes, as many as it gets without waiting.
    ///
    /// [`Pop::Item`] holds at least one node; a `max` of zero returns [`Pop::Empty`], whatever is
    /// inside.
    ///
    /// # Safety
    ///
    /// As for [`pop`](Self::pop).
    pub unsafe fn pop_batch(&self, max: usize) -> Pop<Batch<N>> {
        let mut batch = Batch::new();
        while batch.len() < max {
            // SAFETY: the caller is the only consumer.
            match unsafe { self.pop_link() } {
                Pop::Item(link) => batch.push_link(link),
                Pop::Retry if batch.is_empty() => return Pop::Retry,
                Pop::Empty | Pop::Retry => break,
            }
        }
        if batch.is_empty() { Pop::Empty } else { Pop::Item(batch) }
    }

    /// Refuses every push from now on; returns whether this call closed the queue. Items whose push
    /// succeeded stay and can be popped: after the close, the first [`Pop::Empty`] is final.
    pub fn close(&self) -> bool {
        self.semaphore.close()
    }

    /// Whether [`close`](Self::close) was called.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.semaphore.is_closed()
    }

    /// The number of items, including those whose push is in progress. Other threads may change it
    /// at any time.
    #[must_use]
    pub fn len(&self) -> usize {
        self.semaphore.len()
    }

    /// Whether [`len`](Self::len) is zero.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The largest number of items, if the queue has a bound.
    #[must_use]
    pub const fn bound(&self) -> Option<usize> {
        self.semaphore.bound()
    }

    /// Borrowed handles of the two roles. Dropping the consumer closes the queue.
    pub fn split(&mut self) -> (Producer<N, &Self>, Consumer<N, &Self>) {
        // SAFETY: `&mut self` proves that every earlier pop happened before this call, and the
        // handles keep the borrow; safe code reaches the queue only through them. Code that calls
        // the unsafe `pop` next to them breaks the promise made there.
        let consumer = unsafe { Consumer::new(&*self) };
        (Producer::new(self), consumer)
    }

    /// # Safety
    ///
    /// As for [`pop`](Self::pop).
    #[inline]
    unsafe fn pop_link(&self) -> Pop<core::ptr::NonNull<Link>> {
        // SAFETY: the caller is the only consumer.
        match unsafe { self.list.pop_link() } {
            Pop::Item(link) => {
                self.semaphore.release(1);
                Pop::Item(link)
            }
            Pop::Empty if self.semaphore.is_idle() => Pop::Empty,
            Pop::Empty | Pop::Retry => Pop::Retry,
        }
    }
}

impl<N: Linked> fmt::Debug for Queue<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Queue")
            .field("len", &self.len())
            .field("bound", &self.bound())
            .field("is_closed", &self.is_closed())
            .finish_non_exhaustive()
    }
}
