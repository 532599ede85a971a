//! The pool's watchdog thread: checks, sleeps, and continues if a check panics.

use core::{panic::AssertUnwindSafe, time::Duration};
use std::{panic::catch_unwind, sync::Arc};

use clockjack_exec::{StartError, watchdog::Watchdog};

use super::Inner;
use crate::{
    blocking,
    scheduler::DriverTimeoutCheck,
    thread::{self, ThreadConfig},
};

/// How long after the edge of a tick the watchdog checks, so that it does not compete for the CPU
/// with a worker whose timer is due.
const AFTER_TICK_EDGE: Duration = Duration::from_micros(200);

impl Inner {
    /// Starts the one thread that takes care of overdue timers, unassigned shards and stuck
    /// workers.
    pub(super) fn start_watchdog(&self) -> Result<(), StartError> {
        let (executor, threads) = (self.executor.clone(), Arc::clone(&self.threads));
        let stuck_after = u64::try_from(self.config.stuck_after.as_nanos()).unwrap_or(u64::MAX);
        let on_stuck = self.config.on_stuck;
        let also_report = Arc::clone(&self.on_stuck);
        let workers_max = threads.parkers.len();
        let scheduler = Arc::clone(&self.scheduler);
        let mut driver_check = DriverTimeoutCheck::new(scheduler, &self.config.scheduler);
        let config = ThreadConfig { name: "cj-pool-watch".into(), ..ThreadConfig::DEFAULT };
        let started = thread::start(&config, move || {
            thread::sleep_precisely();
            let mut watch = Watchdog::new(workers_max, stuck_after);
            while !executor.are_timers_closed() {
                let checked = catch_unwind(AssertUnwindSafe(|| {
                    driver_check.check();
                    watch.poll(&executor, |stuck| {
                        if let Some(report) = also_report.get() {
                            report(stuck);
                        }
                        if let Some(report) = on_stuck {
                            report(stuck);
                        }
                    })
                }));
                match checked {
                    Ok(until) => {
                        // Not at the edge of the tick itself, because workers wake there.
                        let at =
                            |tick| threads.clock.instant_of(tick).saturating_add(AFTER_TICK_EDGE);
                        let until = until.map(at);
                        threads.watchdog.park(until);
                    }
                    // Only a report callback or a waker of the user can panic. The report is marked
                    // as made before that, so the next check continues after it.
                    Err(payload) => {
                        blocking::drop_panic_payload(payload);
                        executor.count_watchdog_restart();
                    }
                }
            }
        });
        let watchdog = started.map_err(|refused| StartError::thread(&refused))?;
        self.worker_threads().watchdog = Some(watchdog);
        Ok(())
    }
}
