//! What a job is asked to be, and whether that can be.

use core::{fmt, time::Duration};

use clockjack_time::{Resolution, Tick, TickSpan, TimerInstant};

use crate::{BatchMode, Policy, ScheduleErrorKind};

/// The longest delay or period, in ticks.
pub const DELAY_TICKS_MAX: u64 = i32::MAX as u64;

/// Names a job: its shard, and its slot there. Slots are used again, so it names the job only while
/// something pins the slot, as a handle does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct JobId {
    /// The shard.
    pub shard: u32,
    /// The slot in it.
    pub slot: u32,
}

impl fmt::Display for JobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.shard, self.slot)
    }
}

/// The number of a job in its shard, from 1 on, never used again: what logs and warnings name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct JobNumber {
    /// The shard.
    pub shard: u32,
    /// How many jobs it had accepted, this one included.
    pub number: u64,
}

impl fmt::Display for JobNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}#{}", self.shard, self.number)
    }
}

/// How a job repeats.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Repeat {
    /// Not at all.
    Once,
    /// At multiples of a period from the first run on.
    FixedRate(Duration),
    /// A delay after each run has ended.
    FixedDelay(Duration),
}

/// What a job is asked to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JobSpec {
    /// Until its first run.
    pub delay: Duration,
    /// And then.
    pub repeat: Repeat,
    /// How it is treated.
    pub policy: Policy,
    /// Whether what it delivers wants to be told if it is cancelled.
    pub tell_cancel: bool,
    /// Whether it is run, and not cancelled, if it still waits when the scheduler closes. One-shots
    /// only.
    pub run_on_close: bool,
}

impl JobSpec {
    /// One run, after `delay`.
    #[must_use]
    pub const fn once(delay: Duration) -> Self {
        Self::new(delay, Repeat::Once)
    }

    /// A run after `initial`, and one each `period` from then on.
    #[must_use]
    pub const fn fixed_rate(initial: Duration, period: Duration) -> Self {
        Self::new(initial, Repeat::FixedRate(period))
    }

    /// A run after `initial`, and one `delay` after the end of each.
    #[must_use]
    pub const fn fixed_delay(initial: Duration, delay: Duration) -> Self {
        Self::new(initial, Repeat::FixedDelay(delay))
    }

    const fn new(delay: Duration, repeat: Repeat) -> Self {
        Self { delay, repeat, policy: Policy::DEFAULT, tell_cancel: false, run_on_close: false }
    }

    /// The same under another policy.
    #[must_use]
    pub const fn policy(mut self, policy: Policy) -> Self {
        self.policy = policy;
        self
    }

    /// When it is due and how it goes on, or why it cannot be.
    pub(crate) fn plan(
        &self,
        now: TimerInstant,
        resolution: Resolution,
        is_strict: bool,
    ) -> Result<Plan, ScheduleErrorKind> {
        const INVALID: ScheduleErrorKind = ScheduleErrorKind::InvalidDelay;
        let ticks = |delay: Duration| match resolution.ticks_ceil(delay) {
            Some(span) if span.get() <= DELAY_TICKS_MAX => Ok(span.get()),
            _ => Err(INVALID),
        };
        if is_strict && self.delay.is_zero() {
            return Err(INVALID);
        }
        let delay = ticks(self.delay)?;
        let (mode, period) = match self.repeat {
            Repeat::Once => (BatchMode::OneShot, 0),
            Repeat::FixedRate(period) => (BatchMode::FixedRate, ticks(period)?),
            Repeat::FixedDelay(delay) => (BatchMode::FixedDelay, ticks(delay)?),
        };
        if mode != BatchMode::OneShot && period == 0 {
            return Err(INVALID);
        }
        let due = if delay == 0 {
            // At once, that is in the tick that time stands in, however much of it is over.
            Some(now.elapsed_tick(resolution))
        } else {
            edge_after(now, self.delay, resolution)
        };
        Ok(Plan { due: due.ok_or(INVALID)?, mode, period })
    }
}

/// The first edge at or after `now` + `delay`: exact, whatever the resolution of `now` is.
pub(crate) fn edge_after(
    now: TimerInstant,
    delay: Duration,
    resolution: Resolution,
) -> Option<Tick> {
    if now.resolution_ns == resolution.nanos().get() {
        return now.tick().checked_add(resolution.ticks_ceil(delay)?);
    }
    let tick_ns = u128::from(resolution.nanos().get());
    let now_ns = u128::from(now.ticks) * u128::from(now.resolution_ns.max(1));
    // A duration has less than 2^94 nanoseconds and an instant less than 2^96: the sum fits.
    let due_ns = now_ns + delay.as_nanos();
    if let Ok(short) = u64::try_from(due_ns) {
        return Some(Tick::new(short.div_ceil(u64::from(resolution.nanos().get()))));
    }
    u64::try_from(due_ns.div_ceil(tick_ns)).ok().map(Tick::new)
}

/// When a job is due, and how it goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Plan {
    pub(crate) due: Tick,
    pub(crate) mode: BatchMode,
    /// In ticks; zero for a one-shot.
    pub(crate) period: u64,
}

/// The tick `periods` periods after `due`; the last of all if that lies beyond.
pub(crate) fn later(due: Tick, period: u64, periods: u64) -> Tick {
    due.checked_add(TickSpan::new(period.saturating_mul(periods))).unwrap_or(Tick::MAX)
}
