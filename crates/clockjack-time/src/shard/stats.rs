//! What a shard has done, for whoever watches it.
//!
//! The holder counts in plain memory, beside what it changes. Others see a copy: made when a lease
//! that moved time or touched the wheel opens, and by [`Shard::stats`] itself if it finds the lease
//! open. Cancels from outside are counted where they happen, in stripes.

use clockjack_sync::primitive::atomic::{AtomicUsize, Ordering};

use super::{Shard, ShardGuard};

/// What has become of the timers of a [`Shard`], since it was made. Counts wrap.
///
/// When nobody else is at the shard, `armed` is the sum of `pending`, `fired`, `cancelled` and
/// `dropped`. Beside others it is no snapshot: parts of it may be a poll older than the rest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ShardStats {
    /// Timers that are armed now. Those that wait in the inbox do not count yet.
    pub pending: usize,
    /// Timers that were armed. One that was posted counts when it leaves the inbox.
    pub armed: usize,
    /// Timers that fired.
    pub fired: usize,
    /// Timers that were cancelled, with the lease and without.
    pub cancelled: usize,
    /// Timers that were given up to make room, or handed out by [`Shard::close`].
    pub dropped: usize,
    /// How often an armed timer was moved to another deadline. That counts as nothing else.
    pub rescheduled: usize,
    /// Timers that were cancelled without the lease and hold their slot and value still.
    pub stale: usize,
    /// Chunks of lists that were freed by joining what was left in two of them.
    pub compacted: usize,
    /// Lists that were looked through for such chunks.
    pub scanned_lists: usize,
    /// The most slots that were found on the return stack at once, about.
    pub max_returns: usize,
}

/// What the holder of the lease counts.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counts {
    pub(crate) armed: usize,
    pub(crate) fired: usize,
    /// With the lease only.
    pub(crate) cancelled: usize,
    pub(crate) dropped: usize,
    pub(crate) rescheduled: usize,
    /// Of those that were cancelled without the lease, how many are freed.
    pub(crate) reclaimed: usize,
    pub(crate) compacted: usize,
    pub(crate) scanned_lists: usize,
    pub(crate) max_returns: usize,
}

impl Counts {
    /// A timer has left the inbox.
    pub(super) const fn count_entered(&mut self) {
        self.armed = self.armed.wrapping_add(1);
    }

    /// A timer that was cancelled without the lease is freed.
    pub(super) const fn count_reclaimed(&mut self) {
        self.reclaimed = self.reclaimed.wrapping_add(1);
    }
}

const N_COUNTS: usize = 9;

/// The copy that others see. Written by the holder alone.
pub(super) struct PublishedCounts([AtomicUsize; N_COUNTS]);

impl PublishedCounts {
    pub(super) fn new() -> Self {
        Self(core::array::from_fn(|_| AtomicUsize::new(0)))
    }

    fn write(&self, counts: &Counts) {
        let Counts { armed, fired, cancelled, dropped, rescheduled, .. } = *counts;
        let Counts { reclaimed, compacted, scanned_lists, max_returns, .. } = *counts;
        let all = [
            armed,
            fired,
            cancelled,
            dropped,
            rescheduled,
            reclaimed,
            compacted,
            scanned_lists,
            max_returns,
        ];
        for (seen, count) in self.0.iter().zip(all) {
            // Relaxed: a statistic; nothing is published.
            seen.store(count, Ordering::Relaxed);
        }
    }

    fn read(&self) -> Counts {
        // Relaxed: as above.
        let all = core::array::from_fn(|index| self.0[index].load(Ordering::Relaxed));
        let [armed, fired, cancelled, dropped, rescheduled, rest @ ..]: [usize; N_COUNTS] = all;
        let [reclaimed, compacted, scanned_lists, max_returns] = rest;
        Counts {
            armed,
            fired,
            cancelled,
            dropped,
            rescheduled,
            reclaimed,
            compacted,
            scanned_lists,
            max_returns,
        }
    }
}

impl<T> Shard<T> {
    /// What the shard has done so far, from any thread. Exact if nobody holds the lease, else as of
    /// the last poll; see [`ShardStats`].
    ///
    /// Takes the lease for a moment if it is open, and neither enters nor frees anything by it.
    #[must_use]
    pub fn stats(&self) -> ShardStats {
        if let Some(guard) = self.try_lock_raw() {
            guard.publish_counts();
        }
        let counts = self.published_counts.read();
        let remote = self.states.n_cancelled();
        let cancelled = counts.cancelled.wrapping_add(remote);
        let ended = counts.fired.wrapping_add(cancelled).wrapping_add(counts.dropped);
        ShardStats {
            pending: difference(counts.armed, ended),
            armed: counts.armed,
            fired: counts.fired,
            cancelled,
            dropped: counts.dropped,
            rescheduled: counts.rescheduled,
            stale: difference(remote, counts.reclaimed),
            compacted: counts.compacted,
            scanned_lists: counts.scanned_lists,
            max_returns: counts.max_returns,
        }
    }
}

impl<T> ShardGuard<'_, T> {
    /// Shows others what was counted.
    pub(super) fn publish_counts(&self) {
        self.shard.published_counts.write(self.core().wheel.counts());
    }
}

/// The difference of two counts that wrap; 0 if the lesser was read too late and is the greater.
const fn difference(greater: usize, lesser: usize) -> usize {
    let difference = greater.wrapping_sub(lesser);
    if difference.cast_signed() < 0 { 0 } else { difference }
}
