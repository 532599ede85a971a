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
//! ```text
//!   pushed  [ count ............ | closed ]   read-modify-writes by pushers and closers
//!   taken   [ count ............ |   0    ]   stores by the taker that holds the lock
//! ```
//!
//! 1. A taker compare-exchanges the lock from unlocked to locked, with Acquire; if the lock is held
//!    already, the taker returns. The taker that holds the lock is the one consumer. It unlocks by
//!    a store with Release.
//! 2. A push adds its items to `pushed` before it touches the list. A pusher that finds the closed
//!    bit in the old value subtracts again and is refused. Then it links its nodes (rule 1 of
//!    [`mpsc`](crate::mpsc)).
//! 3. Closing sets the bit. The one word totally orders all pushes and the close: it is their
//!    linearization point.
//! 4. The consumer counts each item that it unlinks in `taken`. It reports an empty list as
//!    [`Pop::Empty`] only if `taken` equals `pushed`, else as [`Pop::Retry`]: a pusher that was
//!    admitted has not linked its node yet. So after the close, the first [`Pop::Empty`] is final.
//! 5. While it holds the lock, a taker unlinks at most `max` nodes into a private list: a few loads
//!    and stores per node, no user code, no allocation, nothing that panics. Conversion to handles,
//!    pushing into the worker's ring and dropping happen after the unlock.
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

mod push_count;

use core::fmt;

use push_count::PushCount;

use crate::{
    const_unless_loom,
    link::{Batch, Linked},
    mpsc::{IntrusiveQueue, Pop},
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
///     link::{Boxed, Node},
///     mpsc::Pop,
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
    queue: Padded<CountedQueue<N>>,
    /// True while a taker holds the lock, and so is the consumer of the queue.
    taking: Padded<AtomicBool>,
}

impl<N: Linked> Injector<N> {
    const_unless_loom! {
        /// An empty injector.
        #[must_use]
        pub const fn new() -> Self {
            let queue = CountedQueue { count: PushCount::new(), list: IntrusiveQueue::new() };
            Self { queue: Padded(queue), taking: Padded(AtomicBool::new(false)) }
        }
    }

    /// Appends a node. Wait-free, without allocation; an interrupt may call it.
    ///
    /// # Errors
    ///
    /// Returns the handle to the caller if the injector is closed.
    #[inline]
    pub fn push(&self, handle: N::Handle) -> Result<(), PushError<N::Handle>> {
        if let Err(refusal) = self.queue.count.admit(1) {
            return Err(PushError::new(handle, refusal));
        }
        self.queue.list.push(handle);
        Ok(())
    }

    /// Appends all nodes of a batch, in order and with nothing in between, at the cost of one push.
    ///
    /// # Errors
    ///
    /// Returns the batch to the caller if the injector is closed.
    pub fn push_batch(&self, batch: Batch<N>) -> Result<(), PushError<Batch<N>>> {
        if let Err(refusal) = self.queue.count.admit(batch.len()) {
            return Err(PushError::new(batch, refusal));
        }
        self.queue.list.push_batch(batch);
        Ok(())
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
        let CountedQueue { count, list } = &*self.queue;
        let mut batch = Batch::new();
        while batch.len() < max {
            // SAFETY: the holder of the lock is the only consumer, and the lock orders the
            // consumers one after the other (rule 1).
            match unsafe { list.pop_link() } {
                Pop::Item(link) => {
                    count.take_one();
                    batch.push_link(link);
                }
                Pop::Empty | Pop::Retry if !batch.is_empty() => break,
                Pop::Empty if count.is_even() => return Pop::Empty,
                Pop::Empty | Pop::Retry => return Pop::Retry,
            }
        }
        Pop::Item(batch)
    }

    /// Refuses every push from now on; returns whether this call closed the injector. Items whose
    /// push succeeded can be taken: after the close, the first [`Pop::Empty`] is final.
    pub fn close(&self) -> bool {
        self.queue.count.close()
    }

    /// Whether [`close`](Self::close) was called.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.queue.count.is_closed()
    }

    /// The number of items, including those whose push is in progress. Other threads may change it
    /// at any time.
    #[must_use]
    pub fn len(&self) -> usize {
        self.queue.count.len()
    }

    /// Whether the injector was empty at some moment of the call. The [module](self) says what a
    /// worker must do before it relies on this and parks.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
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

/// The queue and its counts, on one cache line: each push and each pop uses both.
struct CountedQueue<N: Linked> {
    count: PushCount,
    list: IntrusiveQueue<N>,
}

/// Holds the lock of the taking side.
struct ConsumerGuard<'a>(&'a AtomicBool);

impl<'a> ConsumerGuard<'a> {
    fn try_lock(taking: &'a AtomicBool) -> Option<Self> {
        // Acquire: pairs with the unlock; this taker sees what the last taker left in the queue
        // (rule 1). Relaxed on failure: nothing is read then. An exchange and not a swap, so that a
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
