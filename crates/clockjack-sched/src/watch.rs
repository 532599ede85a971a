//! A driver that falls silent is noticed, by a second source of time.
//!
//! An interrupt that was masked and not unmasked, a timer that lost its clock: no tick comes, and
//! the loop that waits for one sleeps. Whether that is so can be seen only by what does not depend
//! on the driver: the *reference*, for instance a free-running counter or a slow real-time clock.
//! The reference says how long no tick has come, and, if that is wanted, what time it is meanwhile.
//!
//! # Which fallback
//!
//! * [`Fallback::ReportOnly`]: the silence is told, and time stands still until ticks come. Right
//!   if the clock is not the driver's count but runs by itself; if somebody restarts the driver, or
//!   the board, on the warning; if to run late is safer than to run by another clock.
//! * [`Fallback::UseReference`]: the silence is told, and time goes on by the reference, in the
//!   steps that it has. Right if the jobs matter more than their precision: a watchdog to be fed, a
//!   heater to be switched off.
//!
//! Neither is the default: that is for who knows the board to say.

#[path = "watch/clock.rs"]
mod clock;

use core::{fmt, time::Duration};

use clockjack_time::{MonotonicClock, TickSpan, TimerInstant};

pub use self::clock::FallbackClock;
use self::clock::Steering;
use crate::LoopError;

/// What happens while a driver is silent, and by which reference that is found out; see the module
/// `watch` for the choice.
#[derive(Clone, Copy)]
pub enum Fallback {
    /// It is told, and nothing else is done.
    ReportOnly(&'static (dyn MonotonicClock + Sync)),
    /// It is told, and the clock, which must be the scheduler's, goes by its reference until ticks
    /// have come again for twice as long as a silence must last to be told: those that were held
    /// back have come by then.
    UseReference(&'static FallbackClock),
}

impl fmt::Debug for Fallback {
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
/// A silence is told at the first look at which it has lasted for longer than `silence`, as far as
/// the reference can tell: with a look each `p`, at the latest `silence`, two ticks of the
/// reference and 2 `p` after the last tick. A loop that was away itself does not take that for a
/// silence: the ticks that came meanwhile are there.
pub struct DriverWatch {
    reference: &'static (dyn MonotonicClock + Sync),
    silence: Duration,
    /// The ticks that were there at the last look.
    ticks: u64,
    /// When that changed.
    ticked_at: TimerInstant,
    is_told: bool,
    silences: u32,
    steering: Option<Steering>,
}

impl DriverWatch {
    /// A watch that calls a driver silent when no tick has come for longer than `silence`, counted
    /// from now at first.
    ///
    /// # Errors
    ///
    /// If the clock of [`Fallback::UseReference`] has another watch.
    pub fn new(silence: Duration, fallback: Fallback) -> Result<Self, LoopError> {
        let (reference, steering) = match fallback {
            Fallback::ReportOnly(reference) => (reference, None),
            Fallback::UseReference(clock) => {
                let silence = measurable(silence, clock.reference());
                let steering = Steering::new(clock, silence).ok_or(LoopError::WATCHED)?;
                (clock.reference(), Some(steering))
            }
        };
        Ok(Self {
            reference,
            silence: measurable(silence, reference),
            ticks: 0,
            ticked_at: reference.now(),
            is_told: false,
            silences: 0,
            steering,
        })
    }

    /// Looks: `ticks` is how many ticks the driver has supplied so far. Gives for how long it has
    /// been silent, once for each silence.
    pub fn observe(&mut self, ticks: u64) -> Option<Duration> {
        if let Some(steering) = &mut self.steering {
            steering.look();
        }
        let now = self.reference.now();
        if ticks != self.ticks {
            self.ticks = ticks;
            self.ticked_at = now;
            self.is_told = false;
            return None;
        }
        let silent_for = now.since(self.ticked_at);
        if silent_for <= self.silence || self.is_told {
            return None;
        }
        self.is_told = true;
        self.silences = self.silences.saturating_add(1);
        Some(silent_for)
    }

    /// Whether the driver was silent at the last look.
    #[must_use]
    pub const fn is_silent(&self) -> bool {
        self.is_told
    }

    /// How many silences there were.
    #[must_use]
    pub const fn silences(&self) -> u32 {
        self.silences
    }

    /// Whether time goes by the reference at present.
    #[must_use]
    pub fn is_fallen_back(&self) -> bool {
        self.steering.as_ref().is_some_and(Steering::is_fallen_back)
    }
}

/// What a clock that rounds down must have passed so that really `silence` has.
fn measurable(silence: Duration, reference: &dyn MonotonicClock) -> Duration {
    silence.saturating_add(reference.resolution().duration(TickSpan::ONE))
}

impl fmt::Debug for DriverWatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DriverWatch")
            .field("silence", &self.silence)
            .field("ticks", &self.ticks)
            .field("is_silent", &self.is_told)
            .field("silences", &self.silences)
            .field("is_fallen_back", &self.is_fallen_back())
            .finish_non_exhaustive()
    }
}
