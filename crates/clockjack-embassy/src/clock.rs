//! Embassy's clock, in Clockjack's ticks.
//!
//! Both count, in units of their own: Embassy `TICK_HZ` in a second, Clockjack one in a
//! [`Resolution`]. A reading is rounded down and an alarm up, so neither is ever early.

use core::{
    future::Future as _,
    pin::Pin,
    task::{Context, Poll},
};

use clockjack_sync::mutant;
use clockjack_time::{ClockKind, MonotonicClock, Resolution, Tick, TimerInstant};
use embassy_time::{Instant, TICK_HZ, Timer};

/// Nanoseconds in a second.
const NANOS: u64 = 1_000_000_000;
/// The finest that there is.
const NANO: Resolution = Resolution::from_nanos(1).expect("not zero");
const NANO_RATIO: Ratio = Ratio::new(TICK_HZ, NANO);

/// The time of Embassy's driver, counted from when this clock was made.
///
/// A resolution finer than Embassy's own tick is allowed: then several ticks pass at once. While
/// the chip sleeps so deeply that Embassy's timer stands, no time passes.
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
    /// A clock at tick zero.
    #[must_use]
    pub fn new(resolution: Resolution) -> Self {
        Self { start: Instant::now(), resolution, ratio: Ratio::new(TICK_HZ, resolution) }
    }

    /// The first instant at which this clock reads `tick` or more; Embassy's last one if it has
    /// none so late.
    #[must_use]
    pub fn instant_of(&self, tick: Tick) -> Instant {
        let since_start = self.ratio.theirs_ceil(tick.get());
        Instant::from_ticks(self.start.as_ticks().saturating_add(since_start))
    }

    /// The present instant in nanoseconds, as far as Embassy's tick tells them apart.
    #[must_use]
    pub fn now_fine(&self) -> TimerInstant {
        TimerInstant::new(Tick::new(NANO_RATIO.ours_floor(self.since_start())), NANO)
    }

    /// Ticks of Embassy's since the start.
    fn since_start(&self) -> u64 {
        Instant::now().as_ticks().saturating_sub(self.start.as_ticks())
    }

    /// Has a task woken when this clock reads `tick`, or at once if it does. An alarm that the task
    /// has set before, and that is earlier, stays: who is woken looks at the clock.
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

/// `ours` ticks of Clockjack are as long as `theirs` of Embassy; without common divisors, so that
/// products stay in 64 bits: a microcontroller divides 128 by a loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Ratio {
    ours: u64,
    theirs: u64,
}

impl Ratio {
    const fn new(hertz: u64, resolution: Resolution) -> Self {
        // In one second there are `hertz` of theirs and `NANOS / nanos` of ours. The product is of
        // a frequency below 2^32, which every chip has, and a `u32`.
        let (ours, theirs) = (NANOS, hertz.saturating_mul(resolution.nanos().get() as u64));
        let divisor = common_divisor(ours, theirs);
        Self { ours: ours / divisor, theirs: theirs / divisor }
    }

    /// How many of ours are over after so many of theirs.
    fn ours_floor(self, theirs: u64) -> u64 {
        match theirs.checked_mul(self.ours) {
            Some(product) => product / self.theirs,
            None => narrow(u128::from(theirs) * u128::from(self.ours) / u128::from(self.theirs)),
        }
    }

    /// How many of theirs have to pass before so many of ours are over.
    fn theirs_ceil(self, ours: u64) -> u64 {
        match ours.checked_mul(self.theirs) {
            Some(product) if mutant!("embassy-alarm-early") => product / self.ours,
            Some(product) => product.div_ceil(self.ours),
            None => {
                let product = u128::from(ours) * u128::from(self.theirs);
                narrow(product.div_ceil(u128::from(self.ours)))
            }
        }
    }
}

/// The last tick of all is later than any clock gets.
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

    /// Calls `check` with each ratio and a count, from the first ones up to the last.
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
                // Until the nanoseconds of a `u64` are over, after 584 years.
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
