//! The configuration of a scheduler.

use core::time::Duration;

use clockjack_time::{Resolution, Tick};

use crate::{ModeError, PolicyRegistry};

/// The configuration of a scheduler. It does not change after the start.
///
/// # Examples
///
/// ```
/// use clockjack_sched::SchedulerConfig;
/// use clockjack_time::Resolution;
///
/// let config = SchedulerConfig {
///     quota: 1_000,
///     resolution: Resolution::MILLI,
///     ..SchedulerConfig::DEFAULT
/// };
/// assert_eq!(config.pressed_quota(), 500);
/// ```
#[derive(Clone, Debug)]
pub struct SchedulerConfig {
    /// The length of a tick: the shortest time between two runs.
    pub resolution: Resolution,
    /// The first tick.
    pub start: Tick,
    /// The number of shards. With one shard all jobs are in one order. With more, threads can
    /// schedule concurrently, and jobs of one tick are ordered only within a shard.
    pub shards: u32,
    /// How many jobs may be live at a time, in all shards together.
    pub quota: usize,
    /// How many jobs may be live while the runtime is under pressure; half the quota if `None`.
    pub adaptive_quota: Option<usize>,
    /// How many jobs one shard may have. An insert beyond it evicts a job of a lower class, or
    /// fails.
    pub capacity: usize,
    /// How many jobs of the runtime itself one shard may have in addition to `capacity` and without
    /// counting towards `quota`: delays of restarts, receive time-outs, time-outs of stops,
    /// retries. So jobs of users can neither evict these jobs nor leave no room for them.
    ///
    /// Jobs of the runtime beyond this number are treated as jobs of users with high priority, and
    /// counted: [`reserve_exceeded_total`]. If such a job is refused, an actor neither restarts
    /// earlier nor misses a time-out: a timer of its executor takes the place of the job. If there
    /// is no room for that timer either, or the system is sealed, the actor is polled until the
    /// delay is over, which costs processor time.
    ///
    /// [`reserve_exceeded_total`]: crate::SchedulerMetrics::reserve_exceeded_total
    pub internal_reserve: usize,
    /// Whether memory for all these jobs is allocated at the start, and none later: for hosts that
    /// must not allocate while they run.
    pub is_fixed: bool,
    /// How many jobs of a shard may be due more than 2^20 ticks ahead.
    pub overflow_capacity: usize,
    /// At which percentage of that an
    /// [`OverflowNearCapacity`](crate::Warning::OverflowNearCapacity) is reported.
    pub overflow_warn_pct: u8,
    /// How many jobs move from the overflow to the wheel per tick. Jobs beyond this limit run on
    /// time nevertheless.
    pub reinsertion_batch_limit: u32,
    /// Whether a delay of zero is refused. Otherwise it runs at once.
    pub strict_delays: bool,
    /// Policies by affinity.
    pub policies: PolicyRegistry,
    /// How late the least late of 64 runs may be, in percent of a tick; more if `drift_floor` is
    /// more.
    pub drift_budget_pct: u8,
    /// How late the least late of 64 runs may be in any case. An operating system wakes a thread
    /// later than a short tick allows, without that anything is wrong.
    pub drift_floor: Duration,
    /// How many ticks one advance may catch up with before a warning.
    pub catch_up_limit: u32,
    /// How far the clock may advance at once. A larger step is reported as a clock jump, and the
    /// runs that it has passed are folded.
    pub clock_jump: Duration,
    /// How long a driver may supply no ticks, while some are needed, before a warning.
    pub driver_timeout: Duration,
    /// How many records the log of a shard keeps; zero for no log.
    pub log_capacity: usize,
    /// Whether a manual clock is refused.
    pub is_production: bool,
}

impl SchedulerConfig {
    /// Ticks of 10 ms, one shard, 2^20 jobs.
    pub const DEFAULT: Self = Self {
        resolution: Resolution::TEN_MILLIS,
        start: Tick::ZERO,
        shards: 1,
        quota: 1 << 20,
        adaptive_quota: None,
        capacity: 1 << 20,
        internal_reserve: 1 << 20,
        is_fixed: false,
        overflow_capacity: 1 << 20,
        overflow_warn_pct: 75,
        reinsertion_batch_limit: 100,
        strict_delays: false,
        policies: PolicyRegistry::new(),
        drift_budget_pct: 5,
        drift_floor: Duration::from_millis(1),
        catch_up_limit: 100,
        clock_jump: Duration::from_secs(60),
        driver_timeout: Duration::from_secs(1),
        log_capacity: 0,
        is_production: false,
    };

    /// For a small processor: as [`DEFAULT`](Self::DEFAULT) with 10,000 jobs of users and 8 of the
    /// runtime, whose memory is allocated at the start, and with a drift of 5 % of any tick.
    pub const SMALL: Self = {
        let mut small = Self::DEFAULT;
        small.quota = 10_000;
        small.capacity = 10_000;
        small.overflow_capacity = 10_000;
        small.internal_reserve = 8;
        small.is_fixed = true;
        // Ticks come from an interrupt, and not from a thread that is to be woken.
        small.drift_floor = Duration::ZERO;
        small
    };

    /// For hosts that determine `resolution`, `start` and `shards`: a configuration that has other
    /// values there is an error, because they would be ignored.
    ///
    /// # Errors
    ///
    /// [`ModeError::is_host_setting`], if one of the three is not the default.
    pub fn check_host_settings(&self) -> Result<(), ModeError> {
        let Self { resolution, start, shards, .. } = Self::DEFAULT;
        let is_default = (self.resolution, self.start, self.shards) == (resolution, start, shards);
        if is_default { Ok(()) } else { Err(ModeError::HOST_SETTING) }
    }

    /// How many jobs may be live while the runtime is under pressure.
    #[must_use]
    pub const fn pressed_quota(&self) -> usize {
        match self.adaptive_quota {
            Some(quota) if quota < self.quota => quota,
            Some(_) => self.quota,
            None => self.quota / 2,
        }
    }
}

impl Default for SchedulerConfig {
    fn default() -> Self {
        Self::DEFAULT
    }
}
