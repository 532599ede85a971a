//! Reaching into slots, with the exclusive borrow of the table as the right to do so.
#![expect(unsafe_code, reason = "the holder of the lease owns bodies and payloads that wait")]

use clockjack_sync::Counted;
use clockjack_time::GrowingWheel;

use super::JobTable;
use crate::{
    JobId,
    slots::{Body, Free, Slot, Slots},
    word::{JobState, JobWord},
};

/// For how many jobs the list of those that are due keeps room.
const DUE_KEPT: usize = 1024;

impl<P> JobTable<P> {
    pub(crate) fn slots(&self) -> &Counted<Slots<P>> {
        &self.slots
    }

    /// A free slot, for the stock.
    pub(crate) fn take_slot(&mut self) -> Option<u32> {
        self.free.take(&self.slots)
    }

    pub(crate) fn free(&self) -> &Free {
        &self.free
    }

    /// Gives the memory of an empty wheel back, if it was made for many more jobs than there are.
    pub(super) fn shrink_wheel(&mut self, wheel: &mut GrowingWheel<JobId>) {
        if self.free.has_shrunk() && wheel.is_empty() {
            self.free.forget_shrunk();
            wheel.shrink();
            self.due.shrink_to(DUE_KEPT);
        }
    }

    #[inline(always)]
    pub(super) fn slot(&self, slot: u32) -> &Slot<P> {
        self.slots.get(slot)
    }

    #[inline(always)]
    pub(super) fn word(&self, slot: u32) -> &JobWord {
        &self.slot(slot).word
    }

    /// Reads or changes the body of a slot that is not in the stock, and not in the hands of a
    /// poster.
    #[inline(always)]
    pub(super) fn body<R>(&mut self, slot: u32, f: impl FnOnce(&mut Body) -> R) -> R {
        // SAFETY: `&mut self` is had by one thread at a time, which holds the lease if there are
        // several; a poster's slot is not touched before its word is published. `f` has no way to
        // the table, so calls do not nest.
        unsafe { self.slot(slot).body(f) }
    }

    /// Reads or changes the payload of a job that waits, or that this call takes out or puts back.
    #[inline(always)]
    pub(super) fn payload<R>(&mut self, slot: u32, f: impl FnOnce(&mut Option<P>) -> R) -> R {
        // SAFETY: as in `body`. The runner of a job has moved its payload out, so it touches the
        // slot's no more.
        unsafe { self.slot(slot).payload(f) }
    }

    /// Reads a little of a slot that is needed soon. Such reads do not depend on one another, so
    /// for several slots memory is waited for once.
    #[inline(always)]
    pub(super) fn warm(&mut self, slot: u32) {
        core::hint::black_box(self.word(slot).peek());
        core::hint::black_box(self.payload(slot, |payload| payload.is_some()));
    }

    /// A free slot becomes a job's.
    #[inline(always)]
    pub(super) fn place(&mut self, slot: u32, body: Body, payload: P) {
        self.body(slot, |place| *place = body);
        self.payload(slot, |place| *place = Some(payload));
    }

    /// The jobs whose slots are in use, with their state; posted ones that were not taken up yet
    /// are left out.
    pub(super) fn jobs(&mut self) -> impl Iterator<Item = (u32, JobState, Body)> + '_ {
        let all = self.free.all();
        all.filter_map(|slot| {
            // Acquire, so that what a poster wrote is there.
            let seen = self.slots.get(slot).word.look();
            let is_posted = seen.state() == JobState::Scheduled && seen.is_noted();
            if seen.state() == JobState::Pending || is_posted {
                return None;
            }
            // SAFETY: `&mut self` is held by this iterator; the word says that no poster has it.
            let body = unsafe { self.slots.get(slot).body(|body| *body) };
            Some((slot, seen.state(), body))
        })
    }
}
