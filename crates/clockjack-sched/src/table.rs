//! The jobs of one shard: what becomes of them as time is handed in.
//!
//! Nothing here reads a clock, waits or calls what is the user's. A host schedules and cancels,
//! hands in `now`, and is handed what is due; when the handler has returned, it says so. Everything
//! takes `&mut self`, which on several threads only the holder of a shard's guard has; what other
//! threads may do without it goes by the words of the jobs (see `shard.md`).
//!
//! # Runs that are pending_runs
//!
//! A job at a fixed rate has one timer, at its next due time, and counts the runs that are due and
//! not handed over. When its timer expires, all runs that time has passed are added at once, and
//! the timer goes to the first one that lies ahead; the grid is that of the first run, so nothing
//! adds up. At most one run is handed over at a time: the next follows when it is completed.

mod access;
mod delivery;
mod due;
mod expiry;
mod inspect;
mod remote_ops;
mod shared;

use core::{fmt, time::Duration};

use clockjack_sync::{Counted, mutant, prim};
use clockjack_time::{
    Class, ClockKind, Resolution, Storage, Tick, TickSpan, TimerId, TimerInstant, Wheel,
};

use self::due::DueList;
pub(crate) use self::{
    delivery::ReturnedDelivery,
    inspect::{Counts, TimeHistogram},
    shared::TableShared,
};
use crate::{
    BatchMode, CatchUp, DiagnosticEvent, EventKinds, ExecutionBatch, HandlerError, JobId,
    JobNumber, JobSpec, LogKind, LogRecord, ScheduleError, ScheduleErrorKind, SchedulerConfig,
    SchedulerLog, Warning,
    drift::{DriftMonitor, TickRate},
    job::{Plan, edge_after},
    quota::PermitCache,
    slots::{Condition, FreeSlots, JobData, JobSlots},
    state::{CancelWon, JobState},
};

/// The jobs of one shard, over a wheel that the caller hands in. `P` is what is delivered; it is
/// never looked into.
///
/// # Examples
///
/// A loop without threads, in virtual time:
///
/// ```
/// use clockjack_sched::{Delivery, JobSpec, JobTable, SchedulerConfig};
/// use clockjack_time::{
///     ClockKind, GrowingWheel, ManualClock, MonotonicClock, Resolution, WheelConfig,
/// };
/// use core::time::Duration;
///
/// let clock = ManualClock::new(Resolution::TEN_MILLIS);
/// let mut wheel = GrowingWheel::new(WheelConfig::DEFAULT);
/// let mut jobs = JobTable::new(&SchedulerConfig::DEFAULT, 0, ClockKind::Deterministic);
///
/// let beat = JobSpec::fixed_rate(Duration::from_millis(20), Duration::from_millis(50));
/// let beat = jobs.schedule(&mut wheel, clock.now(), beat, "beat")?;
/// jobs.schedule(&mut wheel, clock.now(), JobSpec::once(Duration::from_millis(20)), "once")?;
///
/// clock.advance(Duration::from_millis(20));
/// let mut told = Vec::new();
/// jobs.advance(&mut wheel, clock.now(), 100, |fire| match fire.delivery {
///     Delivery::Last(text) => told.push(text),
///     Delivery::Again(text) => told.push(*text),
/// });
/// assert_eq!(told, ["beat", "once"]);
/// jobs.completed(&mut wheel, beat, clock.now());
/// assert!(jobs.cancel(&mut wheel, beat));
/// # Ok::<(), clockjack_sched::ScheduleError<&str>>(())
/// ```
pub struct JobTable<P> {
    slots: Counted<JobSlots<P>>,
    free: FreeSlots,
    shard: u32,
    resolution: Resolution,
    is_strict: bool,
    is_closed: bool,
    /// More ticks behind than this are a leap of the clock.
    jump_ticks: u64,
    catch_up_limit: u32,
    /// For how long memory that is not used is kept.
    retention_ticks: u64,
    overflow_warn_pct: u8,
    /// Whether the driver tells which ticks are made up for, so that no guess is needed.
    driver_reports_ticks: bool,
    /// Whether it was told that time was not moved for long, and that is not over.
    is_lateness_reported: bool,
    /// The same of a leap of the clock.
    is_jump_reported: bool,
    /// How far the last leap went: what was due by then is folded, in however many looks.
    jump_to: Option<Tick>,
    /// Whether the overflow was told to be nearly full, and has not emptied since.
    is_overflow_reported: bool,
    due: DueList,
    /// The latest tick that was handed in.
    now: Tick,
    /// The number that the last job got.
    number: u64,
    shared: TableShared,
    permits: PermitCache,
    log: SchedulerLog,
    drift: DriftMonitor,
    rate: TickRate,
    /// What the driver has reported of its own lateness.
    jitter: Duration,
    counts: Counts,
    /// Jobs with a fixed delay that are due or run: a place in the wheel is kept for each.
    reserved_timers: usize,
}

/// A run that is handed over.
#[derive(Debug)]
pub struct Fire<'s, P> {
    /// The job, to be named in [`completed`](JobTable::completed) if it is delivered
    /// [again](Delivery::Again).
    pub job: JobId,
    /// The job, as logs name it.
    pub number: JobNumber,
    /// What the run stands for.
    pub batch: ExecutionBatch,
    /// When it was due.
    pub due: Tick,
    /// How late it is handed over.
    pub late: Duration,
    /// What is delivered.
    pub delivery: Delivery<'s, P>,
}

/// What is delivered: a one-shot gives it away, a periodic job lends it.
#[derive(Debug)]
pub enum Delivery<'s, P> {
    /// The last run: the job has ended.
    Last(P),
    /// There will be others, once this one is [completed](JobTable::completed).
    Again(&'s mut P),
}

/// A run in the hands of who runs it. What it delivers comes back with its completion.
pub(crate) struct Run<P> {
    pub(crate) slot: u32,
    pub(crate) number: JobNumber,
    pub(crate) batch: ExecutionBatch,
    pub(crate) due: Tick,
    pub(crate) late: Duration,
    pub(crate) payload: P,
}

/// What comes next off the list of those that are due.
pub(crate) enum DueItem<P> {
    /// Run it, and complete it.
    Run(Run<P>),
    /// Send it as a delivery, which completes it. The flag says whether runs that come due before it
    /// is opened are folded into it.
    Send(Run<P>, bool),
    /// It was cancelled and wants to be told.
    NotifyCancelled(P),
    /// It was cancelled, and is to be dropped.
    Drop(P),
}

/// When what a cancelled job was to deliver is dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PayloadDrop {
    /// By the caller, who gets it.
    Now,
    /// By the next who takes it off the list.
    Later,
}

/// A hand-over without what is delivered.
struct HandOver {
    number: JobNumber,
    batch: ExecutionBatch,
    due: Tick,
    late: Duration,
}

impl<P> JobTable<P> {
    /// A table without jobs, with a quota and a diagnostics stream of its own.
    #[must_use]
    pub fn new(config: &SchedulerConfig, shard: u32, kind: ClockKind) -> Self {
        Self::with_shared(config, shard, kind, TableShared::new(config))
    }

    pub(crate) fn with_shared(
        config: &SchedulerConfig,
        shard: u32,
        kind: ClockKind,
        shared: TableShared,
    ) -> Self {
        let slots = Counted::new(JobSlots::new());
        // A handle that is kept keeps its slot, so in a store that grows there may be more slots
        // than jobs.
        let fixed = u32::try_from(config.capacity).unwrap_or(u32::MAX);
        let fixed = fixed.saturating_add(RESERVED_SLOTS + SPARE_SLOTS);
        let mut free = FreeSlots::new(if config.is_fixed { fixed } else { u32::MAX });
        let mut due = DueList::new();
        if config.is_fixed {
            free.reserve(&slots, fixed);
            due.reserve_exact(fixed as usize);
        }
        let ticks =
            |time| config.resolution.ticks_ceil(time).map_or(u64::MAX, |span: TickSpan| span.get());
        Self {
            slots,
            free,
            shard,
            resolution: config.resolution,
            is_strict: config.strict_delays,
            is_closed: false,
            jump_ticks: ticks(config.clock_jump),
            catch_up_limit: config.catch_up_limit,
            retention_ticks: ticks(RETENTION),
            overflow_warn_pct: config.overflow_warn_pct,
            driver_reports_ticks: false,
            is_lateness_reported: false,
            is_jump_reported: false,
            jump_to: None,
            is_overflow_reported: false,
            due,
            now: config.start,
            number: 0,
            shared,
            permits: PermitCache::new(config.shards),
            log: SchedulerLog::with_capacity(config.log_capacity),
            drift: DriftMonitor::new(config.resolution, config.drift_budget_pct, kind),
            rate: TickRate::new(config.resolution, config.start),
            jitter: Duration::ZERO,
            counts: Counts::new(),
            reserved_timers: 0,
        }
    }

    /// Accepts a job, or refuses it and leaves no trace.
    ///
    /// The id names the job until [`release`](Self::release): keep it for that, or release it at
    /// once.
    ///
    /// # Errors
    ///
    /// [`ScheduleError`], which holds what was to be delivered: for a delay or period that cannot
    /// be, at the quota, under pressure, without room, and after the close.
    pub fn schedule<S: Storage<JobId>>(
        &mut self,
        wheel: &mut Wheel<JobId, S>,
        now: TimerInstant,
        job: JobSpec,
        payload: P,
    ) -> Result<JobId, ScheduleError<P>> {
        let plan = match job.plan(now, self.resolution, self.is_strict) {
            Ok(plan) => plan,
            Err(kind) => return Err(self.refuse(kind, payload)),
        };
        self.schedule_planned(wheel, &job, plan, payload).map(|(job, _)| job)
    }

    /// As [`schedule`](Self::schedule); says also when the job is due.
    #[inline]
    pub(crate) fn schedule_planned<S: Storage<JobId>>(
        &mut self,
        wheel: &mut Wheel<JobId, S>,
        job: &JobSpec,
        plan: Plan,
        payload: P,
    ) -> Result<(JobId, Tick), ScheduleError<P>> {
        if self.is_closed {
            return Err(self.refuse(ScheduleErrorKind::Closed, payload));
        }
        let Self { permits, shared, .. } = self;
        let mut acquire = || permits.acquire(&shared.quota, job.policy.priority);
        if let Err(kind) = acquire()
            && let Err(kind) = shared.retry_acquire(kind, plan.at, acquire)
        {
            return Err(self.refuse(kind, payload));
        }
        let Some(slot) = self.free.take(&self.slots) else {
            self.permits.release(&self.shared.quota);
            return Err(self.refuse(ScheduleErrorKind::CapacityExceeded, payload));
        };
        let id = JobId { shard: self.shard, slot };
        let Some(timer) = self.insert(wheel, plan.due, job.policy.priority, id) else {
            self.free.give(&self.slots, slot);
            self.permits.release(&self.shared.quota);
            return Err(self.refuse(ScheduleErrorKind::CapacityExceeded, payload));
        };
        let mut data = job_data(job, plan);
        data.timer = Some(timer);
        self.fill_slot(slot, data, payload);
        self.job_state(slot).publish(plan.mode != BatchMode::OneShot, job, false);
        self.count_accepted(slot, plan.at);
        Ok((id, plan.due))
    }

    #[cold]
    fn refuse(&mut self, kind: ScheduleErrorKind, payload: P) -> ScheduleError<P> {
        self.shared.report_refusal(kind);
        ScheduleError::new(kind, payload)
    }

    /// A job that is in its slot counts from now on.
    fn count_accepted(&mut self, slot: u32, at: Tick) {
        self.now = self.now.max(at);
        self.number += 1;
        let number = self.number;
        let mode = self.data(slot, |data| {
            data.number = number;
            data.is_live = true;
            data.mode
        });
        self.counts.accepted += 1;
        self.counts.active += 1;
        if mode != BatchMode::OneShot {
            self.counts.periodic += 1;
        }
        if self.is_logging() || self.shared.bus.wants(EventKinds::SCHEDULE) {
            self.report_scheduled(slot, at);
        }
    }

    #[cold]
    fn report_scheduled(&mut self, slot: u32, at: Tick) {
        let data = self.data(slot, |data| *data);
        if self.is_logging() {
            self.write_log(LogKind::Schedule, &data, at, 0, 0);
        }
        let (job, due, mode) = (self.number_of(&data), data.due, data.mode);
        self.publish(DiagnosticEvent::Scheduled { job, at, due, mode });
    }

    /// Tells who wants to know.
    pub(super) fn publish(&self, event: DiagnosticEvent) {
        if self.shared.bus.wants(event.kind()) {
            self.shared.bus.publish(event);
        }
    }

    /// Enters a timer; if there is no room, one of a lower class goes for it.
    #[inline]
    fn insert<S: Storage<JobId>>(
        &mut self,
        wheel: &mut Wheel<JobId, S>,
        due: Tick,
        class: Class,
        job: JobId,
    ) -> Option<TimerId> {
        if self.reserved_timers > 0 && !self.has_unreserved_room(wheel, due, class) {
            return None;
        }
        match wheel.insert_class(due, class, job) {
            Ok(timer) => {
                if wheel.overflow_len() > 0 {
                    self.check_overflow(wheel);
                }
                Some(timer)
            }
            Err(_) => self.insert_or_evict(wheel, due, class, job),
        }
    }

    /// Whether there is room beside the places that are kept for jobs with a fixed delay that run;
    /// one of a lower class goes for it.
    #[cold]
    fn has_unreserved_room<S: Storage<JobId>>(
        &mut self,
        wheel: &mut Wheel<JobId, S>,
        due: Tick,
        class: Class,
    ) -> bool {
        if wheel.len() + self.reserved_timers < wheel.capacity() {
            return true;
        }
        if wheel.is_overflow_full_for(due) && !mutant!("jobs-shed-for-nothing") {
            // Only a far one can go for it, by whose place there is room here too.
            return true;
        }
        let is_lower = |lower: &Class| *lower < class && wheel.len_of(*lower) > 0;
        if !Class::ALL.iter().any(is_lower) {
            return false;
        }
        let Some(evicted) = wheel.shed(SHED_SCAN_MAX) else { return false };
        self.evict(wheel, evicted.value.slot, evicted.class);
        true
    }

    /// A place is kept for a job without a timer no longer.
    fn release_reserved_timer(&mut self, slot: u32) {
        let is_kept = self.data(slot, |data| data.condition == Condition::TimerReserved);
        if is_kept {
            self.data(slot, |data| data.condition = Condition::None);
            self.reserved_timers -= 1;
        }
    }

    #[cold]
    fn insert_or_evict<S: Storage<JobId>>(
        &mut self,
        wheel: &mut Wheel<JobId, S>,
        due: Tick,
        class: Class,
        job: JobId,
    ) -> Option<TimerId> {
        let admitted = wheel.insert_or_evict(due, class, job).ok()?;
        if let Some(evicted) = admitted.evicted {
            self.evict(wheel, evicted.value.slot, evicted.class);
        }
        Some(admitted.id)
    }

    /// A job whose timer was taken out for want of room.
    fn evict<S: Storage<JobId>>(
        &mut self,
        wheel: &mut Wheel<JobId, S>,
        slot: u32,
        priority: Class,
    ) {
        let data = self.data(slot, |data| {
            data.timer = None;
            *data
        });
        // Somebody may have cancelled it just now: then it is theirs.
        let Some(won) = self.job_state(slot).cancel(false) else { return };
        self.counts.dropped += 1;
        self.warn(Warning::DroppedLowPriority { job: self.number_of(&data), priority });
        if won != CancelWon::HandedOver {
            self.reap_later(wheel, slot);
        }
    }

    /// Tells of an overflow that fills up, once for each time.
    #[cold]
    fn check_overflow<S: Storage<JobId>>(&mut self, wheel: &Wheel<JobId, S>) {
        let (len, capacity) = (wheel.overflow_len(), wheel.overflow_capacity());
        let is_near = len * 100 >= capacity * usize::from(self.overflow_warn_pct);
        if is_near && !self.is_overflow_reported {
            let shard = self.shard;
            self.warn(Warning::OverflowNearCapacity { shard, len, capacity });
        }
        self.is_overflow_reported = is_near;
    }

    /// Cancels a job: true exactly once, and then no run of it begins any more. False for a
    /// one-shot that is handed over, and for what has ended.
    pub fn cancel<S: Storage<JobId>>(&mut self, wheel: &mut Wheel<JobId, S>, job: JobId) -> bool {
        let (won, payload) = self.cancel_take(wheel, job);
        drop(payload);
        won
    }

    /// As [`cancel`](Self::cancel); gives what is to be dropped.
    pub(crate) fn cancel_take<S: Storage<JobId>>(
        &mut self,
        wheel: &mut Wheel<JobId, S>,
        job: JobId,
    ) -> (bool, Option<P>) {
        // The exchange below waits for the first line of the slot; what it delivers is in the
        // second.
        self.prefetch(job.slot);
        match self.job_state(job.slot).cancel(false) {
            None => (false, None),
            Some(CancelWon::HandedOver) => (true, None),
            // A job that was posted and is not taken up yet is dealt with when it is.
            Some(CancelWon::Waiting { .. }) if !self.data(job.slot, |data| data.is_live) => {
                (true, None)
            }
            Some(CancelWon::Waiting { .. }) => (true, self.reap(wheel, job.slot)),
        }
    }

    /// A cancelled job goes: out of the wheel, the counts and the log. Gives what it was to
    /// deliver, unless that wants to be told: then it is put on the list.
    fn reap<S: Storage<JobId>>(&mut self, wheel: &mut Wheel<JobId, S>, slot: u32) -> Option<P> {
        self.disarm(wheel, slot);
        self.reap_disarmed(slot, PayloadDrop::Now)
    }

    /// Takes a job's timer out of the wheel.
    fn disarm<S: Storage<JobId>>(&mut self, wheel: &mut Wheel<JobId, S>, slot: u32) {
        if let Some(timer) = self.data(slot, |data| data.timer.take()) {
            wheel.cancel(timer);
        }
    }

    fn reap_disarmed(&mut self, slot: u32, drops: PayloadDrop) -> Option<P> {
        let (mode, notifies_cancel) = self.data(slot, |data| {
            debug_assert!(data.is_live, "a job is reaped once");
            data.is_live = false;
            (data.mode, data.notifies_cancel)
        });
        self.counts.cancelled += 1;
        self.count_finished(slot, mode);
        if self.wants_time() {
            self.report_cancelled(slot);
        }
        let is_listed = notifies_cancel || drops == PayloadDrop::Later;
        if is_listed && self.payload(slot, |payload| payload.is_some()) {
            self.push_due(slot);
            return None;
        }
        let payload = self.payload(slot, Option::take);
        self.release_handles(slot);
        payload
    }

    #[cold]
    fn report_cancelled(&mut self, slot: u32) {
        let data = self.data(slot, |data| *data);
        let (job, at) = (self.number_of(&data), self.now);
        if self.is_logging() {
            self.write_log(LogKind::Cancel, &data, at, 0, 0);
        }
        self.publish(DiagnosticEvent::Cancelled { job, at });
    }

    /// As [`reap`](Self::reap), where nothing can be dropped: it is put on the list for that.
    fn reap_later<S: Storage<JobId>>(&mut self, wheel: &mut Wheel<JobId, S>, slot: u32) {
        self.disarm(wheel, slot);
        let payload = self.reap_disarmed(slot, PayloadDrop::Later);
        debug_assert!(payload.is_none(), "it is on the list");
    }

    /// Gives permits back that no job has been paid with, if none lives: others may want them.
    pub(crate) fn flush_permits_if_idle(&mut self) {
        if self.is_empty() {
            self.permits.flush(&self.shared.quota);
        }
    }

    /// A job lives no more.
    fn count_finished(&mut self, slot: u32, mode: BatchMode) {
        self.counts.active -= 1;
        if mode != BatchMode::OneShot {
            self.counts.periodic -= 1;
            self.release_reserved_timer(slot);
        }
        self.permits.release(&self.shared.quota);
    }

    /// The handler of a periodic job that was delivered [again](Delivery::Again) has returned, at
    /// this time: a fixed delay counts from there. Nothing happens if the job is not handed over.
    pub fn completed<S: Storage<JobId>>(
        &mut self,
        wheel: &mut Wheel<JobId, S>,
        job: JobId,
        at: TimerInstant,
    ) {
        drop(self.reschedule(wheel, job.slot, at));
    }

    /// As [`completed`](Self::completed), with what was delivered, and whether that went well.
    pub(crate) fn complete<S: Storage<JobId>>(
        &mut self,
        wheel: &mut Wheel<JobId, S>,
        done: CompletedRun<P>,
    ) -> Option<P> {
        let CompletedRun { slot, payload, batch, outcome, at } = done;
        let data = self.data(slot, |data| *data);
        if let Err(error) = outcome {
            self.counts.failed += 1;
            self.warn(Warning::HandlerFailed { job: self.number_of(&data), error, batch });
            return self.finish_job(wheel, slot, Some(payload));
        }
        if data.mode == BatchMode::OneShot {
            return self.finish_job(wheel, slot, Some(payload));
        }
        self.payload(slot, |place| *place = Some(payload));
        self.reschedule(wheel, slot, at)
    }

    /// A periodic job waits for its next run, or is queued for it, or was cancelled meanwhile.
    /// Gives what is to be dropped.
    #[inline(always)]
    fn reschedule<S: Storage<JobId>>(
        &mut self,
        wheel: &mut Wheel<JobId, S>,
        slot: u32,
        at: TimerInstant,
    ) -> Option<P> {
        let data = self.data(slot, |data| *data);
        if self.is_closed {
            // Nothing goes on after the close; a cancel from outside has the same effect.
            self.job_state(slot).cancel(false);
        }
        match self.job_state(slot).load_relaxed().state() {
            JobState::Executing | JobState::Sent => {}
            JobState::Cancelled if data.is_live && !data.is_listed => {
                return self.reap(wheel, slot);
            }
            _ => return None,
        }
        if data.mode == BatchMode::FixedDelay && !self.arm_after(wheel, slot, &data, at) {
            return None;
        }
        let has_pending_run = data.pending_runs > 0;
        let to = if has_pending_run { JobState::Queued } else { JobState::Scheduled };
        if !self.job_state(slot).finish_run(to) {
            // Cancelled while it ran.
            return self.reap(wheel, slot);
        }
        if has_pending_run {
            self.push_due(slot);
        }
        None
    }

    /// Arms a job for a fixed delay after `at`. False if there was no room, and so the job is gone.
    fn arm_after<S: Storage<JobId>>(
        &mut self,
        wheel: &mut Wheel<JobId, S>,
        slot: u32,
        data: &JobData,
        at: TimerInstant,
    ) -> bool {
        let ticks = self.resolution.duration(TickSpan::new(u64::from(data.period)));
        let delay = ticks.saturating_sub(Duration::from_nanos(u64::from(data.excess_ns)));
        let Some(due) = edge_after(at, delay, self.resolution) else {
            // Beyond the end of the count: it waits for ever.
            self.data(slot, |data| data.due = Tick::MAX);
            return true;
        };
        let job = JobId { shard: self.shard, slot };
        self.release_reserved_timer(slot);
        match self.insert(wheel, due, data.class, job) {
            Some(timer) => {
                self.data(slot, |data| {
                    data.timer = Some(timer);
                    data.due = due;
                });
                true
            }
            None => {
                self.evict(wheel, slot, data.class);
                self.reap_if_live(wheel, slot);
                false
            }
        }
    }

    /// A job that was given up while it was handed over.
    fn reap_if_live<S: Storage<JobId>>(&mut self, wheel: &mut Wheel<JobId, S>, slot: u32) {
        let data = self.data(slot, |data| *data);
        if data.is_live && !data.is_listed {
            self.reap_later(wheel, slot);
        }
    }

    /// A job that has run for the last time. Gives what is to be dropped.
    #[inline]
    fn finish_job<S: Storage<JobId>>(
        &mut self,
        wheel: &mut Wheel<JobId, S>,
        slot: u32,
        payload: Option<P>,
    ) -> Option<P> {
        if !self.job_state(slot).finish_run(JobState::Completed) {
            // A periodic job that was cancelled while it ran, or a delivery while it was sent.
            self.payload(slot, |place| *place = payload);
            return self.reap(wheel, slot);
        }
        self.disarm(wheel, slot);
        let mode = self.data(slot, |data| {
            data.is_live = false;
            data.mode
        });
        self.counts.executed += 1;
        self.count_finished(slot, mode);
        self.release_handles(slot);
        payload
    }

    /// Lets go of a job's id: it names nothing any more. The job itself goes on.
    pub fn release(&mut self, job: JobId) {
        self.release_handles(job.slot);
    }

    /// One pin less.
    fn release_handles(&mut self, slot: u32) {
        if self.job_state(slot).release_handles(1) {
            self.free_slot(slot);
        }
    }

    pub(crate) fn free_slot(&mut self, slot: u32) {
        self.free.give(&self.slots, slot);
    }

    /// Whether a job was cancelled.
    #[must_use]
    pub fn is_cancelled(&self, job: JobId) -> bool {
        self.job_state(job.slot).load().state() == JobState::Cancelled
    }

    /// Where a job is in its life.
    #[must_use]
    pub fn state(&self, job: JobId) -> JobState {
        self.job_state(job.slot).load().state()
    }

    fn number_of(&self, data: &JobData) -> JobNumber {
        JobNumber { shard: self.shard, number: data.number }
    }

    pub(crate) fn warn(&self, warning: Warning) {
        self.shared.warn(warning);
    }

    fn write_log(&mut self, kind: LogKind, data: &JobData, at: Tick, runs: u32, executor: u16) {
        let job = self.number_of(data);
        let (scheduled_at, deadline) = (data.scheduled_at, data.due);
        self.log.push(LogRecord { kind, job, scheduled_at, deadline, at, runs, executor });
    }
}

/// For how long memory that is not used is kept.
const RETENTION: Duration = Duration::from_secs(1);

/// How many timers are looked at to find one of a lower class.
const SHED_SCAN_MAX: usize = 256;

/// How many slots are kept ready for threads without the guard.
pub(crate) const RESERVED_SLOTS: u32 = match (cfg!(loom), prim::IS_SMALL) {
    (true, _) => 1,
    (false, true) => 4,
    (false, false) => 32,
};
/// How many slots a fixed store has beyond its jobs: a job that is given up for another leaves its
/// slot only when it is told or dropped, and the other needs one before that.
const SPARE_SLOTS: u32 = RESERVED_SLOTS;

/// What a run has come to.
pub(crate) struct CompletedRun<P> {
    pub(crate) slot: u32,
    pub(crate) payload: P,
    pub(crate) batch: ExecutionBatch,
    pub(crate) outcome: Result<(), HandlerError>,
    pub(crate) at: TimerInstant,
}

/// What a job's slot says at first.
#[inline]
pub(crate) fn job_data(job: &JobSpec, plan: Plan) -> JobData {
    JobData {
        due: plan.due,
        scheduled_at: plan.at,
        period: u32::try_from(plan.period).unwrap_or(u32::MAX),
        excess_ns: plan.excess_ns,
        backlog_limit: job.policy.backlog_limit.unwrap_or(u32::MAX),
        burst_threshold: job.policy.burst_threshold,
        class: job.policy.priority,
        mode: plan.mode,
        folds: job.policy.catch_up == CatchUp::Folded,
        notifies_cancel: job.notify_cancel,
        ..JobData::EMPTY
    }
}

impl<P> fmt::Debug for JobTable<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JobTable")
            .field("shard", &self.shard)
            .field("counts", &self.counts)
            .finish_non_exhaustive()
    }
}
