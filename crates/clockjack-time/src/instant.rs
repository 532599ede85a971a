//! Instants: a tick count together with the length of its tick.
//!
//! All instants of one system count from the same start, whatever their resolution, so two of them
//! compare exactly: `1 × 1 ms` equals `1000 × 1 µs`. The wheel never uses an instant; it gets a
//! [`Tick`], made by one of the two conversions at the end of this file.

use core::{
    cmp::Ordering,
    fmt,
    hash::{Hash, Hasher},
    ops::Add,
    time::Duration,
};

use crate::tick::{Resolution, Tick, TickSpan, div_wide, duration_from_nanos};

/// A reading of a clock: `ticks` of `resolution_ns` nanoseconds each since the system's start.
///
/// Equality, order and hash are those of the point in time, not of the two fields. The fields are
/// public for serialization; a resolution of zero, which no clock returns, counts as one
/// nanosecond.
///
/// # Examples
///
/// ```
/// use clockjack_time::{Resolution, Tick, TimerInstant};
/// use core::time::Duration;
///
/// let now = TimerInstant::new(Tick::new(5), Resolution::MILLI);
/// // 1.5 ms is between two ticks: the deadline is the later one.
/// let deadline = now + Duration::from_micros(1_500);
/// assert_eq!(deadline.ticks, 7);
/// assert_eq!(deadline.since(now), Duration::from_millis(2));
/// assert_eq!(now.since(deadline), Duration::ZERO);
/// assert_eq!(now, TimerInstant::new(Tick::new(5_000), Resolution::MICRO));
/// ```
#[derive(Clone, Copy, Debug)]
pub struct TimerInstant {
    /// Ticks since the start of the system.
    pub ticks: u64,
    /// Nanoseconds in one tick.
    pub resolution_ns: u32,
}

impl TimerInstant {
    /// The instant of `tick` on a clock of this resolution.
    #[inline]
    #[must_use]
    pub const fn new(tick: Tick, resolution: Resolution) -> Self {
        Self { ticks: tick.get(), resolution_ns: resolution.nanos().get() }
    }

    /// The tick count, in this instant's own resolution.
    #[inline]
    #[must_use]
    pub const fn tick(self) -> Tick {
        Tick::new(self.ticks)
    }

    /// The length of this instant's ticks.
    #[inline]
    #[must_use]
    pub const fn resolution(self) -> Resolution {
        const ONE_NANO: Resolution = Resolution::from_nanos(1).expect("one is not zero");
        match Resolution::from_nanos(self.resolution_ns) {
            Some(resolution) => resolution,
            None => ONE_NANO,
        }
    }

    /// The first tick edge at or after `self` + `delay`, or `None` if `ticks` cannot hold it.
    ///
    /// The delay is rounded **up** to whole ticks: a timer armed for the result never fires early.
    #[inline]
    #[must_use]
    pub const fn checked_add(self, delay: Duration) -> Option<Self> {
        let Some(span) = self.resolution().ticks_ceil(delay) else { return None };
        match self.tick().checked_add(span) {
            Some(tick) => Some(Self { ticks: tick.get(), ..self }),
            None => None,
        }
    }

    /// As [`checked_add`](Self::checked_add), but returns the last possible tick instead of `None`.
    #[inline]
    #[must_use]
    pub const fn saturating_add(self, delay: Duration) -> Self {
        match self.checked_add(delay) {
            Some(sum) => sum,
            None => Self { ticks: u64::MAX, ..self },
        }
    }

    /// The time from `earlier` to `self`: exact, also across resolutions, zero if `earlier` is
    /// later than `self`, [`Duration::MAX`] if a duration cannot hold it.
    #[inline]
    #[must_use]
    pub const fn since(self, earlier: Self) -> Duration {
        if self.resolution_ns == earlier.resolution_ns {
            let span = self.tick().saturating_since(earlier.tick());
            return self.resolution().duration(span);
        }
        duration_from_nanos(self.nanos().saturating_sub(earlier.nanos()))
    }

    /// The first tick of `resolution` that is not before this instant: for **deadlines**, which
    /// are rounded **up**. `None` if it is beyond [`Tick::MAX`].
    #[inline]
    #[must_use]
    pub const fn deadline_tick(self, resolution: Resolution) -> Option<Tick> {
        if self.resolution_ns == resolution.nanos().get() {
            return Some(self.tick());
        }
        match div_wide(self.nanos(), resolution.nanos().get() as u64) {
            (Some(ticks), 0) => Some(Tick::new(ticks)),
            (Some(ticks), _) => Tick::new(ticks).checked_add(TickSpan::ONE),
            (None, _) => None,
        }
    }

    /// The last tick of `resolution` that is not after this instant: for **now**, which is rounded
    /// **down**. [`Tick::MAX`] if the instant is beyond it.
    #[inline]
    #[must_use]
    pub const fn elapsed_tick(self, resolution: Resolution) -> Tick {
        if self.resolution_ns == resolution.nanos().get() {
            return self.tick();
        }
        match div_wide(self.nanos(), resolution.nanos().get() as u64) {
            (Some(ticks), _) => Tick::new(ticks),
            (None, _) => Tick::MAX,
        }
    }

    /// Nanoseconds since the start: a 64-bit count times a 32-bit length fits in 96 bits.
    #[inline]
    const fn nanos(self) -> u128 {
        self.ticks as u128 * self.resolution().nanos().get() as u128
    }
}

impl Add<Duration> for TimerInstant {
    type Output = Self;

    /// [`saturating_add`](TimerInstant::saturating_add): rounds up to a tick edge, and saturates at
    /// the last possible tick.
    #[inline]
    fn add(self, delay: Duration) -> Self {
        self.saturating_add(delay)
    }
}

impl Ord for TimerInstant {
    #[inline]
    fn cmp(&self, other: &Self) -> Ordering {
        if self.resolution_ns == other.resolution_ns {
            return self.ticks.cmp(&other.ticks);
        }
        self.nanos().cmp(&other.nanos())
    }
}

impl PartialOrd for TimerInstant {
    #[inline]
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for TimerInstant {
    #[inline]
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for TimerInstant {}

impl Hash for TimerInstant {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.nanos().hash(state);
    }
}

impl fmt::Display for TimerInstant {
    /// Prints count and length, for instance `7 x 1ms`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} x {}", self.ticks, self.resolution())
    }
}
