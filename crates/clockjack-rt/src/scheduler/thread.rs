//! A scheduler with its own thread.

use core::{fmt, panic::AssertUnwindSafe, time::Duration};
use std::{
    panic::catch_unwind,
    sync::{Arc, Mutex, PoisonError},
    thread::JoinHandle,
};

use clockjack_exec::StartError;
use clockjack_sched::{CloseReport, Scheduler, SchedulerConfig};

use super::{
    DROP_TIMEOUT,
    driver::{DriverBackend, DriverShared},
    poll_all::{self, PollAllResult},
    watchdog,
};
use crate::{
    Parker,
    thread::{self, ThreadConfig},
};

/// A scheduler for programs without a pool: one thread, `cj-scheduler`, sleeps until a job is due
/// and runs it. A second thread, `cj-watchdog`, reports if the first one makes no progress.
///
/// Handlers run on that thread, so a slow handler delays the others; no run is lost, and late runs
/// are reported as late. Use a [`WorkerPool`](crate::WorkerPool) if that matters.
///
/// Dropping the scheduler shuts it down within ten seconds.
///
/// # Examples
///
/// ```
/// use clockjack_rt::{ThreadScheduler, sched::{DispatcherId, SchedulerConfig}};
/// use std::{sync::mpsc, time::Duration};
///
/// let driver = ThreadScheduler::start(SchedulerConfig::DEFAULT)?;
/// let (sender, receiver) = mpsc::channel();
/// let ms = Duration::from_millis;
/// driver.scheduler().schedule_once_fn(ms(20), DispatcherId::DEFAULT, move |_| sender.send(()))?;
/// receiver.recv()?;
/// assert_eq!(driver.shutdown().executed, 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct ThreadScheduler {
    scheduler: Scheduler,
    shared: Arc<DriverShared<Parker>>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

impl DriverBackend for Parker {
    const DRIVER: &'static str = "thread";

    fn wake(&self) {
        self.unpark();
    }
}

impl ThreadScheduler {
    /// Starts a scheduler and its threads. Its time begins at the start tick of its configuration.
    ///
    /// # Errors
    ///
    /// If the system cannot start a thread, or if the number of shards is invalid.
    pub fn start(config: SchedulerConfig) -> Result<Self, StartError> {
        let shared = DriverShared::new(&config, Parker::new());
        let scheduler = shared.scheduler(config)?;
        // From here on, the drop of `this` shuts down what was started if a later step fails.
        let this = Self { scheduler, shared, threads: Mutex::default() };
        let driver = this.start_driver();
        this.lock().push(driver.map_err(|refused| StartError::thread(&refused))?);
        let watchdog = watchdog::start(&this.shared.watchdog, &this.scheduler, this.shared.time);
        this.lock().push(watchdog.map_err(|refused| StartError::thread(&refused))?);
        Ok(this)
    }

    fn start_driver(&self) -> std::io::Result<JoinHandle<()>> {
        let (scheduler, shared) = (self.scheduler.clone(), Arc::clone(&self.shared));
        let config = ThreadConfig { name: "cj-scheduler".into(), ..ThreadConfig::DEFAULT };
        thread::start(&config, move || {
            thread::sleep_precisely();
            let drive = || catch_unwind(AssertUnwindSafe(|| shared.drive(&scheduler)));
            while let Err(payload) = drive() {
                shared.record_restart(payload);
            }
        })
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<JoinHandle<()>>> {
        // No code under this lock leaves the value in an inconsistent state when it panics.
        self.threads.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The scheduler.
    #[must_use]
    pub fn scheduler(&self) -> &Scheduler {
        &self.scheduler
    }

    /// How often the driver was restarted because it panicked outside a handler.
    #[must_use]
    pub fn restarts(&self) -> u64 {
        self.shared.restarts()
    }

    /// [Shuts the scheduler down](Scheduler::shutdown), and waits for the handler that is running.
    /// If that handler itself calls this method, the method does not wait.
    pub fn shutdown(&self) -> CloseReport {
        self.finish(self.scheduler.shutdown())
    }

    /// As [`shutdown`](Self::shutdown), but begins no more handlers once `timeout` has passed; see
    /// [`Scheduler::shutdown_within`].
    pub fn shutdown_within(&self, timeout: Duration) -> CloseReport {
        self.finish(self.scheduler.shutdown_within(timeout))
    }

    fn finish(&self, report: CloseReport) -> CloseReport {
        self.shared.backend.unpark();
        self.shared.watchdog.wake();
        let threads = core::mem::take(&mut *self.lock());
        let is_here = |thread: &JoinHandle<()>| thread.thread().id() == std::thread::current().id();
        let is_own = threads.iter().any(is_here);
        threads.into_iter().filter(|_| !is_own).for_each(thread::join_or_detach);
        report
    }
}

impl DriverShared<Parker> {
    fn drive(&self, scheduler: &Scheduler) {
        loop {
            match poll_all::poll_all(scheduler, &self.watchdog) {
                PollAllResult::More => {}
                PollAllResult::Until(next) => {
                    let until = next.map(|tick| self.time.instant_of(tick));
                    self.backend.park(until);
                    if let Some(until) = until {
                        self.report_jitter(scheduler, until);
                    }
                }
                PollAllResult::Closed => return,
            }
        }
    }
}

impl Drop for ThreadScheduler {
    fn drop(&mut self) {
        self.shutdown_within(DROP_TIMEOUT);
    }
}

impl fmt::Debug for ThreadScheduler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ThreadScheduler")
            .field("scheduler", &self.scheduler)
            .field("restarts", &self.restarts())
            .finish_non_exhaustive()
    }
}
