//! The scheduler of a pool: its host, its runner slots and their runners. The [module](super) has
//! the protocol.

use core::{
    cell::Cell,
    convert::Infallible,
    fmt,
    panic::AssertUnwindSafe,
    pin::Pin,
    ptr,
    sync::atomic::{
        AtomicU64, AtomicUsize,
        Ordering::{AcqRel, Acquire, Relaxed},
    },
    task::{Context, Poll, Waker},
    time::Duration,
};
use std::{
    panic::catch_unwind,
    sync::{Arc, Mutex, OnceLock, PoisonError, Weak},
    task::Wake,
};

use clockjack_exec::{
    Events, Failure, Handle, Payload, Process, Sleep, StepOutput, SubmitError, Timer,
};
use clockjack_sched::{
    CloseReport, DispatchedRun, DispatcherId, EventSink, PanicPayload, PollResult, Scheduler,
    SchedulerConfig, SchedulerHost,
};
use clockjack_sync::waker::AtomicWaker;
use clockjack_time::{ClockKind, MonotonicClock as _, Tick, TimerInstant};

use super::{BLOCKING_DISPATCHER, POLL_BUDGET, PoolSchedulerConfig, Timebase, TimerTopology};
use crate::{
    BlockingPool, OsInstant, blocking, catch_panic,
    dispatchers::Dispatchers,
    pool::{host, host::Threads},
};

/// Stage bit: the runner polls its shard.
const POLLING: u64 = 1;
/// Stage bit: the slot has no runner.
const VACANT: u64 = 2;
/// The increment of the version in the stage word.
const VERSION_STEP: u64 = 4;

/// How long a poll may take before another runner takes the slot over. Polls of short handlers
/// finish before that.
const TAKEOVER_AFTER: Duration = Duration::from_millis(4);

/// How often a thread that waits for dispatched handlers polls if no unpark arrives.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

thread_local! {
    /// The scheduler whose dispatched handler this thread runs; only compared, never dereferenced.
    static DISPATCHED_BY: Cell<*const PoolSchedulerShared> = const { Cell::new(ptr::null()) };
}

/// Statistics of the runners of a pool's scheduler.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RunnerStats {
    /// Runners that were replaced because a handler took too long.
    pub takeovers: u64,
    /// Runners that panicked or were dropped, and were started again.
    pub restarts: u64,
}

/// The scheduler of a pool.
pub(crate) struct PoolScheduler {
    scheduler: Scheduler,
    shared: Arc<PoolSchedulerShared>,
    /// The report of the close, as it was when the close returned.
    closed: OnceLock<CloseReport>,
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

/// The state that the host, the runners and the takeover timers share.
struct PoolSchedulerShared {
    slots: Box<[RunnerSlot]>,
    handle: Handle,
    executors: Executors,
    time: Timebase,
    /// For starting runners; the pool's shutdown takes it, which breaks the reference cycle.
    scheduler: Mutex<Option<Scheduler>>,
    /// Handlers that were dispatched to other executors and have not finished.
    dispatched: AtomicUsize,
    takeovers: AtomicU64,
    restarts: AtomicU64,
}

struct RunnerSlot {
    stage: AtomicU64,
    waker: AtomicWaker,
}

impl PoolScheduler {
    pub(crate) fn new(
        config: &PoolSchedulerConfig,
        workers: usize,
        handle: Handle,
        executors: Executors,
    ) -> Self {
        let clock = executors.threads.clock;
        let resolution = config.resolution.unwrap_or(clock.resolution());
        let time = Timebase::new(clock, Tick::ZERO, resolution);
        let shards = match config.topology {
            TimerTopology::PerWorker => workers.max(1),
            TimerTopology::Single => 1,
        };
        let slot = |_| RunnerSlot { stage: AtomicU64::new(VACANT), waker: AtomicWaker::new() };
        let shared = Arc::new(PoolSchedulerShared {
            slots: (0..shards).map(slot).collect(),
            handle,
            executors,
            time,
            scheduler: Mutex::new(None),
            dispatched: AtomicUsize::new(0),
            takeovers: AtomicU64::new(0),
            restarts: AtomicU64::new(0),
        });
        let settings = SchedulerConfig {
            resolution,
            // The pool may be older than its scheduler: the time before this call is not missed
            // time.
            start: time.now().elapsed_tick(resolution),
            shards: u32::try_from(shards).expect("a pool has 1024 workers at most"),
            ..config.settings.clone()
        };
        let scheduler = Scheduler::new(settings, PoolHost(Arc::clone(&shared)))
            .expect("the clock is the system's, and the number of shards that of workers");
        *shared.scheduler.lock().unwrap_or_else(PoisonError::into_inner) = Some(scheduler.clone());
        Self { scheduler, shared, closed: OnceLock::new() }
    }

    pub(crate) fn scheduler(&self) -> &Scheduler {
        &self.scheduler
    }

    pub(crate) fn stats(&self) -> RunnerStats {
        // Relaxed: statistics.
        let (takeovers, restarts) =
            (self.shared.takeovers.load(Relaxed), self.shared.restarts.load(Relaxed));
        RunnerStats { takeovers, restarts }
    }

    /// Shuts the scheduler down, unless an earlier call has, and waits for handlers on other
    /// executors. Only the owner of the pool calls it, so calls do not overlap.
    pub(crate) fn close(&self, until: OsInstant) {
        if self.closed.get().is_none() {
            let report = self.scheduler.shutdown();
            drop(self.shared.scheduler().take());
            let _ = self.closed.set(report);
        }
        if !host::is_worker_of(self.shared.handle.executor()) {
            self.shared.wait_for_dispatched(until);
        }
    }

    /// The report of the close, with the numbers of jobs as they are now; `None` before the close.
    pub(crate) fn report(&self) -> Option<CloseReport> {
        let at_close = *self.closed.get()?;
        let now = self.scheduler.metrics();
        // The close has counted running jobs by the outcome that it expected. A run that another
        // executor has dropped since is cancelled instead of executed. The counters of finished
        // jobs bound both numbers; the bounds meet when no job is running any more.
        let accepted = now.accepted_total;
        let executed_max = accepted.saturating_sub(now.cancelled_total);
        let executed = at_close.executed.max(now.executed_total).min(executed_max);
        Some(CloseReport {
            accepted,
            executed,
            cancelled: accepted - executed,
            // After the close, only running jobs are live.
            still_running: now.active_total as u64,
            ..at_close
        })
    }
}

impl fmt::Debug for PoolScheduler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.scheduler.fmt(f)
    }
}

impl PoolSchedulerShared {
    fn scheduler(&self) -> std::sync::MutexGuard<'_, Option<Scheduler>> {
        // No code under this lock leaves the value in an inconsistent state when it panics.
        self.scheduler.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Rule 4.
    fn wake_runner(self: &Arc<Self>, shard: usize) {
        let slot = &self.slots[shard];
        // Relaxed: the waker's own synchronization orders what the runner sees, and the spawn
        // publishes a new runner.
        let stage = slot.stage.load(Relaxed);
        if stage & VACANT == 0 {
            slot.waker.wake();
        } else {
            self.start_runner(shard, stage);
        }
    }

    /// Starts a runner in place of the one that `stage` describes, if the stage is unchanged.
    #[cold]
    fn start_runner(self: &Arc<Self>, shard: usize, stage: u64) -> bool {
        let Some(scheduler) = self.scheduler().clone() else { return false };
        let mine = next_version(stage, 0);
        // Relaxed: the exchange decides who starts a runner, and publishes nothing.
        let won = self.slots[shard].stage.compare_exchange(stage, mine, Relaxed, Relaxed);
        if won.is_ok() {
            let runner = Runner {
                takeover_timer: TakeoverTimer::new(self, shard),
                shared: Arc::clone(self),
                scheduler,
                shard,
                stage: mine,
                has_begun: false,
                sleep: None,
            };
            // If the pool refuses the runner, its drop leaves the slot vacant, so the next call
            // tries again.
            drop(self.handle.spawn_future(runner));
        }
        won.is_ok()
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

/// The next value of a stage word.
const fn next_version(stage: u64, bits: u64) -> u64 {
    ((stage & !(VERSION_STEP - 1)) + VERSION_STEP) | bits
}

/// The scheduler's host on a pool.
struct PoolHost(Arc<PoolSchedulerShared>);

impl SchedulerHost for PoolHost {
    #[inline]
    fn now(&self) -> TimerInstant {
        self.0.time.now()
    }

    fn clock_kind(&self) -> ClockKind {
        ClockKind::RealtimeHost
    }

    fn name(&self) -> &'static str {
        "pool"
    }

    #[inline]
    fn shard(&self) -> usize {
        host::worker_index_of(self.0.handle.executor())
            .unwrap_or_else(super::poll_all::thread_shard_hint)
    }

    fn wake_poller(&self, shard: usize) {
        self.0.wake_runner(shard);
    }

    fn relax(&self) {
        std::thread::yield_now();
    }

    fn recorder(&self) -> Option<EventSink> {
        let executor = self.0.handle.executor().clone();
        Some(Box::new(move |event| executor.record(event)))
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

/// Polls one shard of the scheduler.
struct Runner {
    shared: Arc<PoolSchedulerShared>,
    scheduler: Scheduler,
    shard: usize,
    /// The stage value that this runner wrote last.
    stage: u64,
    has_begun: bool,
    sleep: Option<Sleep>,
    takeover_timer: TakeoverTimer,
}

impl Runner {
    /// Changes the stage; false if another runner owns the slot.
    fn enter(&mut self, bits: u64) -> bool {
        let to = next_version(self.stage, bits);
        let stage = &self.shared.slots[self.shard].stage;
        // Relaxed: the stage decides who owns the slot, and publishes nothing.
        let is_mine = stage.compare_exchange(self.stage, to, Relaxed, Relaxed).is_ok();
        if is_mine {
            self.stage = to;
        }
        is_mine
    }

    /// Rule 2. `None`: this runner was replaced.
    fn poll_shard(&mut self) -> Option<PollResult> {
        if !self.enter(POLLING) {
            return None;
        }
        self.takeover_timer.arm(self.stage);
        let executor = host::worker_index_of(self.shared.handle.executor());
        let executor = executor.and_then(|index| u16::try_from(index).ok()).unwrap_or(u16::MAX);
        let turn = catch_unwind(AssertUnwindSafe(|| {
            self.scheduler.poll_shard(self.shard, executor, POLL_BUDGET)
        }));
        self.takeover_timer.disarm();
        let is_mine = self.enter(0);
        let turn = turn.unwrap_or_else(|payload| {
            // Panics of handlers are caught, so this was the waker of a task that reads
            // diagnostics. The poll itself was complete.
            blocking::drop_panic_payload(payload);
            // Relaxed: statistics.
            self.shared.restarts.fetch_add(1, Relaxed);
            PollResult { is_more: true, ..PollResult::default() }
        });
        is_mine.then_some(turn)
    }

    /// Sleeps until a tick of the scheduler; true if that tick has come.
    fn sleep_until(&mut self, tick: Tick, cx: &mut Context<'_>) -> bool {
        let nanos = self.shared.time.nanos_of(tick);
        let tick_nanos = u64::from(self.shared.time.clock.resolution().nanos().get());
        // Round up to a tick of the pool: never early, and exact if both ticks are the same.
        let deadline = Tick::new(nanos.div_ceil(tick_nanos));
        let sleep = match &mut self.sleep {
            Some(sleep) if sleep.deadline() == Some(deadline) => sleep,
            sleep => sleep.insert(Sleep::until(deadline, || None)),
        };
        match Pin::new(sleep).poll(cx) {
            Poll::Pending => return false,
            // If there is no room for another timer, the runner polls again and again.
            Poll::Ready(Err(error)) if error.is_closed() => return false,
            Poll::Ready(_) => {}
        }
        self.sleep = None;
        true
    }
}

impl Future for Runner {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = self.get_mut();
        this.has_begun = true;
        this.shared.slots[this.shard].waker.register(cx.waker());
        let Some(turn) = this.poll_shard() else {
            this.shared.slots[this.shard].waker.wake();
            return Poll::Ready(());
        };
        if turn.is_over {
            return Poll::Ready(());
        }
        let is_more = match turn.next_wake {
            _ if turn.is_more => true,
            Some(tick) => this.sleep_until(tick, cx),
            None => {
                this.sleep = None;
                false
            }
        };
        if is_more {
            cx.waker().wake_by_ref();
        }
        Poll::Pending
    }
}

impl Drop for Runner {
    fn drop(&mut self) {
        let (has_begun, is_over) = (self.has_begun, self.scheduler.is_closed());
        if self.enter(VACANT) && has_begun && !is_over && !self.shared.handle.is_stopping() {
            // Relaxed: statistics.
            self.shared.restarts.fetch_add(1, Relaxed);
            self.shared.start_runner(self.shard, self.stage);
        }
    }
}

/// The timer that replaces a runner whose poll takes too long.
struct TakeoverTimer {
    timer: Timer,
    takeover: Arc<TakeoverWaker>,
    waker: Waker,
}

struct TakeoverWaker {
    shared: Arc<PoolSchedulerShared>,
    shard: usize,
    /// The stage for which the timer is armed.
    stage: AtomicU64,
}

impl TakeoverTimer {
    fn new(shared: &Arc<PoolSchedulerShared>, shard: usize) -> Self {
        let timer = shared.handle.timer();
        let stage = AtomicU64::new(0);
        let takeover = Arc::new(TakeoverWaker { shared: Arc::clone(shared), shard, stage });
        Self { timer, waker: Arc::clone(&takeover).into(), takeover }
    }

    fn arm(&mut self, stage: u64) {
        // Relaxed: the timer is armed afterwards, which publishes the store to the thread that
        // fires the timer.
        self.takeover.stage.store(stage, Relaxed);
        // If there is no room for a timer, the runner is not replaced.
        _ = self.timer.arm(TAKEOVER_AFTER, self.waker.clone());
    }

    fn disarm(&mut self) {
        self.timer.cancel();
    }
}

impl Wake for TakeoverWaker {
    /// Rule 3.
    fn wake(self: Arc<Self>) {
        // Relaxed: see `arm`. If that poll has ended, the stage has changed and the exchange fails.
        if self.shared.start_runner(self.shard, self.stage.load(Relaxed)) {
            // Relaxed: statistics.
            self.shared.takeovers.fetch_add(1, Relaxed);
        }
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
