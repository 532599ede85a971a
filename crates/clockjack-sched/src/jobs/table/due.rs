//! The list of due jobs, in the order of their deadlines.

use alloc::collections::VecDeque;

use clockjack_time::{Storage, Tick, TimerInstant, Wheel};

use super::{DueItem, HandOver, JobTable, Run};
use crate::{
    BatchMode, DiagnosticEvent, EventKinds, ExecutionBatch, JobId, JobNumber, LogKind,
    jobs::{
        slots::{Condition, JobData},
        spec::{late_by, tick_of},
        state::Taken,
    },
};

/// The due list. It contains a job at most once, so it needs no bound of its own. It is not linked
/// through the slots, because following links through cold slots costs a cache miss each.
pub(super) type DueList = VecDeque<u32>;

impl<P> JobTable<P> {
    /// Appends a job to the list.
    #[inline]
    pub(super) fn push_due(&mut self, slot: u32) {
        self.data(slot, |data| {
            debug_assert!(!data.is_listed, "a job is in the list once");
            data.is_listed = true;
        });
        self.due.push_back(slot);
    }

    #[inline]
    fn pop_due(&mut self) -> Option<u32> {
        let slot = self.due.pop_front()?;
        self.data(slot, |data| data.is_listed = false);
        Some(slot)
    }

    /// How many jobs wait for a poller to hand them over, notify them or drop them.
    pub(crate) fn n_due(&self) -> usize {
        self.due.len()
    }

    /// Whether the first job of the list is live and was due only after `at`.
    pub(crate) fn is_due_after(&mut self, at: Tick) -> bool {
        let first = self.due.front().copied();
        first.is_some_and(|slot| self.data(slot, |data| data.due > at && data.is_live))
    }

    /// Takes the next item from the list: a run, or a cancelled job to be notified or dropped.
    pub(crate) fn next_due<S: Storage<JobId>>(
        &mut self,
        wheel: &mut Wheel<JobId, S>,
        now: TimerInstant,
        executor: u16,
    ) -> Option<DueItem<P>> {
        loop {
            let slot = self.pop_due()?;
            if let Some(taken) = self.job_state(slot).take(self.may_send) {
                let handed = self.hand_over(slot, now, executor);
                let payload = self.payload(slot, Option::take);
                let Some(payload) = payload else {
                    unreachable!("a job that waits has its payload")
                };
                let HandOver { number, batch, due, late } = handed;
                let run = Run { slot, number, batch, due, late, payload };
                return Some(match taken {
                    Taken::Run => DueItem::Run(run),
                    Taken::Send => DueItem::Send(run, self.data(slot, |data| data.folds)),
                });
            }
            // It was cancelled, and is in the list for one of three reasons: it was due, it must be
            // notified, or its canceller could not drop it.
            let (is_live, notifies) = self.data(slot, |data| (data.is_live, data.notifies_cancel));
            if is_live {
                if let Some(payload) = self.reap(wheel, slot) {
                    return Some(DueItem::Drop(payload));
                }
            } else if let Some(payload) = self.payload(slot, Option::take) {
                self.release_handle(slot);
                return Some(if notifies {
                    DueItem::NotifyCancelled(payload)
                } else {
                    DueItem::Drop(payload)
                });
            }
        }
    }

    /// Counts and logs a run that is handed over, and determines its batch.
    #[inline]
    pub(super) fn hand_over(&mut self, slot: u32, now: TimerInstant, executor: u16) -> HandOver {
        // Another thread may have read the clock later than this one but acted earlier.
        let at = self.now.max(tick_of(now, self.resolution));
        self.now = at;
        let resolution = self.resolution;
        let (number, due, scheduled_at, batch) = self.data(slot, |data| {
            let due = data.due;
            let grid = data.grid(resolution);
            let batch = match data.mode {
                BatchMode::FixedRate => {
                    let runs = if data.folds || data.condition == Condition::ClockJump {
                        data.pending_runs.max(1)
                    } else {
                        1
                    };
                    data.pending_runs -= runs.min(data.pending_runs);
                    let next = grid.later(data.due, data.phase_ns, runs);
                    (data.due, data.phase_ns) = next.unwrap_or((Tick::MAX, 0));
                    data.condition = Condition::None;
                    data.is_burst_reported &= data.pending_runs > 0;
                    ExecutionBatch::folded(runs - 1, data.mode)
                }
                mode => ExecutionBatch::single(mode),
            };
            data.last_fire = at;
            (data.number, due, data.scheduled_at, batch)
        });
        self.counts.fired += 1;
        let late = late_by(now, due, self.resolution);
        // Here and not at the expiry: a job that is behind expires once and runs often.
        self.record_lateness(late, due, scheduled_at);
        let number = JobNumber { shard: self.shard, number };
        if self.is_logging() {
            let data = self.data(slot, |data| JobData { due, ..*data });
            self.write_log(LogKind::Fire, &data, at, batch.runs.get(), executor);
        }
        self.counts.last_batch = Some((number, batch));
        if self.shared.recorder.is_tracing() {
            self.shared.recorder.fired(number, batch);
        }
        if self.shared.bus.wants(EventKinds::FIRE) {
            self.shared.bus.publish(DiagnosticEvent::Fired {
                job: number,
                due,
                at,
                batch,
                executor,
            });
        }
        HandOver { number, batch, due, late }
    }

    /// The latest tick that the table has seen.
    pub(crate) fn now(&self) -> Tick {
        self.now
    }
}
