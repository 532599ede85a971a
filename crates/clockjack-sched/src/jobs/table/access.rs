//! Access to slots, which the exclusive borrow of the table permits.
#![expect(unsafe_code, reason = "the guard holder owns data and waiting payloads")]

use clockjack_sync::Arc;
use clockjack_time::GrowingWheel;

use super::JobTable;
use crate::{
    JobId,
    jobs::{
        slots::{FreeSlots, JobData, JobSlot, JobSlots},
        state::{AtomicJobState, JobState},
    },
};

/// How many entries the due list keeps allocated when it shrinks.
const DUE_KEPT: usize = 1024;

impl<P> JobTable<P> {
    pub(crate) fn slots(&self) -> &Arc<JobSlots<P>> {
        &self.slots
    }

    /// Takes a free slot, to be reserved.
    pub(crate) fn take_slot(&mut self) -> Option<u32> {
        self.free.take(&self.slots)
    }

    pub(crate) fn free(&self) -> &FreeSlots {
        &self.free
    }

    /// Frees the memory of an empty wheel that was allocated for many more jobs.
    pub(super) fn shrink_wheel(&mut self, wheel: &mut GrowingWheel<JobId>) {
        if self.free.has_shrunk() && wheel.is_empty() {
            self.free.clear_shrunk();
            wheel.shrink();
            self.due.shrink_to(DUE_KEPT);
        }
    }

    #[inline(always)]
    pub(super) fn slot(&self, slot: u32) -> &JobSlot<P> {
        self.slots.get(slot)
    }

    #[inline(always)]
    pub(super) fn job_state(&self, slot: u32) -> &AtomicJobState {
        &self.slot(slot).state
    }

    /// Reads or changes the data of a slot that is neither reserved nor owned by a remote
    /// scheduler.
    #[inline(always)]
    pub(super) fn data<R>(&mut self, slot: u32, f: impl FnOnce(&mut JobData) -> R) -> R {
        // SAFETY: one thread at a time has `&mut self`; with several threads it holds the guard. A
        // remote scheduler's slot is not touched before its state is published. `f` cannot reach
        // the table, so calls do not nest.
        unsafe { self.slot(slot).data(f) }
    }

    /// Reads or changes the payload of a waiting job, or takes it out or puts it back.
    #[inline(always)]
    pub(super) fn payload<R>(&mut self, slot: u32, f: impl FnOnce(&mut Option<P>) -> R) -> R {
        // SAFETY: as in `data`. The poller or receiver of a job has moved the payload out, so it
        // does not touch the slot.
        unsafe { self.slot(slot).payload(f) }
    }

    /// Puts a job into a free slot.
    #[inline(always)]
    pub(super) fn fill_slot(&mut self, slot: u32, data: JobData, payload: P) {
        self.data(slot, |place| *place = data);
        self.payload(slot, |place| *place = Some(payload));
    }

    /// The jobs whose slots are in use, with their states, except for remotely scheduled ones that
    /// were not applied yet.
    pub(super) fn jobs(&mut self) -> impl Iterator<Item = (u32, JobState, JobData)> + '_ {
        let all = self.free.all();
        all.filter_map(|slot| {
            // Acquire: the data that a remote scheduler wrote is visible.
            let seen = self.slots.get(slot).state.load();
            let is_posted = seen.state() == JobState::Scheduled && seen.has_remote_op();
            if seen.state() == JobState::Pending || is_posted {
                return None;
            }
            // SAFETY: this iterator borrows `&mut self`; by its state no remote scheduler owns it.
            let data = unsafe { self.slots.get(slot).data(|data| *data) };
            Some((slot, seen.state(), data))
        })
    }
}
