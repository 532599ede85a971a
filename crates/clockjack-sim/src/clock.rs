//! The simulated clock: the simulation advances it, and its source may misbehave.

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use clockjack_time::{ClockKind, MonotonicClock, Resolution, Tick, TimerInstant};

/// The resolution of simulated time.
pub const RESOLUTION: Resolution = Resolution::MILLI;

/// A clock with millisecond ticks, used by one thread.
///
/// The simulation can move the *source* of the clock forwards and backwards. As the contract of
/// [`MonotonicClock`] requires, the time that the runtime sees never goes back: it stays the same
/// until the source has caught up. A test that needs the value of the source reads
/// [`raw`](Self::raw).
#[derive(Debug, Default)]
pub struct SimClock {
    source: AtomicU64,
    shown: AtomicU64,
}

impl SimClock {
    /// A clock that starts at this tick.
    #[must_use]
    pub fn starting_at(tick: u64) -> Self {
        Self { source: AtomicU64::new(tick), shown: AtomicU64::new(tick) }
    }

    /// Advances the clock.
    pub fn advance(&self, ticks: u64) {
        // Relaxed, here and below: only one thread uses the clock.
        let source = self.source.load(Relaxed).saturating_add(ticks);
        self.source.store(source, Relaxed);
        self.shown.fetch_max(source, Relaxed);
    }

    /// Moves the source backwards.
    pub fn go_back(&self, ticks: u64) {
        self.source.store(self.source.load(Relaxed).saturating_sub(ticks), Relaxed);
    }

    /// The value of the source.
    #[must_use]
    pub fn raw(&self) -> u64 {
        self.source.load(Relaxed)
    }

    /// The latest time that the clock has reached.
    #[must_use]
    pub fn tick(&self) -> u64 {
        self.shown.load(Relaxed)
    }
}

impl MonotonicClock for SimClock {
    fn now(&self) -> TimerInstant {
        TimerInstant::new(Tick::new(self.tick()), RESOLUTION)
    }

    fn kind(&self) -> ClockKind {
        ClockKind::Deterministic
    }

    fn resolution(&self) -> Resolution {
        RESOLUTION
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_shown_never_goes_back() {
        let clock = SimClock::starting_at(100);
        clock.advance(50);
        clock.go_back(30);
        assert_eq!((clock.raw(), clock.tick()), (120, 150));
        clock.advance(20);
        assert_eq!((clock.raw(), clock.tick()), (140, 150));
        clock.advance(20);
        assert_eq!((clock.raw(), clock.tick()), (160, 160));
    }
}
