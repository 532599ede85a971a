//! The hardware mode: an interrupt counts ticks, and a loop takes them up.
//!
//! Nothing here sleeps. A board calls [`RunnerLoop::poll`] from its main loop and sleeps when there
//! is nothing to do; interrupts, and other threads if there are any, end its sleep by a waker.
//!
//! # Roles
//!
//! * The **driver** counts ticks, in an interrupt, and wakes the loop at the first one that the
//!   loop has not taken.
//! * The **loop** takes ticks off the driver, moves the scheduler's time and runs what is due.
//!   There is one.
//! * A **caller** schedules and cancels, from a handler, an interrupt or a thread. Interrupts do
//!   nothing else with the scheduler, and only where the host knows them
//!   ([`with_interrupts`](HardwareHost::with_interrupts)): a few jobs at a time are taken from one
//!   that has interrupted the loop, and more are refused for want of room.
//!
//! # Rules
//!
//! 1. The waker leaves a mark that outlasts the moment: a flag, the event register of `wfe`, the
//!    token of a parked thread. The loop clears the mark, polls, and sleeps only while there is no
//!    mark.
//! 2. A poll takes tokens until the driver has none. From then on the driver owes a wake-up for the
//!    next tick, whenever that comes: before the handlers, between them, or after the poll.
//! 3. Time is the clock's, read after the tokens were taken, and never less than what they said. A
//!    tick that comes later is moved to by this poll or by the next, for which rule 2 wakes.
//! 4. A caller whose job is due before the loop wakes by itself calls the runner, which is the same
//!    waker.
//! 5. A poll is bounded: in the tokens that it takes and in the handlers that it runs. What is left
//!    it tells as [`is_more`](LoopPollResult::is_more), and then the loop polls again without a sleep.
//!
//! # Why no tick is lost and nothing hangs
//!
//! The driver's absolute count is the queue, so that a tick that nobody has taken is in the next
//! token. A wake-up that comes between poll and sleep has left its mark by rule 1, and the sleep is
//! not begun. The loop waits for nothing, and the driver and the callers do not wait for the loop.

#[path = "hardware/error.rs"]
mod error;

use core::{fmt, task::Waker};

use clockjack_sync::mutant;
use clockjack_time::{
    ClockKind, DriverStatus, MonotonicClock, Resolution, Tick, TickDriver, TickSpan, TimerInstant,
};

pub use self::error::LoopError;
use crate::{
    CatchUnwind, CloseReport, HandlerError, RunnerMode, Scheduler, SchedulerConfig, SchedulerHost,
    Warning,
    manual::without_catch_unwind,
    watch::{DriverWatch, Failover},
};

/// How many tokens one poll takes: a driver that has one each time it is asked is faster than its
/// loop, and handlers must run all the same.
const TOKENS_MAX: u32 = 64;
/// How many handlers of a shard one poll runs, so that ticks are taken up between them.
const RUNS_MAX: usize = 256;

/// Carries a scheduler on bare metal, or wherever ticks come from outside.
///
/// The scheduler's mode follows from the kind of `clock`, as everywhere: over an
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
    /// A host whose time is `clock`'s and whose ticks come from `driver`; `waker` ends the sleep of
    /// the loop, and must leave a mark (rule 1 of the module `hardware`).
    ///
    /// It is woken by whoever schedules something that is due soon. A panic of a handler is not
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

    /// The same with a way to tell whether the caller is an interrupt, for boards whose interrupts
    /// schedule or cancel: without it one could wait for the loop that it has interrupted.
    #[must_use]
    pub const fn with_interrupts(mut self, is_interrupt: fn() -> bool) -> Self {
        self.is_interrupt = is_interrupt;
        self
    }

    /// The same with a finer reading of the time, for boards that can tell how far a tick has come.
    ///
    /// A clock that counts ticks stands at the beginning of one until the next. By such a clock
    /// nothing is early, but a delay that is counted from it is short by the part of a tick that
    /// was over, and a finer clock sees that. Counted from this reading, and rounded up to an edge,
    /// it is not early by either.
    ///
    /// It MUST NOT differ from the clock but by being finer: rounded down to the clock's tick it is
    /// a reading of the clock, also in code that holds off the interrupt that counts.
    #[must_use]
    pub const fn with_fine_clock(mut self, now: fn() -> TimerInstant) -> Self {
        self.fine_now = Some(now);
        self
    }

    /// The same with a way to catch panics, where there is one.
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

    fn wake_poller(&self, _shard: usize) {
        if !mutant!("loop-call-unheard") {
            self.waker.wake_by_ref();
        }
    }

    fn can_wait(&self) -> bool {
        !(self.is_interrupt)()
    }

    fn catch_unwind(&self, call: &mut dyn FnMut()) -> Result<(), HandlerError> {
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

/// What one poll of a loop has come to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct LoopPollResult {
    /// How many handlers were called.
    pub ran: usize,
    /// How many ticks of the driver were taken up.
    pub ticks: u64,
    /// How many of them came while the loop was away: all but the last of each token.
    pub catch_up: u64,
    /// Up to which tick, in the driver's count, time had come; `None` if no tick was there.
    pub up_to: Option<Tick>,
    /// Whether there is more to do at once: poll again, and do not sleep.
    pub is_more: bool,
    /// When something is due next, in the scheduler's ticks, if nothing is now.
    pub next_wake: Option<Tick>,
    /// Whether the scheduler was closed, and nothing is left to do.
    pub is_over: bool,
}

/// The loop of the hardware mode: takes ticks off a driver and runs what they make due.
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
/// // A real board hands in a waker that ends its `wfe`.
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
    watch: Option<DriverWatch>,
    /// Ticks that were taken up since the start.
    ticks: u64,
    /// Whether the driver has reported backpressure at the last poll that found ticks.
    is_pressed: bool,
}

impl RunnerLoop {
    /// Registers with the driver, which is the last step of a start: if it fails then there is no
    /// loop. The waker is the one that the scheduler's host has.
    ///
    /// # Errors
    ///
    /// If the driver refuses the registration; if the scheduler's clock is moved by hand, to which
    /// no ticks are supplied.
    pub fn new(
        scheduler: Scheduler,
        driver: &'static dyn TickDriver,
        waker: Waker,
    ) -> Result<Self, LoopError> {
        if scheduler.metadata().mode == RunnerMode::Manual {
            return Err(LoopError::MANUAL);
        }
        driver.register(waker)?;
        let this = Self { scheduler, driver, watch: None, ticks: 0, is_pressed: false };
        if !mutant!("loop-ticks-counted-twice") {
            this.set_driver_reports_ticks(true);
        }
        Ok(this)
    }

    /// A scheduler over a [`HardwareHost`] of these parts, with its loop.
    ///
    /// # Errors
    ///
    /// As [`new`](Self::new); and if the scheduler cannot be made.
    pub fn start(
        config: SchedulerConfig,
        clock: &'static (dyn MonotonicClock + Sync),
        driver: &'static dyn TickDriver,
        waker: Waker,
    ) -> Result<Self, LoopError> {
        let host = HardwareHost::new(clock, driver, waker.clone());
        Self::new(Scheduler::new(config, host)?, driver, waker)
    }

    /// Watches from now on that the driver does not fall silent, after
    /// [`driver_timeout`](SchedulerConfig::driver_timeout) or two ticks, if that is longer. See
    /// [`DriverWatch`] for what the board has to do for it.
    ///
    /// # Errors
    ///
    /// If the clock of [`Failover::UseReference`] has another watch.
    pub fn watch(&mut self, fallback: Failover) -> Result<(), LoopError> {
        let two_ticks = self.driver_tick().duration(TickSpan::new(2));
        let silence = self.scheduler.inner().shared.driver_timeout.max(two_ticks);
        self.watch = Some(DriverWatch::new(silence, fallback)?);
        Ok(())
    }

    /// The scheduler.
    #[must_use]
    pub const fn scheduler(&self) -> &Scheduler {
        &self.scheduler
    }

    /// Takes up all ticks that have come, moves time and runs what is due, on this thread.
    pub fn poll(&mut self) -> LoopPollResult {
        let mut result = LoopPollResult::default();
        self.take_ticks(&mut result);
        self.check_driver();
        self.run_due(&mut result);
        result
    }

    /// Stops the driver, and closes the scheduler as [`Scheduler::shutdown`] does: what the last
    /// ticks made due is run. The report says what the driver drained.
    pub fn stop(&mut self) -> CloseReport {
        let driver = self.driver.stop_and_flush();
        let mut report = self.scheduler.shutdown();
        // The host has stopped the driver once more, and found nothing left.
        report.driver = Some(driver);
        report
    }

    fn driver_tick(&self) -> Resolution {
        self.scheduler.inner().shared.host.driver_tick()
    }

    /// Rule 2.
    fn take_ticks(&mut self, result: &mut LoopPollResult) {
        // Before the tokens are taken: afterwards nothing waits.
        let status = self.driver.current_status();
        result.is_more = true;
        for _ in 0..TOKENS_MAX {
            let Some(token) = self.driver.poll_tick() else {
                result.is_more = false;
                break;
            };
            if mutant!("loop-takes-one-token") {
                result.is_more = false;
                result.ticks = 1;
                break;
            }
            let catch_up = u64::from(token.catch_up);
            result.ticks += 1 + catch_up;
            result.catch_up += catch_up;
            result.up_to = result.up_to.max(Some(token.up_to));
        }
        if result.ticks == 0 {
            return;
        }
        self.ticks = self.ticks.saturating_add(result.ticks);
        self.update_jitter(status);
        if result.catch_up > 0 {
            self.count_catch_up(result.catch_up);
        }
    }

    /// How late the driver says that it is: for how long the oldest tick has waited.
    fn update_jitter(&mut self, status: DriverStatus) {
        let pending = match status {
            DriverStatus::Backpressured { pending_ticks } => pending_ticks,
            _ => 0,
        };
        let is_pressed = pending > 0;
        if is_pressed || self.is_pressed {
            let jitter = self.driver_tick().duration(TickSpan::new(pending));
            self.scheduler.diagnostics().set_driver_jitter(jitter);
        }
        self.is_pressed = is_pressed;
    }

    #[cold]
    fn count_catch_up(&self, catch_up: u64) {
        let inner = self.scheduler.inner();
        let limit = inner.shards[0].with_guard(|locked| locked.table.count_catch_up(catch_up));
        let behind = TimerInstant::new(Tick::new(catch_up), self.driver_tick());
        let ticks = behind.elapsed_tick(inner.shared.resolution).get();
        if ticks > u64::from(limit) {
            inner.shared.warn(Warning::DriverCatchUpExceeded { shard: 0, ticks, limit });
        }
    }

    fn check_driver(&mut self) {
        if self.scheduler.is_closed() {
            return;
        }
        let Some(watch) = &mut self.watch else { return };
        if let Some(silent_for) = watch.observe(self.ticks) {
            self.scheduler.inner().shared.warn(Warning::DriverSilent { silent_for });
        }
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

    /// Who counts the ticks that are made up for: the loop, which is told by the driver, or the
    /// shards, which can only guess by what is due.
    fn set_driver_reports_ticks(&self, is_here: bool) {
        for shard in &self.scheduler.inner().shards {
            shard.with_guard(|locked| locked.table.set_driver_reports_ticks(is_here));
        }
    }
}

impl Drop for RunnerLoop {
    /// Takes the registration back, so that another loop may follow. The scheduler goes on, with
    /// nobody to run its jobs.
    fn drop(&mut self) {
        self.driver.unregister();
        self.set_driver_reports_ticks(false);
    }
}

impl fmt::Debug for RunnerLoop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunnerLoop")
            .field("scheduler", &self.scheduler)
            .field("driver", &self.driver.current_status())
            .field("ticks", &self.ticks)
            .field("watch", &self.watch)
            .finish_non_exhaustive()
    }
}
