//! The reassignment queue: a bit set of unassigned shards.
//!
//! It is bounded by the number of shards, and lock-free. It has no order: a thread that takes from
//! it takes all that it can.

use alloc::boxed::Box;

use clockjack_sync::primitive::atomic::{AtomicU64, Ordering};

pub(super) struct ReassignQueue {
    words: Box<[AtomicU64]>,
}

impl ReassignQueue {
    pub(super) fn new(len_max: u32) -> Self {
        let words = len_max.div_ceil(u64::BITS);
        Self { words: (0..words).map(|_| AtomicU64::new(0)).collect() }
    }

    fn word(&self, shard: u32) -> (&AtomicU64, u64) {
        (&self.words[(shard / u64::BITS) as usize], 1 << (shard % u64::BITS))
    }

    /// Adds a shard that has become unassigned (rule 3).
    pub(super) fn put(&self, shard: u32) {
        let (word, bit) = self.word(shard);
        // AcqRel: pairs with that in `take`: a thread that takes the bit sees that the shard is
        // unassigned.
        word.fetch_or(bit, Ordering::AcqRel);
    }

    /// Removes a shard; false if another thread was first.
    pub(super) fn take(&self, shard: u32) -> bool {
        let (word, bit) = self.word(shard);
        // AcqRel pairs with that in `put`.
        word.fetch_and(!bit, Ordering::AcqRel) & bit != 0
    }

    /// The shards in the queue, each word as it was when the iterator reached it.
    pub(super) fn iter(&self) -> impl Iterator<Item = u32> {
        (0_u32..).zip(&self.words).flat_map(|(at, word)| {
            // Acquire: as in `take`, which decides.
            let mut bits = word.load(Ordering::Acquire);
            core::iter::from_fn(move || {
                let lowest = (bits != 0).then(|| bits.trailing_zeros())?;
                bits &= bits - 1;
                Some(at * u64::BITS + lowest)
            })
        })
    }
}
