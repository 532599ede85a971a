//! The position word of a mailbox on targets with 64-bit atomics.

/// A position with its flags below it.
pub(crate) type Word = u64;
/// A distance of positions.
pub(crate) type Signed = i64;
/// A shared word.
pub(crate) type AtomicWord = crate::primitive::atomic::AtomicU64;

/// The bits of the largest capacity: less than half of the positions.
pub(super) const CAPACITY_BITS: u32 = 24;

/// The lowest bits of a word, as a number to index with.
#[inline]
pub(crate) const fn low(word: Word) -> usize {
    #[expect(clippy::cast_possible_truncation, reason = "only the lowest bits count")]
    let low = word as usize;
    low
}
