//! A driver that falls silent is noticed, by a second source of time.
//!
//! An interrupt that was masked and not unmasked, a timer that lost its clock: no tick comes, and
//! the loop that waits for one sleeps. Whether that is so can be seen only by what does not depend
//! on the driver: the *reference*, for instance a free-running counter or a slow real-time clock.
//! The reference says how long no tick has come, and, if that is wanted, what time it is meanwhile.
//!
//! # Which fallback
//!
//! * [`Failover::ReportOnly`]: the timeout is told, and time stands still until ticks come. Right
//!   if the clock is not the driver's count but runs by itself; if somebody restarts the driver, or
//!   the board, on the warning; if to run late is safer than to run by another clock.
//! * [`Failover::UseReference`]: the timeout is told, and time goes on by the reference, in the
//!   steps that it has. Right if the jobs matter more than their precision: a watchdog to be fed, a
//!   heater to be switched off.
//!
//! Neither is the default: that is for who knows the board to say.

#[path = "watch/clock.rs"]
mod clock;

use core::{fmt, time::Duration};

use clockjack_time::{MonotonicClock, TickSpan, TimerInstant};

use self::clock::ClockWriter;
pub use self::clock::FailoverClock;
use crate::LoopError;

/// What happens while a driver is silent, and by which reference that is found out; see the module
/// `watch` for the choice.
#[derive(Clone, Copy)]
pub enum Failover {
    /// It is told, and nothing else is done.
    ReportOnly(&'static (dyn MonotonicClock + Sync)),
    /// It is told, and the clock, which must be the scheduler's, goes by its reference until ticks
    /// have come again for twice as long as a timeout must last to be told: those that were held
    /// back have come by then.
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

/// Notices that a driver supplies no ticks. Part of a [`RunnerLoop`](crate::RunnerLoop) by its
/// [`watch`](crate::RunnerLoop::watch); by itself for other loops.
///
/// It waits for nothing and has no interrupt of its own: it looks when it is
/// [asked](Self::observe), which for a `RunnerLoop` is at each poll. So the board sees to it that
/// the loop is polled without the driver too, by a watchdog's interrupt or by a limit to its sleep.
/// A timeout is told at the first look at which it has lasted for longer than `silence`, as far as
/// the reference can tell: with a look each `p`, at the latest `silence`, two ticks of the
/// reference and 2 `p` after the last tick. A loop that was away itself does not take that for a
/// timeout: the ticks that came meanwhile are there.
pub struct DriverWatch {
    reference: &'static (dyn MonotonicClock + Sync),
    timeout: Duration,
    /// The ticks that were there at the last look.
    ticks: u64,
    /// When that changed.
    ticked_at: TimerInstant,
    is_reported: bool,
    silences: u32,
    writer: Option<ClockWriter>,
}

impl DriverWatch {
    /// A watch that calls a driver silent when no tick has come for longer than `silence`, counted
    /// from now at first.
    ///
    /// # Errors
    ///
    /// If the clock of [`Failover::UseReference`] has another watch.
    pub fn new(timeout: Duration, fallback: Failover) -> Result<Self, LoopError> {
        let (reference, writer) = match fallback {
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
            silences: 0,
            writer,
        })
    }

    /// Looks: `ticks` is how many ticks the driver has supplied so far. Gives for how long it has
    /// been silent, once for each timeout.
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
        self.silences = self.silences.saturating_add(1);
        Some(silent_for)
    }

    /// Whether the driver was silent at the last look.
    #[must_use]
    pub const fn is_silent(&self) -> bool {
        self.is_reported
    }

    /// How many silences there were.
    #[must_use]
    pub const fn silences(&self) -> u32 {
        self.silences
    }

    /// Whether time goes by the reference at present.
    #[must_use]
    pub fn is_failed_over(&self) -> bool {
        self.writer.as_ref().is_some_and(ClockWriter::is_failed_over)
    }
}

/// What a clock that rounds down must have passed so that really `silence` has.
fn measurable(timeout: Duration, reference: &dyn MonotonicClock) -> Duration {
    timeout.saturating_add(reference.resolution().duration(TickSpan::ONE))
}

impl fmt::Debug for DriverWatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DriverWatch")
            .field("silence", &self.timeout)
            .field("ticks", &self.ticks)
            .field("is_silent", &self.is_reported)
            .field("silences", &self.silences)
            .field("is_failed_over", &self.is_failed_over())
            .finish_non_exhaustive()
    }
}
