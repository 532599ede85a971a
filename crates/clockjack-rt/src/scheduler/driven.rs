//! What a scheduler with a driver of its own, a thread or a task, shares with it.

use alloc::sync::Arc;
use core::{
    any::Any,
    sync::atomic::{AtomicU64, Ordering::Relaxed},
};

use clockjack_exec::StartError;
use clockjack_sched::{
    DispatcherId, HandlerError, Scheduler, SchedulerConfig, SchedulerHost, Work,
};
use clockjack_time::{ClockKind, TimerInstant};

use super::{Timebase, round, watchdog::Watchdog};
use crate::{OsClock, blocking};

/// What calls a driver, and where else it has handlers run.
pub(crate) trait Bell: Send + Sync + 'static {
    /// What the driver is called.
    const DRIVER: &'static str;

    /// Makes the driver take a turn.
    fn ring(&self);

    /// Whether handlers can run there.
    fn has_dispatcher(&self, dispatcher: DispatcherId) -> bool {
        dispatcher == DispatcherId::DEFAULT
    }

    /// Has a handler run elsewhere, or gives it back.
    fn dispatch(&self, _dispatcher: DispatcherId, work: Work) -> Result<(), Work> {
        Err(work)
    }
}

/// The time of a scheduler, the bell that calls its driver, and who watches that.
#[derive(Debug)]
pub(crate) struct Driven<B> {
    pub(crate) time: Timebase,
    pub(crate) bell: B,
    pub(crate) watchdog: Arc<Watchdog>,
    restarts: AtomicU64,
}

impl<B> Driven<B> {
    /// Time begins now, at the start of the configuration.
    pub(crate) fn new(config: &SchedulerConfig, bell: B) -> Arc<Self> {
        let clock = OsClock::new(config.resolution);
        let time = Timebase::new(clock, config.start, config.resolution);
        let watchdog = Arc::new(Watchdog::new(config.driver_silence));
        Arc::new(Self { time, bell, watchdog, restarts: AtomicU64::new(0) })
    }

    /// A scheduler whose driver is called by this bell.
    ///
    /// # Errors
    ///
    /// If the number of shards cannot be.
    pub(crate) fn scheduler(
        self: &Arc<Self>,
        config: SchedulerConfig,
    ) -> Result<Scheduler, StartError>
    where
        B: Bell,
    {
        let scheduler = Scheduler::new(config, Host(Arc::clone(self)));
        scheduler.map_err(|refused| StartError::thread(&refused))
    }

    /// The driver panicked and goes on. Handlers are guarded, so this was a waker of who reads
    /// diagnostics.
    pub(crate) fn restarted(&self, payload: Box<dyn Any + Send>) {
        blocking::discard(payload);
        // Relaxed: statistics.
        self.restarts.fetch_add(1, Relaxed);
    }

    pub(crate) fn restarts(&self) -> u64 {
        // Relaxed: statistics.
        self.restarts.load(Relaxed)
    }
}

struct Host<B>(Arc<Driven<B>>);

impl<B: Bell> SchedulerHost for Host<B> {
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
        round::of_thread()
    }

    fn call_runner(&self, _shard: usize) {
        self.0.bell.ring();
        self.0.watchdog.expect();
    }

    fn relax(&self) {
        std::thread::yield_now();
    }

    fn guarded(&self, call: &mut dyn FnMut()) -> Result<(), HandlerError> {
        super::catch_panic(call)
    }

    fn has_dispatcher(&self, dispatcher: DispatcherId) -> bool {
        self.0.bell.has_dispatcher(dispatcher)
    }

    fn dispatch(&self, dispatcher: DispatcherId, work: Work) -> Result<(), Work> {
        self.0.bell.dispatch(dispatcher, work)
    }
}
