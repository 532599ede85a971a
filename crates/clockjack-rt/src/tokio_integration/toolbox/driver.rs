//! A tick driver whose ticks come from the clock, whenever a thread reads the clock.
//!
//! # Protocol
//!
//! A tick *arrives* when it is claimed. A thread that reads the clock (the driven task in each
//! slice, or a poller) raises `claimed` to the clock's tick with one `fetch_max` and injects the
//! ticks in between. Two threads that do this at the same time claim disjoint ranges, so every tick
//! arrives exactly once and none arrives early. While a waker is registered, the task does not
//! sleep past the next tick; a registration notifies the task, so that a sleeping task learns of
//! it.

use core::{
    sync::atomic::{
        AtomicBool, AtomicU64,
        Ordering::{Acquire, Relaxed, Release},
    },
    task::Waker,
};
use std::sync::Arc;

use clockjack_time::{
    DriverError, DriverStatus, ManualDriver, MonotonicClock, Tick, TickDriver, TickSpan, TickToken,
};
use tokio::sync::Notify;

use crate::OsClock;

/// A tick driver that is fed from a clock.
#[derive(Debug)]
pub(super) struct ClockDriver {
    clock: OsClock,
    ticks: ManualDriver,
    /// The tick up to which ticks were injected, or are about to be.
    claimed: AtomicU64,
    is_registered: AtomicBool,
    notify: Arc<Notify>,
}

impl ClockDriver {
    pub(super) fn new(clock: OsClock, notify: Arc<Notify>) -> Self {
        Self {
            clock,
            ticks: ManualDriver::new(clock.resolution()),
            claimed: AtomicU64::new(0),
            is_registered: AtomicBool::new(false),
            notify,
        }
    }

    /// Injects the ticks that have passed on the clock.
    pub(super) fn catch_up(&self) {
        let now = self.clock.ticks_now().get();
        // Relaxed: this only assigns ticks to threads; the injection publishes them.
        let before = self.claimed.fetch_max(now, Relaxed);
        if let Some(span @ 1..) = now.checked_sub(before) {
            self.ticks.inject(TickSpan::new(span));
        }
    }

    /// The tick to wake up for, if a waker is registered.
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
        self.ticks.register(wake)?;
        // Release: pairs with the load in `next_tick`; the notification makes the task read it.
        self.is_registered.store(true, Release);
        self.notify.notify_one();
        Ok(())
    }

    fn unregister(&self) {
        // Relaxed: a task that still sees the registration wakes up once more than necessary.
        self.is_registered.store(false, Relaxed);
        self.ticks.unregister();
    }

    fn poll_tick(&self) -> Option<TickToken> {
        self.catch_up();
        self.ticks.poll_tick()
    }

    fn current_status(&self) -> DriverStatus {
        self.catch_up();
        self.ticks.current_status()
    }

    fn stop_and_flush(&self) -> DriverStatus {
        self.catch_up();
        // Relaxed: as in `unregister`.
        self.is_registered.store(false, Relaxed);
        self.ticks.stop_and_flush()
    }
}

#[cfg(test)]
mod tests {
    use core::time::Duration;
    use std::sync::Barrier;

    use clockjack_exec::{Commands, Limits};
    use clockjack_time::Resolution;

    use super::*;
    use crate::TokioToolbox;

    /// Enough for two threads to interfere with each other; a few milliseconds in total.
    const POLLS: usize = 50_000;

    #[test]
    fn every_tick_of_the_clock_arrives_once_whoever_looks() {
        // Ticks so short that every poll finds some.
        let clock = OsClock::new(Resolution::from_nanos(1).expect("not zero"));
        let driver = ClockDriver::new(clock, Arc::new(Notify::new()));
        let both_are_there = Barrier::new(2);
        let polls = || {
            both_are_there.wait();
            let tokens = (0..POLLS).filter_map(|_| driver.poll_tick());
            tokens.map(|token| u64::from(token.catch_up) + 1).sum::<u64>()
        };
        let taken = std::thread::scope(|scope| {
            let others = [scope.spawn(polls), scope.spawn(polls)];
            others.map(|other| other.join().expect("no look panics")).into_iter().sum::<u64>()
        });
        let DriverStatus::Flushed { drained, .. } = driver.stop_and_flush() else {
            panic!("a stop says that it flushed")
        };
        let arrived = driver.ticks.now().ticks;
        assert!(arrived <= clock.now().ticks, "a tick came before its time");
        // Ticks of a stopped driver are counted and not drained, and none came after the stop.
        assert_eq!(taken + drained, arrived);
        assert_eq!(driver.poll_tick(), None);
    }

    #[test]
    fn who_is_registered_is_woken_by_a_task_with_nothing_else_to_do() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.expect("a runtime on this thread starts").block_on(async {
            let toolbox = TokioToolbox::new(Resolution::MILLI);
            let shared = Arc::clone(&toolbox.shared);
            let executor = toolbox.executor(Limits::SMALL, Commands::new());
            let mut executor = executor.expect("no handler is there twice");
            let ticks = core::future::poll_fn(|cx| {
                // Register again each time: a wake-up is for the first tick only.
                shared.driver.unregister();
                match shared.driver.poll_tick() {
                    Some(token) if token.up_to >= Tick::new(3) => {
                        core::task::Poll::Ready(token.up_to)
                    }
                    _ => {
                        shared.driver.register(cx.waker().clone()).expect("there is no other");
                        core::task::Poll::Pending
                    }
                }
            });
            let (long, driven) = (Duration::from_secs(10), executor.drive(ticks));
            let up_to = tokio::time::timeout(long, driven).await.expect("somebody wakes it");
            assert!(up_to <= shared.clock.ticks_now());
        });
    }
}
