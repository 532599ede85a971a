//! Drift: whether fires are late as a rule, and how fast the wheel goes.
//!
//! A fire may be late because its thread was, so one late fire says nothing. But if the *least*
//! late of many in a row is late, then it is the ticks that come late. What the driver has reported
//! of its own jitter is not counted. A clock that is moved by hand has no excuse: any drift is
//! told.
//!
//! Nothing here reads a clock.

use core::{mem, time::Duration};

use clockjack_time::{ClockKind, Resolution, Tick};

/// How many fires make a window.
pub const WINDOW_FIRES: u32 = 64;

/// That fires were late as a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Drift {
    /// How late the least late of them was, without the driver's jitter.
    pub observed: Duration,
    /// How late it may be.
    pub budget: Duration,
    /// How many fires were looked at.
    pub fires: u32,
}

/// Watches how late fires are, window by window.
///
/// # Examples
///
/// ```
/// use clockjack_sched::drift::{DriftMonitor, WINDOW_FIRES};
/// use clockjack_time::{ClockKind, Resolution};
/// use core::time::Duration;
///
/// let mut monitor = DriftMonitor::new(Resolution::MILLI, 5, ClockKind::RealtimeHost);
/// let late = Duration::from_micros(70);
/// let told = (0..WINDOW_FIRES).find_map(|_| monitor.note(late, Duration::ZERO)).unwrap();
/// assert_eq!((told.observed, told.budget), (late, Duration::from_micros(50)));
/// ```
#[derive(Clone, Debug)]
pub struct DriftMonitor {
    budget: Duration,
    is_deterministic: bool,
    fires: u32,
    least: Duration,
    /// On a deterministic clock: this window has told already.
    has_reported: bool,
}

impl DriftMonitor {
    /// A monitor with a budget of so many percent of a tick. On a deterministic clock the budget is
    /// nothing, whatever the percentage.
    #[must_use]
    pub const fn new(resolution: Resolution, budget_pct: u8, kind: ClockKind) -> Self {
        let is_deterministic = matches!(kind, ClockKind::Deterministic);
        let nanos = resolution.nanos().get() as u64 * budget_pct as u64 / 100;
        let budget = if is_deterministic { Duration::ZERO } else { Duration::from_nanos(nanos) };
        Self { budget, is_deterministic, fires: 0, least: Duration::MAX, has_reported: false }
    }

    /// How late the least late fire of a window may be.
    #[must_use]
    pub const fn budget(&self) -> Duration {
        self.budget
    }

    /// Notes a fire that was `late`, of which the driver says that `jitter` was its own. Tells at
    /// the end of a window whether all of it was above the budget; on a deterministic clock at the
    /// first fire of a window that is late at all.
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

/// How far the wheel went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TickCount {
    /// By how many ticks.
    pub ticks: u64,
    /// How long they last.
    pub over: Duration,
}

/// Counts the ticks of a wheel, and tells about once a second.
///
/// A wheel without timers makes no ticks and is not advanced: what it went through meanwhile is
/// told at the next advance, for as long as it was.
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
    /// Whole ticks that last a second or just longer.
    second_ticks: u64,
    since: Tick,
}

impl TickRate {
    /// Counts from `start` on.
    #[must_use]
    pub fn new(resolution: Resolution, start: Tick) -> Self {
        let second = resolution.ticks_ceil(Duration::from_secs(1));
        let second_ticks = second.expect("a second has at most 10^9 ticks").get();
        Self { resolution, second_ticks, since: start }
    }

    /// Notes that the wheel stands at `now`. Tells how far it went since it told last, if that is a
    /// second or more.
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
