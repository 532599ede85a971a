//! Accepting and completing deliveries.

use clockjack_time::{Storage, Tick, TimerInstant, Wheel};

use super::JobTable;
use crate::{
    BatchMode, JobId, LogKind,
    jobs::{
        slots::{Condition, JobData},
        state::JobState,
    },
};

/// A delivery that was dropped.
pub(crate) struct ReturnedDelivery<P> {
    pub(crate) slot: u32,
    pub(crate) payload: P,
    /// When its run was due.
    pub(crate) due: Tick,
    pub(crate) runs: u32,
    pub(crate) was_accepted: bool,
    /// Whether the job is completed by this run.
    pub(crate) is_last: bool,
    /// When the delivery was dropped.
    pub(crate) at: TimerInstant,
}

impl<P> JobTable<P> {
    /// Completes the run of a delivery. Returns the payload if the caller must drop it, and when
    /// the job is due next, if it waits.
    pub(crate) fn complete_delivery<S: Storage<JobId>>(
        &mut self,
        wheel: &mut Wheel<JobId, S>,
        returned: ReturnedDelivery<P>,
    ) -> (Option<P>, Option<Tick>) {
        let ReturnedDelivery { slot, payload, due, runs, was_accepted, is_last, at } = returned;
        self.observe(at);
        if !was_accepted {
            self.counts.discarded += 1;
            if self.is_logging() {
                let data = self.data(slot, |data| JobData { due, ..*data });
                self.write_log(LogKind::Discard, &data, self.now, runs, 0);
            }
        }
        if is_last || self.data(slot, |data| data.mode == BatchMode::OneShot) {
            return (self.finish_job(wheel, slot, Some(payload)), None);
        }
        self.payload(slot, |place| *place = Some(payload));
        let to_drop = self.reschedule(wheel, slot, at);
        // If the job was removed, its slot is free or kept by handles, which only read the state.
        let waits = self.job_state(slot).load_relaxed().state() == JobState::Scheduled;
        let due = if waits { Some(self.data(slot, |data| data.due)) } else { None };
        (to_drop, due)
    }

    /// Adds to an accepted delivery the runs that have come due since it was sent.
    pub(crate) fn fold(&mut self, slot: u32, now: TimerInstant) -> u32 {
        self.observe(now);
        let resolution = self.resolution;
        let before = self.data(slot, |data| {
            let before = *data;
            let next = data.grid(resolution).later(data.due, data.phase_ns, data.pending_runs);
            (data.due, data.phase_ns) = next.unwrap_or((Tick::MAX, 0));
            data.pending_runs = 0;
            data.condition = Condition::None;
            data.is_burst_reported = false;
            before
        });
        if before.pending_runs > 0 && self.is_logging() {
            self.write_log(LogKind::Fold, &before, self.now, before.pending_runs, 0);
        }
        before.pending_runs
    }
}
