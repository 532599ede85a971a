//! Embassy's clock, in Clockjack's ticks.
//!
//! Embassy counts `TICK_HZ` ticks per second, Clockjack one tick per [`Resolution`]. The conversion
//! rounds a reading down and an alarm up, so neither is ever early.

use core::{
    future::Future as _,
    pin::Pin,
    task::{Context, Poll},
};

use clockjack_time::{ClockKind, MonotonicClock, Resolution, Tick, TimerInstant};
use embassy_time::{Instant, TICK_HZ, Timer};

/// Nanoseconds in a second.
const NANOS: u64 = 1_000_000_000;
/// The finest resolution.
const NANO: Resolution = Resolution::from_nanos(1).expect("not zero");
const NANO_RATIO: Ratio = Ratio::new(TICK_HZ, NANO);

/// The time of Embassy's driver, counted from the creation of this clock.
///
/// A resolution finer than Embassy's own tick is allowed: then several ticks pass at once. While
/// the chip is in a sleep mode that stops Embassy's timer, no time passes.
///
/// # Examples
///
/// ```
/// # use embassy_executor as _;
/// use clockjack_embassy::EmbassyClock;
/// use clockjack_time::{MonotonicClock, Resolution, Tick};
///
/// let clock = EmbassyClock::new(Resolution::MILLI);
/// let at = clock.instant_of(Tick::new(2));
/// while embassy_time::Instant::now() < at {}
/// assert!(clock.now().tick() >= Tick::new(2));
/// ```
#[derive(Clone, Copy, Debug)]
pub struct EmbassyClock {
    start: Instant,
    resolution: Resolution,
    ratio: Ratio,
}

impl EmbassyClock {
    /// Creates a clock at tick zero.
    #[must_use]
    pub fn new(resolution: Resolution) -> Self {
        Self { start: Instant::now(), resolution, ratio: Ratio::new(TICK_HZ, resolution) }
    }

    /// The first instant at which this clock reads `tick` or more, or Embassy's last instant if
    /// that is earlier.
    #[must_use]
    pub fn instant_of(&self, tick: Tick) -> Instant {
        let since_start = self.ratio.theirs_ceil(tick.get());
        Instant::from_ticks(self.start.as_ticks().saturating_add(since_start))
    }

    /// The current instant in nanoseconds, as precise as Embassy's tick.
    #[must_use]
    pub fn now_fine(&self) -> TimerInstant {
        TimerInstant::new(Tick::new(NANO_RATIO.ours_floor(self.since_start())), NANO)
    }

    /// Embassy's ticks since the start.
    fn since_start(&self) -> u64 {
        Instant::now().as_ticks().saturating_sub(self.start.as_ticks())
    }

    /// Wakes the task when this clock reads `tick`, or at once if it already does. An earlier alarm
    /// of the same task stays set: a task that wakes up reads the clock again.
    pub(crate) fn wake_at(&self, tick: Tick, cx: &mut Context<'_>) {
        let mut timer = Timer::at(self.instant_of(tick));
        if let Poll::Ready(()) = Pin::new(&mut timer).poll(cx) {
            cx.waker().wake_by_ref();
        }
    }
}

impl MonotonicClock for EmbassyClock {
    fn now(&self) -> TimerInstant {
        TimerInstant::new(Tick::new(self.ratio.ours_floor(self.since_start())), self.resolution)
    }

    fn kind(&self) -> ClockKind {
        ClockKind::RealtimeHardware
    }

    fn resolution(&self) -> Resolution {
        self.resolution
    }
}

/// `ours` ticks of Clockjack are as long as `theirs` ticks of Embassy. The fraction is reduced, so
/// that products fit in 64 bits: a microcontroller divides 128-bit numbers in a loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Ratio {
    ours: u64,
    theirs: u64,
}

impl Ratio {
    const fn new(hertz: u64, resolution: Resolution) -> Self {
        // One second has `hertz` of their ticks and `NANOS / nanos` of ours. The product does not
        // overflow: the frequency of a chip is below 2^32, and the other factor is a `u32`.
        let (ours, theirs) = (NANOS, hertz.saturating_mul(resolution.nanos().get() as u64));
        let divisor = common_divisor(ours, theirs);
        Self { ours: ours / divisor, theirs: theirs / divisor }
    }

    /// How many of our ticks have elapsed after `theirs` of their ticks.
    fn ours_floor(self, theirs: u64) -> u64 {
        match theirs.checked_mul(self.ours) {
            Some(product) => product / self.theirs,
            None => narrow(u128::from(theirs) * u128::from(self.ours) / u128::from(self.theirs)),
        }
    }

    /// How many of their ticks must pass before `ours` of our ticks have elapsed.
    fn theirs_ceil(self, ours: u64) -> u64 {
        match ours.checked_mul(self.theirs) {
            Some(product) => product.div_ceil(self.ours),
            None => {
                let product = u128::from(ours) * u128::from(self.theirs);
                narrow(product.div_ceil(u128::from(self.ours)))
            }
        }
    }
}

/// Saturates: no clock reaches the last tick.
fn narrow(ticks: u128) -> u64 {
    u64::try_from(ticks).unwrap_or(u64::MAX)
}

const fn common_divisor(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Frequencies of chips: a watch crystal, milliseconds, microseconds, a bare core clock.
    const HERTZ: [u64; 6] = [1, 1_000, 32_768, 1_000_000, 16_000_000, 480_000_000];
    const RESOLUTIONS: [u32; 6] = [1, 999, 1_000, 1_000_000, 10_000_000, u32::MAX];

    /// Calls `check` with each ratio and with counts from the smallest to the largest.
    fn for_all(check: impl Fn(Ratio, u64)) {
        for hertz in HERTZ {
            for nanos in RESOLUTIONS {
                let resolution = Resolution::from_nanos(nanos).expect("not zero");
                let ratio = Ratio::new(hertz, resolution);
                let far = (0..64).map(|bit| 1_u64 << bit);
                let counts = (0..50).chain(far.flat_map(|at| [at - 1, at, at + 1]));
                counts.for_each(|count| check(ratio, count));
            }
        }
    }

    #[test]
    fn an_alarm_is_the_first_instant_at_which_its_tick_is_over() {
        for_all(|ratio, tick| {
            let alarm = ratio.theirs_ceil(tick);
            if alarm == u64::MAX {
                return;
            }
            assert!(ratio.ours_floor(alarm) >= tick, "{ratio:?}: tick {tick} would be early");
            if let Some(before) = alarm.checked_sub(1) {
                assert!(ratio.ours_floor(before) < tick, "{ratio:?}: tick {tick} would be late");
            }
        });
    }

    #[test]
    fn a_reading_is_the_same_as_by_plain_arithmetic() {
        for hertz in HERTZ {
            for nanos in RESOLUTIONS {
                let ratio = Ratio::new(hertz, Resolution::from_nanos(nanos).expect("not zero"));
                for theirs in [0, 1, 2, 1_000, 32_767, 32_768, u64::from(u32::MAX), u64::MAX] {
                    let passed = u128::from(theirs) * u128::from(NANOS);
                    let plain = passed / (u128::from(hertz) * u128::from(nanos));
                    assert_eq!(ratio.ours_floor(theirs), narrow(plain), "{hertz} Hz, {nanos} ns");
                }
            }
        }
    }

    #[test]
    fn a_fine_reading_rounds_down_to_the_tick_that_the_clock_gives() {
        for hertz in HERTZ {
            for nanos in RESOLUTIONS {
                let coarse = Ratio::new(hertz, Resolution::from_nanos(nanos).expect("not zero"));
                let fine = Ratio::new(hertz, NANO);
                // As long as the nanoseconds fit in a `u64`: 584 years.
                let counts = (0..50).chain((0..64).map(|bit| 1_u64 << bit));
                for theirs in counts.filter(|theirs| fine.ours_floor(*theirs) < u64::MAX) {
                    let rounded = fine.ours_floor(theirs) / u64::from(nanos);
                    assert_eq!(rounded, coarse.ours_floor(theirs), "{hertz} Hz, {nanos} ns");
                }
            }
        }
    }

    #[test]
    fn a_watch_crystal_and_milliseconds_need_no_wide_division_for_ages() {
        let ratio = Ratio::new(32_768, Resolution::MILLI);
        assert_eq!(ratio, Ratio { ours: 125, theirs: 4_096 });
        let years = u64::MAX / ratio.ours / 32_768 / 86_400 / 365;
        assert!(years > 100_000, "{years}");
    }
}
