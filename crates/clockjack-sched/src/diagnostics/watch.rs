//! Detects that a driver supplies no ticks, with the help of a second clock.
//!
//! If an interrupt was masked and not unmasked, or a timer lost its clock, then no tick comes, and
//! the loop that waits for one sleeps. Only a source that does not depend on the driver can detect
//! that: the *reference*, for instance a free-running counter or a slow real-time clock. The
//! reference measures how long no tick has come, and can also provide the time meanwhile.
//!
//! # Which reaction
//!
//! * [`Failover::ReportOnly`]: the timeout is reported, and time does not advance until ticks come.
//!   Use it if the clock is independent of the driver's count; if an operator restarts the driver
//!   or the board on the warning; or if running late is safer than running by another clock.
//! * [`Failover::UseReference`]: the timeout is reported, and time advances with the reference, in
//!   its steps. Use it if the jobs matter more than their precision: to feed a watchdog, or to
//!   switch off a heater.
//!
//! There is no default: the choice depends on the board.

mod clock;

use core::{fmt, time::Duration};

use clockjack_time::{MonotonicClock, TickSpan, TimerInstant};

use self::clock::ClockWriter;
pub use self::clock::FailoverClock;
use crate::LoopError;

/// What happens when the driver times out, and the reference that detects it. See the module
/// `watch` for the choice.
#[derive(Clone, Copy)]
pub enum Failover {
    /// The timeout is reported, and nothing else happens.
    ReportOnly(&'static (dyn MonotonicClock + Sync)),
    /// The timeout is reported, and the clock, which must be the scheduler's, follows its reference
    /// until ticks have come again for twice the timeout. By then, ticks that were held back have
    /// come.
    UseReference(&'static FailoverClock),
}

impl fmt::Debug for Failover {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::ReportOnly(_) => "ReportOnly",
            Self::UseReference(_) => "UseReference",
        })
    }
}

/// Detects that a driver supplies no ticks. A [`RunnerLoop`](crate::RunnerLoop) contains one after
/// [`watch`](crate::RunnerLoop::watch); other loops can use it directly.
///
/// It does not wait and has no interrupt: it checks when [`observe`](Self::observe) is called,
/// which a `RunnerLoop` does at each poll. So the board must poll the loop also without the driver,
/// by the interrupt of a watchdog or by a limit to its sleep. A timeout is reported at the first
/// check at which no tick has come for longer than `timeout`, as far as the reference can tell:
/// with a check every `p`, at the latest `timeout`, two ticks of the reference and 2 `p` after the
/// last tick. A loop that did not poll for long does not cause a timeout, because it finds the
/// ticks of that time.
pub struct DriverWatch {
    reference: &'static (dyn MonotonicClock + Sync),
    timeout: Duration,
    /// The number of ticks at the last check.
    ticks: u64,
    /// When that number changed.
    ticked_at: TimerInstant,
    is_reported: bool,
    timeouts: u32,
    writer: Option<ClockWriter>,
}

impl DriverWatch {
    /// Creates a watch that reports a timeout when no tick has come for longer than `timeout`,
    /// counted from now.
    ///
    /// # Errors
    ///
    /// If the clock of [`Failover::UseReference`] has another watch.
    pub fn new(timeout: Duration, failover: Failover) -> Result<Self, LoopError> {
        let (reference, writer) = match failover {
            Failover::ReportOnly(reference) => (reference, None),
            Failover::UseReference(clock) => {
                let timeout = measurable(timeout, clock.reference());
                let writer = ClockWriter::new(clock, timeout).ok_or(LoopError::WATCHED)?;
                (clock.reference(), Some(writer))
            }
        };
        Ok(Self {
            reference,
            timeout: measurable(timeout, reference),
            ticks: 0,
            ticked_at: reference.now(),
            is_reported: false,
            timeouts: 0,
            writer,
        })
    }

    /// Checks the driver; `ticks` is the number of ticks that it has supplied so far. Returns how
    /// long no tick has come, once per timeout.
    pub fn observe(&mut self, ticks: u64) -> Option<Duration> {
        if let Some(writer) = &mut self.writer {
            writer.update();
        }
        let now = self.reference.now();
        if ticks != self.ticks {
            self.ticks = ticks;
            self.ticked_at = now;
            self.is_reported = false;
            return None;
        }
        let silent_for = now.since(self.ticked_at);
        if silent_for <= self.timeout || self.is_reported {
            return None;
        }
        self.is_reported = true;
        self.timeouts = self.timeouts.saturating_add(1);
        Some(silent_for)
    }

    /// Whether the driver had timed out at the last check.
    #[must_use]
    pub const fn has_timed_out(&self) -> bool {
        self.is_reported
    }

    /// How many timeouts there were.
    #[must_use]
    pub const fn timeouts(&self) -> u32 {
        self.timeouts
    }

    /// Whether the time follows the reference at present.
    #[must_use]
    pub fn is_failed_over(&self) -> bool {
        self.writer.as_ref().is_some_and(ClockWriter::is_failed_over)
    }
}

/// How far a clock that rounds down must have advanced so that `timeout` has really elapsed.
fn measurable(timeout: Duration, reference: &dyn MonotonicClock) -> Duration {
    timeout.saturating_add(reference.resolution().duration(TickSpan::ONE))
}

impl fmt::Debug for DriverWatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DriverWatch")
            .field("silence", &self.timeout)
            .field("ticks", &self.ticks)
            .field("has_timed_out", &self.is_reported)
            .field("timeouts", &self.timeouts)
            .field("is_failed_over", &self.is_failed_over())
            .finish_non_exhaustive()
    }
}
