//! Job specifications, their validation, and the arithmetic of due times.

use core::{fmt, time::Duration};

use clockjack_time::{Resolution, Tick, TickSpan, TimerInstant};

use crate::{BatchMode, Policy, ScheduleErrorKind};

/// The longest delay, in ticks: more than 8,000 years in ticks of a millisecond.
pub const DELAY_TICKS_MAX: u64 = 1 << 48;

/// The longest period, in ticks: 24 days in ticks of a millisecond.
pub const PERIOD_TICKS_MAX: u64 = i32::MAX as u64;

/// Identifies a job by its shard and slot. Slots are reused, so it names the job only while a
/// handle keeps the slot in use.
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

/// The number of a job in its shard, for logs and warnings. Numbers begin at 1 and are not reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct JobNumber {
    /// The shard.
    pub shard: u32,
    /// How many jobs the shard had accepted, including this one.
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
    /// At multiples of a period after the first run.
    FixedRate(Duration),
    /// With a delay after the end of each run.
    FixedDelay(Duration),
}

/// The specification of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JobSpec {
    /// The delay until the first run.
    pub delay: Duration,
    /// How the job repeats after that.
    pub repeat: Repeat,
    /// Its priority and what happens to missed runs.
    pub policy: Policy,
    /// Whether a cancel notifies the payload.
    pub notify_cancel: bool,
    /// Whether a one-shot that still waits when the scheduler closes is run instead of cancelled.
    /// Periodic jobs are cancelled in any case.
    pub run_on_close: bool,
    /// Whether its runs are sent as [deliveries](crate::PendingDelivery). A
    /// [`Scheduler`](crate::Scheduler) sets this by the type of the task.
    pub is_delivery: bool,
    /// Whether this is a one-shot of the runtime itself, which uses the reserve; see
    /// [`SchedulerConfig::internal_reserve`](crate::SchedulerConfig::internal_reserve).
    #[doc(hidden)]
    pub is_internal: bool,
}

impl JobSpec {
    /// One run, after `delay`.
    #[must_use]
    pub const fn once(delay: Duration) -> Self {
        Self::new(delay, Repeat::Once)
    }

    /// A run after `initial`, and then one every `period`.
    #[must_use]
    pub const fn fixed_rate(initial: Duration, period: Duration) -> Self {
        Self::new(initial, Repeat::FixedRate(period))
    }

    /// A run after `initial`, and then one `delay` after the end of each run.
    #[must_use]
    pub const fn fixed_delay(initial: Duration, delay: Duration) -> Self {
        Self::new(initial, Repeat::FixedDelay(delay))
    }

    const fn new(delay: Duration, repeat: Repeat) -> Self {
        Self {
            delay,
            repeat,
            policy: Policy::DEFAULT,
            notify_cancel: false,
            run_on_close: false,
            is_delivery: false,
            is_internal: false,
        }
    }

    /// Sets another policy.
    #[must_use]
    pub const fn policy(mut self, policy: Policy) -> Self {
        self.policy = policy;
        self
    }

    /// Computes when the job is due and how it repeats, or why the specification is invalid.
    #[inline]
    pub(crate) fn plan(
        &self,
        now: TimerInstant,
        resolution: Resolution,
        is_strict: bool,
    ) -> Result<Plan, ScheduleErrorKind> {
        const INVALID: ScheduleErrorKind = ScheduleErrorKind::InvalidDelay;
        let is_zero = self.delay.is_zero();
        if (is_strict && is_zero) || !is_within(self.delay, DELAY_TICKS_MAX, resolution) {
            return Err(INVALID);
        }
        let (mode, every) = match self.repeat {
            Repeat::Once => (BatchMode::OneShot, Duration::ZERO),
            Repeat::FixedRate(period) => (BatchMode::FixedRate, period),
            Repeat::FixedDelay(delay) => (BatchMode::FixedDelay, delay),
        };
        let period = match mode {
            BatchMode::OneShot => 0,
            _ if every.is_zero() || !is_within(every, PERIOD_TICKS_MAX, resolution) => {
                return Err(INVALID);
            }
            _ => resolution.ticks_ceil(every).ok_or(INVALID)?.get(),
        };
        let at = tick_of(now, resolution);
        let due = if is_zero {
            // At once: in the current tick, however much of it has elapsed.
            at
        } else {
            edge_after(now, self.delay, resolution).ok_or(INVALID)?
        };
        // A rate is at most one run per tick.
        let is_capped = mode == BatchMode::FixedRate && period == 1;
        let excess_ns = if period == 0 || is_capped {
            0
        } else {
            let over = resolution.duration(TickSpan::new(period)).saturating_sub(every);
            u32::try_from(over.as_nanos()).unwrap_or(0)
        };
        Ok(Plan { at, due, mode, period, excess_ns })
    }
}

/// Whether a delay or period has at most this many ticks.
#[inline]
const fn is_within(delay: Duration, ticks_max: u64, resolution: Resolution) -> bool {
    let max = ticks_max as u128 * resolution.nanos().get() as u128;
    delay.as_nanos() <= max
}

/// The tick that contains an instant.
#[inline]
pub(crate) fn tick_of(now: TimerInstant, resolution: Resolution) -> Tick {
    // Hosts usually pass nanoseconds, for which a short division is enough.
    if now.resolution_ns == 1 {
        return Tick::new(now.ticks / u64::from(resolution.nanos().get()));
    }
    now.elapsed_tick(resolution)
}

/// How long after the beginning of a tick an instant is.
#[inline]
pub(crate) fn late_by(now: TimerInstant, due: Tick, resolution: Resolution) -> Duration {
    // As in `tick_of`.
    if now.resolution_ns == 1
        && let Some(due_ns) = due.get().checked_mul(u64::from(resolution.nanos().get()))
    {
        return Duration::from_nanos(now.ticks.saturating_sub(due_ns));
    }
    now.since(TimerInstant::new(due, resolution))
}

/// The first tick at or after `now` + `delay`. Exact for every resolution of `now`.
#[inline]
pub(crate) fn edge_after(
    now: TimerInstant,
    delay: Duration,
    resolution: Resolution,
) -> Option<Tick> {
    let tick_ns = u64::from(resolution.nanos().get());
    if now.resolution_ns == 1
        && let Ok(delay_ns) = u64::try_from(delay.as_nanos())
        && let Some(due_ns) = now.ticks.checked_add(delay_ns)
    {
        return Some(Tick::new(due_ns.div_ceil(tick_ns)));
    }
    if now.resolution_ns == resolution.nanos().get() {
        return now.tick().checked_add(resolution.ticks_ceil(delay)?);
    }
    let now_ns = u128::from(now.ticks) * u128::from(now.resolution_ns.max(1));
    // A duration has less than 2^94 nanoseconds and an instant less than 2^96: the sum fits.
    let due_ns = now_ns + delay.as_nanos();
    u64::try_from(due_ns.div_ceil(u128::from(tick_ns))).ok().map(Tick::new)
}

/// When a job is due, and how it repeats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Plan {
    /// The tick in which the job was scheduled.
    pub(crate) at: Tick,
    pub(crate) due: Tick,
    pub(crate) mode: BatchMode,
    /// In ticks, rounded up; zero for a one-shot.
    pub(crate) period: u64,
    /// How much longer the rounded period is than the requested one: less than a tick.
    pub(crate) excess_ns: u32,
}

/// The due times of a job at a fixed rate. The period need not be a multiple of a tick: each due
/// time is rounded up by itself, and the *phase* that this adds does not accumulate.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Grid {
    pub(crate) period: u32,
    pub(crate) excess_ns: u32,
    pub(crate) tick_ns: u32,
}

impl Grid {
    /// The due time and phase `periods` later; `None` if that is after the last tick.
    #[inline]
    pub(crate) fn later(self, due: Tick, phase_ns: u32, periods: u32) -> Option<(Tick, u32)> {
        let (periods, tick_ns) = (u64::from(periods), u64::from(self.tick_ns));
        // Each factor has 32 bits, and the division leaves less than `periods` + 1.
        let span = u64::from(self.period) * periods;
        if self.excess_ns == 0 {
            return Some((due.checked_add(TickSpan::new(span))?, phase_ns));
        }
        let over = u64::from(self.excess_ns) * periods + u64::from(phase_ns);
        #[expect(clippy::cast_possible_truncation, reason = "less than a tick, which is a u32")]
        let phase = (over % tick_ns) as u32;
        Some((due.checked_add(TickSpan::new(span - over / tick_ns))?, phase))
    }

    /// How many due times are after `due` and not after `to`.
    #[inline]
    pub(crate) fn periods_until(self, due: Tick, phase_ns: u32, to: Tick) -> u32 {
        let span = to.saturating_since(due).get();
        if self.excess_ns == 0 {
            return u32::try_from(span / u64::from(self.period)).unwrap_or(u32::MAX);
        }
        let tick_ns = u128::from(self.tick_ns);
        let period_ns = u128::from(self.period) * tick_ns - u128::from(self.excess_ns);
        let periods = (u128::from(span) * tick_ns + u128::from(phase_ns)) / period_ns;
        u32::try_from(periods).unwrap_or(u32::MAX)
    }
}
