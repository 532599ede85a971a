//! Applying remote operations (scheduled jobs, cancels, slots to free), and the close.

use alloc::vec::Vec;

use clockjack_time::{Storage, Tick, Wheel};

use super::JobTable;
use crate::{
    BatchMode, JobId,
    jobs::{
        slots::{Condition, JobData},
        state::{CloseAction, JobState},
    },
};

impl<P> JobTable<P> {
    /// Applies the remote operation of a slot that was popped from the stack.
    pub(crate) fn apply<S: Storage<JobId>>(&mut self, wheel: &mut Wheel<JobId, S>, slot: u32) {
        let seen = if self.is_closed {
            self.job_state(slot).clear_remote_op_closed()
        } else {
            self.job_state(slot).clear_remote_op()
        };
        if !seen.has_handles() {
            return self.free_slot(slot);
        }
        match seen.state() {
            JobState::Scheduled if !self.is_closed => self.insert_remote(wheel, slot),
            JobState::Cancelled => {
                let data = self.data(slot, |data| *data);
                if data.number == 0 {
                    // It was cancelled before its schedule was applied.
                    self.count_accepted(slot, data.scheduled_at);
                    self.reap_later(wheel, slot);
                } else if data.is_live && !data.is_listed {
                    self.reap_later(wheel, slot);
                }
            }
            _ => {}
        }
    }

    /// Inserts a remotely scheduled job.
    fn insert_remote<S: Storage<JobId>>(&mut self, wheel: &mut Wheel<JobId, S>, slot: u32) {
        let data = self.data(slot, |data| *data);
        self.count_accepted(slot, data.scheduled_at);
        let job = JobId { shard: self.shard, slot };
        match self.insert(wheel, data.due, data.class, job) {
            Some(timer) => self.data(slot, |data| data.timer = Some(timer)),
            None => self.evict(wheel, slot, data.class),
        }
    }

    /// From here on no delivery is sent: a shutdown puts nothing into mailboxes.
    pub(crate) fn stop_sending(&mut self) {
        self.may_send = false;
    }

    /// From here on no job is accepted.
    pub(crate) fn close(&mut self, due_by: Option<Tick>) {
        self.is_closed = true;
        self.may_send = false;
        self.close_due_by = due_by;
    }

    /// Adds waiting one-shots that are marked to be run at the close to the due list, in the order
    /// of their deadlines.
    pub(crate) fn list_marked<S: Storage<JobId>>(&mut self, wheel: &mut Wheel<JobId, S>) {
        let mut marked = Vec::new();
        for slot in self.free.all() {
            let seen = self.job_state(slot).load();
            let is_marked = seen.state() == JobState::Scheduled && seen.runs_on_close();
            if is_marked && !seen.has_remote_op() {
                marked.push(self.data(slot, |data| (data.due, data.number, slot)));
            }
        }
        marked.sort_unstable();
        for (_, _, slot) in marked {
            if self.job_state(slot).expire() {
                self.list_one_marked(wheel, slot);
            }
        }
    }

    /// After the close: cancels waiting and periodic jobs. One-shots that were marked since are
    /// added to the due list instead.
    pub(crate) fn cancel_rest<S: Storage<JobId>>(&mut self, wheel: &mut Wheel<JobId, S>) {
        for slot in self.free.all() {
            self.cancel_one(wheel, slot);
        }
    }

    fn cancel_one<S: Storage<JobId>>(&mut self, wheel: &mut Wheel<JobId, S>, slot: u32) {
        let seen = self.job_state(slot).load();
        // The data of a slot without an accepted job may belong to a remote scheduler.
        let is_accepted = seen.state() != JobState::Pending && !seen.has_remote_op();
        let owed = if is_accepted { self.owed_runs(slot) } else { 0 };
        match self.job_state(slot).close() {
            CloseAction::Queued => self.list_one_marked(wheel, slot),
            CloseAction::Cancelled => {
                self.counts.runs_left += owed;
                self.reap_later(wheel, slot);
            }
            CloseAction::CancelledRun => self.counts.runs_left += owed,
            CloseAction::WasCancelled => self.reap_closed(wheel, slot),
            CloseAction::Left => {}
        }
    }

    /// Adds a job that runs at the close to the due list.
    fn list_one_marked<S: Storage<JobId>>(&mut self, wheel: &mut Wheel<JobId, S>, slot: u32) {
        self.disarm(wheel, slot);
        self.counts.run_on_close += 1;
        self.data(slot, |data| data.condition = Condition::Marked);
        self.push_due(slot);
    }

    /// Cancels due jobs that no poller will run any more, and counts their runs. They are reaped
    /// when they are taken from the due list.
    pub(crate) fn cancel_due(&mut self) {
        for at in 0..self.due.len() {
            let slot = self.due[at];
            if self.job_state(slot).cancel(false).is_some() {
                let was_marked = self.data(slot, |data| data.condition == Condition::Marked);
                self.counts.run_on_close -= u64::from(was_marked);
                self.counts.runs_left += 1;
            }
        }
    }

    /// Cancels a periodic job whose handler has returned after the close, unless a canceller was
    /// faster.
    #[cold]
    pub(super) fn cancel_closed(&mut self, slot: u32) {
        let owed = self.owed_runs(slot);
        if self.job_state(slot).cancel(false).is_some() {
            self.counts.runs_left += owed;
        }
    }

    /// How many runs of a job are lost if the close cancels it now: those that were due when the
    /// close began. One-shots in the due list still run, and deliveries are not sent by a close.
    fn owed_runs(&mut self, slot: u32) -> u64 {
        let Some(to) = self.close_due_by else { return 0 };
        let resolution = self.resolution;
        let seen = self.job_state(slot).load_relaxed();
        let data = self.data(slot, |data| *data);
        match (data.mode, seen.state()) {
            _ if !data.is_live || data.due > to || seen.is_delivery() => 0,
            (BatchMode::FixedRate, _) => {
                1 + u64::from(data.grid(resolution).periods_until(data.due, data.phase_ns, to))
            }
            (BatchMode::OneShot, JobState::Scheduled)
            | (BatchMode::FixedDelay, JobState::Scheduled | JobState::Queued) => 1,
            _ => 0,
        }
    }

    /// Reaps a job that a canceller has cancelled without having pushed its remote operation yet.
    /// If the job runs, its payload is out of the slot and its completion reaps it.
    fn reap_closed<S: Storage<JobId>>(&mut self, wheel: &mut Wheel<JobId, S>, slot: u32) {
        let data = self.data(slot, |data| *data);
        if data.is_live && !data.is_listed && self.payload(slot, |payload| payload.is_some()) {
            self.reap_later(wheel, slot);
        }
    }

    /// After the close: how many handed-over runs are not completed, as those that will count as
    /// executed and those that will count as cancelled.
    pub(crate) fn running(&mut self) -> (u64, u64) {
        let mut running = (0, 0);
        let handed = |(_, _, data): &(_, _, JobData)| data.is_live && !data.is_listed;
        for (_, state, data) in self.jobs().filter(handed) {
            // A running one-shot cannot be cancelled any more; a delivery may have been cancelled;
            // a periodic job has been.
            let is_cancelled = state == JobState::Cancelled;
            if data.mode == BatchMode::OneShot && !is_cancelled {
                running.0 += 1;
            } else {
                running.1 += 1;
            }
        }
        running
    }
}
