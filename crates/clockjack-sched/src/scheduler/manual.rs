//! The manual mode: the caller advances the clock, and due jobs run on the calling thread.

use core::{fmt, time::Duration};

use clockjack_sync::{Arc, panic::PanicPayload};
use clockjack_time::{ClockKind, ManualClock, MonotonicClock, Tick, TickSpan, TimerInstant};

use crate::{ModeError, Scheduler, SchedulerConfig, SchedulerHost};

/// A scheduler in virtual time, with the clock that the caller advances.
///
/// A job is due if its deadline is not later than the new time. Jobs run in the order of their
/// deadlines, each with the clock at its own deadline. A job that another job schedules runs in the
/// same advance if it is due by then. A job without delay runs within the call that schedules it,
/// or after the current handler if a handler schedules it.
///
/// # Examples
///
/// ```
/// use clockjack_sched::{DispatcherId, ManualRunner, SchedulerConfig};
/// use core::time::Duration;
///
/// let manual = ManualRunner::new(SchedulerConfig::DEFAULT)?;
/// let (sender, receiver) = std::sync::mpsc::channel();
/// let secs = Duration::from_secs;
/// manual.scheduler().schedule_once_fn(secs(5), DispatcherId::DEFAULT, move |_| sender.send(()))?;
///
/// assert_eq!(manual.advance(secs(4)), 0);
/// assert_eq!(manual.advance(secs(1)), 1);
/// assert!(receiver.try_recv().is_ok());
/// # Ok::<(), Box<dyn core::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct ManualRunner {
    scheduler: Scheduler,
    clock: Arc<ManualClock>,
}

/// Calls user code and catches its panics. A host with unwinding provides this function.
pub type CatchUnwind = fn(&mut dyn FnMut()) -> Result<(), PanicPayload>;

struct ManualHost {
    clock: Arc<ManualClock>,
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

    fn wake_poller(&self, _shard: usize, _at: Tick) {}

    fn catch_unwind(&self, call: &mut dyn FnMut()) -> Result<(), PanicPayload> {
        (self.catch_unwind)(call)
    }
}

pub(crate) fn without_catch_unwind(call: &mut dyn FnMut()) -> Result<(), PanicPayload> {
    call();
    Ok(())
}

impl ManualRunner {
    /// Creates a scheduler whose time is the start of its configuration. A panic of a handler
    /// propagates to the caller that advances time: see
    /// [`with_catch_unwind`](Self::with_catch_unwind).
    ///
    /// # Errors
    ///
    /// If the configuration is for production.
    pub fn new(config: SchedulerConfig) -> Result<Self, ModeError> {
        Self::with_catch_unwind(config, without_catch_unwind)
    }

    /// As [`new`](Self::new), with a function that catches panics.
    ///
    /// # Errors
    ///
    /// As [`new`](Self::new).
    pub fn with_catch_unwind(
        config: SchedulerConfig,
        catch_unwind: CatchUnwind,
    ) -> Result<Self, ModeError> {
        let clock = Arc::new(ManualClock::starting_at(config.start, config.resolution));
        let host = ManualHost { clock: clock.clone(), catch_unwind };
        Ok(Self { scheduler: Scheduler::new(config, host)?, clock })
    }

    /// The scheduler.
    #[must_use]
    pub fn scheduler(&self) -> &Scheduler {
        &self.scheduler
    }

    /// The clock. Moving it directly simulates a stall: jobs that become due by that run late, at
    /// the next [`advance`](Self::advance).
    #[must_use]
    pub fn clock(&self) -> &ManualClock {
        &self.clock
    }

    /// Advances time by `duration` and runs all jobs that become due. Returns the number of runs.
    ///
    /// Fractions of a tick are kept, so many small advances add up exactly.
    pub fn advance(&self, duration: Duration) -> usize {
        let resolution = self.clock.resolution();
        // The whole ticks. The rest may complete one more tick together with the kept fraction.
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

    /// Advances time to a tick and runs all jobs that become due. Returns the number of runs.
    ///
    /// It returns however long handlers take: jobs that are due after `target` wait for the next
    /// advance, even if a handler has moved the clock there.
    pub fn advance_to(&self, target: Tick) -> usize {
        let mut ran = self.run_by(target);
        while let Some(next) = self.scheduler.next_deadline().filter(|next| *next <= target) {
            self.move_to(next);
            ran += self.run_by(target);
        }
        self.move_to(target);
        ran + self.run_by(target)
    }

    /// Advances time to the next deadline and runs the due jobs. `None` if nothing is scheduled.
    pub fn advance_to_next(&self) -> Option<usize> {
        let next = self.scheduler.next_deadline()?;
        self.move_to(next);
        Some(self.scheduler.run_due())
    }

    /// Runs due jobs without advancing time.
    pub fn run_due(&self) -> usize {
        self.scheduler.run_due()
    }

    /// Runs jobs that are due by now, but not those after `target`.
    fn run_by(&self, target: Tick) -> usize {
        let tick = self.clock.now().tick().min(target);
        let limit = TimerInstant::new(tick, self.clock.resolution());
        self.scheduler.run_due_by(limit, usize::MAX, &|| true)
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
