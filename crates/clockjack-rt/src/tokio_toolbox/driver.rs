//! The ticks of a clock as a tick driver, for as long as somebody looks at the clock.
//!
//! # Protocol
//!
//! A tick *arrives* when it is claimed: whoever looks at the clock, the driven task in each slice
//! or a poller, moves `claimed` up to the clock with one `fetch_max` and hands on what lay between.
//! Two that look at once claim disjoint parts, so every tick arrives once and none before its time.
//! While somebody is registered the task does not sleep past the next tick; a registration rings
//! the bell, so that a task asleep learns of it.

use alloc::sync::Arc;
use core::{
    sync::atomic::{
        AtomicBool, AtomicU64,
        Ordering::{Acquire, Relaxed, Release},
    },
    task::Waker,
};

use clockjack_time::{
    DriverError, DriverStatus, ManualDriver, MonotonicClock, Tick, TickDriver, TickSpan, TickToken,
};
use tokio::sync::Notify;

use crate::OsClock;

/// A tick driver fed from a clock.
#[derive(Debug)]
pub(super) struct ClockDriver {
    clock: OsClock,
    supply: ManualDriver,
    /// Up to which tick the supply was fed, or is about to be.
    claimed: AtomicU64,
    is_registered: AtomicBool,
    bell: Arc<Notify>,
}

impl ClockDriver {
    pub(super) fn new(clock: OsClock, bell: Arc<Notify>) -> Self {
        Self {
            clock,
            supply: ManualDriver::new(clock.resolution()),
            claimed: AtomicU64::new(0),
            is_registered: AtomicBool::new(false),
            bell,
        }
    }

    /// Lets the ticks arrive that the clock has counted.
    pub(super) fn catch_up(&self) {
        let now = self.clock.ticks_now().get();
        // Relaxed: it only shares out ticks; the supply publishes them.
        let before = self.claimed.fetch_max(now, Relaxed);
        if let Some(span @ 1..) = now.checked_sub(before) {
            self.supply.inject(TickSpan::new(span));
        }
    }

    /// When the next tick is to arrive, if somebody waits for one.
    pub(super) fn next_tick(&self) -> Option<Tick> {
        // Acquire: pairs with the release of `register`.
        let is_registered = self.is_registered.load(Acquire);
        // Relaxed: as in `catch_up`.
        let claimed = Tick::new(self.claimed.load(Relaxed));
        is_registered.then(|| claimed.saturating_add(TickSpan::ONE))
    }
}

impl TickDriver for ClockDriver {
    fn register(&self, wake: Waker) -> Result<(), DriverError> {
        self.catch_up();
        self.supply.register(wake)?;
        // Release: pairs with the look of the task, which the bell makes look.
        self.is_registered.store(true, Release);
        self.bell.notify_one();
        Ok(())
    }

    fn unregister(&self) {
        // Relaxed: who still sees a registration wakes up once for nothing.
        self.is_registered.store(false, Relaxed);
        self.supply.unregister();
    }

    fn poll_tick(&self) -> Option<TickToken> {
        self.catch_up();
        self.supply.poll_tick()
    }

    fn current_status(&self) -> DriverStatus {
        self.catch_up();
        self.supply.current_status()
    }

    fn stop_and_flush(&self) -> DriverStatus {
        self.catch_up();
        // Relaxed: as in `unregister`.
        self.is_registered.store(false, Relaxed);
        self.supply.stop_and_flush()
    }
}
