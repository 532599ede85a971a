//! A thread that notices if a driver falls silent, and sleeps as long as there is nothing to
//! notice.
//!
//! # Protocol
//!
//! Roles: the *watchdog*; the *driver*; *callers*, who have made a deadline earlier.
//!
//! 1. The watchdog stores `NEVER` in `until`, fences, looks at the scheduler and at `is_polling`,
//!    stores when it will look again, and parks until then. While a turn is under way that is soon.
//! 2. A caller has put its job where the look finds it; it fences, and reads `until`. If that is
//!    later than the driver's time and some more, it unparks the watchdog.
//! 3. The driver does the same at the beginning of a turn, when it has set `is_polling`. In a turn
//!    nobody calls it for what comes due later, since it is awake: that is for the watchdog to
//!    find.
//!
//! *Why no silence goes unnoticed*: either the fence of the caller or the driver comes first, then
//! the look finds the job or the turn; or it reads what the watchdog has stored in this look or a
//! later one, and unparks it if that is too late. The token stays until the park.

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
use clockjack_sync::mutant;

use super::Timebase;
use crate::{
    OsInstant, Parker, blocking,
    thread::{self, ThreadConfig},
};

const NEVER: u64 = u64::MAX;

/// Where the watchdog sleeps.
#[derive(Debug)]
pub(crate) struct DriverWatchdog {
    parker: Parker,
    /// When it looks again.
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
        if until > latest && !mutant!("watchdog-not-called") {
            self.parker.unpark();
        }
    }

    /// Rule 3: for a driver that is about to take turns.
    pub(crate) fn begin_poll(&self) {
        // Relaxed: the fence behind it orders it.
        self.is_polling.store(true, Relaxed);
        self.notify_deadline();
    }

    /// The turns are over.
    pub(crate) fn end_poll(&self) {
        // Relaxed: who still sees the turn looks once more for nothing.
        self.is_polling.store(false, Relaxed);
    }

    /// Ends it, if the scheduler was closed.
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
            // Relaxed: who reads an older one unparks for nothing.
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
        // Only a waker of who reads diagnostics panics, and it is woken once.
        let watch = || catch_unwind(AssertUnwindSafe(|| watchdog.watch(&scheduler, time)));
        while let Err(payload) = watch() {
            blocking::drop_panic_payload(payload);
        }
    })
}
