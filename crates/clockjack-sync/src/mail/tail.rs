//! The word that producers and the consumer agree on, and the arithmetic of positions.
//!
//! ```text
//!   [ position | inline | waiters | level : 3 | generation | closed | notified | parked | idle ]
//! ```
//!
//! A position alone is the same word with its flags zero, so that sums and differences wrap where
//! the word does. Capacities are far below half of its range: a difference keeps its sign.

use core::fmt;

use crate::{
    mail::producer::LATE_MAX,
    mail_word::{AtomicWord, CAPACITY_BITS, Signed, Word, low},
    primitive::{
        IS_MODEL,
        atomic::Ordering::{Acquire, Relaxed},
        scaled,
    },
};

/// Slots per block. The flags of a block then fill a quarter of a cache line, or a word where
/// memory is scarce.
pub(super) const SLOTS: usize = scaled(2, 4, 16);
/// Entries of the directory of level 0.
pub(super) const LEVEL_0_ENTRIES: usize = if IS_MODEL { 2 } else { 8 };
/// The directory of a level is 2 to this power times as large as that of the level below.
const LEVEL_BITS: u32 = if IS_MODEL { 1 } else { 3 };
/// Levels of directories; the largest has room for [`CAPACITY_MAX`] and a block more.
pub(super) const LEVELS: usize = 7;

/// The largest capacity of a mailbox: 2^24, and 2^20 on targets without 64-bit atomics.
pub const CAPACITY_MAX: usize = if IS_MODEL { 64 } else { 1 << CAPACITY_BITS };

/// The largest capacity whose memory can be [reserved](super::Mailbox::reserve): the blocks that it
/// fills, and one more, fit into the directory of level 0.
pub const RESERVE_MAX: usize = (LEVEL_0_ENTRIES - 1) * SLOTS;

const IDLE: Word = 1;
pub(super) const PARKED: Word = 1 << 1;
/// Either of the two ways to sleep.
pub(super) const ASLEEP: Word = IDLE | PARKED;
pub(super) const NOTIFIED: Word = 1 << 2;
const CLOSED: Word = 1 << 3;
const GENERATION: Word = 1 << 4;
const LEVEL_SHIFT: u32 = 5;
const LEVEL: Word = 0b111 << LEVEL_SHIFT;
const HAS_WAITERS: Word = 1 << 8;
/// The inline slot is free, and the next claim gets it.
const INLINE_FREE: Word = 1 << 9;
/// One position.
pub(super) const ONE: Word = 1 << 10;
const FLAGS: Word = ONE - 1;
/// The positions of a block.
pub(super) const BLOCK: Word = ONE * SLOTS as Word;

const _: () = {
    assert!(SLOTS.is_power_of_two(), "a position's slot is a mask away");
    assert!(LEVEL_0_ENTRIES.is_power_of_two(), "a block's entry is a mask away");
    assert!(LEVELS <= 8, "the level has three bits");
    assert!(
        (CAPACITY_MAX + LATE_MAX).div_ceil(SLOTS) < entries(LEVELS - 1),
        "the last level is enough"
    );
    // As wide as a word may be: with 64-bit atomics a `usize` may still have 32 bits.
    assert!((CAPACITY_MAX as u64) < 1 << (Word::BITS - 11), "half of the positions");
};

/// The entries of a level's directory.
#[inline]
pub(super) const fn entries(level: usize) -> usize {
    // At most seven levels of three bits.
    #[expect(clippy::cast_possible_truncation, reason = "a level is below 8")]
    let bits = LEVEL_BITS * level as u32;
    LEVEL_0_ENTRIES << bits
}

/// The slot of a position in its block.
#[inline]
pub(super) const fn slot(position: Word) -> usize {
    low(position / ONE) & (SLOTS - 1)
}

/// The entry of a position's block in the directory of a level.
#[inline]
pub(super) const fn entry(level: usize, position: Word) -> usize {
    low(position / BLOCK) & (entries(level) - 1)
}

/// The first position of a position's block.
#[inline]
pub(super) const fn block_start(position: Word) -> Word {
    position & !(BLOCK - 1)
}

/// By how many positions `a` is ahead of `b`; negative if it is behind.
#[inline]
pub(super) const fn ahead(a: Word, b: Word) -> Signed {
    a.wrapping_sub(b).cast_signed() / ONE.cast_signed()
}

/// A position in the order of the values of one mailbox: a place between two of them (rule 14 of
/// the [protocol](super)).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Position(pub(super) Word);

impl Position {
    /// Whether this position is behind another one of the same mailbox. Both are at most half of
    /// the range of positions apart, or the answer is meaningless.
    #[must_use]
    #[inline]
    pub const fn is_behind(self, other: Self) -> bool {
        ahead(self.0, other.0) > 0
    }
}

/// The first field of every mailbox, whatever the type of its values: the position that the next
/// push gets. For a thread that knows the address of a mailbox but not its type.
#[repr(transparent)]
pub struct NextPosition(AtomicWord);

impl NextPosition {
    /// As [`Mailbox::next_position`](super::Mailbox::next_position).
    #[must_use]
    #[inline]
    pub fn get(&self) -> Position {
        // Acquire: as in `Mailbox::next_position`.
        Position(Tail(self.0.load(Acquire)).position())
    }

    /// How many values were claimed so far, as in
    /// [`Mailbox::positions`](super::Mailbox::positions).
    #[must_use]
    pub fn claimed(&self) -> usize {
        // Acquire: as in `Mailbox::positions`.
        low(Tail(self.0.load(Acquire)).position() / ONE)
    }

    /// Whether the consumer has gone idle and no thread has pushed since; not if it sleeps and
    /// leaves the values alone.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        // Relaxed: for display.
        Tail(self.0.load(Relaxed)).is_idle()
    }
}

impl fmt::Debug for NextPosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.get(), f)
    }
}

/// A value of the word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Tail(pub(super) Word);

impl Tail {
    /// The word of a new mailbox that begins at `position`.
    pub(super) const fn new(position: Word) -> Self {
        Self(position.wrapping_mul(ONE))
    }

    /// The same with a free inline slot.
    pub(super) const fn with_inline_slot(self) -> Self {
        Self(self.0 | INLINE_FREE)
    }

    /// Whether the next claim gets the inline slot instead of the slot of its position.
    #[inline]
    pub(super) const fn has_inline_slot(self) -> bool {
        self.0 & INLINE_FREE != 0
    }

    /// The next position to be claimed.
    #[inline]
    pub(super) const fn position(self) -> Word {
        self.0 & !FLAGS
    }

    #[inline]
    pub(super) const fn level(self) -> usize {
        low((self.0 & LEVEL) >> LEVEL_SHIFT)
    }

    /// Which of the two roots: 0 or 1.
    #[inline]
    pub(super) const fn generation(self) -> usize {
        (self.0 & GENERATION != 0) as usize
    }

    #[inline]
    pub(super) const fn is_closed(self) -> bool {
        self.0 & CLOSED != 0
    }

    /// Whether a claim needs further checks: the mailbox is closed, or senders wait for room.
    #[inline]
    pub(super) const fn is_restricted(self) -> bool {
        self.0 & (CLOSED | HAS_WAITERS) != 0
    }

    /// Whether room is reserved for waiters.
    pub(super) const fn has_waiters(self) -> bool {
        self.0 & HAS_WAITERS != 0
    }

    #[inline]
    pub(super) const fn is_idle(self) -> bool {
        self.0 & IDLE != 0
    }

    /// Whether the consumer sleeps, idle or parked.
    #[inline]
    pub(super) const fn is_asleep(self) -> bool {
        self.0 & ASLEEP != 0
    }

    /// Whether the consumer was notified and has not acknowledged that yet.
    #[inline]
    pub(super) const fn is_notified(self) -> bool {
        self.0 & NOTIFIED != 0
    }

    /// The consumer is notified, and does not sleep any more.
    pub(super) const fn notified(self) -> Self {
        Self((self.0 | NOTIFIED) & !ASLEEP)
    }

    /// How many positions from `freed` on surely have their own entry in the directory of this
    /// level.
    #[inline]
    pub(super) const fn reach(self) -> Signed {
        ((entries(self.level()) - 1) * SLOTS + 1) as Signed
    }

    /// Whether a block begins here that would take the entry of a block that is still in use.
    ///
    /// A block that has begun has its entry. It may be far ahead of `freed` nevertheless: a mailbox
    /// that was shrunk while values were held has no blocks behind it.
    pub(super) const fn is_beyond_level(self, freed: Word) -> bool {
        let blocks = ahead(block_start(self.position()), block_start(freed)) / SLOTS as Signed;
        slot(self.position()) == 0 && blocks >= entries(self.level()) as Signed
    }

    /// One more position is claimed, the consumer is not idle, and the inline slot is not free.
    #[inline]
    pub(super) fn claimed(self) -> Self {
        Self(self.0.wrapping_add(ONE) & !(IDLE | INLINE_FREE))
    }

    /// From this position on the directory of the next level is used.
    pub(super) const fn raised(self) -> Self {
        debug_assert!(slot(self.position()) == 0, "a level begins with a block");
        debug_assert!(self.level() + 1 < LEVELS, "the last level is enough");
        Self(self.0 + (1 << LEVEL_SHIFT))
    }

    /// From this position on the other root is used, at level 0.
    pub(super) const fn in_next_generation(self) -> Self {
        Self((self.0 ^ GENERATION) & !LEVEL)
    }

    #[inline]
    pub(super) const fn idle(self) -> Self {
        Self(self.0 | IDLE)
    }

    pub(super) const fn with_waiters(self) -> Self {
        Self(self.0 | HAS_WAITERS)
    }

    pub(super) const fn closed(self) -> Self {
        Self(self.0 | CLOSED)
    }
}
