//! What other threads have left: jobs that were posted, cancels, slots to be freed. And the close.

use alloc::vec::Vec;

use clockjack_sync::mutant;
use clockjack_time::{Storage, Wheel};

use super::JobTable;
use crate::{
    BatchMode, JobId,
    slots::Body,
    word::{Closing, JobState},
};

impl<P> JobTable<P> {
    /// Takes up a slot that was on the stack of notes.
    pub(crate) fn take_up<S: Storage<JobId>>(&mut self, wheel: &mut Wheel<JobId, S>, slot: u32) {
        let seen = if self.is_closed {
            self.word(slot).take_up_closed()
        } else {
            self.word(slot).take_up()
        };
        if !seen.is_pinned() {
            return self.free_slot(slot);
        }
        match seen.state() {
            JobState::Scheduled if !self.is_closed => self.enter(wheel, slot),
            JobState::Cancelled => {
                let body = self.body(slot, |body| *body);
                if body.number == 0 {
                    // Cancelled before anybody has taken it up.
                    self.accept(slot, body.scheduled_at);
                    self.reap_later(wheel, slot);
                } else if body.is_live && !body.is_listed {
                    self.reap_later(wheel, slot);
                }
            }
            _ => {}
        }
    }

    /// Enters a job that was posted.
    fn enter<S: Storage<JobId>>(&mut self, wheel: &mut Wheel<JobId, S>, slot: u32) {
        let body = self.body(slot, |body| *body);
        self.accept(slot, body.scheduled_at);
        let job = JobId { shard: self.shard, slot };
        match self.insert(wheel, body.due, body.class, job) {
            Some(timer) => self.body(slot, |body| body.timer = Some(timer)),
            None => self.give_up(wheel, slot, body.class),
        }
    }

    /// From here on nothing is accepted.
    pub(crate) fn close(&mut self) {
        self.is_closed = true;
    }

    /// Lists one-shots that wait and are marked to be run at the close, in the order in which they
    /// would have been due.
    pub(crate) fn list_marked<S: Storage<JobId>>(&mut self, wheel: &mut Wheel<JobId, S>) {
        let mut marked = Vec::new();
        for slot in self.free.all() {
            let seen = self.word(slot).look();
            let is_marked = seen.state() == JobState::Scheduled && seen.runs_on_close();
            if is_marked && !seen.is_noted() {
                marked.push(self.body(slot, |body| (body.due, body.number, slot)));
            }
        }
        marked.sort_unstable();
        for (_, _, slot) in marked {
            if self.word(slot).expire() {
                self.list_one_marked(wheel, slot);
            }
        }
    }

    /// Cancels, after the close, what waits and what would go on; lists what was marked since.
    pub(crate) fn cancel_rest<S: Storage<JobId>>(&mut self, wheel: &mut Wheel<JobId, S>) {
        for slot in self.free.all() {
            self.cancel_one(wheel, slot);
        }
    }

    fn cancel_one<S: Storage<JobId>>(&mut self, wheel: &mut Wheel<JobId, S>, slot: u32) {
        match self.word(slot).close() {
            Closing::Queued => self.list_one_marked(wheel, slot),
            Closing::Cancelled => self.reap_later(wheel, slot),
            Closing::WasCancelled => self.reap_closed(wheel, slot),
            Closing::Left => {}
        }
    }

    /// A job that is queued because it is to be run at the close.
    fn list_one_marked<S: Storage<JobId>>(&mut self, wheel: &mut Wheel<JobId, S>, slot: u32) {
        self.unarm(wheel, slot);
        self.counts.run_on_close += 1;
        self.list(slot);
    }

    /// Cancels what is due and was not taken, when nobody is left to run it. It is reaped when it
    /// is taken off the list.
    pub(crate) fn cancel_due(&mut self) {
        for slot in &self.due {
            self.slots.get(*slot).word.cancel(false);
        }
    }

    /// Reaps a job that was cancelled from outside and whose note has not come yet. One that runs,
    /// whose payload is out, is left to its completion.
    fn reap_closed<S: Storage<JobId>>(&mut self, wheel: &mut Wheel<JobId, S>, slot: u32) {
        let body = self.body(slot, |body| *body);
        if body.is_live && !body.is_listed && self.payload(slot, |payload| payload.is_some()) {
            self.reap_later(wheel, slot);
        }
    }

    /// After the close: how many jobs are handed over and not completed: those that will count as
    /// executed, and those that will count as cancelled.
    pub(crate) fn running(&mut self) -> (u64, u64) {
        let mut running = (0, 0);
        let handed = |(_, _, body): &(_, _, Body)| body.is_live && !body.is_listed;
        for (_, state, body) in self.jobs().filter(handed) {
            // A one-shot that runs cannot be cancelled any more, a parcel may have been; and a
            // periodic job is.
            let is_cancelled = state == JobState::Cancelled && !mutant!("parcel-cancelled-as-run");
            if body.mode == BatchMode::OneShot && !is_cancelled {
                running.0 += 1;
            } else {
                running.1 += 1;
            }
        }
        running
    }
}
