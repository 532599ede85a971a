//! The clock of a simulation: moved by hand, over a source that may do what clocks must not.

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use clockjack_time::{ClockKind, MonotonicClock, Resolution, Tick, TimerInstant};

/// How fine simulated time is.
pub const RESOLUTION: Resolution = Resolution::MILLI;

/// A clock with ticks of a millisecond, on one thread.
///
/// Its *source* goes as it is told, back too. What the runtime is shown never goes back, as the
/// contract of [`MonotonicClock`] says: it stands until the source has caught up. Who wants to know
/// what a runtime does with a source that goes back reads [`raw`](Self::raw).
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

    /// Lets time pass.
    pub fn advance(&self, ticks: u64) {
        // Relaxed, here and below: all of it is one thread.
        let source = self.source.load(Relaxed).saturating_add(ticks);
        self.source.store(source, Relaxed);
        self.shown.fetch_max(source, Relaxed);
    }

    /// The source goes back.
    pub fn go_back(&self, ticks: u64) {
        self.source.store(self.source.load(Relaxed).saturating_sub(ticks), Relaxed);
    }

    /// What the source says.
    #[must_use]
    pub fn raw(&self) -> u64 {
        self.source.load(Relaxed)
    }

    /// The latest time that it has ever been.
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
