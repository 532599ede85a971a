//! A scheduler that a tokio task drives.

use core::{fmt, panic::AssertUnwindSafe, time::Duration};
use std::{panic::catch_unwind, sync::Arc};

use clockjack_exec::StartError;
use clockjack_sched::{CloseReport, DispatchedRun, DispatcherId, Scheduler, SchedulerConfig};
use tokio::{runtime, sync::Notify};

use crate::{
    BLOCKING_DISPATCHER, OsInstant, catch_panic,
    scheduler::{
        DROP_TIMEOUT,
        driver::{DriverBackend, DriverShared},
        poll_all::{self, PollAllResult},
        watchdog,
    },
};

/// A scheduler for tokio applications: a task polls the scheduler and sleeps on a tokio timer
/// between polls. A thread, `cj-watchdog`, reports if the task makes no progress.
///
/// Handlers run in that task, so a slow handler delays the others and occupies one of tokio's
/// workers; handlers on [`BLOCKING_DISPATCHER`] run in `spawn_blocking`. Time is read from the
/// system clock, so a task that is polled late loses no run.
///
/// If the tokio runtime shuts down first, the scheduler shuts down with it. Dropping the scheduler
/// shuts it down within ten seconds.
///
/// # Examples
///
/// ```
/// use clockjack_rt::{TokioScheduler, sched::{DispatcherId, SchedulerConfig}};
/// use std::time::Duration;
///
/// let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
/// let driver = TokioScheduler::spawn(SchedulerConfig::DEFAULT, runtime.handle())?;
/// let (sender, receiver) = tokio::sync::oneshot::channel();
/// let ms = Duration::from_millis;
/// let notify = move |_: &_| sender.send(()).unwrap();
/// driver.scheduler().schedule_once_fn(ms(20), DispatcherId::DEFAULT, notify)?;
/// runtime.block_on(receiver)?;
/// assert_eq!(driver.shutdown().executed, 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct TokioScheduler {
    scheduler: Scheduler,
    shared: Arc<DriverShared<TokioBackend>>,
}

/// Wakes the task, and runs handlers on the runtime's threads for blocking work.
struct TokioBackend {
    notify: Notify,
    runtime: runtime::Handle,
}

impl DriverBackend for TokioBackend {
    const DRIVER: &'static str = "tokio";

    fn wake(&self) {
        self.notify.notify_one();
    }

    fn has_dispatcher(&self, dispatcher: DispatcherId) -> bool {
        matches!(dispatcher, DispatcherId::DEFAULT | BLOCKING_DISPATCHER)
    }

    fn dispatch(&self, dispatcher: DispatcherId, work: DispatchedRun) -> Result<(), DispatchedRun> {
        if dispatcher != BLOCKING_DISPATCHER {
            return Err(work);
        }
        // A refused closure is dropped, and its run completes as a failure.
        drop(self.runtime.spawn_blocking(|| work.run()));
        Ok(())
    }
}

impl TokioScheduler {
    /// Starts a scheduler, its task and its watchdog. Its time begins at the start tick of its
    /// configuration.
    ///
    /// # Errors
    ///
    /// If the runtime has no timer, if the system cannot start a thread, or if the number of shards
    /// is invalid.
    pub fn spawn(config: SchedulerConfig, runtime: &runtime::Handle) -> Result<Self, StartError> {
        check_timer(runtime)?;
        let backend = TokioBackend { notify: Notify::new(), runtime: runtime.clone() };
        let shared = DriverShared::new(&config, backend);
        let scheduler = shared.scheduler(config)?;
        // No join: the thread finishes together with the scheduler.
        watchdog::start(&shared.watchdog, &scheduler, shared.time)
            .map_err(|refused| StartError::thread(&refused))?;
        let driver = Driver { scheduler: scheduler.clone(), shared: Arc::clone(&shared) };
        drop(runtime.spawn(driver.drive()));
        Ok(Self { scheduler, shared })
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

    /// [Shuts the scheduler down](Scheduler::shutdown). It does not wait for a handler that another
    /// thread runs, so it may be called anywhere.
    pub fn shutdown(&self) -> CloseReport {
        self.finish(self.scheduler.shutdown())
    }

    /// As [`shutdown`](Self::shutdown), but begins no more handlers once `timeout` has passed; see
    /// [`Scheduler::shutdown_within`].
    pub fn shutdown_within(&self, timeout: Duration) -> CloseReport {
        self.finish(self.scheduler.shutdown_within(timeout))
    }

    fn finish(&self, report: CloseReport) -> CloseReport {
        self.shared.watchdog.wake();
        report
    }
}

/// tokio reports by a panic that a runtime has no timer.
fn check_timer(runtime: &runtime::Handle) -> Result<(), StartError> {
    let _entered = runtime.enter();
    let mut make = || drop(tokio::time::sleep(Duration::ZERO));
    catch_panic(&mut make).map_err(|refused| StartError::thread(&refused.message()))
}

/// Polls the scheduler. When it is dropped with its runtime, it shuts the scheduler down, because
/// no other task would poll it.
struct Driver {
    scheduler: Scheduler,
    shared: Arc<DriverShared<TokioBackend>>,
}

impl Driver {
    async fn drive(self) {
        loop {
            let poll = || poll_all::poll_all(&self.scheduler, &self.shared.watchdog);
            let result = catch_unwind(AssertUnwindSafe(poll));
            let result = result.unwrap_or_else(|payload| {
                self.shared.record_restart(payload);
                PollAllResult::More
            });
            match result {
                PollAllResult::More => tokio::task::yield_now().await,
                PollAllResult::Until(None) => self.shared.backend.notify.notified().await,
                PollAllResult::Until(Some(tick)) => {
                    let until = self.shared.time.instant_of(tick);
                    let left = until.saturating_since(OsInstant::now());
                    // Notified or due: the next poll finds out which.
                    drop(tokio::time::timeout(left, self.shared.backend.notify.notified()).await);
                    self.shared.report_jitter(&self.scheduler, until);
                }
                PollAllResult::Closed => return,
            }
        }
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        self.scheduler.shutdown_within(DROP_TIMEOUT);
        self.shared.watchdog.wake();
    }
}

impl Drop for TokioScheduler {
    fn drop(&mut self) {
        self.shutdown_within(DROP_TIMEOUT);
    }
}

impl fmt::Debug for TokioScheduler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TokioScheduler")
            .field("scheduler", &self.scheduler)
            .field("restarts", &self.restarts())
            .finish_non_exhaustive()
    }
}
