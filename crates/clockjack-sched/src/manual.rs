//! The manual mode: a clock that a hand moves, and everything due runs on the calling thread.

use core::{fmt, time::Duration};

use clockjack_sync::Counted;
use clockjack_time::{ClockKind, ManualClock, MonotonicClock, Tick, TickSpan, TimerInstant};

use crate::{HandlerError, ModeError, Scheduler, SchedulerConfig, SchedulerHost};

/// A scheduler in virtual time, and the hand that moves it.
///
/// Due is what has a deadline not later than the new time. Jobs run in the order of their
/// deadlines, each with the clock at its own deadline; what a job schedules runs in the same
/// advance if it is due by then. A job without delay runs within the call that schedules it, or
/// after the present handler if that is called from one.
///
/// # Examples
///
/// ```
/// use clockjack_sched::{DispatcherId, ManualRunner, SchedulerConfig};
/// use core::time::Duration;
///
/// let manual = ManualRunner::new(SchedulerConfig::DEFAULT)?;
/// let (told, heard) = std::sync::mpsc::channel();
/// let secs = Duration::from_secs;
/// manual.scheduler().schedule_once_fn(secs(5), DispatcherId::DEFAULT, move |_| told.send(()))?;
///
/// assert_eq!(manual.advance(secs(4)), 0);
/// assert_eq!(manual.advance(secs(1)), 1);
/// assert!(heard.try_recv().is_ok());
/// # Ok::<(), Box<dyn core::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct ManualRunner {
    scheduler: Scheduler,
    clock: Counted<ManualClock>,
}

/// Calls what is the user's, and catches a panic in it: what a host with unwinding hands in.
pub type CatchUnwind = fn(&mut dyn FnMut()) -> Result<(), HandlerError>;

struct ManualHost {
    clock: Counted<ManualClock>,
    catch_unwind: CatchUnwind,
}

impl SchedulerHost for ManualHost {
    fn now(&self) -> TimerInstant {
        self.clock.now()
    }

    fn clock_kind(&self) -> ClockKind {
        self.clock.kind()
    }

    fn name(&self) -> &'static str {
        "manual"
    }

    fn wake_poller(&self, _shard: usize) {}

    fn catch_unwind(&self, call: &mut dyn FnMut()) -> Result<(), HandlerError> {
        (self.catch_unwind)(call)
    }
}

pub(crate) fn without_catch_unwind(call: &mut dyn FnMut()) -> Result<(), HandlerError> {
    call();
    Ok(())
}

impl ManualRunner {
    /// A scheduler whose time stands at the start of its configuration. A handler that panics takes
    /// its caller along, which is whoever moves time: see [`with_catch_unwind`](Self::with_catch_unwind).
    ///
    /// # Errors
    ///
    /// [`ModeError::ManualInProduction`], if the configuration is for production.
    pub fn new(config: SchedulerConfig) -> Result<Self, ModeError> {
        Self::with_catch_unwind(config, without_catch_unwind)
    }

    /// As [`new`](Self::new), with a way to catch panics.
    ///
    /// # Errors
    ///
    /// As [`new`](Self::new).
    pub fn with_catch_unwind(
        config: SchedulerConfig,
        catch_unwind: CatchUnwind,
    ) -> Result<Self, ModeError> {
        let clock = Counted::new(ManualClock::starting_at(config.start, config.resolution));
        let host = ManualHost { clock: clock.clone(), catch_unwind };
        Ok(Self { scheduler: Scheduler::new(config, host)?, clock })
    }

    /// The scheduler.
    #[must_use]
    pub fn scheduler(&self) -> &Scheduler {
        &self.scheduler
    }

    /// Its clock. To move it by itself is to stall: what is due then runs late, at the next
    /// [`advance`](Self::advance).
    #[must_use]
    pub fn clock(&self) -> &ManualClock {
        &self.clock
    }

    /// Moves time by `duration` and runs all that is due on the way. Gives the number of runs.
    ///
    /// What is left below a tick is kept, so many small advances add up exactly.
    pub fn advance(&self, duration: Duration) -> usize {
        let resolution = self.clock.resolution();
        // As many ticks as are whole; what is left may complete one more, with what was kept.
        let span = match resolution.ticks_ceil(duration) {
            Some(span) if resolution.duration(span) > duration => span.get() - 1,
            Some(span) => span.get(),
            None => u64::MAX,
        };
        let target = self.clock.now().tick().saturating_add(TickSpan::new(span));
        let ran = self.advance_to(target);
        let rest = duration.saturating_sub(resolution.duration(TickSpan::new(span)));
        if rest.is_zero() {
            return ran;
        }
        let tick = self.clock.advance(rest).tick();
        ran + self.run_by(tick.min(target.saturating_add(TickSpan::ONE)))
    }

    /// Moves time to a tick and runs all that is due on the way. Gives the number of runs.
    ///
    /// It ends, however long handlers take: what comes due behind `target` waits for the next
    /// advance, also if a handler has moved the clock there.
    pub fn advance_to(&self, target: Tick) -> usize {
        let mut ran = self.run_by(target);
        while let Some(next) = self.scheduler.next_deadline().filter(|next| *next <= target) {
            self.move_to(next);
            ran += self.run_by(target);
        }
        self.move_to(target);
        ran + self.run_by(target)
    }

    /// Moves time to the next deadline and runs what is due there. `None` if nothing is scheduled.
    pub fn advance_to_next(&self) -> Option<usize> {
        let next = self.scheduler.next_deadline()?;
        self.move_to(next);
        Some(self.scheduler.run_due())
    }

    /// Runs what is due without moving time.
    pub fn run_due(&self) -> usize {
        self.scheduler.run_due()
    }

    /// Runs what is due by now, but by `target` at the latest.
    fn run_by(&self, target: Tick) -> usize {
        let tick = self.clock.now().tick().min(target);
        self.scheduler.run_due_by(TimerInstant::new(tick, self.clock.resolution()))
    }

    fn move_to(&self, tick: Tick) {
        self.clock.advance_ticks(tick.saturating_since(self.clock.now().tick()));
    }
}

impl fmt::Debug for ManualRunner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ManualRunner")
            .field("now", &self.clock.now())
            .field("scheduler", &self.scheduler)
            .finish()
    }
}
