//! The end of the table: one flag, and every timer handed out once.

use alloc::vec::Vec;

use clockjack_sync::{
    mutant,
    prim::{
        atomic::{Ordering, fence},
        hint,
    },
};
use clockjack_time::Tick;

use super::{GUARD_TRIES_MAX, ShardEntry, Shards};

/// What a close has done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Closed {
    /// How many timers were handed out by this call.
    pub drained: usize,
    /// How many shards other threads did not leave in time: their timers never fire, but are still
    /// to be handed out by another call.
    pub left: usize,
}

impl<T: Send> Shards<T> {
    /// Refuses every timer from now on, and hands out those that are armed, a shard's in order.
    ///
    /// From the moment of closing nothing is armed, and no poll begins to fire. It may be called
    /// again, by any thread; each timer is handed out once. Whoever leaves last calls it, so that
    /// nothing is [left](Closed::left); else the rest is dropped with the table.
    ///
    /// `drained` is called while no guard is held.
    pub fn close(&self, mut drained: impl FnMut(T)) -> Closed {
        // AcqRel: a swap, so that it has one state; the leases and the fence do the rest (rule 8).
        self.closed.swap(true, Ordering::AcqRel);
        if !mutant!("shards_close_without_fence") {
            // Pairs with the fences of who arms by the inbox and of who makes a shard.
            fence(Ordering::SeqCst);
        }
        let mut closed = Closed { drained: 0, left: 0 };
        for (_, entry) in self.table.iter() {
            let mut values = Vec::new();
            let is_empty = (0..GUARD_TRIES_MAX).any(|_| {
                let is_empty = sweep(entry, &mut values);
                if !is_empty {
                    hint::spin_loop();
                }
                is_empty
            });
            closed.left += usize::from(!is_empty);
            closed.drained += values.len();
            // Relaxed: a statistic.
            self.counts.drained.fetch_add(values.len() as u64, Ordering::Relaxed);
            values.into_iter().for_each(&mut drained);
        }
        closed
    }

    /// Whether [`close`](Self::close) was called.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        // Acquire pairs with the swap: what was before the close is seen.
        self.closed.load(Ordering::Acquire)
    }
}

/// Takes all timers out of a shard; false if something is left, or if another thread holds it.
fn sweep<T>(entry: &ShardEntry<T>, values: &mut Vec<T>) -> bool {
    let Some(mut guard) = entry.shard.lease() else { return false };
    // Time has ended for this shard, so that all that it has is due.
    let more = guard.poll(Tick::MAX, usize::MAX, |timer| values.push(timer.value));
    debug_assert!(!more, "a budget without end has ended");
    drop(guard);
    // What stands behind a cell that is not filled yet has kept its wake.
    entry.shard.next_wake().is_none() || mutant!("shards_close_forgets_blocked")
}
