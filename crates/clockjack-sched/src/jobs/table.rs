//! The job table of one shard: the state of its jobs and how time changes it.
//!
//! Nothing here reads a clock, waits or calls user code. A host schedules and cancels jobs, passes
//! in `now`, receives due runs, and reports when a handler has returned. All methods take
//! `&mut self`; with several threads, only the holder of the shard guard has that. What other
//! threads do without the guard is decided by the atomic states of the jobs (see `shard.md`).
//!
//! # Pending runs
//!
//! A job at a fixed rate has one timer, at its next due time, and counts its pending runs: the runs
//! that are due and were not handed over. When its timer expires, all runs up to the current time
//! are added at once, and the timer is armed for the first run after it. All due times are
//! multiples of the period after the first run, so rounding errors do not accumulate. At most one
//! run is handed over at a time: the next one follows when that is completed.

mod access;
mod delivery;
mod due;
mod expiry;
mod inspect;
mod remote_ops;
mod reserve;
mod shared;

use core::{fmt, time::Duration};

use clockjack_sync::{Arc, primitive};
use clockjack_time::{
    ClockKind, Resolution, Storage, Tick, TickSpan, TimerId, TimerInstant, TimerPriority, Wheel,
};

pub(crate) use self::{
    delivery::ReturnedDelivery,
    inspect::{Counts, TimeHistogram},
    shared::TableShared,
};
use self::{due::DueList, reserve::InternalReserve};
use crate::{
    BatchMode, CatchUp, DiagnosticEvent, EventKinds, ExecutionBatch, HandlerError, JobId,
    JobNumber, JobSpec, LogKind, LogRecord, ScheduleError, ScheduleErrorKind, SchedulerConfig,
    SchedulerLog, Warning,
    drift::{DriftMonitor, TickRate},
    jobs::{
        quota::PermitCache,
        slots::{FreeSlots, JobData, JobSlots},
        spec::{Plan, edge_after},
        state::{CancelWon, JobState},
    },
};

/// The jobs of one shard, over a wheel that the caller passes in. `P` is the payload that a run
/// delivers; the table never looks into it.
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
/// let mut received = Vec::new();
/// jobs.advance(&mut wheel, clock.now(), 100, |fire| match fire.delivery {
///     Delivery::Last(text) => received.push(text),
///     Delivery::Again(text) => received.push(*text),
/// });
/// assert_eq!(received, ["beat", "once"]);
/// jobs.completed(&mut wheel, beat, clock.now());
/// assert!(jobs.cancel(&mut wheel, beat));
/// # Ok::<(), clockjack_sched::ScheduleError<&str>>(())
/// ```
pub struct JobTable<P> {
    slots: Arc<JobSlots<P>>,
    free: FreeSlots,
    shard: u32,
    resolution: Resolution,
    is_strict: bool,
    is_closed: bool,
    /// False once a shutdown has begun: then deliveries that are due are cancelled.
    may_send: bool,
    /// After a close that had too little time: runs that are due by this tick are counted as left.
    close_due_by: Option<Tick>,
    /// The table treats a delay of more ticks than this as a jump of the clock.
    jump_ticks: u64,
    catch_up_limit: u32,
    /// How long unused memory is kept.
    retention_ticks: u64,
    overflow_warn_pct: u8,
    /// Whether the driver counts the ticks that are caught up with, so that the table need not
    /// guess them.
    driver_reports_ticks: bool,
    /// Whether a long delay without an advance was reported and is not over yet.
    is_lateness_reported: bool,
    /// The same for a jump of the clock.
    is_jump_reported: bool,
    /// The end of the last clock jump: runs that were due by then are folded, whenever they expire.
    jump_to: Option<Tick>,
    /// Whether the overflow was reported as nearly full and has not emptied since.
    is_overflow_reported: bool,
    due: DueList,
    /// The latest tick that was passed in.
    now: Tick,
    /// The number of the last accepted job.
    number: u64,
    shared: TableShared,
    permits: PermitCache,
    log: SchedulerLog,
    drift: DriftMonitor,
    rate: TickRate,
    /// The lateness that the driver has reported of itself.
    jitter: Duration,
    counts: Counts,
    /// How many timers the wheel must have room for besides those that it has: one for each job
    /// with a fixed delay that is due or running, and the unused reserve of the runtime.
    reserved_timers: usize,
    /// How many jobs of users the wheel has room for.
    capacity: usize,
    internal: InternalReserve,
}

/// A run that is handed over.
#[derive(Debug)]
pub struct Fire<'s, P> {
    /// The job, for [`completed`](JobTable::completed) if the delivery is
    /// [`Again`](Delivery::Again).
    pub job: JobId,
    /// The number of the job in logs.
    pub number: JobNumber,
    /// How many runs this call represents.
    pub batch: ExecutionBatch,
    /// When it was due.
    pub due: Tick,
    /// How late it is handed over.
    pub late: Duration,
    /// The payload.
    pub delivery: Delivery<'s, P>,
}

/// The payload of a run: a one-shot gives it away, a periodic job lends it.
#[derive(Debug)]
pub enum Delivery<'s, P> {
    /// The last run: the job is completed.
    Last(P),
    /// Further runs follow once this one is [completed](JobTable::completed).
    Again(&'s mut P),
}

/// A run that was handed over. Its completion returns the payload.
pub(crate) struct Run<P> {
    pub(crate) slot: u32,
    pub(crate) number: JobNumber,
    pub(crate) batch: ExecutionBatch,
    pub(crate) due: Tick,
    pub(crate) late: Duration,
    pub(crate) payload: P,
}

/// The next item of the due list, and what the caller must do with it.
pub(crate) enum DueItem<P> {
    /// Run the handler, and complete the run.
    Run(Run<P>),
    /// Send it as a delivery, which completes the run. The flag says whether runs that come due
    /// before the delivery is accepted are folded into it.
    Send(Run<P>, bool),
    /// The job was cancelled: call `cancelled` of the payload and drop it.
    NotifyCancelled(P),
    /// The job was cancelled: drop the payload.
    Drop(P),
}

/// When the payload of a cancelled job is dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PayloadDrop {
    /// Now, by the caller that receives it.
    Now,
    /// Later, by the poller that takes it from the due list.
    Later,
}

/// A run that was handed over, without its payload.
struct HandOver {
    number: JobNumber,
    batch: ExecutionBatch,
    due: Tick,
    late: Duration,
}

impl<P> JobTable<P> {
    /// Creates an empty table with its own quota and diagnostics stream.
    #[must_use]
    pub fn new(config: &SchedulerConfig, shard: u32, kind: ClockKind) -> Self {
        // The caller's wheel has no room for a reserve.
        let config = &SchedulerConfig { internal_reserve: 0, ..config.clone() };
        Self::with_shared(config, shard, kind, TableShared::new(config, None))
    }

    pub(crate) fn with_shared(
        config: &SchedulerConfig,
        shard: u32,
        kind: ClockKind,
        shared: TableShared,
    ) -> Self {
        let slots = Arc::new(JobSlots::new());
        // A handle keeps its slot in use, so in a growing store there may be more slots than jobs.
        let places = config.capacity.saturating_add(config.internal_reserve);
        let fixed = u32::try_from(places).unwrap_or(u32::MAX);
        let fixed = fixed.saturating_add(RESERVED_SLOTS + SPARE_SLOTS);
        let mut free = FreeSlots::new(if config.is_fixed { fixed } else { u32::MAX });
        let mut due = DueList::new();
        if config.is_fixed {
            free.reserve(&slots, fixed);
            due.reserve_exact(fixed as usize);
        }
        let internal = InternalReserve::new(config, &mut free, &slots);
        let ticks =
            |time| config.resolution.ticks_ceil(time).map_or(u64::MAX, |span: TickSpan| span.get());
        Self {
            slots,
            free,
            shard,
            resolution: config.resolution,
            is_strict: config.strict_delays,
            is_closed: false,
            may_send: true,
            close_due_by: None,
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
            drift: DriftMonitor::new(
                config.resolution,
                config.drift_budget_pct,
                config.drift_floor,
                kind,
            ),
            rate: TickRate::new(config.resolution, config.start),
            jitter: Duration::ZERO,
            counts: Counts::new(),
            reserved_timers: config.internal_reserve,
            capacity: config.capacity,
            internal,
        }
    }

    /// Schedules a job. A refused job leaves no trace.
    ///
    /// The id names the job until [`release`](Self::release). Release it at once if you do not
    /// need it.
    ///
    /// # Errors
    ///
    /// [`ScheduleError`], which contains the payload: for an invalid delay or period, at the quota,
    /// under pressure, without room, and after the close.
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

    /// As [`schedule`](Self::schedule), and also returns the timer.
    #[inline]
    pub(crate) fn schedule_planned<S: Storage<JobId>>(
        &mut self,
        wheel: &mut Wheel<JobId, S>,
        job: &JobSpec,
        plan: Plan,
        payload: P,
    ) -> Result<(JobId, TimerId), ScheduleError<P>> {
        if self.is_closed {
            return Err(self.refuse(ScheduleErrorKind::Closed, payload));
        }
        if job.is_internal {
            if self.internal.has_place() {
                return self.schedule_internal(wheel, job, plan, payload);
            }
            self.counts.reserve_exceeded += 1;
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
        Ok((id, timer))
    }

    #[cold]
    fn refuse(&mut self, kind: ScheduleErrorKind, payload: P) -> ScheduleError<P> {
        self.shared.report_refusal(kind);
        ScheduleError::new(kind, payload)
    }

    /// Counts and reports a job that was put into its slot.
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

    /// Publishes an event if a subscriber wants it.
    pub(super) fn publish(&self, event: DiagnosticEvent) {
        if self.shared.bus.wants(event.kind()) {
            self.shared.bus.publish(event);
        }
    }

    /// Inserts a timer. If there is no room, evicts one of a lower class.
    #[inline]
    fn insert<S: Storage<JobId>>(
        &mut self,
        wheel: &mut Wheel<JobId, S>,
        due: Tick,
        class: TimerPriority,
        job: JobId,
    ) -> Option<TimerId> {
        // A timer that is reserved or in the wheel belongs to a live job.
        if self.counts.active >= self.capacity && !self.has_unreserved_room(wheel, due, class) {
            return None;
        }
        match wheel.insert_with_priority(due, class, job) {
            Ok(timer) => {
                if wheel.overflow_len() > 0 {
                    self.check_overflow(wheel);
                }
                Some(timer)
            }
            Err(_) => self.insert_or_evict(wheel, due, class, job),
        }
    }

    #[cold]
    fn insert_or_evict<S: Storage<JobId>>(
        &mut self,
        wheel: &mut Wheel<JobId, S>,
        due: Tick,
        class: TimerPriority,
        job: JobId,
    ) -> Option<TimerId> {
        let admitted = wheel.insert_or_evict(due, class, job).ok()?;
        if let Some(evicted) = admitted.evicted {
            self.evict(wheel, evicted.value.slot, evicted.priority);
        }
        Some(admitted.id)
    }

    /// Cancels a job whose timer was removed for lack of room.
    fn evict<S: Storage<JobId>>(
        &mut self,
        wheel: &mut Wheel<JobId, S>,
        slot: u32,
        priority: TimerPriority,
    ) {
        let data = self.data(slot, |data| {
            data.timer = None;
            *data
        });
        debug_assert!(!data.is_internal(), "no class is above that of the runtime");
        // A canceller may have been faster; then the canceller reaps it.
        let Some(won) = self.job_state(slot).cancel(false) else { return };
        self.counts.dropped += 1;
        self.warn(Warning::DroppedLowPriority { job: self.number_of(&data), priority });
        if won != CancelWon::NotWaiting {
            self.reap_later(wheel, slot);
        }
    }

    /// Warns of a nearly full overflow, once each time it fills up.
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

    /// Cancels a job. Returns true at most once, and then no run of it begins any more. False for a
    /// one-shot that was handed over, and for a job that is completed or cancelled.
    pub fn cancel<S: Storage<JobId>>(&mut self, wheel: &mut Wheel<JobId, S>, job: JobId) -> bool {
        let (won, payload) = self.cancel_take(wheel, job);
        drop(payload);
        won
    }

    /// As [`cancel`](Self::cancel), but returns the payload for the caller to drop.
    pub(crate) fn cancel_take<S: Storage<JobId>>(
        &mut self,
        wheel: &mut Wheel<JobId, S>,
        job: JobId,
    ) -> (bool, Option<P>) {
        match self.job_state(job.slot).cancel(false) {
            None => (false, None),
            Some(CancelWon::NotWaiting) => (true, None),
            // A remotely scheduled job that was not applied yet is reaped when it is applied.
            Some(CancelWon::Waiting { .. }) if !self.data(job.slot, |data| data.is_live) => {
                (true, None)
            }
            Some(CancelWon::Waiting { .. }) => (true, self.reap(wheel, job.slot)),
        }
    }

    /// Removes a cancelled job from the wheel, the counts and the log. Returns the payload for the
    /// caller to drop, unless it must be notified: then the job is added to the due list.
    fn reap<S: Storage<JobId>>(&mut self, wheel: &mut Wheel<JobId, S>, slot: u32) -> Option<P> {
        self.disarm(wheel, slot);
        self.reap_disarmed(slot, PayloadDrop::Now)
    }

    /// Removes the timer of a job from the wheel.
    #[inline]
    fn disarm<S: Storage<JobId>>(&mut self, wheel: &mut Wheel<JobId, S>, slot: u32) {
        if let Some(timer) = self.data(slot, |data| data.timer.take()) {
            wheel.cancel(timer);
            if self.data(slot, |data| data.is_internal()) {
                self.return_internal_place();
            }
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
        self.release_handle(slot);
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

    /// As [`reap`](Self::reap) where the caller can drop nothing: adds the job to the due list.
    fn reap_later<S: Storage<JobId>>(&mut self, wheel: &mut Wheel<JobId, S>, slot: u32) {
        self.disarm(wheel, slot);
        let payload = self.reap_disarmed(slot, PayloadDrop::Later);
        debug_assert!(payload.is_none(), "the payload is in the due list");
    }

    /// Returns the cached permits to the quota if there is no live job, so that other shards can
    /// use them.
    pub(crate) fn flush_permits_if_idle(&mut self) {
        if self.is_empty() {
            self.permits.flush(&self.shared.quota);
        }
    }

    /// Counts a job that is not live any more, and releases its permit.
    fn count_finished(&mut self, slot: u32, mode: BatchMode) {
        self.counts.active -= 1;
        if mode != BatchMode::OneShot {
            self.counts.periodic -= 1;
            self.release_reserved_timer(slot);
        }
        if !self.data(slot, |data| data.is_internal()) {
            self.permits.release(&self.shared.quota);
        }
    }

    /// Reports that the handler of a periodic job that was delivered [again](Delivery::Again) has
    /// returned at time `at`; a fixed delay counts from then. Does nothing if no run of the job was
    /// handed over.
    pub fn completed<S: Storage<JobId>>(
        &mut self,
        wheel: &mut Wheel<JobId, S>,
        job: JobId,
        at: TimerInstant,
    ) {
        drop(self.reschedule(wheel, job.slot, at));
    }

    /// As [`completed`](Self::completed), with the payload and the result of the handler.
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

    /// After a run of a periodic job: waits for its next run, queues it for a pending one, or reaps
    /// it if it was cancelled meanwhile. Returns the payload if the caller must drop it.
    #[inline(always)]
    fn reschedule<S: Storage<JobId>>(
        &mut self,
        wheel: &mut Wheel<JobId, S>,
        slot: u32,
        at: TimerInstant,
    ) -> Option<P> {
        let data = self.data(slot, |data| *data);
        if self.is_closed {
            self.cancel_closed(slot);
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
            // It was cancelled while it ran.
            return self.reap(wheel, slot);
        }
        if has_pending_run {
            self.push_due(slot);
        }
        None
    }

    /// Arms the timer of a job for a fixed delay after `at`. False if there was no room and the job
    /// was evicted.
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
            // Beyond the last tick: the job waits forever.
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

    /// Reaps a job that was evicted while it was handed over.
    fn reap_if_live<S: Storage<JobId>>(&mut self, wheel: &mut Wheel<JobId, S>, slot: u32) {
        let data = self.data(slot, |data| *data);
        if data.is_live && !data.is_listed {
            self.reap_later(wheel, slot);
        }
    }

    /// Completes a job after its last run. Returns the payload if the caller must drop it.
    #[inline]
    pub(crate) fn finish_job<S: Storage<JobId>>(
        &mut self,
        wheel: &mut Wheel<JobId, S>,
        slot: u32,
        payload: Option<P>,
    ) -> Option<P> {
        let Some(is_free) = self.job_state(slot).complete() else {
            // A periodic job was cancelled while it ran, or a delivery after it was sent.
            self.payload(slot, |place| *place = payload);
            return self.reap(wheel, slot);
        };
        self.disarm(wheel, slot);
        let mode = self.data(slot, |data| {
            data.is_live = false;
            data.mode
        });
        self.counts.executed += 1;
        self.count_finished(slot, mode);
        if is_free {
            self.free_slot(slot);
        }
        payload
    }

    /// Releases the id of a job, which then names nothing any more. The job itself continues.
    pub fn release(&mut self, job: JobId) {
        self.release_handle(job.slot);
    }

    /// Releases one handle.
    fn release_handle(&mut self, slot: u32) {
        if self.job_state(slot).release_handles(1) {
            self.free_slot(slot);
        }
    }

    pub(crate) fn free_slot(&mut self, slot: u32) {
        if !self.internal.keep_slot(&self.slots, slot) {
            self.free.give(&self.slots, slot);
        }
    }

    /// Whether a job was cancelled.
    #[must_use]
    pub fn is_cancelled(&self, job: JobId) -> bool {
        self.job_state(job.slot).load().state() == JobState::Cancelled
    }

    /// The state of a job.
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

/// How long unused memory is kept.
const RETENTION: Duration = Duration::from_secs(1);

/// How many slots are reserved for threads that do not hold the guard.
pub(crate) const RESERVED_SLOTS: u32 = match (cfg!(loom), primitive::IS_SMALL) {
    (true, _) => 1,
    (false, true) => 4,
    (false, false) => 32,
};
/// How many more slots than jobs a fixed store has. An evicted job keeps its slot until a poller
/// has notified or dropped it, and the job that evicted it needs a slot before that.
const SPARE_SLOTS: u32 = RESERVED_SLOTS;

/// The result of a run.
pub(crate) struct CompletedRun<P> {
    pub(crate) slot: u32,
    pub(crate) payload: P,
    pub(crate) batch: ExecutionBatch,
    pub(crate) outcome: Result<(), HandlerError>,
    pub(crate) at: TimerInstant,
}

/// The initial data of a job.
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
