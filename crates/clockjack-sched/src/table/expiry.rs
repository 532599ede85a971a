//! Time moves: timers expire, runs come due, and what is late is noticed.

use core::time::Duration;

use clockjack_sync::mutant;
use clockjack_time::{Class, Storage, Tick, TickSpan, TimerInstant, Wheel};

use super::{Delivery, Drops, Fire, JobTable};
use crate::{
    BatchMode, DiagnosticEvent, JobId, Warning,
    drift::TickCount,
    job::{late_by, tick_of},
    slots::Mark,
    word::{JobState, Won},
};

/// How many expired timers are looked at together: what they need comes from memory at once.
const EXPIRY_BATCH: usize = 32;

/// What a periodic job delivers, while it is lent: it comes back also if who has it panics.
struct Lent<'t, P> {
    table: &'t mut JobTable<P>,
    slot: u32,
    payload: Option<P>,
}

impl<P> Drop for Lent<'_, P> {
    fn drop(&mut self) {
        let payload = self.payload.take();
        self.table.payload(self.slot, |place| *place = payload);
    }
}

/// A timer that goes back into the wheel.
struct Rearm {
    due: Tick,
    class: Class,
}

impl<P> JobTable<P> {
    /// Moves time to `now` and hands over what has come due, in order of deadline and registration:
    /// at most `budget` units of work. True if that ended it.
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
        use super::Next;
        let (slot, number, batch, due, late, payload) = match self.next_due(wheel, now, 0) {
            Some(Next::Run(run) | Next::Send(run, _)) => {
                (run.slot, run.number, run.batch, run.due, run.late, run.payload)
            }
            Some(Next::Tell(payload) | Next::Drop(payload)) => return drop(payload),
            None => return,
        };
        let job = JobId { shard: self.shard, slot };
        if batch.mode == BatchMode::OneShot {
            let ended = self.end(wheel, slot, None);
            debug_assert!(ended.is_none(), "what it delivers was moved out");
            let delivery = Delivery::Last(payload);
            return fire(Fire { job, number, batch, due, late, delivery });
        }
        let mut lent = Lent { table: self, slot, payload: Some(payload) };
        if let Some(payload) = &mut lent.payload {
            let delivery = Delivery::Again(payload);
            fire(Fire { job, number, batch, due, late, delivery });
        }
    }

    /// Moves time to `now` and lists what has come due. True if the budget ended it.
    pub(crate) fn expire_due<S: Storage<JobId>>(
        &mut self,
        wheel: &mut Wheel<JobId, S>,
        now: TimerInstant,
        budget: usize,
    ) -> bool {
        let to = tick_of(now, self.resolution);
        self.now = self.now.max(to);
        self.note_delay(wheel, to);
        if let Some(TickCount { ticks, over }) = self.rate.note(to) {
            self.publish(DiagnosticEvent::TickRate { ticks, over });
        }
        let mut left = budget;
        loop {
            let mut batch = [0; EXPIRY_BATCH];
            let mut n = 0;
            let mut advance = wheel.advance(to, left);
            while n < batch.len()
                && left > 0
                && let Some(expired) = advance.next()
            {
                batch[n] = expired.value.slot;
                n += 1;
                left -= 1;
            }
            let more = advance.more();
            let batch = &batch[..n];
            for slot in batch {
                self.warm(*slot);
            }
            for slot in batch {
                if let Some(Rearm { due, class }) = self.expire(*slot, now, to) {
                    self.arm_again(wheel, *slot, due, class);
                }
            }
            if n < EXPIRY_BATCH || left == 0 {
                return more;
            }
        }
    }

    /// Notices that nobody has moved time for long, or that the clock has jumped.
    fn note_delay<S: Storage<JobId>>(&mut self, wheel: &Wheel<JobId, S>, to: Tick) {
        let limit = u64::from(self.catch_up_limit).min(self.leap_ticks);
        let mut behind = to.saturating_since(wheel.elapsed()).get();
        if behind > limit {
            // Time may stand still for as long as nothing is due.
            behind = wheel.next_deadline().map_or(0, |next| to.saturating_since(next).get());
        }
        if behind > limit {
            self.note_long_delay(behind, to);
        } else {
            self.is_late_told = false;
            self.is_leap_told = false;
        }
    }

    #[cold]
    fn note_long_delay(&mut self, behind: u64, to: Tick) {
        let is_late = behind > u64::from(self.catch_up_limit);
        if is_late && !self.is_late_told && !self.is_told_of_ticks {
            self.counts.drift_compensations =
                self.counts.drift_compensations.saturating_add(behind);
            let (shard, limit) = (self.shard, self.catch_up_limit);
            self.warn(Warning::DriverCatchUpExceeded { shard, ticks: behind, limit });
        }
        self.is_late_told = is_late;
        if behind > self.leap_ticks {
            self.leap_to = Some(to);
            if !self.is_leap_told {
                let by = self.resolution.duration(TickSpan::new(behind));
                self.warn(Warning::ClockJump { by });
            }
            self.is_leap_told = true;
        }
    }

    /// A timer has expired. What it says if it is to be armed again.
    fn expire(&mut self, slot: u32, now: TimerInstant, to: Tick) -> Option<Rearm> {
        let (mode, due, scheduled_at) = self.body(slot, |body| {
            body.timer = None;
            (body.mode, body.due, body.scheduled_at)
        });
        if mode != BatchMode::FixedRate {
            if self.word(slot).expire() {
                self.note_lateness(now, due, scheduled_at);
                self.list(slot);
                if mode == BatchMode::FixedDelay {
                    self.body(slot, |body| body.mark = Mark::Unseated);
                    self.unseated += 1;
                }
            }
            return None;
        }
        if self.word(slot).peek().state() == JobState::Cancelled {
            return None;
        }
        self.expire_rate(slot, now, to)
    }

    /// Adds the runs of a job at a fixed rate that time has passed.
    fn expire_rate(&mut self, slot: u32, now: TimerInstant, to: Tick) -> Option<Rearm> {
        let (leap_to, resolution) = (self.leap_to, self.resolution);
        let state = self.word(slot).peek().state();
        let is_running =
            state.is_handed_over() && !(state == JobState::Sent && mutant!("parcel-sent-as-due"));
        let (before, body) = self.body(slot, |body| {
            let before = *body;
            let grid = body.grid(resolution);
            let next = grid.later(body.due, body.phase_ns, body.owed);
            let (next, phase_ns) = next.unwrap_or((Tick::MAX, 0));
            let behind = grid.periods_until(next, phase_ns, to);
            let again = u32::from(behind > 0 && mutant!("job-owed-twice"));
            body.owed = body.owed.saturating_add(behind.saturating_add(1 + again));
            if Some(next) <= leap_to {
                body.mark = Mark::Leap;
            }
            (before, *body)
        });
        if before.owed == 0 {
            self.note_lateness(now, body.due, body.scheduled_at);
        }
        // The run that is about to be handed over is not missed.
        let backlog = if is_running { body.owed } else { body.owed.saturating_sub(1) };
        let job = self.number_of(&body);
        let threshold = body.burst_threshold;
        if backlog > threshold && !body.is_burst_told {
            self.body(slot, |body| body.is_burst_told = true);
            self.warn(Warning::BurstFire { job, missed: backlog, threshold });
        }
        let limit = body.backlog_limit;
        if backlog > limit {
            if let Some(won) = self.word(slot).cancel(false) {
                self.warn(Warning::BacklogExceeded { job, backlog, limit });
                if won != Won::HandedOver {
                    // It has no timer any more, so no wheel is needed.
                    let payload = self.reap_unarmed(slot, Drops::Later);
                    debug_assert!(payload.is_none(), "it is on the list");
                }
            }
            return None;
        }
        if self.word(slot).expire() {
            self.list(slot);
        }
        // None at the end of the count: then there is no next run, and the job waits for ever.
        let (due, _) = body.grid(resolution).later(body.due, body.phase_ns, body.owed)?;
        Some(Rearm { due, class: body.class })
    }

    fn arm_again<S: Storage<JobId>>(
        &mut self,
        wheel: &mut Wheel<JobId, S>,
        slot: u32,
        due: Tick,
        class: Class,
    ) {
        let job = JobId { shard: self.shard, slot };
        match self.insert(wheel, due, class, job) {
            Some(timer) => self.body(slot, |body| body.timer = Some(timer)),
            None => self.give_up(wheel, slot, class),
        }
    }

    /// How late a run has come due, for the histogram and the drift monitor.
    #[inline]
    fn note_lateness(&mut self, now: TimerInstant, due: Tick, scheduled_at: Tick) {
        // What was due when it was scheduled cannot be on time.
        if scheduled_at >= due {
            return;
        }
        let late = late_by(now, due, self.resolution);
        let nanos = u64::try_from(late.as_nanos()).unwrap_or(u64::MAX);
        self.counts.lateness.record(nanos);
        if let Some(drift) = self.drift.note(late, self.jitter) {
            self.note_drift(drift.observed, drift.budget, drift.fires);
        }
    }

    #[cold]
    fn note_drift(&mut self, observed: Duration, budget: Duration, fires: u32) {
        let shard = self.shard;
        self.counts.drift.record(u64::try_from(observed.as_nanos()).unwrap_or(u64::MAX));
        self.warn(Warning::DriftExceeded { shard, observed, budget, fires });
    }
}
