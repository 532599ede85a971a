//! The list of jobs whose time has come, in the order of their deadlines.

use alloc::collections::VecDeque;

use super::{Handed, JobTable, Next, Run};
use crate::{
    BatchMode, DiagnosticEvent, EventKinds, ExecutionBatch, JobId, LogKind,
    job::{late_by, tick_of},
    slots::Mark,
    word::Taken,
};
use clockjack_time::{Storage, Tick, TimerInstant, Wheel};

/// The list. A job is in it once at the most, so it needs no bound of its own. It does not go
/// through the slots: those that were not looked at for long would be waited for one by one.
pub(super) type DueList = VecDeque<u32>;

impl<P> JobTable<P> {
    /// Puts a job at the end of the list.
    #[inline]
    pub(super) fn list(&mut self, slot: u32) {
        self.body(slot, |body| {
            debug_assert!(!body.is_listed, "a job is in the list once");
            body.is_listed = true;
        });
        self.due.push_back(slot);
    }

    #[inline]
    fn unlist_first(&mut self) -> Option<u32> {
        let slot = self.due.pop_front()?;
        self.body(slot, |body| body.is_listed = false);
        Some(slot)
    }

    /// How many jobs wait to be handed over, told or dropped: what only a turn does.
    pub(crate) fn n_due(&self) -> usize {
        self.due.len()
    }

    /// Whether the first job of the list was due only after `at`, and is not there to be told only.
    pub(crate) fn is_due_after(&mut self, at: Tick) -> bool {
        let first = self.due.front().copied();
        first.is_some_and(|slot| self.body(slot, |body| body.due > at && body.is_live))
    }

    /// The first job of the list that is not cancelled, taken; or one that was and wants to be
    /// told.
    pub(crate) fn next_due<S: Storage<JobId>>(
        &mut self,
        wheel: &mut Wheel<JobId, S>,
        now: TimerInstant,
        executor: u16,
    ) -> Option<Next<P>> {
        loop {
            let slot = self.unlist_first()?;
            if let Some(taken) = self.word(slot).take(self.is_closed) {
                let handed = self.hand_over(slot, now, executor);
                let payload = self.payload(slot, Option::take);
                let Some(payload) = payload else {
                    unreachable!("a job that waits has its payload")
                };
                let Handed { number, batch, due, late } = handed;
                let run = Run { slot, number, batch, due, late, payload };
                return Some(match taken {
                    Taken::Run => Next::Run(run),
                    Taken::Send => Next::Send(run, self.body(slot, |body| body.folds)),
                });
            }
            // Cancelled, and listed for one of three reasons: it was due, it wants to be told, or
            // who cancelled it could not drop it.
            let (is_live, is_told) = self.body(slot, |body| (body.is_live, body.tells_cancel));
            if is_live {
                if let Some(payload) = self.reap(wheel, slot) {
                    return Some(Next::Drop(payload));
                }
            } else if let Some(payload) = self.payload(slot, Option::take) {
                self.unpin(slot);
                return Some(if is_told { Next::Tell(payload) } else { Next::Drop(payload) });
            }
        }
    }

    /// Counts and logs a hand-over, and says what it stands for.
    pub(super) fn hand_over(&mut self, slot: u32, now: TimerInstant, executor: u16) -> Handed {
        // Another thread may have read the clock later than this one, and been first.
        let at = self.now.max(tick_of(now, self.resolution));
        self.now = at;
        let resolution = self.resolution;
        let (body, batch) = self.body(slot, |body| {
            let mut handed = *body;
            let grid = body.grid(resolution);
            let batch = match body.mode {
                BatchMode::FixedRate => {
                    let runs =
                        if body.folds || body.mark == Mark::Leap { body.owed.max(1) } else { 1 };
                    body.owed -= runs.min(body.owed);
                    let next = grid.later(body.due, body.phase_ns, runs);
                    (body.due, body.phase_ns) = next.unwrap_or((Tick::MAX, 0));
                    body.mark = Mark::None;
                    body.is_burst_told &= body.owed > 0;
                    ExecutionBatch::folded(runs - 1, body.mode)
                }
                mode => ExecutionBatch::single(mode),
            };
            body.last_fire = at;
            handed.owed = body.owed;
            (handed, batch)
        });
        self.counts.fired += 1;
        let late = late_by(now, body.due, self.resolution);
        let number = self.number_of(&body);
        if self.is_logging() {
            self.write_log(LogKind::Fire, &body, at, batch.runs.get(), executor);
        }
        self.counts.last_batch = Some((number, batch));
        if self.shared.hub.wants(EventKinds::FIRE) {
            let due = body.due;
            self.shared.hub.publish(DiagnosticEvent::Fired {
                job: number,
                due,
                at,
                batch,
                executor,
            });
        }
        Handed { number, batch, due: body.due, late }
    }

    /// The tick that time stands at.
    pub(crate) fn now(&self) -> Tick {
        self.now
    }
}
