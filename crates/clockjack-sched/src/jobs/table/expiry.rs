//! Advancing time: timers expire, runs become due, and delays are detected.

use core::time::Duration;

use clockjack_time::{Storage, Tick, TickSpan, TimerInstant, TimerPriority, Wheel};

use super::{Delivery, Fire, JobTable, PayloadDrop};
use crate::{
    BatchMode, DiagnosticEvent, JobId, Warning,
    drift::TickCount,
    jobs::{
        slots::Condition,
        spec::tick_of,
        state::{CancelWon, JobState},
    },
};

/// How many expired timers are processed together, so that their cache misses overlap.
const EXPIRY_BATCH: usize = 32;

/// The payload of a periodic job while it is lent. It is put back also if the borrower panics.
struct LentPayload<'t, P> {
    table: &'t mut JobTable<P>,
    slot: u32,
    payload: Option<P>,
}

impl<P> Drop for LentPayload<'_, P> {
    fn drop(&mut self) {
        let payload = self.payload.take();
        self.table.payload(self.slot, |place| *place = payload);
    }
}

/// A timer that is armed again.
struct Rearm {
    due: Tick,
    class: TimerPriority,
}

impl<P> JobTable<P> {
    /// Advances time to `now` and hands over due runs in the order of deadline and registration.
    /// Does at most `budget` units of work. True if there is more to do.
    ///
    /// A periodic job is handed over again only after it is [completed](Self::completed).
    pub fn advance<S: Storage<JobId>>(
        &mut self,
        wheel: &mut Wheel<JobId, S>,
        now: TimerInstant,
        budget: usize,
        mut fire: impl FnMut(Fire<'_, P>),
    ) -> bool {
        let more = self.expire_due(wheel, now, budget);
        for _ in 0..budget {
            if self.n_due() == 0 {
                break;
            }
            self.deliver_next(wheel, now, &mut fire);
        }
        more || self.n_due() > 0
    }

    fn deliver_next<S: Storage<JobId>>(
        &mut self,
        wheel: &mut Wheel<JobId, S>,
        now: TimerInstant,
        fire: &mut impl FnMut(Fire<'_, P>),
    ) {
        use super::DueItem;
        let (slot, number, batch, due, late, payload) = match self.next_due(wheel, now, 0) {
            Some(DueItem::Run(run) | DueItem::Send(run, _)) => {
                (run.slot, run.number, run.batch, run.due, run.late, run.payload)
            }
            Some(DueItem::NotifyCancelled(payload) | DueItem::Drop(payload)) => {
                return drop(payload);
            }
            None => return,
        };
        let job = JobId { shard: self.shard, slot };
        if batch.mode == BatchMode::OneShot {
            let to_drop = self.finish_job(wheel, slot, None);
            debug_assert!(to_drop.is_none(), "the payload was moved out");
            let delivery = Delivery::Last(payload);
            return fire(Fire { job, number, batch, due, late, delivery });
        }
        let mut lent = LentPayload { table: self, slot, payload: Some(payload) };
        if let Some(payload) = &mut lent.payload {
            let delivery = Delivery::Again(payload);
            fire(Fire { job, number, batch, due, late, delivery });
        }
    }

    /// Advances time to `now` and adds due jobs to the due list. True if the budget was too small.
    pub(crate) fn expire_due<S: Storage<JobId>>(
        &mut self,
        wheel: &mut Wheel<JobId, S>,
        now: TimerInstant,
        budget: usize,
    ) -> bool {
        let to = tick_of(now, self.resolution);
        self.now = self.now.max(to);
        self.check_delay(wheel, to);
        if let Some(TickCount { ticks, over }) = self.rate.note(to) {
            self.publish(DiagnosticEvent::TickRate { ticks, over });
        }
        let mut left = budget;
        loop {
            let mut batch = [0; EXPIRY_BATCH];
            let mut n = 0;
            let mut advance = wheel.advance(to, left);
            advance.prefetch();
            while n < batch.len()
                && left > 0
                && let Some(expired) = advance.next()
            {
                batch[n] = expired.value.slot;
                self.slots.prefetch(batch[n]);
                n += 1;
                left -= 1;
            }
            let more = advance.more();
            let batch = &batch[..n];
            for slot in batch {
                if let Some(Rearm { due, class }) = self.expire(*slot, to) {
                    self.arm_again(wheel, *slot, due, class);
                }
            }
            if n < EXPIRY_BATCH || left == 0 {
                return more;
            }
        }
    }

    /// Detects that time was not advanced for long, or that the clock has jumped.
    fn check_delay<S: Storage<JobId>>(&mut self, wheel: &Wheel<JobId, S>, to: Tick) {
        let limit = u64::from(self.catch_up_limit).min(self.jump_ticks);
        let mut behind = to.saturating_since(wheel.elapsed()).get();
        if behind > limit {
            // The wheel need not be advanced as long as nothing is due.
            behind = wheel.next_deadline().map_or(0, |next| to.saturating_since(next).get());
        }
        if behind > limit {
            self.report_long_delay(behind, to);
        } else {
            self.is_lateness_reported = false;
            self.is_jump_reported = false;
        }
    }

    #[cold]
    fn report_long_delay(&mut self, behind: u64, to: Tick) {
        let is_late = behind > u64::from(self.catch_up_limit);
        if is_late && !self.is_lateness_reported && !self.driver_reports_ticks {
            self.counts.drift_compensations =
                self.counts.drift_compensations.saturating_add(behind);
            let (shard, limit) = (self.shard, self.catch_up_limit);
            self.warn(Warning::DriverCatchUpExceeded { shard, ticks: behind, limit });
        }
        self.is_lateness_reported = is_late;
        if behind > self.jump_ticks {
            self.jump_to = Some(to);
            if !self.is_jump_reported {
                let by = self.resolution.duration(TickSpan::new(behind));
                self.warn(Warning::ClockJump { by });
            }
            self.is_jump_reported = true;
        }
    }

    /// Handles an expired timer. Returns how to arm it again, if it must be.
    fn expire(&mut self, slot: u32, to: Tick) -> Option<Rearm> {
        let (mode, is_internal) = self.data(slot, |data| {
            data.timer = None;
            (data.mode, data.is_internal())
        });
        if is_internal {
            self.return_internal_place();
        }
        if mode != BatchMode::FixedRate {
            if self.job_state(slot).expire() {
                self.push_due(slot);
                if mode == BatchMode::FixedDelay {
                    self.data(slot, |data| data.condition = Condition::TimerReserved);
                    self.reserved_timers += 1;
                }
            }
            return None;
        }
        if self.job_state(slot).load_relaxed().state() == JobState::Cancelled {
            return None;
        }
        self.expire_rate(slot, to)
    }

    /// Adds the pending runs of a job at a fixed rate up to the current time.
    fn expire_rate(&mut self, slot: u32, to: Tick) -> Option<Rearm> {
        let (jump_to, resolution) = (self.jump_to, self.resolution);
        let state = self.job_state(slot).load_relaxed().state();
        let is_running = state.is_handed_over();
        let data = self.data(slot, |data| {
            let grid = data.grid(resolution);
            let next = grid.later(data.due, data.phase_ns, data.pending_runs);
            let (next, phase_ns) = next.unwrap_or((Tick::MAX, 0));
            let behind = grid.periods_until(next, phase_ns, to);
            data.pending_runs = data.pending_runs.saturating_add(behind.saturating_add(1));
            if Some(next) <= jump_to {
                data.condition = Condition::ClockJump;
            }
            *data
        });
        let backlog = data.backlog(is_running);
        let job = self.number_of(&data);
        let threshold = data.burst_threshold;
        if backlog > threshold && !data.is_burst_reported {
            self.data(slot, |data| data.is_burst_reported = true);
            self.warn(Warning::BurstFire { job, missed: backlog, threshold });
        }
        let limit = data.backlog_limit;
        if backlog > limit {
            if let Some(won) = self.job_state(slot).cancel(false) {
                self.warn(Warning::BacklogExceeded { job, backlog, limit });
                if won != CancelWon::NotWaiting {
                    // It has no timer any more, so the wheel is not needed.
                    let payload = self.reap_disarmed(slot, PayloadDrop::Later);
                    debug_assert!(payload.is_none(), "the payload is in the due list");
                }
            }
            return None;
        }
        if self.job_state(slot).expire() {
            self.push_due(slot);
        }
        // `None` after the last tick: there is no next run, and the job waits forever.
        let (due, _) = data.grid(resolution).later(data.due, data.phase_ns, data.pending_runs)?;
        Some(Rearm { due, class: data.class })
    }

    fn arm_again<S: Storage<JobId>>(
        &mut self,
        wheel: &mut Wheel<JobId, S>,
        slot: u32,
        due: Tick,
        class: TimerPriority,
    ) {
        let job = JobId { shard: self.shard, slot };
        match self.insert(wheel, due, class, job) {
            Some(timer) => self.data(slot, |data| data.timer = Some(timer)),
            None => self.evict(wheel, slot, class),
        }
    }

    /// Records the lateness of a run that is handed over in the histogram and the drift monitor.
    #[inline]
    pub(super) fn record_lateness(&mut self, late: Duration, due: Tick, scheduled_at: Tick) {
        // A job that was due when it was scheduled cannot be on time.
        if scheduled_at >= due {
            return;
        }
        self.counts.lateness.record(nanos_of(late));
        if let Some(drift) = self.drift.note(late, self.jitter) {
            self.report_drift(drift.observed, drift.budget, drift.fires);
        }
    }

    #[cold]
    fn report_drift(&mut self, observed: Duration, budget: Duration, fires: u32) {
        let shard = self.shard;
        self.counts.drift.record(nanos_of(observed));
        // On a deterministic clock each drift is an error of a test or of the host.
        let unreported = match self.drift.is_deterministic() {
            true => Some(0),
            false => {
                let now = self.resolution.duration(TickSpan::new(self.now.get()));
                self.shared.drift_to_report(nanos_of(now))
            }
        };
        if let Some(unreported) = unreported {
            self.warn(Warning::DriftExceeded { shard, observed, budget, fires, unreported });
        }
    }
}

/// The nanoseconds of a duration; the largest number for more than 584 years.
#[inline]
fn nanos_of(time: Duration) -> u64 {
    let seconds = time.as_secs().checked_mul(1_000_000_000);
    let nanos = seconds.and_then(|nanos| nanos.checked_add(u64::from(time.subsec_nanos())));
    nanos.unwrap_or(u64::MAX)
}
