//! The two roles as types: a producer that can be cloned, a consumer that cannot.
#![expect(unsafe_code, reason = "the type `Consumer` is the proof of being the only consumer")]

use core::{cell::Cell, fmt, marker::PhantomData, ops::Deref};

use super::{Pop, Queue};
use crate::{
    link::{Batch, Linked},
    push_error::PushError,
};

/// The right to push; `Q` is a borrow of a [`Queue`] or an `Arc` of one.
pub struct Producer<N: Linked, Q: Deref<Target = Queue<N>>>(Q);

/// The right to pop; there is one for each queue, and dropping it closes the queue.
///
/// It may move to another thread, but two threads cannot use it at once.
pub struct Consumer<N: Linked, Q: Deref<Target = Queue<N>>> {
    queue: Q,
    /// Not `Sync`: there is one consumer at a time.
    _alone: PhantomData<Cell<()>>,
}

impl<N: Linked, Q: Deref<Target = Queue<N>>> Producer<N, Q> {
    pub(super) const fn new(queue: Q) -> Self {
        Self(queue)
    }

    /// Appends a node; see [`Queue::push`].
    ///
    /// # Errors
    ///
    /// Returns the handle to the caller if the queue is closed or full.
    #[inline]
    pub fn push(&self, handle: N::Handle) -> Result<(), PushError<N::Handle>> {
        self.0.push(handle)
    }

    /// Appends all nodes of a batch or none; see [`Queue::push_batch`].
    ///
    /// # Errors
    ///
    /// Returns the batch to the caller if the queue is closed or has not enough room for all.
    pub fn push_batch(&self, batch: Batch<N>) -> Result<(), PushError<Batch<N>>> {
        self.0.push_batch(batch)
    }

    /// The queue itself, for its counts and for closing it.
    pub fn queue(&self) -> &Queue<N> {
        &self.0
    }
}

impl<N: Linked, Q: Deref<Target = Queue<N>>> Consumer<N, Q> {
    /// # Safety
    ///
    /// While this consumer lives, no other code pops from the queue, and every earlier pop happens
    /// before this call.
    pub(super) const unsafe fn new(queue: Q) -> Self {
        Self { queue, _alone: PhantomData }
    }

    /// Takes the oldest node. It never waits; see [`Queue::pop`].
    #[inline]
    pub fn pop(&mut self) -> Pop<N::Handle> {
        // SAFETY: no other code pops (the promise to `new`), and this consumer is borrowed
        // exclusively.
        unsafe { self.queue.pop() }
    }

    /// Takes up to `max` of the oldest nodes; see [`Queue::pop_batch`].
    pub fn pop_batch(&mut self, max: usize) -> Pop<Batch<N>> {
        // SAFETY: no other code pops (the promise to `new`), and this consumer is borrowed
        // exclusively.
        unsafe { self.queue.pop_batch(max) }
    }

    /// Refuses every push from now on; returns whether this call closed the queue.
    pub fn close(&self) -> bool {
        self.queue.close()
    }

    /// The queue itself, for its counts.
    pub fn queue(&self) -> &Queue<N> {
        &self.queue
    }
}

impl<N: Linked, Q: Deref<Target = Queue<N>>> Drop for Consumer<N, Q> {
    /// Closes the queue: from now on every push is refused.
    fn drop(&mut self) {
        self.queue.close();
    }
}

impl<N: Linked, Q: Deref<Target = Queue<N>> + Clone> Clone for Producer<N, Q> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<N: Linked, Q: Deref<Target = Queue<N>>> fmt::Debug for Producer<N, Q> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Producer").finish_non_exhaustive()
    }
}

impl<N: Linked, Q: Deref<Target = Queue<N>>> fmt::Debug for Consumer<N, Q> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Consumer").finish_non_exhaustive()
    }
}
