//! The clock of the operating system, in ticks.
//!
//! # Edges
//!
//! ```text
//! system clock  ──┬─────────┬─────────┬─────────┬──▶  nanoseconds, OsInstant
//!               anchor      │    ▲    │         │
//! tick            0         1    │    2         3
//!                              now = 1, a delay of one tick ends at 3
//! ```
//!
//! Tick *k* begins at `anchor + k * resolution` on the system clock, for the life of the clock.
//! Edges are absolute, so they do not drift. [`OsClock::instant_of`] returns the position of an
//! edge, so that a thread can sleep until exactly there.
//!
//! *Now* is rounded down: a tick counts when it is complete. A *deadline* is computed in
//! nanoseconds and rounded up once. `clock.now() + delay` is something else: it starts at the edge
//! before now, so it can end early by a fraction of a tick. Arm timers with
//! [`OsClock::deadline_after`].

use core::time::Duration;

use clockjack_time::{ClockKind, MonotonicClock, Resolution, Tick, TimerInstant};

use super::monotonic;

/// A point on the monotonic system clock, in nanoseconds; the deadline of a sleep.
///
/// On Linux the clock is `CLOCK_MONOTONIC`. Elsewhere it is the clock of std's `Instant`, counted
/// from the first reading: `QueryPerformanceCounter` on Windows, `CLOCK_UPTIME_RAW` on macOS. The
/// value is meaningful only within one process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct OsInstant(u64);

impl OsInstant {
    /// The largest value. A sleep until then lasts until an unpark.
    pub const MAX: Self = Self(u64::MAX);

    /// Reads the clock.
    #[inline]
    #[must_use]
    pub fn now() -> Self {
        Self(monotonic::nanos())
    }

    /// The point with this reading of the system clock.
    #[inline]
    #[must_use]
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// The reading of the system clock at this point.
    #[inline]
    #[must_use]
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// The point `delay` later, saturating at [`OsInstant::MAX`].
    #[inline]
    #[must_use]
    pub fn saturating_add(self, delay: Duration) -> Self {
        u64::try_from(delay.as_nanos())
            .map_or(Self::MAX, |nanos| Self(self.0.saturating_add(nanos)))
    }

    /// The time from `earlier` to this point; zero if `earlier` is later.
    #[inline]
    #[must_use]
    pub const fn saturating_since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

/// The monotonic clock of the operating system, in ticks; the [module](self) draws its edges.
///
/// The clock consists of two numbers, and a copy is the same clock. On Linux and macOS the clock
/// stands still while the machine is suspended; on Windows it runs on.
///
/// # Examples
///
/// ```
/// use clockjack_rt::OsClock;
/// use clockjack_time::{MonotonicClock, Resolution};
/// use core::time::Duration;
///
/// let clock = OsClock::new(Resolution::MILLI);
/// let before = clock.now();
/// let due = clock.deadline_after(Duration::from_micros(1_500));
/// // Not before the second edge, whatever part of the first tick has passed.
/// assert!(due.get() >= before.ticks + 2);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct OsClock {
    anchor: OsInstant,
    resolution: Resolution,
}

impl OsClock {
    /// Creates a clock whose tick zero begins now.
    #[must_use]
    pub fn new(resolution: Resolution) -> Self {
        Self::anchored_at(OsInstant::now(), resolution)
    }

    /// Creates a clock whose tick zero begins at `anchor`, so that clocks with different
    /// resolutions can share a start. Before the anchor, the clock reads tick zero.
    #[must_use]
    pub const fn anchored_at(anchor: OsInstant, resolution: Resolution) -> Self {
        Self { anchor, resolution }
    }

    /// The point at which tick zero begins.
    #[inline]
    #[must_use]
    pub const fn anchor(&self) -> OsInstant {
        self.anchor
    }

    /// Reads the clock: nanoseconds since the anchor.
    #[inline]
    #[must_use]
    pub fn nanos_now(&self) -> u64 {
        OsInstant::now().0.saturating_sub(self.anchor.0)
    }

    /// Reads the clock: the current tick, rounded down.
    #[inline]
    #[must_use]
    pub fn ticks_now(&self) -> Tick {
        Tick::new(self.nanos_now() / u64::from(self.resolution.nanos().get()))
    }

    /// Reads the clock and returns the first edge that is at least `delay` from now: a timer armed
    /// for it is never early, and late by less than a tick. Saturates at [`Tick::MAX`].
    #[inline]
    #[must_use]
    pub fn deadline_after(&self, delay: Duration) -> Tick {
        edge_after(self.nanos_now(), delay, self.resolution)
    }

    /// The point at which `tick` begins, saturating at [`OsInstant::MAX`]. After a sleep until
    /// then, [`ticks_now`](Self::ticks_now) returns `tick` or a later tick.
    #[inline]
    #[must_use]
    pub const fn instant_of(&self, tick: Tick) -> OsInstant {
        let nanos = tick.get().saturating_mul(self.resolution.nanos().get() as u64);
        OsInstant(self.anchor.0.saturating_add(nanos))
    }
}

impl MonotonicClock for OsClock {
    #[inline]
    fn now(&self) -> TimerInstant {
        TimerInstant::new(self.ticks_now(), self.resolution)
    }

    fn kind(&self) -> ClockKind {
        ClockKind::RealtimeHost
    }

    #[inline]
    fn resolution(&self) -> Resolution {
        self.resolution
    }
}

/// The first edge at or after `now_ns` + `delay`.
#[inline]
fn edge_after(now_ns: u64, delay: Duration, resolution: Resolution) -> Tick {
    let tick_ns = u64::from(resolution.nanos().get());
    let short = u64::try_from(delay.as_nanos()).ok().and_then(|delay| now_ns.checked_add(delay));
    let Some(due_ns) = short else { return edge_after_wide(now_ns, delay, tick_ns) };
    Tick::new(due_ns.div_ceil(tick_ns))
}

/// The same for results beyond 584 years, with a slower division.
#[cold]
fn edge_after_wide(now_ns: u64, delay: Duration, tick_ns: u64) -> Tick {
    // A duration has less than 2^94 nanoseconds, so the sum fits.
    let due_ns = delay.as_nanos() + u128::from(now_ns);
    u64::try_from(due_ns.div_ceil(u128::from(tick_ns))).map_or(Tick::MAX, Tick::new)
}

#[cfg(test)]
mod tests {
    use core::sync::atomic::{AtomicU64, Ordering::SeqCst};
    use std::thread;

    use super::*;

    const NANO: Resolution = Resolution::from_nanos(1).expect("not zero");
    const LONGEST: Resolution = Resolution::from_nanos(u32::MAX).expect("not zero");
    const RESOLUTIONS: [Resolution; 5] =
        [NANO, Resolution::MICRO, Resolution::MILLI, Resolution::TEN_MILLIS, LONGEST];

    #[test]
    fn a_deadline_is_the_first_edge_that_is_not_early() {
        let year = Duration::from_secs(31_557_600);
        let delays = [
            Duration::ZERO,
            Duration::from_nanos(1),
            Duration::from_nanos(999_999),
            Duration::from_millis(1),
            Duration::from_nanos(1_000_001),
            year,
            year * 583,
            year * 600,
            Duration::from_nanos(u64::MAX),
            Duration::MAX,
        ];
        let nows = [0, 1, 999_999, 1_000_000, 1_000_001, u64::MAX / 2, u64::MAX - 1, u64::MAX];
        for resolution in RESOLUTIONS {
            let tick_ns = u128::from(resolution.nanos().get());
            for (now_ns, delay) in nows.iter().flat_map(|now| delays.map(|delay| (*now, delay))) {
                let edge = u128::from(edge_after(now_ns, delay, resolution).get());
                let due_ns = u128::from(now_ns) + delay.as_nanos();
                if due_ns > u128::from(u64::MAX) * tick_ns {
                    assert_eq!(edge, u128::from(u64::MAX), "{now_ns} + {delay:?}");
                    continue;
                }
                assert!(edge * tick_ns >= due_ns, "early: {now_ns} + {delay:?} -> {edge}");
                assert!(edge * tick_ns - due_ns < tick_ns, "late: {now_ns} + {delay:?} -> {edge}");
            }
        }
    }

    #[test]
    fn a_deadline_counts_from_a_fresh_reading() {
        let clock = OsClock::new(Resolution::MICRO);
        let delay = Duration::from_nanos(2_500);
        for _ in 0..1_000 {
            let before = OsInstant::now();
            let edge = clock.instant_of(clock.deadline_after(delay));
            let after = OsInstant::now();
            assert!(edge >= before.saturating_add(delay), "{edge:?} is early from {before:?}");
            let latest = after.saturating_add(delay + Duration::from_micros(1));
            assert!(edge < latest, "{edge:?} is late from {after:?}");
        }
    }

    #[test]
    fn endless_delays_end_at_the_last_tick() {
        for resolution in [NANO, Resolution::MICRO, Resolution::MILLI] {
            let clock = OsClock::new(resolution);
            assert_eq!(clock.deadline_after(Duration::MAX), Tick::MAX);
            assert_eq!(clock.instant_of(Tick::MAX), OsInstant::MAX);
        }
        assert_eq!(OsInstant::now().saturating_add(Duration::MAX), OsInstant::MAX);
        assert_eq!(OsInstant::from_nanos(1).saturating_add(Duration::from_nanos(2)).as_nanos(), 3);
    }

    #[test]
    fn a_clock_stands_at_zero_until_its_anchor() {
        let clock = OsClock::anchored_at(OsInstant::MAX, Resolution::MILLI);
        assert_eq!((clock.ticks_now(), clock.nanos_now()), (Tick::ZERO, 0));
        assert_eq!(clock.instant_of(Tick::new(1)), OsInstant::MAX);
    }

    #[test]
    fn now_is_the_tick_that_is_over() {
        let clock = OsClock::new(Resolution::MICRO);
        for _ in 0..1_000 {
            let before = OsInstant::now();
            let tick = clock.now().tick();
            let after = OsInstant::now();
            assert!(clock.instant_of(tick) <= after, "{tick} is not over at {after:?}");
            let next = Tick::new(tick.get() + 1);
            assert!(clock.instant_of(next) > before, "{next} was over at {before:?}");
        }
        assert_eq!(clock.kind(), ClockKind::RealtimeHost);
        assert_eq!(clock.resolution(), Resolution::MICRO);
    }

    #[test]
    fn the_clock_never_runs_backwards_between_threads() {
        let clock = OsClock::new(NANO);
        let latest = AtomicU64::new(0);
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..50_000 {
                        let heard = latest.load(SeqCst);
                        let now = clock.now().ticks;
                        assert!(now >= heard, "{now} after {heard} was heard of");
                        latest.fetch_max(now, SeqCst);
                    }
                });
            }
        });
    }
}
