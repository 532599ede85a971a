//! Reaching into slots, with the exclusive borrow of the table as the right to do so.
#![expect(unsafe_code, reason = "the holder of the guard owns bodies and payloads that wait")]

use clockjack_sync::Counted;
use clockjack_time::GrowingWheel;

use super::JobTable;
use crate::{
    JobId,
    slots::{FreeSlots, JobData, JobSlot, JobSlots},
    state::{AtomicJobState, JobState},
};

/// For how many jobs the list of those that are due keeps room.
const DUE_KEPT: usize = 1024;

impl<P> JobTable<P> {
    pub(crate) fn slots(&self) -> &Counted<JobSlots<P>> {
        &self.slots
    }

    /// A free slot, for the stock.
    pub(crate) fn take_slot(&mut self) -> Option<u32> {
        self.free.take(&self.slots)
    }

    pub(crate) fn free(&self) -> &FreeSlots {
        &self.free
    }

    /// Gives the memory of an empty wheel back, if it was made for many more jobs than there are.
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

    /// Reads or changes the data of a slot that is not in the stock, and not in the hands of a
    /// poster.
    #[inline(always)]
    pub(super) fn data<R>(&mut self, slot: u32, f: impl FnOnce(&mut JobData) -> R) -> R {
        // SAFETY: `&mut self` is had by one thread at a time, which holds the guard if there are
        // several; a poster's slot is not touched before its word is published. `f` has no way to
        // the table, so calls do not nest.
        unsafe { self.slot(slot).data(f) }
    }

    /// Reads or changes the payload of a job that waits, or that this call takes out or puts back.
    #[inline(always)]
    pub(super) fn payload<R>(&mut self, slot: u32, f: impl FnOnce(&mut Option<P>) -> R) -> R {
        // SAFETY: as in `data`. The runner of a job has moved its payload out, so it touches the
        // slot's no more.
        unsafe { self.slot(slot).payload(f) }
    }

    /// Reads a little of a slot that is needed soon. Such reads do not depend on one another, so
    /// for several slots memory is waited for once.
    #[inline(always)]
    pub(super) fn prefetch(&mut self, slot: u32) {
        core::hint::black_box(self.job_state(slot).load_relaxed());
        core::hint::black_box(self.payload(slot, |payload| payload.is_some()));
    }

    /// A free slot becomes a job's.
    #[inline(always)]
    pub(super) fn fill_slot(&mut self, slot: u32, data: JobData, payload: P) {
        self.data(slot, |place| *place = data);
        self.payload(slot, |place| *place = Some(payload));
    }

    /// The jobs whose slots are in use, with their state; posted ones that were not taken up yet
    /// are left out.
    pub(super) fn jobs(&mut self) -> impl Iterator<Item = (u32, JobState, JobData)> + '_ {
        let all = self.free.all();
        all.filter_map(|slot| {
            // Acquire, so that what a poster wrote is there.
            let seen = self.slots.get(slot).state.load();
            let is_posted = seen.state() == JobState::Scheduled && seen.has_remote_op();
            if seen.state() == JobState::Pending || is_posted {
                return None;
            }
            // SAFETY: `&mut self` is held by this iterator; the word says that no poster has it.
            let data = unsafe { self.slots.get(slot).data(|data| *data) };
            Some((slot, seen.state(), data))
        })
    }
}
