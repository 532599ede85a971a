//! An intrusive multi-producer, single-consumer queue, in which a push never waits.
//!
//! A push is one swap and one store. There is no bound, no count and no close: the
//! [injector](crate::injector) adds a count and a close, and `mail::Mailbox` is the bounded queue.
//! The algorithm is Dmitry Vyukov's intrusive MPSC node-based queue (1024cores), without a stub
//! node; see below. Nodes carry their own link ([`Linked`](crate::link::Linked)), so they may live
//! in a pool, a box or a static.
//!
//! # Protocol
//!
//! Roles: *producers* (any number, any context, interrupts too), one *consumer*.
//!
//! ```text
//!   consumer                                   producers
//!   head ──► A ──► B ──► C ──╳   D ◄── tail    D is swapped in, C is not yet linked to it: retry
//!
//!   head = null   first ──► A ──► B ◄── tail   the consumer takes `first` over as its head
//!   head = null   first = null   tail = null   empty
//! ```
//!
//! 1. A producer clears the link of its node, swaps the node into `tail`, and then stores the
//!    node's address in the link of the previous tail, or in `first` if the queue was empty.
//!    Between the swap and the store the list is *broken* at that link, and only there.
//! 2. Only the producer whose swap returned a node writes that node's link, and writes it once. So
//!    the consumer may free a node as soon as it sees the node's link set: no producer touches the
//!    node again.
//! 3. The consumer takes the head if the link of the head is set. If the link is not set, the head
//!    may be the last node, and a compare-exchange of `tail` from that node to null decides.
//!    Success: the node belongs to the consumer and the queue is empty. Failure: a producer has
//!    swapped a node in behind the head and will write the link of the head, so the head must stay:
//!    the pop returns [`Pop::Retry`].
//! 4. The consumer clears `first` when it takes `first` over as its head. That is before rule 3 can
//!    make `tail` null, and therefore before a producer can find null there and store into `first`
//!    again.
//! 5. The consumer reports empty only after it found `head`, `first` and `tail` null, in this
//!    order.
//!
//! The stub node of the classic queue must be re-inserted whenever the last node is popped, and the
//! re-insertion races with producers. Here `first` takes the place of the stub: `first` never
//! travels through the list, and the one compare-exchange of rule 3 does the work. So the queue may
//! be moved, can be built in a constant and costs no node.
//!
//! *Why no item is lost*: between two moments of emptiness `tail` totally orders the nodes, and
//! each swap gives its producer the one place that must point to its node. *Why no thread hangs*: a
//! producer takes a fixed number of steps. The consumer never waits either: if a producer is
//! interrupted between its two steps, the pop returns [`Pop::Retry`] and the consumer can do other
//! work. An item behind the broken link is delayed until that producer runs again; it is not lost.
//!
//! # Sleeping
//!
//! The queue does not wake its consumer. A consumer that wants to sleep announces that by a
//! read-modify-write of a word that producers change after their push (or both sides use
//! `fence(SeqCst)` between their two steps), and pops once more after the announcement. On
//! [`Pop::Retry`] the consumer stays scheduled.
#![expect(unsafe_code, reason = "follows the links of nodes that the queue owns")]

use core::{
    fmt,
    marker::PhantomData,
    ptr::{self, NonNull},
};

use crate::{
    const_unless_loom,
    link::{Batch, Link, Linked},
    primitive::{
        UnsafeCell,
        atomic::{
            AtomicPtr,
            Ordering::{AcqRel, Acquire, Relaxed, Release},
        },
    },
};

/// The result of a pop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Pop<T> {
    /// The oldest item.
    Item(T),
    /// The queue was empty.
    Empty,
    /// A producer, or another consumer, is in the middle of its operation. Try again later; do not
    /// spin, for that producer may be the code that this call interrupted.
    Retry,
}

impl<T> Pop<T> {
    /// The item, if there was one.
    pub fn item(self) -> Option<T> {
        match self {
            Self::Item(item) => Some(item),
            Self::Empty | Self::Retry => None,
        }
    }

    /// Applies `f` to the item.
    pub fn map<U>(self, f: impl FnOnce(T) -> U) -> Pop<U> {
        match self {
            Self::Item(item) => Pop::Item(f(item)),
            Self::Empty => Pop::Empty,
            Self::Retry => Pop::Retry,
        }
    }
}

/// The bare intrusive queue: many producers, one consumer, no bound; see the [module](self).
///
/// Dropping the queue drops each node inside once.
///
/// # Examples
///
/// Nodes that live in statics, as for an interrupt on a microcontroller:
///
/// ```
/// use std::ptr::NonNull;
///
/// use clockjack_sync::{
///     link::{Link, Linked},
///     mpsc::{IntrusiveQueue, Pop},
/// };
///
/// #[repr(C)] // the link first, so that its address is the address of the note
/// struct Note {
///     link: Link,
///     pin: u8,
/// }
///
/// // SAFETY: an exclusive static borrow owns the note alone, and a static stays in place.
/// unsafe impl Linked for Note {
///     type Handle = &'static mut Note;
///
///     fn into_link(note: &'static mut Note) -> NonNull<Link> {
///         NonNull::from(note).cast()
///     }
///
///     unsafe fn from_link(link: NonNull<Link>) -> &'static mut Note {
///         // SAFETY: the caller passes a link that `into_link` made, once.
///         unsafe { link.cast().as_mut() }
///     }
/// }
///
/// static NOTES: IntrusiveQueue<Note> = IntrusiveQueue::new();
///
/// # let note: &'static mut Note = Box::leak(Box::new(Note { link: Link::new(), pin: 13 }));
/// NOTES.push(note); // in the interrupt
///
/// // SAFETY: the main loop alone pops.
/// let Pop::Item(note) = (unsafe { NOTES.pop() }) else { panic!("there is one") };
/// assert_eq!(note.pin, 13);
/// # drop(unsafe { Box::from_raw(note) });
/// ```
pub struct IntrusiveQueue<N: Linked> {
    /// The newest node, or null. Producers swap, the consumer compare-exchanges it to null.
    tail: AtomicPtr<Link>,
    /// The oldest node of a queue that was empty; written by the producer that found it empty.
    first: AtomicPtr<Link>,
    /// The oldest node, once the consumer has seen it; only the consumer uses it.
    head: UnsafeCell<*mut Link>,
    _owns: PhantomData<N::Handle>,
}

// SAFETY: the queue owns its nodes; moving it moves handles and nothing else.
unsafe impl<N: Linked> Send for IntrusiveQueue<N> where N::Handle: Send {}
// SAFETY: producers only pass handles in, which the consumer's thread may drop (`Handle: Send`);
// only `pop` touches the cell `head`, and its caller promises to be the only one.
unsafe impl<N: Linked> Sync for IntrusiveQueue<N> where N::Handle: Send {}

impl<N: Linked> IntrusiveQueue<N> {
    const_unless_loom! {
        /// An empty queue.
        #[must_use]
        pub const fn new() -> Self {
            Self {
                tail: AtomicPtr::new(ptr::null_mut()),
                first: AtomicPtr::new(ptr::null_mut()),
                head: UnsafeCell::new(ptr::null_mut()),
                _owns: PhantomData,
            }
        }
    }

    /// Appends a node: one swap and one store, whatever other threads do. An interrupt may call it.
    #[inline]
    pub fn push(&self, handle: N::Handle) {
        let link = N::into_link(handle);
        self.push_links(link, link);
    }

    /// Appends all nodes of a batch, in order and with nothing in between, by one swap and one
    /// store.
    pub fn push_batch(&self, batch: Batch<N>) {
        if let Some((first, last)) = batch.into_ends() {
            self.push_links(first, last);
        }
    }

    /// Takes the oldest node. It never waits.
    ///
    /// # Safety
    ///
    /// The caller is the only consumer: no two calls on one queue run at the same time, and a call
    /// happens before the next one, for instance by being made on the same thread or under a lock.
    #[inline]
    pub unsafe fn pop(&self) -> Pop<N::Handle> {
        // SAFETY: the caller is the only consumer.
        let popped = unsafe { self.pop_link() };
        popped.map(|link| {
            // SAFETY: the link was made by `into_link` in a push; `pop_link` returns each link once
            // and does not keep it (rules 2 and 3).
            unsafe { N::from_link(link) }
        })
    }

    /// Whether the queue was empty at some moment of the call. A hint for any thread but the
    /// consumer.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        // Relaxed: a hint that publishes nothing.
        self.tail.load(Relaxed).is_null()
    }

    /// Rule 1, for the linked nodes from `first` to `last`, which the caller owns.
    #[inline]
    fn push_links(&self, first: NonNull<Link>, last: NonNull<Link>) {
        // SAFETY: the caller owns the node, and `Linked` promises that its link is valid until the
        // consumer takes it, which cannot happen before the node is linked below.
        let last_link = unsafe { last.as_ref() };
        // Relaxed: published by the swap.
        last_link.next.store(ptr::null_mut(), Relaxed);
        // Release: the cleared link comes before the store of the next producer, which acquires it
        // by its own swap. Acquire: pairs with that, and with the exchange of the consumer that
        // emptied the queue after clearing `first` (rule 4).
        let before = self.tail.swap(last.as_ptr(), AcqRel);
        let place = match NonNull::new(before) {
            None => &self.first,
            // SAFETY: only this call got `before` from the swap, and the consumer keeps the node
            // until it has seen its link set, which happens below (rule 2).
            Some(before) => &unsafe { before.as_ref() }.next,
        };
        // Release: publishes the nodes to the acquiring loads in `pop_link`.
        place.store(first.as_ptr(), Release);
    }

    /// Rules 3 to 5.
    ///
    /// # Safety
    ///
    /// As for [`pop`](Self::pop).
    #[inline]
    pub(crate) unsafe fn pop_link(&self) -> Pop<NonNull<Link>> {
        // SAFETY: only this function touches `head`, and the caller is the only consumer.
        let known = self.head.with(|head| unsafe { *head });
        let head = match NonNull::new(known) {
            Some(head) => head,
            None => {
                // Acquire: pairs with the store of the producer that found the queue empty.
                let Some(head) = NonNull::new(self.first.load(Acquire)) else {
                    // Relaxed: nothing is read through it. Null: empty at this moment (rule 5).
                    return if self.tail.load(Relaxed).is_null() { Pop::Empty } else { Pop::Retry };
                };
                // Relaxed: published to producers by the exchange below, now or later (rule 4).
                self.first.store(ptr::null_mut(), Relaxed);
                head
            }
        };
        // SAFETY: the queue owns the node until this function returns it (`Linked`, 1 and 2).
        let link = unsafe { head.as_ref() };
        // Acquire: pairs with the store of the producer behind it; its node is read next.
        let mut next = link.next.load(Acquire);
        if next.is_null() && !self.cut_off(head) {
            // Acquire: as above. The producer may have stored the link meanwhile.
            next = link.next.load(Acquire);
            if next.is_null() {
                self.set_head(head.as_ptr());
                return Pop::Retry;
            }
        }
        self.set_head(next);
        Pop::Item(head)
    }

    /// Makes the queue empty if `head` is the last node; returns whether it was.
    #[inline]
    fn cut_off(&self, head: NonNull<Link>) -> bool {
        // Release: the cleared `first` comes before the store of the producer that finds null,
        // which acquires it by its swap (rule 4). Relaxed on failure: nothing is read through the
        // value.
        self.tail.compare_exchange(head.as_ptr(), ptr::null_mut(), Release, Relaxed).is_ok()
    }

    #[inline]
    fn set_head(&self, link: *mut Link) {
        self.head.with_mut(|head| {
            // SAFETY: called by `pop_link` only, whose caller is the only consumer.
            unsafe { *head = link }
        });
    }
}

impl<N: Linked> Default for IntrusiveQueue<N> {
    fn default() -> Self {
        Self::new()
    }
}

impl<N: Linked> Drop for IntrusiveQueue<N> {
    fn drop(&mut self) {
        let mut rest = Batch::<N>::new();
        // SAFETY: `&mut self` proves that there is no other consumer. It also proves that no push
        // is in progress, so no link is broken and `Retry` cannot occur.
        while let Pop::Item(link) = unsafe { self.pop_link() } {
            rest.push_link(link);
        }
    }
}

impl<N: Linked> fmt::Debug for IntrusiveQueue<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IntrusiveQueue").field("is_empty", &self.is_empty()).finish_non_exhaustive()
    }
}
