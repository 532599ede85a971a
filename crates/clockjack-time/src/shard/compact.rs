//! Cleaning up behind a flood of cancels, a bounded piece at a time (rule 12 of the
//! [module above](super)).

use clockjack_sync::mutant;

use super::ShardGuard;

/// How much work a poll of a sparse shard does for that: a few microseconds.
const COMPACT_PER_POLL: usize = 256;

impl<T> ShardGuard<'_, T> {
    /// Frees what was cancelled from outside, then looks through one list for chunks that hold
    /// little, and joins them: at most about `budget` units of work, a chunk looked at and an entry
    /// moved being one each. The next call goes on from there, round and round. Says how many
    /// chunks were freed.
    ///
    /// [`poll`](Self::poll) does this by itself where it is worth while. A host that is idle may
    /// do more of it; neither the order nor the deadlines change.
    pub fn compact(&mut self, budget: usize) -> usize {
        self.collect();
        self.compact_lists(budget)
    }

    /// What a poll does after its work.
    #[inline]
    pub(super) fn compact_if_sparse(&mut self) {
        if self.core().wheel.is_sparse() && !mutant!("shard_never_scrubs") {
            self.compact_lists(COMPACT_PER_POLL);
        }
    }

    fn compact_lists(&mut self, budget: usize) -> usize {
        let wheel = &mut self.core_mut().wheel;
        let compacted = wheel.compact(budget);
        let counts = wheel.counts_mut();
        counts.scanned_lists = counts.scanned_lists.wrapping_add(compacted.n_lists);
        counts.compacted = counts.compacted.wrapping_add(compacted.n_chunks);
        compacted.n_chunks
    }
}
