//! Clockjack inside a tokio application: an executor, or an actor system ([`system`]), that is one
//! of tokio's tasks.
//!
//! # Roles
//!
//! * The *task* is the one that awaits [`TokioExecutor::drive`]. Only the task polls processes and
//!   fires timers.
//! * The *callers* are all other threads and tasks that send messages, complete commands, wake
//!   futures or arm timers. Each ends its operation with a notification: `notify_one` of a tokio
//!   `Notify`.
//!
//! # Rules
//!
//! 1. A caller always publishes its work first and notifies second. The `Notify` keeps one permit
//!    for a task that does not wait yet.
//! 2. The task works for a slice: at most [`STEPS_PER_SLICE`] steps, or, if timers are due, the due
//!    timers and one step per ready process.
//! 3. After a slice that did something, or that left something ready, the task yields to tokio and
//!    continues with the next slice.
//! 4. After a slice that found nothing, the task waits for a notification, the next timer or its
//!    future.
//!
//! *Why no wake-up is lost*: the check of rule 3 sees work that was published before it. Work that
//! is published later is notified after the check, so the wait of rule 4 finds the permit. *Why it
//! does not starve tokio*: a yield always goes through tokio's scheduler, and so does a wait unless
//! there is a permit already. Such a permit either announces work, after which rule 3 yields, or is
//! left over from work that was already seen, and then it is the only one.

mod driver;
mod system;

use core::{
    cell::Cell,
    fmt,
    future::poll_fn,
    pin::pin,
    ptr,
    task::{Context, Poll},
    time::Duration,
};
use std::sync::Arc;

use clockjack_actor::SystemBuilder;
use clockjack_exec::{
    Commands, Handle, JoinHandle, Limits, LocalExecutor, LocalReport, PanicPayload, Process,
    ProcessRef, StartError, SubmitError, Toolbox,
};
use clockjack_time::{MonotonicClock, Resolution, Tick, TickDriver, TimerInstant};
use tokio::sync::Notify;

use self::driver::ClockDriver;
pub use self::system::TokioSystem;
use crate::{FailureLog, OsClock, OsInstant, catch_panic, pool::current::Entered};

/// How many steps a slice makes before it yields to tokio: about ten microseconds of short steps.
const STEPS_PER_SLICE: usize = 64;

/// A nanosecond: the resolution of the clock.
const NANO: Resolution = Resolution::from_nanos(1).expect("not zero");

thread_local! {
    /// The executor whose slice this thread runs.
    static CURRENT_SLICE: Cell<*const Shared> = const { Cell::new(ptr::null()) };
}

/// The platform of an executor inside tokio: the system clock, and a `Notify` for wake-ups.
///
/// [`executor`](Self::executor) creates an executor, [`system`](Self::system) an actor system. If
/// the toolbox is passed to [`LocalExecutor::new`](clockjack_exec::LocalExecutor::new) instead, a
/// park does not sleep but yields the thread's time slice and returns, because the thread may be
/// one of tokio's. So `LocalExecutor::block_on` would keep both tokio and the CPU busy.
#[derive(Debug)]
pub struct TokioToolbox {
    shared: Arc<Shared>,
    seed: u64,
    failure_log: FailureLog,
}

#[derive(Debug)]
struct Shared {
    clock: OsClock,
    driver: ClockDriver,
    notify: Arc<Notify>,
}

impl TokioToolbox {
    /// Creates a toolbox whose clock starts now.
    ///
    /// tokio's timers have a resolution of one millisecond, so timers are late by up to two
    /// milliseconds, however fine `resolution` is.
    #[must_use]
    pub fn new(resolution: Resolution) -> Self {
        let (clock, notify) = (OsClock::new(resolution), Arc::new(Notify::new()));
        let driver = ClockDriver::new(clock, Arc::clone(&notify));
        let shared = Arc::new(Shared { clock, driver, notify });
        Self { shared, seed: 0, failure_log: FailureLog::On }
    }

    /// Randomizes the order in which ready processes run, with this seed; zero keeps their order.
    #[must_use]
    pub fn with_seed(self, seed: u64) -> Self {
        Self { seed, ..self }
    }

    /// Sets whether failures of the actors of a [`system`](Self::system) are written.
    #[must_use]
    pub fn with_failure_log(self, failure_log: FailureLog) -> Self {
        Self { failure_log, ..self }
    }

    /// Creates an executor for a tokio task.
    ///
    /// # Errors
    ///
    /// If two handlers have the same command number.
    pub fn executor(self, limits: Limits, commands: Commands) -> Result<TokioExecutor, StartError> {
        let shared = Arc::clone(&self.shared);
        let local = LocalExecutor::new(self, limits, commands)?;
        Ok(TokioExecutor { local, shared })
    }

    /// Creates an actor system for a tokio task.
    ///
    /// # Errors
    ///
    /// If two commands have the same number, if there is no room for the guardians, or if a start
    /// hook fails.
    pub fn system(self, builder: SystemBuilder) -> Result<TokioSystem, StartError> {
        TokioSystem::new(self, builder)
    }
}

impl Toolbox for TokioToolbox {
    fn clock(&self) -> &dyn MonotonicClock {
        &self.shared.clock
    }

    fn driver(&self) -> &dyn TickDriver {
        &self.shared.driver
    }

    fn park(&self, _until: Option<Tick>) {
        std::thread::yield_now();
    }

    fn unpark(&self) {
        self.shared.notify.notify_one();
    }

    fn current_worker(&self) -> Option<u16> {
        let inside = CURRENT_SLICE.try_with(Cell::get).unwrap_or(ptr::null());
        ptr::eq(inside, &*self.shared).then_some(0)
    }

    fn now(&self) -> TimerInstant {
        TimerInstant::new(Tick::new(self.shared.clock.nanos_now()), NANO)
    }

    fn seed(&self) -> u64 {
        self.seed
    }

    fn catch_unwind(&self, turn: &mut dyn FnMut()) -> Result<(), PanicPayload> {
        catch_panic(turn)
    }
}

/// An executor that runs while [`drive`](Self::drive) is awaited on tokio.
///
/// The executor stays on its thread, because its tasks need not be `Send`: drive it in a
/// `tokio::task::LocalSet`, or in the future that `Runtime::block_on` runs. Processes and futures
/// may use tokio's resources there, and other tokio tasks run concurrently.
///
/// While no task drives the executor, it pauses and loses nothing.
///
/// # Examples
///
/// ```
/// use clockjack_rt::{TokioToolbox, exec::{Commands, Limits}};
/// use clockjack_time::Resolution;
/// use core::time::Duration;
///
/// # let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
/// # runtime.block_on(async {
/// let toolbox = TokioToolbox::new(Resolution::MILLI);
/// let mut executor = toolbox.executor(Limits::SMALL, Commands::new())?;
/// let answer = executor.spawn_future(async {
///     clockjack_rt::sleep(Duration::from_millis(2)).await?; // A Clockjack timer,
///     tokio::time::sleep(Duration::from_millis(2)).await; // and a tokio timer.
///     Ok::<_, clockjack_rt::exec::TimerError>(6 * 7)
/// });
/// assert_eq!(executor.drive(answer).await??, 42);
/// assert!(executor.shutdown(Duration::from_secs(1)).await.stragglers.is_empty());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct TokioExecutor {
    local: LocalExecutor,
    shared: Arc<Shared>,
}

/// What to wait for after a slice.
enum Wait {
    /// More work is ready: only yield.
    Yield,
    /// A notification, or this timeout.
    Notified(Option<Duration>),
}

impl TokioExecutor {
    /// A handle for other threads and tasks: what they start must be `Send`.
    #[must_use]
    pub fn handle(&self) -> Handle {
        self.local.handle()
    }

    /// Runs a future as a task of this executor.
    pub fn spawn_future<F>(&self, future: F) -> JoinHandle<F::Output>
    where
        F: Future + 'static,
        F::Output: 'static,
    {
        self.local.spawn_future(future)
    }

    /// Starts a process.
    ///
    /// # Errors
    ///
    /// If `init` fails, if there is no room, or after the shutdown. The error returns the process
    /// to the caller.
    pub fn submit<P: Process>(&self, process: P) -> Result<ProcessRef<P::Message>, SubmitError<P>> {
        self.local.submit(process)
    }

    /// The executor itself, for inspection and for starting processes with a method.
    #[must_use]
    pub fn local(&self) -> &LocalExecutor {
        &self.local
    }

    /// Runs processes and timers until a future completes, and lets tokio run meanwhile: it yields
    /// after each slice of work, and waits asynchronously when there is no work.
    ///
    /// A slice is at most 64 steps, or, if timers are due, one step per ready process. A step that
    /// does not return blocks tokio's thread, as does any tokio task that does not await.
    /// [`sleep`](crate::sleep) and [`spawn_future`](crate::spawn_future) in the future, and in
    /// tasks of this executor, use this executor. Dropping the returned future early is safe:
    /// driving can continue later.
    ///
    /// # Panics
    ///
    /// Outside a tokio runtime, or in a runtime without timers, as soon as it has to wait for a
    /// timer; and if the future panics.
    pub async fn drive<F: Future>(&mut self, until: F) -> F::Output {
        let mut until = pin!(until);
        self.run(|_, cx| until.as_mut().poll(cx)).await
    }

    /// Asks all tasks to stop and drives them until they have stopped or the time-out has passed;
    /// then stops the remaining tasks by force.
    ///
    /// # Panics
    ///
    /// As [`drive`](Self::drive).
    pub async fn shutdown(mut self, timeout: Duration) -> LocalReport {
        let before = self.local.live_len();
        self.local.handle().executor().begin_shutdown();
        let nobody_lives = self.run(|local, _| match local.live_len() {
            0 => Poll::Ready(()),
            _ => Poll::Pending,
        });
        // In time or not: the remaining tasks are reported below.
        drop(tokio::time::timeout(timeout, nobody_lives).await);
        let mut report = self.local.shutdown(Duration::ZERO);
        report.completed = before.saturating_sub(report.stragglers.len());
        report
    }

    /// Alternates slices and waits until `poll_end` is ready.
    async fn run<T>(
        &mut self,
        mut poll_end: impl FnMut(&LocalExecutor, &mut Context<'_>) -> Poll<T>,
    ) -> T {
        let shared = Arc::clone(&self.shared);
        let handle = self.local.handle();
        loop {
            let next = {
                let _entered = Entered::enter(handle.clone(), None);
                self.slice()
            };
            let mut wait = pin!(shared.wait(next));
            let end = poll_fn(|cx| {
                // Only during this poll: other tasks on this thread have other pools.
                let _entered = Entered::enter(handle.clone(), None);
                match poll_end(&self.local, cx) {
                    Poll::Ready(output) => Poll::Ready(Some(output)),
                    Poll::Pending => wait.as_mut().poll(cx).map(|()| None),
                }
            });
            if let Some(output) = end.await {
                return output;
            }
        }
    }

    /// Works for a bounded time, and returns what to wait for.
    fn slice(&mut self) -> Wait {
        let _slice = SliceGuard::enter(&self.shared);
        self.shared.driver.catch_up();
        let mut is_busy = false;
        if self.is_due() {
            let turn = self.local.turn();
            is_busy = turn.fired > 0 || turn.steps > 0;
        } else {
            for _ in 0..STEPS_PER_SLICE {
                if !self.local.step_one() {
                    break;
                }
                is_busy = true;
            }
        }
        // Read the next timer here, after the steps, because a step may have armed one.
        if is_busy || self.local.is_ready() || self.is_due() {
            return Wait::Yield;
        }
        let wakes = [self.local.next_wake(), self.shared.driver.next_tick()];
        let wake = wakes.into_iter().flatten().min();
        let Some(wake) = wake else { return Wait::Notified(None) };
        match self.shared.left_until(wake) {
            // A wait would complete at once, perhaps without going through tokio's scheduler.
            Duration::ZERO => Wait::Yield,
            left => Wait::Notified(Some(left)),
        }
    }

    fn is_due(&self) -> bool {
        self.local.next_wake().is_some_and(|wake| wake <= self.shared.clock.ticks_now())
    }
}

impl fmt::Debug for TokioExecutor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TokioExecutor").field("local", &self.local).finish_non_exhaustive()
    }
}

impl Shared {
    fn left_until(&self, tick: Tick) -> Duration {
        self.clock.instant_of(tick).saturating_since(OsInstant::now())
    }

    async fn wait(&self, wait: Wait) {
        match wait {
            Wait::Yield => tokio::task::yield_now().await,
            Wait::Notified(None) => self.notify.notified().await,
            // The next slice finds out which of the two it was.
            Wait::Notified(Some(left)) => {
                drop(tokio::time::timeout(left, self.notify.notified()).await);
            }
        }
    }
}

/// Marks this thread as running a slice, until the guard is dropped.
struct SliceGuard(*const Shared);

impl SliceGuard {
    fn enter(shared: &Arc<Shared>) -> Self {
        Self(CURRENT_SLICE.replace(Arc::as_ptr(shared)))
    }
}

impl Drop for SliceGuard {
    fn drop(&mut self) {
        CURRENT_SLICE.set(self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reading_is_finer_than_a_tick_and_agrees_with_the_clock() {
        let toolbox = TokioToolbox::new(Resolution::TEN_MILLIS);
        for _ in 0..1_000 {
            let readings = [toolbox.clock().now(), toolbox.now(), toolbox.clock().now()];
            let ticks = readings.map(|reading| reading.elapsed_tick(Resolution::TEN_MILLIS));
            assert!(ticks.is_sorted(), "{readings:?}");
        }
        assert_eq!(toolbox.now().resolution_ns, 1);
    }

    #[test]
    fn only_what_is_run_is_on_the_worker() {
        let toolbox = TokioToolbox::new(Resolution::MILLI);
        let same = TokioToolbox::new(Resolution::MILLI);
        let same = TokioToolbox { shared: Arc::clone(&toolbox.shared), ..same };
        let other = TokioToolbox::new(Resolution::MILLI);
        let executor = toolbox.executor(Limits::SMALL, Commands::new());
        let mut executor = executor.expect("no handler is there twice");
        assert_eq!(same.current_worker(), None);
        let seen = executor.spawn_future(async move {
            let elsewhere = std::thread::scope(|scope| {
                let elsewhere = scope.spawn(|| same.current_worker());
                elsewhere.join().expect("a look does not panic")
            });
            (same.current_worker(), other.current_worker(), elsewhere)
        });
        let runtime = tokio::runtime::Builder::new_current_thread().build();
        let runtime = runtime.expect("a runtime on this thread starts");
        let seen = runtime.block_on(executor.drive(seen)).expect("it does not panic");
        assert_eq!(seen, (Some(0), None, None));
    }
}
