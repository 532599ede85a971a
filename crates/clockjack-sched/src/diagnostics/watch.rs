//! Detects that a driver supplies no ticks, with the help of a second clock.
//!
//! If an interrupt was masked and not unmasked, or a timer lost its clock, then no tick comes, and
//! the loop that waits for one sleeps. Only a source that does not depend on the driver can detect
//! that: the *reference*, for instance a free-running counter or a slow real-time clock. The
//! reference measures how long no tick has come.
//!
//! A watch does not wait and has no interrupt: it checks when [`observe`](DriverWatch::observe) is
//! called. A timeout is reported at the first check at which no tick has come for longer than
//! `timeout`, as far as the reference can tell: with a check every `p`, at the latest `timeout`,
//! two ticks of the reference and 2 `p` after the last tick. A loop that did not poll for long does
//! not cause a timeout, because it finds the ticks of that time.

use core::{fmt, time::Duration};

use clockjack_time::{MonotonicClock, TickSpan, TimerInstant};

/// See the [module](self).
pub(crate) struct DriverWatch {
    reference: &'static (dyn MonotonicClock + Sync),
    fallback: fn(Duration),
    timeout: Duration,
    /// The number of ticks at the last check.
    ticks: u64,
    /// When that number changed.
    ticked_at: TimerInstant,
    is_reported: bool,
}

impl DriverWatch {
    /// Creates a watch that reports a timeout when no tick has come for longer than `timeout`,
    /// counted from now. `ticks` is the number of ticks so far.
    pub(crate) fn new(
        timeout: Duration,
        ticks: u64,
        reference: &'static (dyn MonotonicClock + Sync),
        fallback: fn(Duration),
    ) -> Self {
        // So much must a clock that rounds down have advanced, before `timeout` has really elapsed.
        let timeout = timeout.saturating_add(reference.resolution().duration(TickSpan::ONE));
        let (ticked_at, is_reported) = (reference.now(), false);
        Self { reference, fallback, timeout, ticks, ticked_at, is_reported }
    }

    /// Checks the driver; `ticks` is the number of ticks that it has supplied so far. Returns how
    /// long no tick has come, once per timeout, with the function that reacts.
    pub(crate) fn observe(&mut self, ticks: u64) -> Option<(Duration, fn(Duration))> {
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
        Some((silent_for, self.fallback))
    }
}

impl fmt::Debug for DriverWatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DriverWatch")
            .field("timeout", &self.timeout)
            .field("ticks", &self.ticks)
            .field("is_reported", &self.is_reported)
            .finish_non_exhaustive()
    }
}
