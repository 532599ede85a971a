//! The scheduler: jobs that run once, at a fixed rate or with a fixed delay.

pub(crate) mod close_tasks;
pub(crate) mod config;
mod dispatched_run;
pub(crate) mod driver_ticks;
mod driver_timeout;
pub(crate) mod handle;
pub(crate) mod hardware;
pub(crate) mod host;
pub(crate) mod manual;
pub(crate) mod mode_error;
pub(crate) mod poll;
mod shutdown;

use alloc::boxed::Box;
use core::{fmt, time::Duration};

use clockjack_sync::{
    Arc,
    panic::PanicPayload,
    primitive::atomic::{AtomicBool, AtomicU32, Ordering},
};
use clockjack_time::{Resolution, Tick, TickSpan, TimerInstant};

pub use self::{dispatched_run::DispatchedRun, poll::PollResult};
use crate::{
    BackpressureLink, Bus, Cancellable, CloseTasks, DelayProvider, DeliveryTask, DiagnosticEvent,
    Diagnostics, DispatcherId, DriverMetadata, EventKinds, FireContext, HandlerError, JobSpec,
    ModeError, Outcome, Policy, PolicyRegistry, RunnerMode, ScheduleError, ScheduleErrorKind,
    SchedulerConfig, SchedulerHost, SchedulerTask, Task, TaskRunHandle, TaskRunPriority,
    TimerPriority, Warning,
    jobs::{
        shard::{JobShard, LockedShard, PendingWakes},
        table::TableShared,
    },
};

/// The longest delay of a job of the runtime: half the range of the wheel, so that the job is not
/// in the overflow although the wheel is behind the clock.
const INTERNAL_TICKS_MAX: u64 = 1 << 19;

/// The most shards that a scheduler may have.
const SHARDS_MAX: u32 = 1024;

/// A scheduler. All clones share its jobs, and its host drives it.
///
/// Dropping the last clone cancels all waiting jobs. A handler that owns a clone keeps the
/// scheduler, and so itself, alive as long as its job is live: [`shutdown`](Self::shutdown)
/// releases both.
///
/// # Examples
///
/// In virtual time, advanced by the caller:
///
/// ```
/// use clockjack_sched::{DispatcherId, FireContext, ManualRunner, SchedulerConfig};
/// use core::time::Duration;
/// use std::sync::{Arc, atomic::{AtomicU32, Ordering::SeqCst}};
///
/// let manual = ManualRunner::new(SchedulerConfig::DEFAULT)?;
/// let scheduler = manual.scheduler();
/// let ms = Duration::from_millis;
///
/// let beats = Arc::new(AtomicU32::new(0));
/// let counter = Arc::clone(&beats);
/// let count = move |fire: &FireContext| _ = counter.fetch_add(fire.batch().runs.get(), SeqCst);
/// let any = DispatcherId::DEFAULT;
/// let job = scheduler.schedule_at_fixed_rate_fn(ms(20), ms(50), any, count)?;
///
/// manual.advance(ms(130));
/// assert_eq!(beats.load(SeqCst), 3); // at 20, 70 and 120 ms
/// assert!(job.cancel() && job.is_cancelled() && !job.cancel());
/// # Ok::<(), Box<dyn core::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Scheduler {
    inner: Arc<Inner>,
}

/// The payload of a job: what it runs, and where.
pub(crate) struct JobPayload {
    pub(crate) task: Task,
    pub(crate) dispatcher: DispatcherId,
}

const _: () = assert!(
    cfg!(any(loom, shuttle)) || size_of::<crate::jobs::slots::JobSlot<JobPayload>>() <= 128,
    "a job is two cache lines"
);

/// The state that all shards of a scheduler share.
pub(crate) struct SchedulerShared {
    pub(crate) host: Box<dyn SchedulerHost>,
    pub(crate) tables: TableShared,
    pub(crate) resolution: Resolution,
    pub(crate) driver_timeout: Duration,
    pressure: BackpressureLink,
}

/// A shard with a link to the shared state of its scheduler. Handles refer to it.
pub(crate) struct SchedulerShard {
    pub(crate) jobs: JobShard<JobPayload>,
    stall_detector: driver_timeout::StallDetector,
    pub(crate) shared: Arc<SchedulerShared>,
}

pub(crate) struct Inner {
    pub(crate) shards: Box<[Arc<SchedulerShard>]>,
    pub(crate) shared: Arc<SchedulerShared>,
    policies: PolicyRegistry,
    driver_timeout: Duration,
    is_strict: bool,
    tasks: CloseTasks,
    metadata: DriverMetadata,
    /// How many polls are in progress, for the manual mode.
    polling: AtomicU32,
    is_shutting_down: AtomicBool,
    close_stats: shutdown::CloseStats,
}

impl Scheduler {
    /// Creates a scheduler that `host` drives. The kind of the host's clock determines the mode.
    ///
    /// # Errors
    ///
    /// [`ModeError`]: for a manual clock in a configuration for production, and for an invalid
    /// number of shards.
    // Not inlined, because its stack frame is large.
    #[inline(never)]
    pub fn new(config: SchedulerConfig, host: impl SchedulerHost) -> Result<Self, ModeError> {
        let kind = host.clock_kind();
        let metadata =
            DriverMetadata { mode: RunnerMode::of(kind), clock: kind, driver: host.name() };
        if config.is_production && metadata.mode == RunnerMode::Manual {
            return Err(ModeError::MANUAL_IN_PRODUCTION);
        }
        if !(1..=SHARDS_MAX).contains(&config.shards) {
            return Err(ModeError::SHARDS);
        }
        let tables = TableShared::new(&config, host.recorder());
        let shared = Arc::new(SchedulerShared {
            host: Box::new(host),
            pressure: BackpressureLink::new(tables.quota.clone()),
            tables: tables.clone(),
            resolution: config.resolution,
            driver_timeout: config.driver_timeout,
        });
        let shards = (0..config.shards)
            .map(|id| {
                Arc::new(SchedulerShard {
                    jobs: JobShard::new(&config, id, kind, tables.clone()),
                    stall_detector: driver_timeout::StallDetector::new(),
                    shared: shared.clone(),
                })
            })
            .collect();
        let inner = Arc::new(Inner {
            shards,
            shared,
            policies: config.policies,
            driver_timeout: config.driver_timeout,
            is_strict: config.strict_delays,
            tasks: CloseTasks::new(),
            metadata,
            polling: AtomicU32::new(0),
            is_shutting_down: AtomicBool::new(false),
            close_stats: shutdown::CloseStats::default(),
        });
        Ok(Self { inner })
    }

    /// Runs a closure once, after `delay`.
    ///
    /// # Errors
    ///
    /// [`ScheduleError`], which returns the closure. Nothing else has changed then.
    pub fn schedule_once_fn<F, R>(
        &self,
        delay: Duration,
        dispatcher: DispatcherId,
        f: F,
    ) -> Result<Cancellable, ScheduleError<F>>
    where
        F: FnOnce(&FireContext) -> R + Send + 'static,
        R: Outcome,
    {
        self.schedule_as(JobSpec::once(delay), dispatcher, Task::once(f))
    }

    /// Runs a closure after `initial_delay`, and then every `interval` after its first due time,
    /// however long it takes. Runs of one job never overlap. The [policy](crate::CatchUp) of the
    /// dispatcher decides what happens to runs that could not start in time.
    ///
    /// # Errors
    ///
    /// As [`schedule_once_fn`](Self::schedule_once_fn).
    pub fn schedule_at_fixed_rate_fn<F, R>(
        &self,
        initial_delay: Duration,
        interval: Duration,
        dispatcher: DispatcherId,
        f: F,
    ) -> Result<Cancellable, ScheduleError<F>>
    where
        F: FnMut(&FireContext) -> R + Send + 'static,
        R: Outcome,
    {
        let spec = JobSpec::fixed_rate(initial_delay, interval);
        self.schedule_as(spec, dispatcher, Task::every(f))
    }

    /// Runs a closure after `initial_delay`, and then each time `delay` after it has returned.
    ///
    /// # Errors
    ///
    /// As [`schedule_once_fn`](Self::schedule_once_fn).
    pub fn schedule_with_fixed_delay_fn<F, R>(
        &self,
        initial_delay: Duration,
        delay: Duration,
        dispatcher: DispatcherId,
        f: F,
    ) -> Result<Cancellable, ScheduleError<F>>
    where
        F: FnMut(&FireContext) -> R + Send + 'static,
        R: Outcome,
    {
        let spec = JobSpec::fixed_delay(initial_delay, delay);
        self.schedule_as(spec, dispatcher, Task::every(f))
    }

    /// Runs a task once, after `delay`. A cancel notifies the task.
    ///
    /// # Errors
    ///
    /// As [`schedule_once_fn`](Self::schedule_once_fn).
    pub fn schedule_once_task<T: SchedulerTask>(
        &self,
        delay: Duration,
        dispatcher: DispatcherId,
        task: T,
    ) -> Result<Cancellable, ScheduleError<T>> {
        self.schedule_as(JobSpec::once(delay), dispatcher, Task::new(task))
    }

    /// Runs a task at a fixed rate, as
    /// [`schedule_at_fixed_rate_fn`](Self::schedule_at_fixed_rate_fn). A cancel notifies the task.
    ///
    /// # Errors
    ///
    /// As [`schedule_once_fn`](Self::schedule_once_fn).
    pub fn schedule_at_fixed_rate_task<T: SchedulerTask>(
        &self,
        initial_delay: Duration,
        interval: Duration,
        dispatcher: DispatcherId,
        task: T,
    ) -> Result<Cancellable, ScheduleError<T>> {
        let spec = JobSpec::fixed_rate(initial_delay, interval);
        self.schedule_as(spec, dispatcher, Task::new(task))
    }

    /// Runs a task with a fixed delay, as
    /// [`schedule_with_fixed_delay_fn`](Self::schedule_with_fixed_delay_fn). A cancel notifies the
    /// task.
    ///
    /// # Errors
    ///
    /// As [`schedule_once_fn`](Self::schedule_once_fn).
    pub fn schedule_with_fixed_delay_task<T: SchedulerTask>(
        &self,
        initial_delay: Duration,
        delay: Duration,
        dispatcher: DispatcherId,
        task: T,
    ) -> Result<Cancellable, ScheduleError<T>> {
        let spec = JobSpec::fixed_delay(initial_delay, delay);
        self.schedule_as(spec, dispatcher, Task::new(task))
    }

    /// Sends the runs of a job as deliveries: see [`PendingDelivery`](crate::PendingDelivery). The
    /// poller of the shard passes them to their sink, so deliveries of one shard that are due in
    /// the same tick are sent in the order in which they were scheduled.
    ///
    /// The policy is that of `spec`, because the caller may know more affinities than that of a
    /// dispatcher; see [`policies`](Self::policies).
    ///
    /// # Errors
    ///
    /// As [`schedule_once_fn`](Self::schedule_once_fn).
    pub fn schedule_delivery<T: DeliveryTask>(
        &self,
        spec: JobSpec,
        task: T,
    ) -> Result<Cancellable, ScheduleError<T>> {
        let scheduled = self.schedule(spec, DispatcherId::DEFAULT, Task::delivery(task));
        scheduled.map_err(|refused| {
            refused
                .map(|task| task.take_back().expect("the task was made of a `T` and was not sent"))
        })
    }

    /// Runs a closure of the runtime itself once, after `delay`. Such a job has high priority and a
    /// place of the reserve: load by users neither evicts it nor makes it refused. Its delay must
    /// be at most [`internal_delay_max`](Self::internal_delay_max), because the overflow has no
    /// reserve.
    ///
    /// # Errors
    ///
    /// As [`schedule_once_fn`](Self::schedule_once_fn).
    #[doc(hidden)]
    pub fn schedule_internal<F, R>(
        &self,
        delay: Duration,
        f: F,
    ) -> Result<Cancellable, ScheduleError<F>>
    where
        F: FnOnce(&FireContext) -> R + Send + 'static,
        R: Outcome,
    {
        let policy = Policy::DEFAULT.priority(TimerPriority::High);
        let spec = JobSpec { is_internal: true, ..JobSpec::once(delay).policy(policy) };
        self.schedule(spec, DispatcherId::DEFAULT, Task::once(f)).map_err(|refused| {
            refused
                .map(|task| task.take_back().expect("the task was made of an `F` and has not run"))
        })
    }

    /// The longest delay of a job of the runtime itself.
    #[doc(hidden)]
    #[must_use]
    pub fn internal_delay_max(&self) -> Duration {
        self.inner.shared.resolution.duration(TickSpan::new(INTERNAL_TICKS_MAX))
    }

    /// The policies of the configuration.
    #[must_use]
    pub fn policies(&self) -> &PolicyRegistry {
        &self.inner.policies
    }

    fn schedule_as<T: 'static>(
        &self,
        mut spec: JobSpec,
        dispatcher: DispatcherId,
        task: Task,
    ) -> Result<Cancellable, ScheduleError<T>> {
        spec.policy = self.inner.policies.of_dispatcher(dispatcher);
        self.schedule(spec, dispatcher, task).map_err(|refused| {
            refused
                .map(|task| task.take_back().expect("the task was made of a `T` and has not run"))
        })
    }

    /// Schedules a job, for callers that resolve its policy by affinities other than a dispatcher.
    ///
    /// # Errors
    ///
    /// As [`schedule_once_fn`](Self::schedule_once_fn).
    #[doc(hidden)]
    pub fn schedule(
        &self,
        mut spec: JobSpec,
        dispatcher: DispatcherId,
        task: Task,
    ) -> Result<Cancellable, ScheduleError<Task>> {
        let inner = &*self.inner;
        let host = &*inner.shared.host;
        // The shards close later, after the close tasks have run: refuse jobs of close tasks here.
        if self.is_closed() {
            return Err(ScheduleError::new(ScheduleErrorKind::Closed, task));
        }
        if dispatcher != DispatcherId::DEFAULT && !host.has_dispatcher(dispatcher) {
            return Err(ScheduleError::new(ScheduleErrorKind::ReceiverGone, task));
        }
        spec.notify_cancel = task.wants_cancel();
        spec.is_delivery = task.is_delivery();
        let now = host.now();
        let plan = match spec.plan(now, inner.shared.resolution, inner.is_strict) {
            Ok(plan) => plan,
            Err(kind) => return Err(ScheduleError::new(kind, task)),
        };
        let index = match inner.shards.len() {
            1 => 0,
            n => host.shard() % n,
        };
        let shard = &inner.shards[index];
        let item = JobPayload { task, dispatcher };
        let accepted = shard.jobs.schedule(&spec, plan, item, &|| {
            host.can_wait() && {
                host.relax();
                true
            }
        });
        // Wake the readers of diagnostics last, because a waker may panic.
        let accepted = match accepted {
            Ok(accepted) => accepted,
            Err(refused) => {
                shard.flush();
                inner.shared.bus().wake_readers();
                return Err(refused.map(|item| item.task));
            }
        };
        let job = Cancellable::new(shard.clone(), accepted.slot, accepted.timer);
        if let Some(at) = accepted.wake_at {
            host.wake_poller(index, at);
        } else {
            shard.flush();
        }
        inner.shared.bus().wake_readers();
        if spec.delay.is_zero() && inner.metadata.mode == RunnerMode::Manual {
            self.run_at_once();
        }
        Ok(job)
    }

    /// In manual mode there is no poller to wake: a job without delay runs now, after overdue ones.
    /// If this is called within a run, that poll runs the job.
    #[cold]
    fn run_at_once(&self) {
        // Relaxed: a poll in progress looks for due jobs again before it returns.
        if self.inner.polling.load(Ordering::Relaxed) == 0 {
            self.run_due();
        }
    }

    /// Registers a task that runs when the scheduler closes: after all due jobs have run, and
    /// before waiting jobs are cancelled. Tasks of higher priority run first, and tasks of equal
    /// priority in the order of registration. A failing task does not keep others from running.
    ///
    /// # Errors
    ///
    /// Returns the task after the shutdown has begun, if 4096 tasks are registered, or with
    /// [`CannotWait`](ScheduleErrorKind::CannotWait) in an interrupt.
    pub fn register_on_close<F>(
        &self,
        task: F,
        priority: TaskRunPriority,
    ) -> Result<TaskRunHandle, ScheduleError<F>>
    where
        F: FnOnce() -> Result<(), HandlerError> + Send + 'static,
    {
        // The shutdown takes the tasks after due jobs have run: refuse tasks of those jobs here.
        if self.is_closed() {
            return Err(ScheduleError::new(ScheduleErrorKind::Closed, task));
        }
        if !self.inner.shared.host.can_wait() {
            return Err(ScheduleError::new(ScheduleErrorKind::CannotWait, task));
        }
        self.inner.tasks.register(task, priority)
    }

    /// Cancels a close task and drops it. True once; false if it was cancelled before or has begun.
    /// An interrupt cannot cancel a close task: the call returns false there.
    pub fn cancel_on_close(&self, handle: TaskRunHandle) -> bool {
        self.inner.shared.host.can_wait() && self.inner.tasks.cancel(handle)
    }

    /// Creates futures that complete after a delay, on this scheduler.
    #[must_use]
    pub fn delays(&self) -> DelayProvider {
        DelayProvider::new(self.clone())
    }

    /// The highest frequency at which a job can run, in hertz: once per tick.
    #[must_use]
    pub fn max_frequency(&self) -> u32 {
        self.inner.shared.resolution.hertz()
    }

    /// The length of a tick.
    #[must_use]
    pub fn resolution(&self) -> Resolution {
        self.inner.shared.resolution
    }

    /// The current time.
    #[must_use]
    pub fn now(&self) -> TimerInstant {
        self.inner.shared.host.now()
    }

    /// How the scheduler is driven.
    #[must_use]
    pub fn metadata(&self) -> DriverMetadata {
        self.inner.metadata
    }

    /// The number of shards.
    #[must_use]
    pub fn shards(&self) -> usize {
        self.inner.shards.len()
    }

    /// Logs, event streams and other diagnostics.
    #[must_use]
    pub fn diagnostics(&self) -> Diagnostics<'_> {
        Diagnostics::new(self)
    }

    /// Sets the level of a reason for pressure, in percent. A change of pressure is reported as a
    /// [`Warning::BackpressureState`].
    pub fn set_pressure(&self, reason: crate::PressureReason, percent: u8) {
        let change = self.inner.shared.pressure.set(reason, percent);
        self.inner.shared.report_pressure(change);
    }

    /// Whether there is pressure now, for whatever reason. For those who may have missed a
    /// [`Warning::BackpressureState`].
    #[doc(hidden)]
    #[must_use]
    pub fn is_under_pressure(&self) -> bool {
        self.inner.shared.tables.quota.is_under_pressure()
    }

    /// Whether a shutdown has begun.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        // Relaxed: a hint; a call that schedules gets the exact answer.
        self.inner.is_shutting_down.load(Ordering::Relaxed)
    }

    pub(crate) fn inner(&self) -> &Inner {
        &self.inner
    }
}

impl SchedulerShard {
    /// Calls `f` with the wheel and the table, under the shard guard. For uses other than a poll.
    pub(crate) fn with_guard<R>(&self, f: impl FnOnce(&mut LockedShard<JobPayload>) -> R) -> R {
        let mut guard = self.jobs.lock(&self.shared.relax());
        let seen = f(guard.locked());
        drop(guard);
        self.flush();
        seen
    }

    /// Performs the pending wake-ups: wakes the poller if there is something to notify or drop, and
    /// the readers of published events. Call this after releasing a guard outside of a poll.
    #[inline]
    pub(crate) fn flush(&self) {
        let wakes = self.jobs.take_pending_wakes();
        if !wakes.is_empty() {
            self.flush_wakes(wakes);
        }
    }

    #[cold]
    fn flush_wakes(&self, wakes: PendingWakes) {
        if wakes.wakes_poller() {
            self.shared.host.wake_poller(self.jobs.id() as usize, Tick::ZERO);
        }
        if wakes.wakes_readers() {
            self.shared.wake_readers();
        }
    }
}

impl SchedulerShared {
    pub(crate) fn relax(&self) -> impl Fn() + '_ {
        || self.host.relax()
    }

    pub(crate) fn bus(&self) -> &Arc<Bus> {
        &self.tables.bus
    }

    /// Wakes the readers of diagnostics within an operation that must be completed, such as a
    /// shutdown: catches a panic of a waker, if the host can, and wakes the other readers.
    pub(crate) fn wake_readers(&self) {
        // The loop terminates: a waker is removed before it is woken.
        while self.catch_unwind(&mut || self.bus().wake_readers()).is_err() {}
    }

    pub(crate) fn warn(&self, warning: Warning) {
        self.tables.recorder.warn(&warning);
        if self.bus().wants(EventKinds::WARNING) {
            self.bus().publish(DiagnosticEvent::Warned(warning));
            self.wake_readers();
        }
    }

    pub(crate) fn report_pressure(&self, change: Option<crate::PressureChange>) {
        if let Some(change) = change {
            self.warn(change.into());
        }
    }

    /// Calls what may be user code. A panic becomes an error, whose text is that of the panic.
    #[inline]
    pub(crate) fn catch_unwind(&self, call: &mut dyn FnMut()) -> Result<(), HandlerError> {
        self.host.catch_unwind(call).map_err(|payload| self.error_of(payload))
    }

    #[cold]
    fn error_of(&self, payload: PanicPayload) -> HandlerError {
        let error = HandlerError::from_panic(&payload);
        payload.drop_caught(|call| self.host.catch_unwind(call));
        error
    }

    /// Calls a handler. A panic becomes an error.
    #[inline]
    pub(crate) fn call(
        &self,
        mut f: impl FnMut() -> Result<(), HandlerError>,
    ) -> Result<(), HandlerError> {
        let mut outcome = Ok(());
        self.catch_unwind(&mut || outcome = f())?;
        outcome
    }

    /// Drops user data, whose drop may panic.
    pub(crate) fn discard<T>(&self, value: T) {
        let mut value = Some(value);
        // There is nobody to report this panic to.
        drop(self.catch_unwind(&mut || drop(value.take())));
    }
}

impl fmt::Debug for Scheduler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scheduler")
            .field("metadata", &self.inner.metadata)
            .field("shards", &self.shards())
            .finish_non_exhaustive()
    }
}
