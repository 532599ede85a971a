//! Ticks: the wheel's unit of time, as newtypes whose arithmetic cannot overflow silently.
//!
//! A [`Tick`] is a point in time, counted from the start of the system; a [`TickSpan`] is a
//! distance; a [`Resolution`] is the length of one tick. There are no operators: the name of every
//! operation says what it does on overflow. Nothing here reads a clock.

use core::{fmt, num::NonZeroU32, time::Duration};

/// Nanoseconds in a second.
pub(crate) const NANOS_PER_SEC: u64 = 1_000_000_000;

/// The largest number of whole seconds whose nanoseconds, with a fraction, still fit in a `u64`.
/// Below it the divisions are 64-bit, which a microcontroller does far faster than 128-bit ones.
const SHORT_SECS_MAX: u64 = u64::MAX / NANOS_PER_SEC - 1;

/// A point in time: the number of ticks since the start of the system.
///
/// # Examples
///
/// ```
/// use clockjack_time::{Tick, TickSpan};
///
/// let start = Tick::new(7);
/// let deadline = start.checked_add(TickSpan::new(3)).expect("far from the end of time");
/// assert_eq!(deadline, Tick::new(10));
/// assert_eq!(deadline.checked_since(start), Some(TickSpan::new(3)));
/// assert_eq!(start.checked_since(deadline), None);
/// assert_eq!(Tick::MAX.checked_add(TickSpan::new(1)), None);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct Tick(u64);

impl Tick {
    /// The start of the system.
    pub const ZERO: Self = Self(0);
    /// The last point that can be represented.
    pub const MAX: Self = Self(u64::MAX);

    /// The point `ticks` after the start.
    #[inline]
    #[must_use]
    pub const fn new(ticks: u64) -> Self {
        Self(ticks)
    }

    /// Ticks since the start.
    #[inline]
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }

    /// The point `span` later, or `None` if it is beyond [`Tick::MAX`].
    #[inline]
    #[must_use]
    pub const fn checked_add(self, span: TickSpan) -> Option<Self> {
        Self::of(self.0.checked_add(span.0))
    }

    /// The point `span` later, or [`Tick::MAX`] if it is beyond.
    #[inline]
    #[must_use]
    pub const fn saturating_add(self, span: TickSpan) -> Self {
        Self(self.0.saturating_add(span.0))
    }

    /// The point `span` earlier, or `None` if it is before [`Tick::ZERO`].
    #[inline]
    #[must_use]
    pub const fn checked_sub(self, span: TickSpan) -> Option<Self> {
        Self::of(self.0.checked_sub(span.0))
    }

    /// The point `span` earlier, or [`Tick::ZERO`] if it is before.
    #[inline]
    #[must_use]
    pub const fn saturating_sub(self, span: TickSpan) -> Self {
        Self(self.0.saturating_sub(span.0))
    }

    /// The distance from `earlier`, or `None` if `earlier` is later than `self`.
    #[inline]
    #[must_use]
    pub const fn checked_since(self, earlier: Self) -> Option<TickSpan> {
        TickSpan::of(self.0.checked_sub(earlier.0))
    }

    /// The distance from `earlier`, zero if `earlier` is later than `self`.
    #[inline]
    #[must_use]
    pub const fn saturating_since(self, earlier: Self) -> TickSpan {
        TickSpan(self.0.saturating_sub(earlier.0))
    }

    /// The point of a sum that may have overflowed. `Option::map` is not `const`.
    #[inline]
    const fn of(ticks: Option<u64>) -> Option<Self> {
        match ticks {
            Some(ticks) => Some(Self(ticks)),
            None => None,
        }
    }
}

impl fmt::Display for Tick {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A distance between two points in time, in ticks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct TickSpan(u64);

impl TickSpan {
    /// No distance.
    pub const ZERO: Self = Self(0);
    /// One tick.
    pub const ONE: Self = Self(1);
    /// The longest distance that can be represented.
    pub const MAX: Self = Self(u64::MAX);

    /// A distance of `ticks`.
    #[inline]
    #[must_use]
    pub const fn new(ticks: u64) -> Self {
        Self(ticks)
    }

    /// The number of ticks.
    #[inline]
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }

    /// Whether the distance is zero.
    #[inline]
    #[must_use]
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }

    /// The sum of both distances, or `None` on overflow.
    #[inline]
    #[must_use]
    pub const fn checked_add(self, other: Self) -> Option<Self> {
        Self::of(self.0.checked_add(other.0))
    }

    /// The sum of both distances, [`TickSpan::MAX`] on overflow.
    #[inline]
    #[must_use]
    pub const fn saturating_add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }

    /// The difference of both distances, or `None` if `other` is longer.
    #[inline]
    #[must_use]
    pub const fn checked_sub(self, other: Self) -> Option<Self> {
        Self::of(self.0.checked_sub(other.0))
    }

    /// The distance multiplied by `times`, or `None` on overflow.
    #[inline]
    #[must_use]
    pub const fn checked_mul(self, times: u64) -> Option<Self> {
        Self::of(self.0.checked_mul(times))
    }

    /// The distance of a sum that may have overflowed, as [`Tick::of`].
    #[inline]
    const fn of(ticks: Option<u64>) -> Option<Self> {
        match ticks {
            Some(ticks) => Some(Self(ticks)),
            None => None,
        }
    }
}

impl fmt::Display for TickSpan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// How long one tick is: from one nanosecond to about 4.29 seconds.
///
/// # Examples
///
/// ```
/// use clockjack_time::{Resolution, TickSpan};
/// use core::time::Duration;
///
/// let tick = Resolution::MILLI;
/// // A delay is rounded up, so that no timer fires early.
/// assert_eq!(tick.ticks_ceil(Duration::from_micros(1_001)), Some(TickSpan::new(2)));
/// assert_eq!(tick.duration(TickSpan::new(2)), Duration::from_millis(2));
/// assert_eq!(Resolution::from_nanos(0), None);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct Resolution(NonZeroU32);

impl Resolution {
    /// One microsecond.
    pub const MICRO: Self = Self(NonZeroU32::new(1_000).expect("not zero"));
    /// One millisecond: the resolution of the threaded host.
    pub const MILLI: Self = Self(NonZeroU32::new(1_000_000).expect("not zero"));
    /// Ten milliseconds: the default of the scheduler's contract.
    pub const TEN_MILLIS: Self = Self(NonZeroU32::new(10_000_000).expect("not zero"));

    /// A tick of `nanos` nanoseconds, or `None` for zero.
    #[inline]
    #[must_use]
    pub const fn from_nanos(nanos: u32) -> Option<Self> {
        match NonZeroU32::new(nanos) {
            Some(nanos) => Some(Self(nanos)),
            None => None,
        }
    }

    /// Nanoseconds in one tick.
    #[inline]
    #[must_use]
    pub const fn nanos(self) -> NonZeroU32 {
        self.0
    }

    /// The least number of whole ticks that last at least `duration`, or `None` if a
    /// [`TickSpan`] cannot hold it.
    #[inline]
    #[must_use]
    pub const fn ticks_ceil(self, duration: Duration) -> Option<TickSpan> {
        let nanos_per_tick = self.0.get() as u64;
        if duration.as_secs() <= SHORT_SECS_MAX {
            let nanos = duration.as_secs() * NANOS_PER_SEC + duration.subsec_nanos() as u64;
            return Some(TickSpan(nanos.div_ceil(nanos_per_tick)));
        }
        let (ticks, rest) = div_wide(duration.as_nanos(), nanos_per_tick);
        match (ticks, rest) {
            (Some(ticks), 0) => Some(TickSpan(ticks)),
            (Some(ticks), _) => TickSpan(ticks).checked_add(TickSpan::ONE),
            (None, _) => None,
        }
    }

    /// How long `span` lasts, [`Duration::MAX`] if a duration cannot hold it.
    #[inline]
    #[must_use]
    pub const fn duration(self, span: TickSpan) -> Duration {
        duration_from_nanos(span.0 as u128 * self.0.get() as u128)
    }

    /// Ticks per second, rounded down: the highest frequency that a periodic timer can have.
    /// Zero for a tick longer than a second.
    #[inline]
    #[must_use]
    pub const fn hertz(self) -> u32 {
        1_000_000_000 / self.0.get()
    }
}

impl fmt::Display for Resolution {
    /// Prints like a [`Duration`], for instance `1ms`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&Duration::from_nanos(u64::from(self.0.get())), f)
    }
}

/// `nanos` as a duration, [`Duration::MAX`] if it is longer.
pub(crate) const fn duration_from_nanos(nanos: u128) -> Duration {
    let (secs, rest) = div_wide(nanos, NANOS_PER_SEC);
    match secs {
        // The remainder of a division by 10^9 fits in 32 bits.
        #[expect(clippy::cast_possible_truncation, reason = "less than 10^9")]
        Some(secs) => Duration::new(secs, rest as u32),
        None => Duration::MAX,
    }
}

/// Quotient, if a `u64` holds it, and remainder.
pub(crate) const fn div_wide(dividend: u128, divisor: u64) -> (Option<u64>, u64) {
    let quotient = dividend / divisor as u128;
    // A remainder is less than the divisor.
    #[expect(clippy::cast_possible_truncation, reason = "less than the divisor, a u64")]
    let rest = (dividend % divisor as u128) as u64;
    if quotient > u64::MAX as u128 {
        return (None, rest);
    }
    #[expect(clippy::cast_possible_truncation, reason = "compared just above")]
    (Some(quotient as u64), rest)
}
