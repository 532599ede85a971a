//! Compaction after a flood of cancels, a bounded amount at a time (rule 12 of the
//! [module above](super)).

use super::ShardGuard;

/// The compaction budget of one poll of a sparse shard: a few microseconds.
const COMPACT_PER_POLL: usize = 256;

impl<T> ShardGuard<'_, T> {
    /// Frees the timers that were cancelled remotely, then scans one list for chunks with few
    /// entries, and merges them: about `budget` units of work at most, where scanning a chunk and
    /// moving an entry are one unit each. The next call continues there, round robin. Returns how
    /// many chunks were freed.
    ///
    /// [`poll`](Self::poll) does this by itself where it is worth its cost. An idle host may do
    /// more of it; neither the order nor the deadlines change.
    pub fn compact(&mut self, budget: usize) -> usize {
        self.collect();
        self.compact_lists(budget)
    }

    /// Called by a poll after its work.
    #[inline]
    pub(super) fn compact_if_sparse(&mut self) {
        if self.core().wheel.is_sparse() {
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
