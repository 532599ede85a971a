//! The injector: a global run queue. Any thread pushes, any worker takes a batch.
//!
//! # What it is made of
//!
//! The [intrusive MPSC queue](crate::mpsc) for pushing, and a try-lock for taking, so that the one
//! consumer of the queue is the thread that holds the lock. A worker that finds the lock held gets
//! [`Pop::Retry`] and looks for work elsewhere, because the holder is about to take a batch.
//!
//! The alternative was one lock around a list for both sides. Without an operating system such a
//! lock spins: a pusher that is preempted while it holds the lock stops all others, and an
//! interrupt that finds the lock held spins for ever. Here a push takes no lock, allocates nothing,
//! is wait-free, and may come from an interrupt. If a pusher is suspended between the two steps of
//! its push, its item and all items behind it are delayed until that pusher runs again; takers get
//! [`Pop::Retry`] meanwhile and do not wait.
//!
//! # Protocol
//!
//! Roles: *pushers* and *takers*, any number of each.
//!
//! 1. A push acquires a permit of the semaphore and links its node (rules 1 and 6 to 8 of
//!    [`mpsc`](crate::mpsc)).
//! 2. A taker compare-exchanges the lock from unlocked to locked, with Acquire; if the lock is held
//!    already, the taker returns. The taker that holds the lock is the one consumer. It unlocks by
//!    a store with Release.
//! 3. While it holds the lock, a taker unlinks at most `max` nodes into a private list: a few loads
//!    and stores per node, no user code, no allocation, nothing that panics. Conversion to handles,
//!    pushing into the worker's ring and dropping happen after the unlock.
//! 4. The semaphore orders close and push. After the close, [`Pop::Empty`] is final.
//!
//! *Why no thread hangs*: no call waits for another thread.
//!
//! # Parking
//!
//! [`Injector::is_empty`] is two loads and no promise: a push may succeed right after them. A
//! worker that wants to park must do the following, in this order (the Dekker pattern):
//!
//! * (a) Announce that it sleeps, by a read-modify-write of a word that pushers read by a
//!   read-modify-write after their push; or by a store followed by `fence(SeqCst)`, with pushers
//!   doing push, `fence(SeqCst)`, load.
//! * (b) Call `is_empty` again.
//! * (c) Park only if `is_empty` returns true.
//!
//! Then either the worker sees the item or the pusher sees the sleeping worker. A worker that got
//! [`Pop::Retry`] must not park: the injector is not empty, and the worker has to try again.
#![expect(unsafe_code, reason = "the lock is the proof of being the only consumer")]

use core::fmt;

use crate::{
    const_unless_loom,
    link::{Batch, Linked},
    mpsc::{Pop, Queue},
    pad::Padded,
    primitive::atomic::{
        AtomicBool,
        Ordering::{Acquire, Relaxed, Release},
    },
    push_error::PushError,
};

/// The usual size of a batch that follows the first item.
pub const BATCH_MAX: usize = 16;

/// An unbounded multi-producer, multi-consumer queue, first in, first out; see the [module](self).
///
/// # Examples
///
/// ```
/// # #[cfg(feature = "alloc")] {
/// use clockjack_sync::{
///     injector::{BATCH_MAX, Injector},
///     mpsc::{Boxed, Node, Pop},
///     ring::Owner,
/// };
///
/// let injector = Injector::<Boxed<u32>>::new();
/// for n in 0..20 {
///     injector.push(Node::new(n)).unwrap();
/// }
/// let mut worker = Owner::<_, 256>::new();
/// let Pop::Item((first, moved)) = injector.take_into(BATCH_MAX, &mut worker) else { panic!() };
/// assert_eq!((first.into_value(), moved, injector.len()), (0, 16, 3));
///
/// injector.close();
/// let refused = injector.push(Node::new(20)).unwrap_err();
/// assert_eq!(refused.into_inner().into_value(), 20);
/// # }
/// ```
pub struct Injector<N: Linked> {
    queue: Padded<Queue<N>>,
    /// True while a taker holds the lock, and so is the consumer of the queue.
    taking: Padded<AtomicBool>,
}

impl<N: Linked> Injector<N> {
    const_unless_loom! {
        /// An empty injector.
        #[must_use]
        pub const fn new() -> Self {
            Self { queue: Padded(Queue::unbounded()), taking: Padded(AtomicBool::new(false)) }
        }
    }

    /// Appends a node. Wait-free, without allocation; an interrupt may call it.
    ///
    /// # Errors
    ///
    /// Returns the handle to the caller if the injector is closed.
    #[inline]
    pub fn push(&self, handle: N::Handle) -> Result<(), PushError<N::Handle>> {
        self.queue.push(handle)
    }

    /// Appends all nodes of a batch, in order and with nothing in between, at the cost of one push.
    ///
    /// # Errors
    ///
    /// Returns the batch to the caller if the injector is closed.
    pub fn push_batch(&self, batch: Batch<N>) -> Result<(), PushError<Batch<N>>> {
        self.queue.push_batch(batch)
    }

    /// Takes the oldest node.
    pub fn pop(&self) -> Pop<N::Handle> {
        self.take_batch(1).map(|mut batch| batch.pop().expect("a returned batch has an item"))
    }

    /// Takes up to `max` of the oldest nodes.
    ///
    /// [`Pop::Item`] holds at least one node. [`Pop::Retry`] means that another taker or a pusher
    /// is in the middle of its operation. A `max` of zero returns [`Pop::Empty`], whatever is
    /// inside.
    pub fn take_batch(&self, max: usize) -> Pop<Batch<N>> {
        // Before the lock is tried: takers of an empty injector do not contend for it.
        if self.is_empty() || max == 0 {
            return Pop::Empty;
        }
        let Some(_lock) = ConsumerGuard::try_lock(&self.taking) else { return Pop::Retry };
        // SAFETY: the holder of the lock is the only consumer, and the lock orders the consumers
        // one after the other (rule 2).
        unsafe { self.queue.pop_batch(max) }
    }

    /// Refuses every push from now on; returns whether this call closed the injector. Items whose
    /// push succeeded can be taken: after the close, the first [`Pop::Empty`] is final.
    pub fn close(&self) -> bool {
        self.queue.close()
    }

    /// Whether [`close`](Self::close) was called.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.queue.is_closed()
    }

    /// The number of items, including those whose push is in progress. Other threads may change it
    /// at any time.
    #[must_use]
    pub fn len(&self) -> usize {
        self.queue.len()
    }

    /// Whether the injector was empty at some moment of the call. The [module](self) says what a
    /// worker must do before it relies on this and parks.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }
}

impl<N: Linked> Default for Injector<N> {
    fn default() -> Self {
        Self::new()
    }
}

impl<N: Linked> fmt::Debug for Injector<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Injector")
            .field("len", &self.len())
            .field("is_closed", &self.is_closed())
            .finish_non_exhaustive()
    }
}

/// Holds the lock of the taking side.
struct ConsumerGuard<'a>(&'a AtomicBool);

impl<'a> ConsumerGuard<'a> {
    fn try_lock(taking: &'a AtomicBool) -> Option<Self> {
        // Acquire: pairs with the unlock; this taker sees what the last taker left in the queue
        // (rule 2). Relaxed on failure: nothing is read then. An exchange and not a swap, so that a
        // taker that fails has written nothing.
        let won = taking.compare_exchange(false, true, Acquire, Relaxed).is_ok();
        // Only the winner makes a guard, because dropping a guard unlocks.
        won.then(|| Self(taking))
    }
}

impl Drop for ConsumerGuard<'_> {
    fn drop(&mut self) {
        // Release: pairs with the exchange of the next taker.
        self.0.store(false, Release);
    }
}
