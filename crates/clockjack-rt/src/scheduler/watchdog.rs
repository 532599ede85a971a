//! A watchdog thread that notices if a driver makes no progress, and sleeps while there is nothing
//! to monitor.
//!
//! # Protocol
//!
//! Roles: the *watchdog*; the *driver*; *callers*, threads that have made a deadline earlier.
//!
//! 1. The watchdog stores `NEVER` in `until`, executes a fence, reads the scheduler and
//!    `is_polling`, stores the time of its next check in `until`, and parks until then. While a
//!    poll is in progress, the next check is soon.
//! 2. A caller has already published its job to the scheduler; it executes a fence and reads
//!    `until`. If `until` is later than about twice the driver timeout from now, it unparks the
//!    watchdog.
//! 3. The driver does the same at the beginning of a poll, after it has set `is_polling`. During a
//!    poll no caller wakes the driver for later deadlines, because the driver is awake: the
//!    watchdog must find a driver that is stuck in a poll by itself.
//!
//! *Why no stuck driver goes unnoticed* (Dekker's fence pattern): either the fence of the caller
//! or driver comes before the watchdog's fence, and then the watchdog's check finds the job or the
//! poll; or it comes after, and then the caller reads what the watchdog stored in this check or a
//! later one, and unparks the watchdog if that is too late. The unpark token stays until the park.

use core::{
    panic::AssertUnwindSafe,
    sync::atomic::{
        AtomicBool, AtomicU64,
        Ordering::{Relaxed, SeqCst},
        fence,
    },
    time::Duration,
};
use std::{io, panic::catch_unwind, sync::Arc, thread::JoinHandle};

use clockjack_sched::Scheduler;

use super::Timebase;
use crate::{
    OsInstant, Parker, blocking,
    thread::{self, ThreadConfig},
};

const NEVER: u64 = u64::MAX;

/// The shared state of the watchdog.
#[derive(Debug)]
pub(crate) struct DriverWatchdog {
    parker: Parker,
    /// The time of the next check.
    until: AtomicU64,
    is_polling: AtomicBool,
    driver_timeout: Duration,
}

impl DriverWatchdog {
    pub(crate) fn new(driver_timeout: Duration) -> Self {
        Self {
            parker: Parker::new(),
            until: AtomicU64::new(NEVER),
            is_polling: AtomicBool::new(false),
            driver_timeout,
        }
    }

    /// Rule 2.
    pub(crate) fn notify_deadline(&self) {
        // Pairs with the fence of the watchdog.
        fence(SeqCst);
        // Relaxed: the fence has ordered it.
        let until = OsInstant::from_nanos(self.until.load(Relaxed));
        let latest = OsInstant::now().saturating_add(self.driver_timeout.saturating_mul(2));
        if until > latest {
            self.parker.unpark();
        }
    }

    /// Rule 3: for a driver that is about to poll.
    pub(crate) fn begin_poll(&self) {
        // Relaxed: the fence in `notify_deadline` orders it.
        self.is_polling.store(true, Relaxed);
        self.notify_deadline();
    }

    /// The poll has ended.
    pub(crate) fn end_poll(&self) {
        // Relaxed: a watchdog that still sees the poll checks once more than necessary.
        self.is_polling.store(false, Relaxed);
    }

    /// Wakes the watchdog, which exits if the scheduler was shut down.
    pub(crate) fn wake(&self) {
        self.parker.unpark();
    }

    fn watch(&self, scheduler: &Scheduler, time: Timebase) {
        while !scheduler.is_closed() {
            // Relaxed: the fence orders it.
            self.until.store(NEVER, Relaxed);
            // Pairs with the fence of a caller.
            fence(SeqCst);
            let wanted = scheduler.check_driver().map(|tick| time.instant_of(tick));
            // Relaxed: the fence has ordered it.
            let is_polling = self.is_polling.load(Relaxed);
            let soon = is_polling.then(|| OsInstant::now().saturating_add(self.driver_timeout));
            let next = wanted.into_iter().chain(soon).min();
            // Relaxed: a caller that reads an older value unparks once more than necessary.
            self.until.store(next.map_or(NEVER, OsInstant::as_nanos), Relaxed);
            self.parker.park(next);
        }
    }
}

/// Starts a watchdog.
pub(crate) fn start(
    watchdog: &Arc<DriverWatchdog>,
    scheduler: &Scheduler,
    time: Timebase,
) -> io::Result<JoinHandle<()>> {
    let (watchdog, scheduler) = (Arc::clone(watchdog), scheduler.clone());
    let config = ThreadConfig { name: "cj-watchdog".into(), ..ThreadConfig::DEFAULT };
    thread::start(&config, move || {
        // Only the waker of a task that reads diagnostics can panic, and it is woken once.
        let watch = || catch_unwind(AssertUnwindSafe(|| watchdog.watch(&scheduler, time)));
        while let Err(payload) = watch() {
            blocking::drop_panic_payload(payload);
        }
    })
}
