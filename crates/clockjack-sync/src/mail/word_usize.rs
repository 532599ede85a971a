//! The position word of a mailbox on targets without 64-bit atomics.

/// A position with its flags below it.
pub(crate) type Word = usize;
/// A distance of positions.
pub(crate) type Signed = isize;
/// A shared word.
pub(crate) type AtomicWord = crate::primitive::atomic::AtomicUsize;

/// The bits of the largest capacity: less than half of the positions.
pub(super) const CAPACITY_BITS: u32 = 20;

/// The lowest bits of a word, as a number to index with.
#[inline]
pub(crate) const fn low(word: Word) -> usize {
    word
}
