//! The state that a scheduler shares with its dedicated driver, a thread or a task.

use core::{
    any::Any,
    sync::atomic::{AtomicU64, Ordering::Relaxed},
};
use std::sync::Arc;

use clockjack_exec::StartError;
use clockjack_sched::{
    DispatchedRun, DispatcherId, PanicPayload, Scheduler, SchedulerConfig, SchedulerHost,
};
use clockjack_time::{ClockKind, Tick, TimerInstant};

use super::{Timebase, poll_all, watchdog::DriverWatchdog};
use crate::{OsClock, OsInstant, blocking, catch_panic};

/// How to wake a driver, and where else its handlers can run.
pub(crate) trait DriverBackend: Send + Sync + 'static {
    /// The name of the driver.
    const DRIVER: &'static str;

    /// Makes the driver poll the scheduler.
    fn wake(&self);

    /// Whether handlers can run on this dispatcher.
    fn has_dispatcher(&self, dispatcher: DispatcherId) -> bool {
        dispatcher == DispatcherId::DEFAULT
    }

    /// Runs a handler on another dispatcher, or returns it to the caller.
    fn dispatch(
        &self,
        _dispatcher: DispatcherId,
        work: DispatchedRun,
    ) -> Result<(), DispatchedRun> {
        Err(work)
    }
}

/// The time of a scheduler, the backend that wakes its driver, and the driver's watchdog.
#[derive(Debug)]
pub(crate) struct DriverShared<B> {
    pub(crate) time: Timebase,
    pub(crate) backend: B,
    pub(crate) watchdog: Arc<DriverWatchdog>,
    restarts: AtomicU64,
}

impl<B> DriverShared<B> {
    /// Time starts now, at the start tick of the configuration.
    pub(crate) fn new(config: &SchedulerConfig, backend: B) -> Arc<Self> {
        let clock = OsClock::new(config.resolution);
        let time = Timebase::new(clock, config.start, config.resolution);
        let watchdog = Arc::new(DriverWatchdog::new(config.driver_timeout));
        Arc::new(Self { time, backend, watchdog, restarts: AtomicU64::new(0) })
    }

    /// Creates a scheduler whose driver this backend wakes.
    ///
    /// # Errors
    ///
    /// If the number of shards is invalid.
    pub(crate) fn scheduler(
        self: &Arc<Self>,
        config: SchedulerConfig,
    ) -> Result<Scheduler, StartError>
    where
        B: DriverBackend,
    {
        let scheduler = Scheduler::new(config, DriverHost(Arc::clone(self)));
        scheduler.map_err(|refused| StartError::thread(&refused))
    }

    /// The driver has slept until `until`, or was woken before: reports how late it woke up.
    pub(crate) fn report_jitter(&self, scheduler: &Scheduler, until: OsInstant) {
        let now = OsInstant::now();
        if now >= until {
            scheduler.diagnostics().set_driver_jitter(now.saturating_since(until));
        }
    }

    /// The driver panicked and continues. Panics of handlers are caught, so this was the waker of a
    /// task that reads diagnostics.
    pub(crate) fn record_restart(&self, payload: Box<dyn Any + Send>) {
        blocking::drop_panic_payload(payload);
        // Relaxed: statistics.
        self.restarts.fetch_add(1, Relaxed);
    }

    pub(crate) fn restarts(&self) -> u64 {
        // Relaxed: statistics.
        self.restarts.load(Relaxed)
    }
}

struct DriverHost<B>(Arc<DriverShared<B>>);

impl<B: DriverBackend> SchedulerHost for DriverHost<B> {
    #[inline]
    fn now(&self) -> TimerInstant {
        self.0.time.now()
    }

    fn clock_kind(&self) -> ClockKind {
        ClockKind::RealtimeHost
    }

    fn name(&self) -> &'static str {
        B::DRIVER
    }

    fn shard(&self) -> usize {
        poll_all::thread_shard_hint()
    }

    fn wake_poller(&self, _shard: usize, _at: Tick) {
        self.0.backend.wake();
        self.0.watchdog.notify_deadline();
    }

    fn relax(&self) {
        std::thread::yield_now();
    }

    fn catch_unwind(&self, call: &mut dyn FnMut()) -> Result<(), PanicPayload> {
        catch_panic(call)
    }

    fn has_dispatcher(&self, dispatcher: DispatcherId) -> bool {
        self.0.backend.has_dispatcher(dispatcher)
    }

    fn dispatch(&self, dispatcher: DispatcherId, work: DispatchedRun) -> Result<(), DispatchedRun> {
        self.0.backend.dispatch(dispatcher, work)
    }
}
