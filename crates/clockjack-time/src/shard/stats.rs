//! The statistics of a shard.
//!
//! The holder counts in plain memory. Other threads see a copy: a guard that moved time or touched
//! the wheel publishes the copy before it unlocks, and so does [`Shard::stats`] itself if it finds
//! the shard unlocked. Remote cancels are counted by the index stack that the cancellers push to.

use clockjack_sync::primitive::atomic::{AtomicUsize, Ordering};

use super::{Shard, ShardGuard};
use crate::Tick;

/// Counts of the timers of a [`Shard`], since it was made. Counts wrap.
///
/// While no other thread uses the shard, `armed` is the sum of `pending`, `fired`, `cancelled` and
/// `dropped`. Concurrently with other threads it is no snapshot: some counts may be one poll older
/// than others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ShardStats {
    /// Timers that are armed now, without those in the inbox.
    pub pending: usize,
    /// Timers that were armed. A timer in the inbox counts when it leaves the inbox.
    pub armed: usize,
    /// Timers that fired.
    pub fired: usize,
    /// Timers that were cancelled, with the guard and without.
    pub cancelled: usize,
    /// Timers that were dropped to make room, or returned by [`Shard::close`] or
    /// [`ShardGuard::drain`].
    pub dropped: usize,
    /// How often an armed timer was moved to another deadline. No other count includes that.
    pub rescheduled: usize,
    /// Timers that were cancelled without the guard and still hold their slot and value.
    pub stale: usize,
    /// Chunks that were freed by merging the remaining entries of two chunks.
    pub compacted: usize,
    /// Lists that were scanned for chunks to merge.
    pub scanned_lists: usize,
    /// The approximate largest number of slots that were found on the stack of cancelled slots.
    pub max_returns: usize,
}

/// The counts of the holder of the lock.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counts {
    pub(crate) armed: usize,
    pub(crate) fired: usize,
    /// With the guard only.
    pub(crate) cancelled: usize,
    pub(crate) dropped: usize,
    pub(crate) rescheduled: usize,
    /// How many of the timers that were cancelled without the guard are freed.
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

    /// So many of the timers that count as fired were dropped.
    pub(super) const fn count_dropped(&mut self, n: usize) {
        self.fired = self.fired.wrapping_sub(n);
        self.dropped = self.dropped.wrapping_add(n);
    }

    /// A timer that was cancelled without the guard is freed.
    pub(super) const fn count_reclaimed(&mut self) {
        self.reclaimed = self.reclaimed.wrapping_add(1);
    }
}

const N_COUNTS: usize = 9;

/// The copy that other threads see. Only the holder writes it.
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
    /// The statistics of the shard, from any thread. Exact if the shard is unlocked, else as of the
    /// last poll; see [`ShardStats`].
    ///
    /// Locks the shard for a moment if it is unlocked, and neither inserts nor frees anything.
    #[must_use]
    pub fn stats(&self) -> ShardStats {
        if let Some(guard) = self.try_lock_raw() {
            guard.publish_counts();
        }
        let counts = self.published_counts.read();
        let remote = self.returns.n_pushed();
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

/// Which slots of a shard's wheel hold timers, for displays.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[doc(hidden)]
pub struct ShardOccupancy {
    /// How far the wheel was advanced.
    pub elapsed: Tick,
    /// Bit `n` of word `l` is for slot `n` of level `l`: three levels of 64 slots and one of 4. A
    /// slot of a level covers 64 times as many ticks as one of the level before.
    pub levels: [u64; 4],
    /// How many timers wait beyond the range of the wheel.
    pub overflow: usize,
    /// When the next timer is due, or earlier.
    pub next: Option<Tick>,
}

impl<T> Shard<T> {
    /// Which slots hold timers; `None` if another thread uses the shard at this moment. It holds
    /// the lock for as long as it takes to look at 196 slots, and neither inserts nor frees
    /// anything.
    #[doc(hidden)]
    #[must_use]
    pub fn occupancy(&self) -> Option<ShardOccupancy> {
        let guard = self.try_lock_raw()?;
        let wheel = &guard.core().wheel;
        Some(ShardOccupancy {
            elapsed: wheel.elapsed(),
            levels: wheel.occupancy(),
            overflow: wheel.overflow_len(),
            next: wheel.next_deadline(),
        })
    }
}

impl<T> ShardGuard<'_, T> {
    /// Publishes the counts to other threads.
    pub(super) fn publish_counts(&self) {
        self.shard.published_counts.write(self.core().wheel.counts());
    }
}

/// The difference of two counts that wrap; 0 if the lesser was read later and is the greater.
const fn difference(greater: usize, lesser: usize) -> usize {
    let difference = greater.wrapping_sub(lesser);
    if difference.cast_signed() < 0 { 0 } else { difference }
}
