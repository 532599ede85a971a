//! The scheduler of a pool: its host, and the source by which workers poll its shards.

use core::{
    cell::Cell,
    convert::Infallible,
    fmt, ptr,
    sync::atomic::{
        AtomicUsize,
        Ordering::{AcqRel, Acquire, Relaxed},
    },
    time::Duration,
};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock, Weak};

use clockjack_exec::{
    Events, Failure, Handle, Payload, Process, SourcePoll, StepOutput, SubmitError, TimerSource,
    executor::ExecutorShared, executor_ref::ExecutorRef, worker::WorkerLocal,
};
use clockjack_sched::{
    CloseReport, DispatchedRun, DispatcherId, EventSink, PanicPayload, Scheduler, SchedulerConfig,
    SchedulerHost,
};
use clockjack_time::{ClockKind, MonotonicClock as _, Tick, TimerInstant};

use super::{BLOCKING_DISPATCHER, NANO, POLL_BUDGET, PoolSchedulerConfig, TimerTopology};
use crate::{
    BlockingPool, OsInstant, catch_panic,
    dispatchers::Dispatchers,
    pool::{host, host::Threads},
};

/// How often a thread that waits for dispatched handlers polls if no unpark arrives.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// How long close tasks and due jobs may run if the deadline of the shutdown has passed already.
const CLOSE_TIME_MIN: Duration = Duration::from_millis(50);

thread_local! {
    /// The scheduler whose dispatched handler this thread runs; only compared, never dereferenced.
    static DISPATCHED_BY: Cell<*const PoolSchedulerShared> = const { Cell::new(ptr::null()) };
}

/// The scheduler of a pool.
pub(crate) struct PoolScheduler {
    scheduler: Scheduler,
    shared: Arc<PoolSchedulerShared>,
    /// Set when the pool has closed the scheduler, or found it closed.
    closed: OnceLock<()>,
}

/// The executors on which jobs can run.
pub(crate) struct Executors {
    /// The workers of the pool.
    pub(crate) threads: Arc<Threads>,
    /// The threads for blocking work.
    pub(crate) blocking: Arc<BlockingPool>,
    /// The dispatchers that the user has created, if the pool belongs to a runtime.
    pub(crate) user_dispatchers: Arc<OnceLock<Weak<Dispatchers>>>,
}

impl Executors {
    fn user_dispatcher(&self, dispatcher: DispatcherId) -> Option<Handle> {
        self.user_dispatchers.get()?.upgrade()?.user_dispatcher(dispatcher)
    }
}

/// The state that the scheduler's host and dispatched handlers share.
struct PoolSchedulerShared {
    /// The executor whose workers poll the shards. The executor owns the scheduler, too, by its
    /// [`PoolSource`]: the close takes this reference, which breaks the cycle.
    executor: RwLock<Option<ExecutorRef>>,
    /// The address of that executor, only compared; zero after the close.
    executor_address: AtomicUsize,
    executors: Executors,
    /// Handlers that were dispatched to other executors and have not finished.
    dispatched: AtomicUsize,
}

impl PoolScheduler {
    pub(crate) fn new(
        config: &PoolSchedulerConfig,
        workers: usize,
        executor: ExecutorRef,
        executors: Executors,
    ) -> Self {
        let clock = executors.threads.clock;
        let shards = match config.topology {
            TimerTopology::PerWorker => workers.max(1),
            TimerTopology::Single => 1,
        };
        let shared = Arc::new(PoolSchedulerShared {
            executor_address: AtomicUsize::new(host::address_of(&executor)),
            executor: RwLock::new(Some(executor)),
            executors,
            dispatched: AtomicUsize::new(0),
        });
        let settings = SchedulerConfig {
            // The ticks of the scheduler are those of the pool.
            resolution: clock.resolution(),
            // The pool may be older than its scheduler: the time before this call is not missed
            // time.
            start: clock.now().tick(),
            // Each of these workers has a timer shard, so the executor has as many.
            shards: u32::try_from(shards).expect("a pool has 1024 workers at most"),
            ..config.settings.clone()
        };
        let scheduler = Scheduler::new(settings, PoolHost(Arc::clone(&shared)))
            .expect("the clock is the system's, and the number of shards that of workers");
        Self { scheduler, shared, closed: OnceLock::new() }
    }

    pub(crate) fn scheduler(&self) -> &Scheduler {
        &self.scheduler
    }

    /// Shuts the scheduler down, unless an earlier call has, and waits for handlers on other
    /// executors, unless this thread is a worker. Only the owner of the pool calls it, so calls do
    /// not overlap. No handler begins after the deadline, or after [`CLOSE_TIME_MIN`] if other
    /// parts of the shutdown have used up the time. Returns the deadline for what follows: later
    /// than this one if the handlers have taken longer.
    pub(crate) fn close(&self, is_worker: bool, until: OsInstant) -> OsInstant {
        let is_first = self.closed.get().is_none();
        if is_first {
            let rest = until.saturating_since(OsInstant::now());
            self.scheduler.shutdown_within(rest.max(CLOSE_TIME_MIN));
            self.shared.release_executor();
            let _ = self.closed.set(());
        }
        if !is_worker {
            self.shared.wait_for_dispatched(until);
        }
        if is_first { until.max(OsInstant::now()) } else { until }
    }

    /// The report of the close, with the numbers of jobs as they are now; `None` before the close.
    pub(crate) fn report(&self) -> Option<CloseReport> {
        self.closed.get()?;
        // A further shutdown only reports.
        Some(self.scheduler.shutdown())
    }
}

impl fmt::Debug for PoolScheduler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.scheduler.fmt(f)
    }
}

impl PoolSchedulerShared {
    /// Makes a worker poll a shard at this tick at the latest. Does nothing after the close: then
    /// no job waits, and a thread that completes a run does the rest itself.
    fn request_poll(&self, shard: u32, at: Tick) {
        self.with_executor(|executor| executor.request_source_poll(shard, at));
    }

    /// Calls `f` with the executor of the pool, unless the scheduler is closed.
    fn with_executor(&self, f: impl Fn(&ExecutorShared)) {
        if self.with_worker(|local| f(local.executor())).is_some() {
            return;
        }
        let executor = self.executor.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(executor) = &*executor {
            f(executor);
        }
    }

    /// Calls `f` with the worker state of this thread, if it is a worker of the pool.
    #[inline]
    fn with_worker<R>(&self, f: impl FnOnce(&WorkerLocal) -> R) -> Option<R> {
        // Relaxed: if this is not zero, the executor existed at the time of the load. If this
        // thread is a worker of an executor at the same address, then of that one.
        host::with_worker_at(self.executor_address.load(Relaxed), f)
    }

    fn release_executor(&self) {
        // Relaxed: see `with_worker`.
        self.executor_address.store(0, Relaxed);
        let executor = self.executor.write().unwrap_or_else(PoisonError::into_inner).take();
        drop(executor);
    }

    fn wait_for_dispatched(&self, until: OsInstant) {
        // A handler that shuts the pool down does not wait for itself.
        let own = usize::from(ptr::eq(DISPATCHED_BY.get(), self));
        // Acquire: pairs with the decrement in the drop of a `TrackedRun`.
        while self.dispatched.load(Acquire) > own {
            let now = OsInstant::now();
            if now >= until {
                return;
            }
            self.executors
                .threads
                .shutdown_parker
                .park(Some(now.saturating_add(POLL_INTERVAL).min(until)));
        }
    }
}

/// The scheduler's host on a pool.
struct PoolHost(Arc<PoolSchedulerShared>);

impl SchedulerHost for PoolHost {
    #[inline]
    fn now(&self) -> TimerInstant {
        TimerInstant::new(Tick::new(self.0.executors.threads.clock.nanos_now()), NANO)
    }

    fn clock_kind(&self) -> ClockKind {
        ClockKind::RealtimeHost
    }

    fn name(&self) -> &'static str {
        "pool"
    }

    #[inline]
    fn shard(&self) -> usize {
        let local = self.0.with_worker(|local| local.local_shard() as usize);
        local.unwrap_or_else(super::poll_all::thread_shard_hint)
    }

    fn wake_poller(&self, shard: usize, at: Tick) {
        self.0.request_poll(u32::try_from(shard).expect("as many as workers"), at);
    }

    fn relax(&self) {
        std::thread::yield_now();
    }

    fn recorder(&self) -> Option<EventSink> {
        let shared = Arc::clone(&self.0);
        Some(Box::new(move |event| shared.with_executor(|executor| executor.record(event))))
    }

    fn catch_unwind(&self, call: &mut dyn FnMut()) -> Result<(), PanicPayload> {
        catch_panic(call)
    }

    fn has_dispatcher(&self, dispatcher: DispatcherId) -> bool {
        matches!(dispatcher, DispatcherId::DEFAULT | BLOCKING_DISPATCHER)
            || self.0.executors.user_dispatcher(dispatcher).is_some()
    }

    fn dispatch(&self, dispatcher: DispatcherId, work: DispatchedRun) -> Result<(), DispatchedRun> {
        let run = TrackedRun { work: Some(work), shared: Arc::clone(&self.0) };
        // Relaxed: the thread that waits for zero has stopped all increments before.
        self.0.dispatched.fetch_add(1, Relaxed);
        if dispatcher == BLOCKING_DISPATCHER {
            return self.0.run_blocking(run);
        }
        let Some(target) = self.0.executors.user_dispatcher(dispatcher) else {
            return Err(run.into_work());
        };
        let refused = target.submit(run).err().and_then(SubmitError::into_inner);
        refused.map_or(Ok(()), |run| Err(run.into_work()))
    }
}

impl PoolSchedulerShared {
    fn run_blocking(&self, run: TrackedRun) -> Result<(), DispatchedRun> {
        // In a shared slot, because a refused closure does not return what it has captured.
        let slot = Arc::new(Mutex::new(Some(run)));
        let taken = Arc::clone(&slot);
        let take = |slot: &Mutex<Option<TrackedRun>>| {
            slot.lock().unwrap_or_else(PoisonError::into_inner).take()
        };
        let run = move || {
            if let Some(mut run) = take(&taken) {
                run.execute();
            }
        };
        let submitted = self.executors.blocking.submit(run);
        submitted.map_err(|_refused| take(&slot).expect("nobody has run it").into_work())
    }
}

/// A dispatched run, counted until it has finished or was dropped.
struct TrackedRun {
    work: Option<DispatchedRun>,
    shared: Arc<PoolSchedulerShared>,
}

impl TrackedRun {
    fn execute(&mut self) {
        if let Some(work) = self.work.take() {
            let before = DISPATCHED_BY.replace(Arc::as_ptr(&self.shared));
            work.run();
            DISPATCHED_BY.set(before);
        }
    }

    fn into_work(mut self) -> DispatchedRun {
        self.work.take().expect("nobody has run it")
    }
}

/// The run as a process of a dispatcher that the user has created.
impl Process for TrackedRun {
    type Message = Infallible;

    fn step(
        &mut self,
        _: &mut Events<'_, Infallible>,
        out: &mut StepOutput,
    ) -> Result<(), Failure> {
        self.execute();
        out.done(Payload::new(()));
        Ok(())
    }
}

impl Drop for TrackedRun {
    fn drop(&mut self) {
        drop(self.work.take());
        // AcqRel: a thread that reads zero sees the effects of all finished runs.
        self.shared.dispatched.fetch_sub(1, AcqRel);
        self.shared.executors.threads.shutdown_parker.unpark();
    }
}

/// The jobs of a pool's scheduler, as the workers poll them; none before the scheduler is created.
pub(crate) struct PoolSource(pub(crate) Arc<OnceLock<PoolScheduler>>);

impl TimerSource for PoolSource {
    fn poll(&self, shard: u32, worker: usize) -> SourcePoll {
        let Some(pool) = self.0.get() else { return SourcePoll::default() };
        let jitters = &pool.shared.executors.threads.wake_jitters;
        if let Some(jitter) = jitters.get(worker).and_then(|jitter| jitter.take()) {
            pool.scheduler.diagnostics().set_shard_jitter(shard as usize, jitter);
        }
        let worker = u16::try_from(worker).unwrap_or(u16::MAX);
        let polled = pool.scheduler.poll_shard(shard as usize, worker, POLL_BUDGET);
        SourcePoll { is_more: polled.is_more, next_wake: polled.next_wake }
    }
}

/// The watchdog's check that the scheduler is driven, if there is a scheduler.
pub(crate) struct DriverTimeoutCheck {
    scheduler: Arc<OnceLock<PoolScheduler>>,
    every: Duration,
    next: OsInstant,
}

impl DriverTimeoutCheck {
    pub(crate) fn new(
        scheduler: Arc<OnceLock<PoolScheduler>>,
        config: &PoolSchedulerConfig,
    ) -> Self {
        let every = config.settings.driver_timeout / 4;
        Self { scheduler, every, next: OsInstant::from_nanos(0) }
    }

    pub(crate) fn check(&mut self) {
        let Some(pool) = self.scheduler.get() else { return };
        let now = OsInstant::now();
        if now >= self.next {
            self.next = now.saturating_add(self.every);
            pool.scheduler.check_driver();
        }
    }
}
