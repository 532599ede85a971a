//! What a scheduler with a driver of its own, a thread or a task, shares with it.

use alloc::sync::Arc;
use core::{
    any::Any,
    sync::atomic::{AtomicU64, Ordering::Relaxed},
};

use clockjack_sched::SchedulerConfig;

use super::{Timebase, watchdog::Watchdog};
use crate::{OsClock, blocking};

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
