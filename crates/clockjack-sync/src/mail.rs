//! The queue of an actor's mailbox: multi-producer, single-consumer, one read-modify-write per
//! push.
//!
//! The design resembles the block list of tokio's mpsc channel (`sync/mpsc/list.rs`, `block.rs`): a
//! producer claims a position in one shared word, writes its slot, and then marks the slot as
//! written. Here a directory finds the blocks instead of a linked list, and the claim also decides
//! about the bound, the close and the wake-up.
//!
//! A push reports whether its caller has to wake the consumer. The mailbox is bounded, can be
//! closed, and keeps its values in blocks that are recycled: after the mailbox has once been as
//! full as it gets, it allocates nothing. An idle mailbox has no heap memory at all if the consumer
//! wants that.
//!
//! The mailbox does not wake the consumer itself, and it does not know the consumer: the callers of
//! the unsafe functions promise that there is one consumer at a time.
//!
//! # Segments
//!
//! Each pushed value gets the next *position*, a number that only grows. Positions are stored in
//! segments (*blocks*) of a few slots, which a *directory* finds. When more blocks are in use than
//! the directory has entries, later positions use the directory of the next *level*, which is eight
//! times as large. A *root* holds the directories of all levels. There are two roots, one per
//! *generation*: the consumer frees one of them while producers already fill the other.
//!
//! ```text
//!   tail word: position 150, level 1, generation 0        freed: position 3
//!
//!   roots[0] ─► Root ┬─ level 0: 8 entries, from position 0     0[ · ] 1[ · ] ... 7[ · ]
//!   roots[1] = null  │                                            └─► block of positions 0..16
//!                    ├─ level 1: 64 entries, from position 128  ... 8[ · ] 9[ · ] 10[   ] ...
//!                    │                                                      └─► block of 144..160
//!                    └─ level 2: null
//!
//!   block   flags  [ W ][ W ][ A ][   ] ...     W: written, A: abandoned, empty: not written yet
//!           values [ v ][ v ][   ][   ] ...
//! ```
//!
//! # Protocol
//!
//! Roles: *producers* (any number), one *consumer*; *closers* and *readers* (any thread). How the
//! consumer is woken: rules 1, 3, 12 and 13. Memory: rules 2 and 4 to 7. Order and room: the other
//! rules.
//!
//! ```text
//!   tail   [position | inline | waiters | level | generation | closed | notified | parked | idle]
//!                                                           compare-exchanged by all threads
//!   freed  [ position ]                                     stored by the consumer
//!
//!   idle       the consumer sleeps; the push that clears the bit wakes it          (rule 3)
//!   parked     it sleeps, and no push wakes it, only a notification                (rule 12)
//!   notified   it has work that is not in the mailbox                              (rule 12)
//!   inline     the next value that comes needs no block                            (rule 11)
//!   waiters    senders wait for room, and only the consumer claims for them        (rule 10)
//!
//!   positions   ...taken...| held |  claimed, written or not  |...
//!                        freed  head                         tail
//! ```
//!
//! 1. A producer *claims* the tail's position by a compare-exchange that also clears *idle*. The
//!    claim is refused if the mailbox is closed, or if the tail is `capacity` ahead of `freed`. A
//!    copy of `freed` is next to the tail; a producer refreshes the copy only if the mailbox seems
//!    full, so producers seldom touch the cache line that the consumer writes. The refresh is an
//!    exchange from the value that seemed full, so the copy never goes back; an old copy only makes
//!    a producer read `freed` itself.
//! 2. The claim is the right to write one slot, once: first the value, then the flag of the slot.
//!    The flag is the last thing that the producer touches. An abandoned claim writes another flag,
//!    and the consumer skips that slot.
//! 3. The producer that cleared *idle* has to wake the consumer, after it wrote its slot. The
//!    consumer sets *idle* by a compare-exchange that succeeds only if the tail is at the
//!    consumer's position. So the tail word orders the consumer that goes idle and the producer
//!    that claims: either the producer finds *idle* and wakes the consumer, or the exchange of the
//!    consumer fails.
//! 4. The block of a position is entry `(position / slots) % entries` of a directory. A producer
//!    that has a claim and finds no block in the entry installs one, by an exchange from null. The
//!    directory must have more entries than there are blocks from the block of `freed` to that of
//!    the claim. If it has not, the claim *raises the level* in the same exchange: from that
//!    position on, which is the first of its block, a directory eight times as large is used. A
//!    claim knows its level from the word that it exchanged. The producer that raised the level
//!    then stores the position at which the level starts. The consumer keeps its own level; if the
//!    level of the tail is higher, the consumer compares its position with the start of the next
//!    level, and returns *retry* while that start is not stored yet.
//! 5. When the consumer has taken the last value of a block, every claim in the block has been
//!    used, so no producer will touch the block. The consumer clears the entry, and only then
//!    publishes `freed` behind the block. So an entry that a claim may use is null or holds the
//!    right block.
//! 6. The consumer recycles the cleared block: it puts the block into the first empty entry at or
//!    behind the tail's next block, by an exchange from null. So blocks are reused, and their
//!    number never shrinks by itself. A block that was recycled into a level that was raised before
//!    the block was used is collected when the consumer leaves that level, as is the directory.
//! 7. To free memory the consumer *shrinks* an empty mailbox: it exchanges the tail for one at the
//!    same position with the other generation and level 0. The exchange succeeds only if no
//!    producer has claimed a position meanwhile. Then every claim of the old generation has been
//!    used and none will be made until the next shrink, so the old root with all its blocks belongs
//!    to the consumer, while producers already build the new root. Values may be held meanwhile:
//!    `freed` is then far behind, and rule 4 raises the level at the next block although the new
//!    directory is empty; that costs memory and nothing else.
//! 8. Closing sets a bit in the tail. The tail word orders the claims and the close: what was
//!    claimed before is delivered, nothing is claimed afterwards. The consumer reports *empty* only
//!    if the tail is at the consumer's position: on a closed mailbox *empty* is final.
//! 9. In an evicting mailbox, and only there, all operations of the consumer run under a try-lock,
//!    because a producer that finds the mailbox full takes the oldest value out itself. Neither
//!    waits long: the consumer gets *retry*, the producer gets *full*.
//! 10. A producer that finds the mailbox full, and has a list elsewhere to wait in, *reserves the
//!     room for waiters*: an exchange, from the word that the producer saw full, sets *waiters*.
//!     From then on every ordinary claim gets *full*, even if there is room; only the consumer
//!     claims, for the waiters, in the order in which they came. The owner of the list clears the
//!     bit when the list is empty. The mailbox does not know the list; the owner of the list
//!     changes the list together with the bit, under a lock. A consumer does not go idle while the
//!     bit is set: an abandoned claim may have freed room without a value being taken, and no push
//!     would wake the consumer.
//! 11. A value that arrives while the mailbox is empty needs no block: it goes into the *inline
//!     slot*, a slot in the mailbox itself. The inline slot is free in a new mailbox, and again
//!     from the exchange by which the consumer goes idle. The claim that finds it free clears that
//!     bit in its own exchange, and then owns the inline slot instead of the slot of its position,
//!     which stays unused. The consumer was at that position when it went idle, and does not leave
//!     the position before it has taken the value of the inline slot: so the inline slot always
//!     holds the next value, and an inline slot that is claimed and not yet written looks to the
//!     consumer like an unwritten slot. The consumer takes the value before it goes idle again, so
//!     the inline slot has one user at a time. If the position was the last of a block, the
//!     consumer takes the block out as in rule 5, provided that a producer has installed one. An
//!     evicting mailbox has no inline slot; neither have values whose alignment is above that of a
//!     word.
//! 12. A thread that left work for the consumer elsewhere *notifies* it: an exchange sets
//!     *notified* and clears *idle* and *parked*. If the consumer slept, the notifier has to wake
//!     it. The consumer *acknowledges*, that is, clears *notified*, before it looks for the work,
//!     and neither goes idle nor parks while *notified* is set. *Parked* is a sleep that no push
//!     interrupts.
//! 13. No user code runs between a claim and its flag: until the flag is written, the consumer gets
//!     *retry*, takes nothing that is behind the claim, and is not woken if the claim has cleared
//!     *idle*. A sender whose value is made by user code, and who wants to know before whether the
//!     value will be accepted, *checks for room*, makes the value, and then pushes it *late*: the
//!     claim succeeds although other senders have filled the mailbox meanwhile or wait for room,
//!     up to a bound beyond the capacity. The linearization point of that push is its claim. A
//!     sender that begins to wait while the user code runs may be overtaken by the late push, which
//!     began before.
//! 14. Something that is not in the mailbox takes its place in the order of the values by a
//!     [`Position`]: a thread reads the position that the next push gets, and leaves it for the
//!     consumer elsewhere. What was pushed before the thread read it is before the place, what is
//!     pushed afterwards is behind it. The consumer takes the values before the place by
//!     [`pop_before`](Mailbox::pop_before), which stops there. To take no value that is behind a
//!     place of which it does not know yet, the consumer (a) reads the next position, (b) looks for
//!     places that others have left, and (c) takes only values before the position of (a). Why this
//!     is enough: suppose that a thread has left a place, and that a value was pushed after that,
//!     by whomever. The claim of that value is a read-modify-write of the tail; if the value is
//!     before the position of (a), then (a) has read the tail of that claim or a later one, so
//!     everything that happened before the claim, the place too, is visible in (b).
//!
//! *Why no value is lost*: the exchanges of `tail` order the claims, and each claim ends with a
//! flag that the consumer finds, since both compute the same entry: positions of one block have one
//! level and one generation (rules 4, 7), and entries of different live blocks differ. *Why no
//! thread hangs*: a producer repeats its exchange only if another claim, a close or the consumer
//! was faster. The consumer never waits: a slot that is claimed and not yet written gives *retry*,
//! and the values behind it are delayed until that producer runs again.
//!
//! A position has 54 bits, or 22 on targets without 64-bit atomics. There an ABA problem is
//! possible: a producer that is suspended between its load and its exchange for exactly a multiple
//! of 2^22 messages would rely on an outdated load.
//!
//! # Memory
//!
//! The mailbox is eight words and a value. The fields that producers touch at each push come first,
//! those that the consumer writes at each pop come last, so that its owner can put a cache-line
//! boundary between them. The heap holds nothing before two values are inside at the same time,
//! then a root of some 200 bytes and, for a mailbox that is never deeper than a block, two or three
//! blocks. Where nothing may be allocated later, the consumer [reserves](Mailbox::reserve) all of
//! it in advance.

#![expect(unsafe_code, reason = "says that the box may be shared between threads")]

mod consumer;
mod producer;
mod store;
mod tail;

use core::{fmt, marker::PhantomData, ptr};

pub use consumer::{EmptyToken, Popped};
pub use producer::{Permit, Pushed, WaiterReservation};
use store::{Block, InlineSlot, Root};
pub use tail::{CAPACITY_MAX, NextPosition, Position, RESERVE_MAX};
use tail::{Tail, ahead};

pub use crate::mpsc::Pop;
use crate::{
    const_unless_loom,
    mail_word::{AtomicWord, Word, low},
    primitive::{
        UnsafeCell,
        atomic::{
            AtomicPtr, AtomicU32,
            Ordering::{self, AcqRel, Acquire, Relaxed},
        },
    },
};

/// The bit of `limit` that marks an evicting mailbox.
const EVICTING: u32 = 1 << 31;

/// A queue of values for one consumer; see the [module](self) for the protocol.
///
/// Dropping the mailbox drops each value inside once.
///
/// # Examples
///
/// ```
/// use clockjack_sync::mail::{Mailbox, Pop};
///
/// let mailbox = Mailbox::new(2);
/// // SAFETY: this thread is the only consumer.
/// assert!(unsafe { mailbox.try_idle() });
/// assert!(mailbox.push("a").unwrap().wake);
/// assert!(!mailbox.push("b").unwrap().wake);
/// assert!(mailbox.push("c").unwrap_err().is_full());
///
/// mailbox.close();
/// assert!(mailbox.push("c").unwrap_err().is_closed());
/// // SAFETY: as above.
/// assert_eq!(unsafe { mailbox.pop() }, Pop::Item("a"));
/// // SAFETY: as above.
/// assert_eq!(unsafe { mailbox.pop() }, Pop::Item("b"));
/// // SAFETY: as above.
/// assert_eq!(unsafe { mailbox.pop() }, Pop::Empty);
/// ```
#[repr(C)]
pub struct Mailbox<T> {
    /// First, so that a [`NextPosition`] is at the address of every mailbox.
    tail: AtomicWord,
    /// A copy of `freed`, perhaps outdated (rule 1).
    freed_cache: AtomicWord,
    roots: [AtomicPtr<Root<T>>; 2],
    /// The capacity, and whether the mailbox evicts.
    limit: u32,
    /// The number of values that were taken and whose room is not yet free; in an evicting mailbox,
    /// which holds no room, the lock of rule 9.
    held: AtomicU32,
    freed: AtomicWord,
    /// The block that the consumer takes from, or null if the consumer has to find it.
    block: UnsafeCell<*mut Block<T>>,
    inline_slot: InlineSlot<T>,
    _owns: PhantomData<T>,
}

// SAFETY: values are moved through the mailbox from thread to thread (`T: Send`); it never gives
// out references to a value inside. Only the consumer uses the cell, and there is one consumer at a
// time.
unsafe impl<T: Send> Sync for Mailbox<T> {}
// SAFETY: as above.
unsafe impl<T: Send> Send for Mailbox<T> {}

impl<T> Mailbox<T> {
    const_unless_loom! {
        /// A mailbox for at most `capacity` values. It allocates nothing before two values are
        /// inside, and never more than the values inside need.
        ///
        /// # Panics
        ///
        /// If the capacity is zero or above [`CAPACITY_MAX`].
        #[must_use]
        pub const fn new(capacity: usize) -> Self {
            Self::build(capacity, 0, 0)
        }
    }

    const_unless_loom! {
        /// A mailbox for at most `capacity` values, for [`push_or_evict`](Self::push_or_evict).
        ///
        /// # Panics
        ///
        /// As [`new`](Self::new).
        #[must_use]
        pub const fn evicting(capacity: usize) -> Self {
            Self::build(capacity, EVICTING, 0)
        }
    }

    const_unless_loom! {
        /// As [`new`](Self::new), with positions that begin at `start`, so that a test reaches
        /// their wrap-around: a small negative number is just before it.
        #[doc(hidden)]
        #[must_use]
        pub const fn with_start(capacity: usize, start: isize) -> Self {
            Self::build(capacity, 0, start)
        }
    }

    const_unless_loom! {
        const fn build(capacity: usize, kind: u32, start: isize) -> Self {
            assert!(capacity > 0, "a capacity of zero admits nothing");
            assert!(capacity <= CAPACITY_MAX, "the capacity is above CAPACITY_MAX");
            #[expect(clippy::cast_possible_truncation, reason = "asserted above")]
            let limit = capacity as u32 | kind;
            let start = Tail::new(start as Word);
            let has_inline_slot = kind & EVICTING == 0 && InlineSlot::<T>::FITS;
            let tail = if has_inline_slot { start.with_inline_slot() } else { start };
            Self {
                tail: AtomicWord::new(tail.0),
                freed_cache: AtomicWord::new(start.0),
                roots: [AtomicPtr::new(ptr::null_mut()), AtomicPtr::new(ptr::null_mut())],
                limit,
                held: AtomicU32::new(0),
                freed: AtomicWord::new(start.0),
                block: UnsafeCell::new(ptr::null_mut()),
                inline_slot: InlineSlot::new(),
                _owns: PhantomData,
            }
        }
    }

    /// Refuses every push from now on; returns whether this call closed the mailbox. Values that
    /// were accepted before stay and can be popped: after the close, the first [`Pop::Empty`] is
    /// final.
    pub fn close(&self) -> bool {
        // AcqRel: pairs with the loads of the tail in both directions; the closer sees what
        // happened before an earlier close.
        let before = self.tail.fetch_or(Tail(0).closed().0, AcqRel);
        !Tail(before).is_closed()
    }

    /// Whether [`close`](Self::close) was called.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.tail(Acquire).is_closed()
    }

    /// Whether the consumer has gone idle and no thread has pushed since.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.tail(Acquire).is_idle()
    }

    /// How much room is taken: by values that are inside or claimed, and by values whose room is
    /// held. Other threads may change the number at any time.
    #[must_use]
    pub fn len(&self) -> usize {
        // Acquire: pairs with the consumer's store; a thread that sees a value freed also sees its
        // claim, so the difference is not negative.
        let freed = self.freed.load(Acquire);
        // Relaxed: a count. The consumer may have freed more between the two loads.
        let inside = ahead(self.tail(Relaxed).position(), freed);
        usize::try_from(inside.max(0)).map_or(self.capacity(), |n| n.min(self.capacity()))
    }

    /// The position that the next push gets (rule 14).
    #[must_use]
    #[inline]
    pub fn next_position(&self) -> Position {
        // Acquire: pairs with the claims; rule 14 says what for.
        Position(self.tail(Acquire).position())
    }

    /// How many values the consumer has taken and whose room it has freed, modulo the width of the
    /// word. Values whose room is held are not counted yet.
    #[must_use]
    pub fn taken(&self) -> usize {
        // Relaxed: a number for display.
        low(self.freed.load(Relaxed) / tail::ONE)
    }

    /// How many values were claimed so far, that is, accepted, and how many of them the consumer
    /// has taken and freed the room of. Both wrap around at the width of a position; the first is
    /// never behind the second. The differences between two calls are exact counts.
    #[must_use]
    pub fn positions(&self) -> (usize, usize) {
        // Acquire: as in `len`. A claim is before its value is freed, so it is not missed.
        let freed = self.freed.load(Acquire);
        // Relaxed: a count.
        let claimed = self.tail(Relaxed).position();
        (low(claimed / tail::ONE), low(freed / tail::ONE))
    }

    /// Whether [`len`](Self::len) is zero.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The largest number of values inside.
    #[must_use]
    #[inline]
    pub const fn capacity(&self) -> usize {
        (self.limit & !EVICTING) as usize
    }

    #[inline]
    const fn is_evicting(&self) -> bool {
        self.limit & EVICTING != 0
    }

    #[inline]
    fn tail(&self, order: Ordering) -> Tail {
        Tail(self.tail.load(order))
    }
}

impl<T> fmt::Debug for Mailbox<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Mailbox")
            .field("len", &self.len())
            .field("capacity", &self.capacity())
            .field("is_closed", &self.is_closed())
            .field("is_idle", &self.is_idle())
            .finish_non_exhaustive()
    }
}
