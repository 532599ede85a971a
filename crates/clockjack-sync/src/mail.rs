//! The queue of an actor's mailbox: many producers, one consumer, one read-modify-write a push.
//!
//! A push says whether the consumer has to be woken. The box is bounded, closes, and keeps its
//! values in blocks that go round: after it has once been as full as it gets, it allocates nothing.
//! An idle box has no heap memory at all if the consumer wants that.
//!
//! It wakes nobody itself, and it does not know who the consumer is: that there is one at a time is
//! the promise of the unsafe functions.
//!
//! # Protocol
//!
//! Roles: *producers* (any number), one *consumer*; *closers* and *readers* (anybody).
//!
//! ```text
//!   tail   [ position | tray | awaited | level | generation | closed | idle ]  exchanged by all
//!   freed  [ position ]                                               stored by the consumer
//!
//!   positions   ...taken...| held |  claimed, written or not  |...
//!                        freed  head                         tail
//!
//!   roots[generation] ─► directory of the level ─► block ─► slot, flag
//! ```
//!
//! 1. A producer *claims* the tail's position by a compare-exchange that also clears *idle*. Closed
//!    refuses; so does a tail that is `capacity` ahead of `freed`. A copy of `freed` stands beside
//!    the tail and is renewed only if the box looks full, so producers seldom touch what the
//!    consumer writes. The copy is changed by exchange from the value that looked full, and hence
//!    never goes back; an old copy only makes a producer look again.
//! 2. The claim is the right to write one slot, once: the value, then the slot's flag. The flag is
//!    the last thing a producer touches. A claim that is given up writes another flag, and the
//!    consumer passes over it.
//! 3. Who cleared *idle* has to wake the consumer, after it wrote. The consumer sets *idle* by a
//!    compare-exchange that succeeds only if the tail is where the consumer is. So of a consumer
//!    that goes idle and a producer that claims one comes first: either the producer finds *idle*
//!    and wakes, or the consumer's exchange fails.
//! 4. The block of a position is entry `(position / slots) % entries` of a directory. Whoever has a
//!    claim and finds no block there puts one in, by an exchange from null. The directory must be
//!    larger than the span from the block of `freed` to that of the claim. If it is not, then the
//!    claim *raises the level* in the same exchange: from that position on, which is the first of
//!    its block, a directory eight times as large is used. Claims know their level from the word
//!    they exchanged. Who raised it then writes down where the level starts. The consumer knows its
//!    own level; if the tail's is higher, it compares with that start, and is *busy* while the
//!    start is not written.
//! 5. When the consumer has taken the last value of a block, no claim in it is unused, so nobody
//!    else will touch it. The consumer clears the entry, and only then publishes `freed` behind the
//!    block. So an entry that a claim may use is null or has the right block.
//! 6. The cleared block goes to the first empty entry at or behind the tail's next block, by an
//!    exchange from null. So blocks go round, and their number never shrinks by itself. Blocks that
//!    were offered to a level that was raised before they were used are collected when the consumer
//!    leaves the level, as is the directory.
//! 7. To give memory back the consumer *renews* an empty box: it exchanges the tail for one at the
//!    same position with the other generation and level 0. It succeeds only if no claim came. Then
//!    every claim of the old generation was used and none will be made until the next renewal, so
//!    the old root with all its blocks belongs to the consumer, while producers already build the
//!    new one. Values may be held meanwhile: `freed` is then far behind, and rule 4 raises the
//!    level at the next block though the new directory is empty; that costs memory and nothing
//!    else.
//! 8. Closing sets a bit in the tail. Claims and the closing are ordered by that word: what was
//!    claimed before is delivered, nothing is claimed afterwards. *Empty* is said only if the tail
//!    is where the consumer is: on a closed box it is final.
//! 9. In an evicting box, and only there, all that is the consumer's is done under a try-lock, for
//!    a producer that finds the box full takes the oldest value out itself. Neither waits long: the
//!    consumer is told *busy*, the producer *full*.
//! 10. Who finds the box full and has a place elsewhere to wait in *bars* it: an exchange, from the
//!     word that it saw full, sets *awaited*. From then on every ordinary claim is told *full*,
//!     also when there is room; only the consumer claims, for those who wait, in the order in which
//!     they came. Whoever keeps the place clears the bit when nobody is left there. The box does
//!     not know the place; that it changes together with the bit, under a lock, is up to its owner.
//!     A consumer does not go idle while the bit is up: room may have come without a value being
//!     taken, by a claim that was given up, and no push would wake it.
//!
//! 11. A value that comes while the box is empty needs no block: it lies on the *tray*, a slot of
//!     the box itself. The tray is free in a new box, and from the exchange on by which the
//!     consumer goes idle; the claim that finds it free clears that bit, in its own exchange, and
//!     then has the tray instead of the slot of its position. That slot stays unused. The consumer
//!     was at that position when it went idle, and does not leave it before it has taken what is on
//!     the tray: so what it finds there is always what comes next, and a tray that is claimed and
//!     not yet written looks to it like a slot that is not. It takes the value before it goes idle
//!     again, so the tray has one user at a time. If the position was the last of a block, it takes
//!     out the block as in rule 5, provided that somebody has put one there. An evicting box uses
//!     no tray; neither do values of an alignment above that of a word.
//!
//! *Why nothing is lost*: the exchanges of `tail` order the claims, and each claim ends with a flag
//! that the consumer finds, since both compute the same entry: positions of one block have one
//! level and one generation (rules 4, 7), and entries of different live blocks differ. *Why nobody
//! hangs*: a producer repeats its exchange only if another claim, a close or the consumer was
//! faster. The consumer never waits: a slot that is claimed and not yet written is *busy*, and what
//! is behind it is delayed until that producer goes on.
//!
//! A position has 54 bits, or 22 on targets without 64-bit atomics. There a producer that is held
//! up between its look and its exchange for exactly a multiple of 2^22 messages would trust a look
//! that is too old.
//!
//! # Memory
//!
//! The box is eight words and a value. What producers touch at each push stands first, what the
//! consumer writes at each pop last, so that its owner can lay a boundary of cache lines between.
//! The heap holds nothing before two values are inside at a time, then a root of some 200 bytes
//! and, for a box that is never deeper than a block, two or three blocks. Where nothing may be
//! allocated later the consumer [reserves](Mailbox::reserve) all of it before.

#![expect(unsafe_code, reason = "says that the box may be shared between threads")]

mod consumer;
mod producer;
mod store;
mod tail;

use core::{fmt, marker::PhantomData, ptr};

pub use consumer::{EmptyToken, Popped};
pub use producer::{Permit, Pushed, WaiterReservation};
use store::{Block, InlineSlot, Root};
pub use tail::{CAPACITY_MAX, RESERVE_MAX};
use tail::{Tail, ahead};

pub use crate::mpsc::Pop;
use crate::{
    const_unless_loom,
    mail_word::{AtomicWord, Word},
    primitive::{
        UnsafeCell,
        atomic::{
            AtomicPtr, AtomicU32,
            Ordering::{self, AcqRel, Acquire, Relaxed},
        },
    },
};

/// The bit of `limit` that says that the box evicts.
const EVICTING: u32 = 1 << 31;

/// A queue of values for one consumer; see the [module](self) for the protocol.
///
/// What is inside when it is dropped is dropped with it, each once.
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
    tail: AtomicWord,
    /// A copy of `freed`, perhaps an old one (rule 1).
    freed_cache: AtomicWord,
    roots: [AtomicPtr<Root<T>>; 2],
    /// The capacity, and whether the box evicts.
    limit: u32,
    /// How many values were taken whose room is not yet free; in an evicting box, where no room is
    /// held, the lock of rule 9.
    held: AtomicU32,
    freed: AtomicWord,
    /// The block that the consumer takes from, or null if it has to look for it.
    block: UnsafeCell<*mut Block<T>>,
    inline_slot: InlineSlot<T>,
    _owns: PhantomData<T>,
}

// SAFETY: values are moved through the box from thread to thread (`T: Send`); references to a value
// in it are never given out. The cell is the consumer's, of which there is one at a time.
unsafe impl<T: Send> Sync for Mailbox<T> {}
// SAFETY: as above.
unsafe impl<T: Send> Send for Mailbox<T> {}

impl<T> Mailbox<T> {
    const_unless_loom! {
        /// A box for at most `capacity` values. Nothing is allocated before two are inside, and
        /// never more than the values need that are inside at a time.
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
        /// A box for at most `capacity` values, for [`push_or_evict`](Self::push_or_evict).
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
        /// their wrap-around: that of a negative number is near.
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

    /// Refuses every push from now on; says whether this call did it. What was accepted before
    /// stays and is to be popped: after this, the first [`Pop::Empty`] is final.
    pub fn close(&self) -> bool {
        // AcqRel: pairs with the loads of the tail in both directions; the closer sees what came
        // before an earlier closing.
        let before = self.tail.fetch_or(Tail(0).closed().0, AcqRel);
        !Tail(before).is_closed()
    }

    /// Whether [`close`](Self::close) was called.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.tail(Acquire).is_closed()
    }

    /// Whether the consumer has said that it is idle and nobody has pushed since.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.tail(Acquire).is_idle()
    }

    /// How much room is taken: values inside or on their way, and those whose room is held. Others
    /// may change it meanwhile.
    #[must_use]
    pub fn len(&self) -> usize {
        // Acquire: pairs with the consumer's store; who sees a value leave also sees it claimed, so
        // the difference is not negative.
        let freed = self.freed.load(Acquire);
        // Relaxed: a count. The consumer may have gone on between the two looks.
        let inside = ahead(self.tail(Relaxed).position(), freed);
        usize::try_from(inside.max(0)).map_or(self.capacity(), |n| n.min(self.capacity()))
    }

    /// Whether [`len`](Self::len) is zero.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many values have room at most.
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
