//! The hardware mode: an interrupt counts ticks, and a loop polls them.
//!
//! Nothing here sleeps. A board calls [`RunnerLoop::poll`] from its main loop and sleeps when there
//! is nothing to do. Interrupts, and other threads if there are any, wake it by a waker.
//!
//! # Roles
//!
//! * The **driver** counts ticks in an interrupt, and wakes the loop at the first tick that the
//!   loop has not taken.
//! * The **loop** takes ticks from the driver, advances the scheduler's time and runs due jobs.
//!   There is one loop.
//! * A **caller** schedules and cancels jobs, from a handler, an interrupt or a thread. Interrupts
//!   may do nothing else with the scheduler, and only if the host can recognize them
//!   ([`with_interrupts`](HardwareHost::with_interrupts)). An interrupt that has interrupted the
//!   loop can schedule a few jobs; further ones are refused for lack of room.
//!
//! # Rules
//!
//! 1. The waker sets a persistent flag: an atomic, the event register of `wfe`, or the token of a
//!    parked thread. The loop clears the flag, polls, and sleeps only while the flag is clear.
//! 2. A poll takes tokens until the driver has none. From then on the driver wakes the loop at the
//!    next tick, whenever that comes: before the handlers, between them, or after the poll.
//! 3. The time is a reading of the clock after the tokens were taken, and is at least the tick of
//!    each token. A later tick is processed by this poll, or by the next one, for which rule 2
//!    wakes the loop.
//! 4. A caller whose job is due before the loop wakes by itself wakes the poller, which is the same
//!    waker.
//! 5. A poll is bounded in the tokens that it takes and in the handlers that it runs. If something
//!    is left, [`is_more`](LoopPollResult::is_more) is true, and the loop polls again without
//!    sleeping.
//!
//! # Why no tick is lost and nothing hangs
//!
//! The driver keeps an absolute count, so a tick that was not taken is part of the next token. A
//! wake-up between poll and sleep has set the flag of rule 1, so the loop does not begin to sleep.
//! The loop waits for nothing, and neither the driver nor the callers wait for the loop.

use core::{fmt, task::Waker, time::Duration};

use clockjack_sync::panic::PanicPayload;
use clockjack_time::{
    ClockKind, DriverStatus, MonotonicClock, Resolution, Tick, TickDriver, TimerInstant,
};

use crate::{
    CatchUnwind, CloseReport, ModeError, RunnerMode, Scheduler, SchedulerConfig, SchedulerHost,
    scheduler::{
        driver_ticks::{DriverTicks, TakenTicks},
        manual::without_catch_unwind,
    },
};

/// How many handlers of a shard one poll runs, so that ticks are taken in between.
const RUNS_MAX: usize = 256;

/// The host of a scheduler on bare metal, or wherever ticks come from outside.
///
/// The mode of the scheduler follows from the kind of `clock`: with an
/// [`InterruptDriver`](clockjack_time::InterruptDriver) it is [`RunnerMode::Hardware`].
pub struct HardwareHost {
    clock: &'static (dyn MonotonicClock + Sync),
    driver: &'static dyn TickDriver,
    waker: Waker,
    catch_unwind: CatchUnwind,
    is_interrupt: fn() -> bool,
    fine_now: Option<fn() -> TimerInstant>,
}

impl HardwareHost {
    /// Creates a host with the time of `clock` and the ticks of `driver`. `waker` wakes the loop,
    /// and must set a persistent flag (rule 1 of the module `hardware`).
    ///
    /// A caller that schedules a job that is due soon uses `waker` too. Panics of handlers are not
    /// caught: see [`with_catch_unwind`](Self::with_catch_unwind).
    #[must_use]
    pub const fn new(
        clock: &'static (dyn MonotonicClock + Sync),
        driver: &'static dyn TickDriver,
        waker: Waker,
    ) -> Self {
        Self {
            clock,
            driver,
            waker,
            catch_unwind: without_catch_unwind,
            is_interrupt: never,
            fine_now: None,
        }
    }

    /// Sets a function that says whether the caller is an interrupt. Boards whose interrupts
    /// schedule or cancel need it: otherwise an interrupt could wait for the loop that it has
    /// interrupted.
    #[must_use]
    pub const fn with_interrupts(mut self, is_interrupt: fn() -> bool) -> Self {
        self.is_interrupt = is_interrupt;
        self
    }

    /// Sets a finer clock, for boards that can measure the elapsed part of a tick.
    ///
    /// A clock that counts ticks returns the beginning of the current tick. By such a clock nothing
    /// is early, but a delay that is counted from its reading is short by the elapsed part of the
    /// tick, which a finer clock can observe. A delay that is counted from the finer reading, and
    /// rounded up to a tick, is not early by either clock.
    ///
    /// The finer clock MUST agree with the clock: rounded down to the clock's tick, its reading is
    /// a reading of the clock, also in code that masks the counting interrupt.
    #[must_use]
    pub const fn with_fine_clock(mut self, now: fn() -> TimerInstant) -> Self {
        self.fine_now = Some(now);
        self
    }

    /// Sets a function that catches panics.
    #[must_use]
    pub const fn with_catch_unwind(mut self, catch_unwind: CatchUnwind) -> Self {
        self.catch_unwind = catch_unwind;
        self
    }
}

fn never() -> bool {
    false
}

impl SchedulerHost for HardwareHost {
    fn now(&self) -> TimerInstant {
        self.fine_now.map_or_else(|| self.clock.now(), |now| now())
    }

    fn driver_tick(&self) -> Resolution {
        self.clock.resolution()
    }

    fn clock_kind(&self) -> ClockKind {
        self.clock.kind()
    }

    fn name(&self) -> &'static str {
        "runner-loop"
    }

    fn wake_poller(&self, _shard: usize, _at: Tick) {
        self.waker.wake_by_ref();
    }

    fn can_wait(&self) -> bool {
        !(self.is_interrupt)()
    }

    fn catch_unwind(&self, call: &mut dyn FnMut()) -> Result<(), PanicPayload> {
        (self.catch_unwind)(call)
    }

    fn stop_driver(&self) -> Option<DriverStatus> {
        Some(self.driver.stop_and_flush())
    }
}

impl fmt::Debug for HardwareHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HardwareHost")
            .field("now", &self.clock.now())
            .field("driver", &self.driver.current_status())
            .finish_non_exhaustive()
    }
}

/// The result of one poll of a loop.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct LoopPollResult {
    /// How many handlers were called.
    pub ran: usize,
    /// How many ticks were taken from the driver.
    pub ticks: u64,
    /// How many of them came while the loop did not poll: all but the last tick of each token.
    pub catch_up: u64,
    /// The last tick that was taken, in the driver's count; `None` if there was none.
    pub up_to: Option<Tick>,
    /// Whether there is more to do at once: poll again, and do not sleep.
    pub is_more: bool,
    /// When the next job is due, in the scheduler's ticks, if none is now.
    pub next_wake: Option<Tick>,
    /// Whether the scheduler is closed and nothing is left to do.
    pub is_over: bool,
}

/// The loop of the hardware mode: takes ticks from a driver and runs the jobs that become due.
///
/// # Examples
///
/// A board: the driver is a static, its interrupt notifies it, the main loop polls.
///
/// ```
/// use clockjack_sched::{DispatcherId, RunnerLoop, SchedulerConfig};
/// use clockjack_time::{InterruptDriver, Resolution};
/// use core::{sync::atomic::{AtomicU32, Ordering}, task::Waker, time::Duration};
///
/// static TICKS: InterruptDriver = InterruptDriver::new(Resolution::TEN_MILLIS);
/// static BLINKS: AtomicU32 = AtomicU32::new(0);
///
/// // A real board passes a waker that ends its `wfe`.
/// let waker = Waker::noop().clone();
/// let mut runner = RunnerLoop::start(SchedulerConfig::DEFAULT, &TICKS, &TICKS, waker)?;
/// let blink = Duration::from_millis(30);
/// runner.scheduler().schedule_at_fixed_rate_fn(blink, blink, DispatcherId::DEFAULT, |_| {
///     BLINKS.fetch_add(1, Ordering::Relaxed);
/// })?;
///
/// // Three interrupts come while the loop is busy.
/// for _ in 0..3 {
///     TICKS.notify_tick();
/// }
/// let result = runner.poll();
/// assert_eq!((result.ran, result.ticks, result.catch_up), (1, 3, 2));
/// assert_eq!(BLINKS.load(Ordering::Relaxed), 1);
/// runner.stop();
/// # Ok::<(), Box<dyn core::error::Error>>(())
/// ```
pub struct RunnerLoop {
    scheduler: Scheduler,
    driver: &'static dyn TickDriver,
    ticks: DriverTicks,
}

impl RunnerLoop {
    /// Creates the loop and, as the last step, registers it with the driver. `waker` must be the
    /// one that the scheduler's host has.
    ///
    /// # Errors
    ///
    /// If the driver refuses the registration, or the scheduler has a manual clock, which takes no
    /// ticks from a driver.
    pub fn new(
        scheduler: Scheduler,
        driver: &'static dyn TickDriver,
        waker: Waker,
    ) -> Result<Self, ModeError> {
        if scheduler.metadata().mode == RunnerMode::Manual {
            return Err(ModeError::MANUAL_LOOP);
        }
        driver.register(waker)?;
        DriverTicks::set_counts_ticks(&scheduler, true);
        Ok(Self { scheduler, driver, ticks: DriverTicks::default() })
    }

    /// Creates a scheduler with a [`HardwareHost`] of these parts, and its loop.
    ///
    /// # Errors
    ///
    /// As [`new`](Self::new), and if the scheduler cannot be created.
    pub fn start(
        config: SchedulerConfig,
        clock: &'static (dyn MonotonicClock + Sync),
        driver: &'static dyn TickDriver,
        waker: Waker,
    ) -> Result<Self, ModeError> {
        let host = HardwareHost::new(clock, driver, waker.clone());
        Self::new(Scheduler::new(config, host)?, driver, waker)
    }

    /// Watches from now on whether the driver supplies ticks, with the help of `reference`, a clock
    /// that does not depend on the driver. The timeout is
    /// [`driver_timeout`](SchedulerConfig::driver_timeout), but at least two ticks.
    ///
    /// Each timeout is reported once, as [`Warning::DriverSilent`](crate::Warning::DriverSilent),
    /// and `fallback` is called with the length of the silence: it starts what the board has for
    /// this case, for instance restarts the timer, or makes the clock of the scheduler follow
    /// another counter. The loop checks whenever it is polled, so the board must poll it also
    /// without the driver: by the interrupt of a watchdog, or by a limit to its sleep.
    pub fn watch(
        &mut self,
        reference: &'static (dyn MonotonicClock + Sync),
        fallback: fn(Duration),
    ) {
        self.ticks.watch(&self.scheduler, reference, fallback);
    }

    /// The scheduler.
    #[must_use]
    pub const fn scheduler(&self) -> &Scheduler {
        &self.scheduler
    }

    /// Takes all ticks from the driver, advances time and runs due jobs, on this thread.
    pub fn poll(&mut self) -> LoopPollResult {
        // Rule 2.
        let TakenTicks { ticks, catch_up, up_to, is_more } =
            self.ticks.take(&self.scheduler, self.driver);
        let mut result =
            LoopPollResult { ticks, catch_up, up_to, is_more, ..LoopPollResult::default() };
        self.run_due(&mut result);
        result
    }

    /// Stops the driver and closes the scheduler as [`Scheduler::shutdown`] does: jobs that the
    /// last ticks made due run. The report contains what the driver drained.
    pub fn stop(&mut self) -> CloseReport {
        let driver = self.driver.stop_and_flush();
        let mut report = self.scheduler.shutdown();
        // The shutdown stopped the driver once more and found nothing left.
        report.driver = Some(driver);
        report
    }

    /// Rule 3.
    fn run_due(&self, result: &mut LoopPollResult) {
        result.is_over = true;
        for shard in 0..self.scheduler.shards() {
            let of_shard = self.scheduler.poll_shard(shard, 0, RUNS_MAX);
            result.ran += of_shard.ran;
            result.is_more |= of_shard.is_more;
            result.is_over &= of_shard.is_over;
            let wakes = [result.next_wake, of_shard.next_wake];
            result.next_wake = wakes.into_iter().flatten().min();
        }
    }
}

impl Drop for RunnerLoop {
    /// Unregisters from the driver, so that another loop may follow. The scheduler continues, but
    /// nothing runs its jobs.
    fn drop(&mut self) {
        self.driver.unregister();
        DriverTicks::set_counts_ticks(&self.scheduler, false);
    }
}

impl fmt::Debug for RunnerLoop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunnerLoop")
            .field("scheduler", &self.scheduler)
            .field("driver", &self.driver.current_status())
            .field("ticks", &self.ticks)
            .finish_non_exhaustive()
    }
}
