//! Drift: whether runs are systematically late, and the tick rate of the wheel.
//!
//! Taking the least late of a window filters out delays that are not systematic, as the clock
//! filter of NTP does (Mills, "Internet time synchronization: the network time protocol", 1991).
//!
//! One run may be late because its thread was delayed, so one late run means nothing. But if the
//! *least* late of many successive runs is late, then the ticks themselves come late. The jitter
//! that the driver has reported is subtracted. With a manual clock, any drift is reported.
//!
//! The budget is a part of the tick, but not less than a floor: an operating system wakes a thread
//! some ten or hundred microseconds late, more on a virtual machine, and nobody would act on that.
//!
//! Nothing here reads a clock.

use core::{mem, time::Duration};

use clockjack_time::{ClockKind, Resolution, Tick};

/// How many runs make a window.
pub const WINDOW_FIRES: u32 = 64;

/// A report that runs were systematically late.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Drift {
    /// How late the least late of them was, without the driver's jitter.
    pub observed: Duration,
    /// How late it may be.
    pub budget: Duration,
    /// How many runs were observed.
    pub fires: u32,
}

/// Observes how late runs are, window by window.
///
/// # Examples
///
/// ```
/// use clockjack_sched::drift::{DriftMonitor, WINDOW_FIRES};
/// use clockjack_time::{ClockKind, Resolution};
/// use core::time::Duration;
///
/// let floor = Duration::from_millis(1);
/// let mut monitor = DriftMonitor::new(Resolution::TEN_MILLIS, 5, floor, ClockKind::RealtimeHost);
/// let late = Duration::from_micros(1200);
/// let drift = (0..WINDOW_FIRES).find_map(|_| monitor.note(late, Duration::ZERO)).unwrap();
/// assert_eq!((drift.observed, drift.budget), (late, floor));
/// ```
#[derive(Clone, Debug)]
pub struct DriftMonitor {
    budget: Duration,
    is_deterministic: bool,
    fires: u32,
    least: Duration,
    /// On a deterministic clock: this window was reported already.
    has_reported: bool,
}

impl DriftMonitor {
    /// Creates a monitor with a budget in percent of a tick, which is at least `floor`. On a
    /// deterministic clock the budget is zero, whatever the two are.
    #[must_use]
    pub fn new(resolution: Resolution, budget_pct: u8, floor: Duration, kind: ClockKind) -> Self {
        let is_deterministic = matches!(kind, ClockKind::Deterministic);
        let nanos = u64::from(resolution.nanos().get()) * u64::from(budget_pct) / 100;
        let budget =
            if is_deterministic { Duration::ZERO } else { Duration::from_nanos(nanos).max(floor) };
        Self { budget, is_deterministic, fires: 0, least: Duration::MAX, has_reported: false }
    }

    /// How late the least late run of a window may be.
    #[must_use]
    pub const fn budget(&self) -> Duration {
        self.budget
    }

    /// Whether any drift at all is reported.
    pub(crate) const fn is_deterministic(&self) -> bool {
        self.is_deterministic
    }

    /// Records a run that was `late`, of which the driver caused `jitter`. Returns a drift at the
    /// end of a window if all of its runs exceeded the budget; on a deterministic clock, at the
    /// first late run of a window.
    #[inline]
    pub fn note(&mut self, late: Duration, jitter: Duration) -> Option<Drift> {
        let drift = late.saturating_sub(jitter);
        self.fires += 1;
        self.least = self.least.min(drift);
        if self.is_deterministic {
            return self.note_deterministic(drift);
        }
        if self.fires < WINDOW_FIRES {
            return None;
        }
        self.fires = 0;
        let observed = mem::replace(&mut self.least, Duration::MAX);
        let drift = Drift { observed, budget: self.budget, fires: WINDOW_FIRES };
        (observed > self.budget).then_some(drift)
    }

    fn note_deterministic(&mut self, drift: Duration) -> Option<Drift> {
        let fires = self.fires;
        let is_news = !drift.is_zero() && !self.has_reported;
        self.has_reported |= is_news;
        if fires == WINDOW_FIRES {
            self.fires = 0;
            self.has_reported = false;
        }
        is_news.then_some(Drift { observed: drift, budget: self.budget, fires })
    }
}

/// How far the wheel advanced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TickCount {
    /// The number of ticks.
    pub ticks: u64,
    /// The duration of these ticks.
    pub over: Duration,
}

/// Counts the ticks of a wheel, and reports about once per second.
///
/// A wheel without timers is not advanced. The next advance reports the ticks of that time, with
/// their duration.
///
/// # Examples
///
/// ```
/// use clockjack_sched::drift::TickRate;
/// use clockjack_time::{Resolution, Tick};
///
/// let mut rate = TickRate::new(Resolution::TEN_MILLIS, Tick::ZERO);
/// assert_eq!(rate.note(Tick::new(99)), None);
/// assert_eq!(rate.note(Tick::new(100)).unwrap().ticks, 100);
/// ```
#[derive(Clone, Debug)]
pub struct TickRate {
    resolution: Resolution,
    /// The smallest number of ticks that last at least a second.
    second_ticks: u64,
    since: Tick,
}

impl TickRate {
    /// Creates a counter that begins at `start`.
    #[must_use]
    pub fn new(resolution: Resolution, start: Tick) -> Self {
        let second = resolution.ticks_ceil(Duration::from_secs(1));
        let second_ticks = second.expect("a second has at most 10^9 ticks").get();
        Self { resolution, second_ticks, since: start }
    }

    /// Records that the wheel is at `now`. Returns how far it advanced since the last report, if
    /// that is a second or more.
    #[inline]
    pub fn note(&mut self, now: Tick) -> Option<TickCount> {
        let elapsed = now.saturating_since(self.since);
        if elapsed.get() < self.second_ticks {
            return None;
        }
        self.since = now;
        Some(TickCount { ticks: elapsed.get(), over: self.resolution.duration(elapsed) })
    }
}
