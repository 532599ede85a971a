//! Parcels that come back, or are opened.

use clockjack_sync::mutant;
use clockjack_time::{Storage, Tick, TimerInstant, Wheel};

use super::JobTable;
use crate::{
    BatchMode, JobId, LogKind,
    slots::{Body, Mark},
    word::JobState,
};

/// A parcel that has come back.
pub(crate) struct Returned<P> {
    pub(crate) slot: u32,
    pub(crate) payload: P,
    /// When its run was due.
    pub(crate) due: Tick,
    pub(crate) runs: u32,
    pub(crate) was_opened: bool,
    /// Whether no other is to be sent.
    pub(crate) is_last: bool,
    /// When it came back.
    pub(crate) at: TimerInstant,
}

impl<P> JobTable<P> {
    /// The run of a parcel is complete. Gives what is to be dropped, and when the job is due next,
    /// if it waits.
    pub(crate) fn receive<S: Storage<JobId>>(
        &mut self,
        wheel: &mut Wheel<JobId, S>,
        returned: Returned<P>,
    ) -> (Option<P>, Option<Tick>) {
        let Returned { slot, payload, due, runs, was_opened, is_last, at } = returned;
        self.observe(at);
        if !was_opened {
            self.counts.discarded += 1;
            if self.is_logging() {
                let body = self.body(slot, |body| Body { due, ..*body });
                self.write_log(LogKind::Discard, &body, self.now, runs, 0);
            }
        }
        if is_last || self.body(slot, |body| body.mode == BatchMode::OneShot) {
            return (self.end(wheel, slot, Some(payload)), None);
        }
        self.payload(slot, |place| *place = Some(payload));
        let ended = self.go_on(wheel, slot, at);
        // If it has gone, its slot is free or somebody's who looks at the word only.
        let waits = self.word(slot).peek().state() == JobState::Scheduled;
        let due = if waits { Some(self.body(slot, |body| body.due)) } else { None };
        (ended, due)
    }

    /// A parcel was opened: the runs that have come due since it was sent are its own too.
    pub(crate) fn fold(&mut self, slot: u32, now: TimerInstant) -> u32 {
        self.observe(now);
        let resolution = self.resolution;
        let before = self.body(slot, |body| {
            let before = *body;
            let next = body.grid(resolution).later(body.due, body.phase_ns, body.owed);
            (body.due, body.phase_ns) = next.unwrap_or((Tick::MAX, 0));
            if !mutant!("parcel-folds-twice") {
                body.owed = 0;
            }
            body.mark = Mark::None;
            body.is_burst_told = false;
            before
        });
        if before.owed > 0 && self.is_logging() {
            self.write_log(LogKind::Fold, &before, self.now, before.owed, 0);
        }
        before.owed
    }
}
