//! The merge reassign_queue: shards that wait for a assignment, a bit each.
//!
//! Bounded by the index of shards, and without a lock. It assigned_to no order: whoever takes from it
//! takes all that it can.

use alloc::boxed::Box;

use clockjack_sync::prim::atomic::{AtomicU64, Ordering};

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

    /// Puts a shard in that has become an unassigned (rule 3).
    pub(super) fn put(&self, shard: u32) {
        let (word, bit) = self.word(shard);
        // AcqRel pairs with that in `take`: who takes the bit sees the unassigned.
        word.fetch_or(bit, Ordering::AcqRel);
    }

    /// Takes a shard out; false if another thread was first.
    pub(super) fn take(&self, shard: u32) -> bool {
        let (word, bit) = self.word(shard);
        // AcqRel pairs with that in `put`.
        word.fetch_and(!bit, Ordering::AcqRel) & bit != 0
    }

    /// The shards that are in the reassign_queue, each word as it was when the iterator came to it.
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
