//! A scheduler that is driven by a task of tokio's.

use core::{fmt, panic::AssertUnwindSafe, time::Duration};
use std::{panic::catch_unwind, sync::Arc};

use clockjack_exec::StartError;
use clockjack_sched::{CloseReport, DispatcherId, Scheduler, SchedulerConfig, Work};
use tokio::{runtime, sync::Notify};

use crate::{
    BLOCKING_DISPATCHER, OsInstant, catch_panic,
    scheduler::{
        driver::{DriverBackend, DriverShared},
        poll_all::{self, PollAllResult},
        watchdog,
    },
};

/// A scheduler for applications on tokio: a task takes the turns and sleeps with tokio's timer in
/// between. A thread, `cj-watchdog`, tells if the task falls silent.
///
/// Handlers run in that task, so one that takes long holds up the others and one of tokio's
/// workers; those of [`BLOCKING_DISPATCHER`] run by `spawn_blocking`. Time is read from the
/// system's clock, so a task that is polled late has lost nothing.
///
/// If the runtime ends first, the scheduler is shut down there. Dropped, it shuts down.
///
/// # Examples
///
/// ```
/// use clockjack_rt::{TokioScheduler, sched::{DispatcherId, SchedulerConfig}};
/// use std::time::Duration;
///
/// let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
/// let driver = TokioScheduler::spawn(SchedulerConfig::DEFAULT, runtime.handle())?;
/// let (told, heard) = tokio::sync::oneshot::channel();
/// let ms = Duration::from_millis;
/// let tell = move |_: &_| told.send(()).unwrap();
/// driver.scheduler().schedule_once_fn(ms(20), DispatcherId::DEFAULT, tell)?;
/// runtime.block_on(heard)?;
/// assert_eq!(driver.shutdown().executed, 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct TokioScheduler {
    scheduler: Scheduler,
    shared: Arc<DriverShared<TokioBackend>>,
}

/// Wakes the task, and has the runtime's threads for blocking work.
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

    fn dispatch(&self, dispatcher: DispatcherId, work: Work) -> Result<(), Work> {
        if dispatcher != BLOCKING_DISPATCHER {
            return Err(work);
        }
        // Refused, it is dropped, and completes as a failure.
        drop(self.runtime.spawn_blocking(|| work.run()));
        Ok(())
    }
}

impl TokioScheduler {
    /// Starts a scheduler, its task and its watchdog. Its time begins at the start of its
    /// configuration.
    ///
    /// # Errors
    ///
    /// If the runtime has no timer, the system gives no thread, or the number of shards cannot be.
    pub fn spawn(config: SchedulerConfig, runtime: &runtime::Handle) -> Result<Self, StartError> {
        check_timer(runtime)?;
        let backend = TokioBackend { notify: Notify::new(), runtime: runtime.clone() };
        let shared = DriverShared::new(&config, backend);
        let scheduler = shared.scheduler(config)?;
        // Nobody waits for the thread: it ends with the scheduler.
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

    /// How often the driver had to be started again, because it panicked outside of a handler.
    #[must_use]
    pub fn restarts(&self) -> u64 {
        self.shared.restarts()
    }

    /// [Shuts the scheduler down](Scheduler::shutdown). A handler that another thread is running is
    /// not waited for, so it may be called anywhere.
    pub fn shutdown(&self) -> CloseReport {
        let report = self.scheduler.shutdown();
        self.shared.watchdog.wake();
        report
    }
}

/// tokio says by a panic that a runtime has no timer.
fn check_timer(runtime: &runtime::Handle) -> Result<(), StartError> {
    let _entered = runtime.enter();
    let mut make = || drop(tokio::time::sleep(Duration::ZERO));
    catch_panic(&mut make).map_err(|refused| StartError::thread(&refused))
}

/// Takes the turns. Dropped with its runtime, it closes the scheduler: nobody else would come.
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
                    // Called or due: the next round finds out.
                    drop(tokio::time::timeout(left, self.shared.backend.notify.notified()).await);
                }
                PollAllResult::Closed => return,
            }
        }
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        self.scheduler.shutdown();
        self.shared.watchdog.wake();
    }
}

impl Drop for TokioScheduler {
    fn drop(&mut self) {
        self.shutdown();
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
