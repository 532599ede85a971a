//! A block of slots, and the bit set of those that are free.

use alloc::{boxed::Box, vec::Vec};

use clockjack_sync::primitive::atomic::{
    AtomicU32,
    Ordering::{Acquire, Relaxed, Release},
};

use super::{Slot, WORD_LEN};

/// Slots with consecutive indices.
pub(super) struct Chunk {
    pub(super) slots: Box<[Slot]>,
    /// A set bit is a free slot.
    free: Box<[AtomicU32]>,
}

impl Chunk {
    /// A chunk of free slots, or `None` if there is no memory.
    pub(super) fn new(start: usize, len: usize) -> Option<Self> {
        let mut slots = Vec::new();
        slots.try_reserve_exact(len).ok()?;
        let index = |n| u32::try_from(n).expect("a capacity is less than 2^32");
        slots.extend((start..start + len).map(|n| Slot::new(index(n))));
        let n_words = len.div_ceil(WORD_LEN);
        let mut free = Vec::new();
        free.try_reserve_exact(n_words).ok()?;
        free.extend((0..n_words).map(|word| {
            let n_bits = (len - word * WORD_LEN).min(WORD_LEN);
            AtomicU32::new(u32::MAX >> (WORD_LEN - n_bits))
        }));
        Some(Self { slots: slots.into_boxed_slice(), free: free.into_boxed_slice() })
    }

    /// Takes up to `max` free slots of the first word from `from` on that has any.
    pub(super) fn take(&self, from: usize, max: usize) -> Option<(usize, u32)> {
        for (word, free) in self.free.iter().enumerate().skip(from) {
            // Relaxed: only chooses which bits to try to take.
            let mut wanted = lowest(free.load(Relaxed), max);
            while wanted != 0 {
                // Acquire: pairs with `give`, so that the next creator sees the end of the slot's
                // last task. The bits that were still set now belong to this thread; the others
                // never did.
                let before = free.fetch_and(!wanted, Acquire);
                if before & wanted != 0 {
                    return Some((word, before & wanted));
                }
                // Other threads were faster, but the word may have more.
                wanted = lowest(before, max);
            }
        }
        None
    }

    pub(super) fn give(&self, word: usize, bits: u32) {
        // Release: pairs with `take`.
        let before = self.free[word].fetch_or(bits, Release);
        debug_assert_eq!(before & bits, 0, "a slot was freed twice");
    }
}

/// The `max` lowest set bits.
fn lowest(bits: u32, max: usize) -> u32 {
    let mut rest = bits;
    for _ in 0..max.min(WORD_LEN) {
        if rest == 0 {
            return bits;
        }
        rest &= rest - 1;
    }
    bits & !rest
}
