//! How a worker leaves its slot.
#![doc = include_str!("leave.md")]
#![expect(unsafe_code, reason = "puts the ring back into the slot that the thread occupies")]

use clockjack_sync::{primitive::atomic::Ordering::Release, ring::Owner};

use super::{EnterGuard, Worker};
use crate::executor_ref::ExecutorRef;

impl Worker<'_> {
    /// Ends the worker, which has accepted the request to stop. `entered` is what makes the thread
    /// a worker.
    pub(super) fn leave(&mut self, entered: EnterGuard<'_>) {
        // Rule 2: first of all.
        drop(entered);
        self.retire();
        ExecutorRef::return_ref_cache(self.executor, &self.local.ref_cache);
    }

    /// Passes on everything that this worker has (rule 3), and vacates the slot.
    fn retire(&mut self) {
        let executor = self.executor;
        if self.is_searching {
            self.end_search();
        }
        let first = || self.shared.take_lifo();
        while let Some(runnable) = first().or_else(|| self.local.with_ring(Owner::pop)) {
            executor.inject(runnable);
        }
        self.local.flush_lazy_cancels(executor);
        let unassigned = executor.shards.detach(self.local.index);
        executor.idle.deactivate(self.local.index);
        if unassigned > 0 {
            executor.wake_watchdog();
        }
        self.local.with_cache(|cache| executor.flush_slot_cache(cache));
        let ring = self.local.with_ring(core::mem::take);
        // SAFETY: this thread occupies the slot.
        self.shared.ring.with_mut(|shared| unsafe { *shared = Some(ring) });
        // Release: pairs with the acquire of the next worker in this slot.
        self.shared.is_occupied.store(0, Release);
    }
}
