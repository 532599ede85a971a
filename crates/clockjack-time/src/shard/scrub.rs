//! Cleaning up behind a flood of cancels, a bounded piece at a time (rule 12 of the
//! [module above](super)).

use clockjack_sync::mutant;

use super::Lease;

/// How much work a poll of a sparse shard does for that: a few microseconds.
const SCRUB_PER_POLL: usize = 256;

impl<T> Lease<'_, T> {
    /// Frees what was cancelled from outside, then looks through one list for chunks that hold
    /// little, and joins them: at most about `budget` units of work, a chunk looked at and an entry
    /// moved being one each. The next call goes on from there, round and round. Says how many
    /// chunks were freed.
    ///
    /// [`poll`](Self::poll) does this by itself where it is worth while. A host that is idle may
    /// do more of it; neither the order nor the deadlines change.
    pub fn scrub(&mut self, budget: usize) -> usize {
        self.collect();
        self.repack(budget)
    }

    /// What a poll does after its work.
    #[inline]
    pub(super) fn scrub_if_sparse(&mut self) {
        if self.core().wheel.is_sparse() && !mutant!("shard_never_scrubs") {
            self.repack(SCRUB_PER_POLL);
        }
    }

    fn repack(&mut self, budget: usize) -> usize {
        let wheel = &mut self.core_mut().wheel;
        let repacked = wheel.repack(budget);
        let counts = wheel.counts_mut();
        counts.scrubbed = counts.scrubbed.wrapping_add(repacked.n_lists);
        counts.compacted = counts.compacted.wrapping_add(repacked.n_chunks);
        repacked.n_chunks
    }
}
