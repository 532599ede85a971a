//! Clockjack inside a tokio application: an executor, or a system of actors ([`system`]), that is
//! one of tokio's tasks.
//!
//! # Roles
//!
//! * The *task* is whoever awaits [`TokioExecutor::drive`]. It alone steps processes and fires
//!   timers.
//! * The *callers* are all others: threads and tasks that send messages, complete commands, wake
//!   futures or arm timers. Each ends by ringing the bell, a tokio `Notify`.
//!
//! # Rules
//!
//! 1. A caller makes its work visible first and rings second, always. The bell keeps one ring for
//!    who does not wait yet.
//! 2. The task works for a slice: at most [`STEPS_PER_SLICE`] steps, or, if timers are due, what is
//!    due and one step for each process that is ready.
//! 3. After a slice that did something, or that left something ready, the task yields to tokio and
//!    goes on with the next slice.
//! 4. After a slice that found nothing, it waits for the bell, the next timer or its future.
//!
//! It cannot hang: what becomes visible before the look of rule 3 is seen by it, and what becomes
//! visible later rings later than the look, so that rule 4 finds the ring. It does not starve
//! tokio: a yield always goes through its scheduler, and a wait does unless the bell has rung
//! before. Such a ring either is for work, after which rule 3 yields, or is left over from work
//! that was seen already, and then it is the only one.

mod driver;
mod system;

use core::{
    cell::Cell,
    fmt,
    future::poll_fn,
    panic::AssertUnwindSafe,
    pin::pin,
    ptr,
    task::{Context, Poll},
    time::Duration,
};
use std::{panic::catch_unwind, sync::Arc};

use clockjack_actor::SystemBuilder;
use clockjack_exec::{
    Caught, Commands, Handle, Join, Limits, LocalExecutor, LocalReport, Process, ProcessRef,
    StartError, SubmitError, Toolbox,
};
use clockjack_sync::mutant;
use clockjack_time::{MonotonicClock, Resolution, Tick, TickDriver, TimerInstant};
use tokio::sync::Notify;

use self::driver::ClockDriver;
pub use self::system::TokioSystem;
use crate::{OsClock, OsInstant, current::Entered};

/// How many steps are made between two looks at tokio: some ten microseconds of short ones.
const STEPS_PER_SLICE: usize = 64;

/// A nanosecond: the finest that the clock has.
const NANO: Resolution = Resolution::from_nanos(1).expect("not zero");

thread_local! {
    /// The executor whose slice this thread is in.
    static CURRENT_SLICE: Cell<*const Shared> = const { Cell::new(ptr::null()) };
}

/// What an executor inside tokio runs on: the clock of the system, and a bell that tokio waits for.
///
/// [`executor`](Self::executor) makes one, [`system`](Self::system) a system of actors. Given to
/// [`LocalExecutor::new`](clockjack_exec::LocalExecutor::new) instead, it never sleeps: a park
/// gives the rest of the thread's time away and returns, because the thread may be one of tokio's.
/// So `LocalExecutor::block_on` would keep both tokio and the processor busy.
#[derive(Debug)]
pub struct TokioToolbox {
    shared: Arc<Shared>,
    seed: u64,
}

#[derive(Debug)]
struct Shared {
    clock: OsClock,
    driver: ClockDriver,
    notify: Arc<Notify>,
}

impl TokioToolbox {
    /// A toolbox whose clock starts now.
    ///
    /// tokio counts in milliseconds, and so are timers late by up to two of them, however fine the
    /// resolution is.
    #[must_use]
    pub fn new(resolution: Resolution) -> Self {
        let (clock, notify) = (OsClock::new(resolution), Arc::new(Notify::new()));
        let driver = ClockDriver::new(clock, Arc::clone(&notify));
        Self { shared: Arc::new(Shared { clock, driver, notify }), seed: 0 }
    }

    /// Draws the order in which ready processes are stepped from a seed, unless it is zero.
    #[must_use]
    pub fn with_seed(self, seed: u64) -> Self {
        Self { seed, ..self }
    }

    /// An executor for a task of tokio's.
    ///
    /// # Errors
    ///
    /// If two handlers have the same number.
    pub fn executor(self, limits: Limits, commands: Commands) -> Result<TokioExecutor, StartError> {
        let shared = Arc::clone(&self.shared);
        let local = LocalExecutor::new(self, limits, commands)?;
        Ok(TokioExecutor { local, shared })
    }

    /// A system of actors for a task of tokio's.
    ///
    /// # Errors
    ///
    /// If two commands have the same number, there is no room for the guardians, or a hook of the
    /// start has failed.
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
        if mutant!("tokio-bell-silent") {
            return;
        }
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

    fn guarded(&self, turn: &mut dyn FnMut()) -> Result<(), Caught> {
        // As in a pool: the engine's own state is not touched while user code runs.
        catch_unwind(AssertUnwindSafe(turn)).map_err(Caught::new)
    }
}

/// An executor that runs while [`drive`](Self::drive) is awaited on tokio.
///
/// It stays on its thread, as what it runs need not be `Send`: drive it in
/// `tokio::task::LocalSet`, or in the future that `Runtime::block_on` is given. Processes and
/// futures may use what tokio has there, and everything else that tokio runs goes on beside them.
///
/// While nobody drives it, it stands still and loses nothing.
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
/// let answer = executor.spawn(async {
///     clockjack_rt::sleep(Duration::from_millis(2)).await?; // A timer of Clockjack's,
///     tokio::time::sleep(Duration::from_millis(2)).await; // and one of tokio's.
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

/// What a slice leaves to be waited for.
enum Wait {
    /// There is more to do: only let others run.
    Yield,
    /// The bell, or this much time.
    Notified(Option<Duration>),
}

impl TokioExecutor {
    /// A handle for other threads and tasks: what is started by it must be `Send`.
    #[must_use]
    pub fn handle(&self) -> Handle {
        self.local.handle()
    }

    /// Runs a future as a process.
    pub fn spawn<F>(&self, future: F) -> Join<F::Output>
    where
        F: Future + 'static,
        F::Output: 'static,
    {
        self.local.spawn(future)
    }

    /// Starts a process.
    ///
    /// # Errors
    ///
    /// The process comes back: if its `init` fails, if there is no room, or after the shutdown.
    pub fn submit<P: Process>(&self, process: P) -> Result<ProcessRef<P::Message>, SubmitError<P>> {
        self.local.submit(process)
    }

    /// The executor itself, to be looked at and to start processes by a method.
    #[must_use]
    pub fn local(&self) -> &LocalExecutor {
        &self.local
    }

    /// Runs processes and timers until a future has its output, and lets tokio go on meanwhile: it
    /// yields after each slice of work, and waits without a thread where there is none.
    ///
    /// A slice is at most 64 steps, or, if timers are due, one step for each process that is ready.
    /// A step that does not return holds tokio's thread up, as any task would that does not await.
    /// [`sleep`](crate::sleep) and [`spawn`](crate::spawn) in the future, and in what is run,
    /// belong to this executor. Dropping it before its end is harmless: driving can go on later.
    ///
    /// # Panics
    ///
    /// Outside a tokio runtime, or in one without its timers, as soon as it has to wait for a
    /// timer; and if the future panics.
    pub async fn drive<F: Future>(&mut self, until: F) -> F::Output {
        let mut until = pin!(until);
        self.run(|_, cx| until.as_mut().poll(cx)).await
    }

    /// Asks everything to stop and drives it until it has, or until the time is over; then ends the
    /// rest.
    ///
    /// # Panics
    ///
    /// As [`drive`](Self::drive).
    pub async fn shutdown(mut self, deadline: Duration) -> LocalReport {
        let before = self.local.live_len();
        self.local.handle().engine().stop();
        let nobody_lives = self.run(|local, _| match local.live_len() {
            0 => Poll::Ready(()),
            _ => Poll::Pending,
        });
        // In time or not: whoever is left is reported below.
        drop(tokio::time::timeout(deadline, nobody_lives).await);
        let mut report = self.local.shutdown(Duration::ZERO);
        report.completed = before.saturating_sub(report.stragglers.len());
        report
    }

    /// Slices and rests, until told that it is over.
    async fn run<T>(
        &mut self,
        mut poll_end: impl FnMut(&LocalExecutor, &mut Context<'_>) -> Poll<T>,
    ) -> T {
        let shared = Arc::clone(&self.shared);
        let handle = self.local.handle();
        loop {
            let next = {
                let _entered = Entered::enter(handle.clone());
                self.slice()
            };
            let mut wait = pin!(shared.wait(next));
            let end = poll_fn(|cx| {
                // Only as long as this thread is in here: other tasks have other pools.
                let _entered = Entered::enter(handle.clone());
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

    /// Works for a bounded time, and says what to wait for then.
    fn slice(&mut self) -> Wait {
        let _slice = SliceGuard::enter(&self.shared);
        self.shared.driver.catch_up();
        let mut is_busy = false;
        if self.is_due() {
            let turn = self.local.turn();
            is_busy = turn.fired > 0 || turn.steps > 0;
        } else {
            let steps_max =
                if mutant!("tokio-slice-unbounded") { usize::MAX } else { STEPS_PER_SLICE };
            for _ in 0..steps_max {
                if !self.local.step_one() {
                    break;
                }
                is_busy = true;
            }
        }
        // The wake of the timers is read here, after the steps that may have armed one.
        if is_busy || self.local.is_ready() || self.is_due() {
            return Wait::Yield;
        }
        let timers =
            if mutant!("tokio-timers-slept-through") { None } else { self.local.next_wake() };
        let wakes = [timers, self.shared.driver.next_tick()];
        let wake = wakes.into_iter().flatten().min();
        let Some(wake) = wake else { return Wait::Notified(None) };
        match self.shared.left_until(wake) {
            // It would end at once, perhaps without tokio having had its turn.
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
            // Which of the two it was is seen by the next slice.
            Wait::Notified(Some(left)) => {
                drop(tokio::time::timeout(left, self.notify.notified()).await);
            }
        }
    }
}

/// Marks this thread as the one in a slice, until it is dropped.
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
        let same = TokioToolbox { shared: Arc::clone(&toolbox.shared), seed: 0 };
        let other = TokioToolbox::new(Resolution::MILLI);
        let executor = toolbox.executor(Limits::SMALL, Commands::new());
        let mut executor = executor.expect("no handler is there twice");
        assert_eq!(same.current_worker(), None);
        let seen = executor.spawn(async move {
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
