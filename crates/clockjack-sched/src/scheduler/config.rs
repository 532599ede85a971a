//! The configuration of a scheduler.

use core::time::Duration;

use clockjack_time::{Resolution, Tick};

use crate::PolicyRegistry;

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
    /// Whether memory for `capacity` jobs is allocated at the start, and none later: for hosts that
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
    /// How late the least late of 64 runs may be, in percent of a tick.
    pub drift_budget_pct: u8,
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
        is_fixed: false,
        overflow_capacity: 1 << 20,
        overflow_warn_pct: 75,
        reinsertion_batch_limit: 100,
        strict_delays: false,
        policies: PolicyRegistry::new(),
        drift_budget_pct: 5,
        catch_up_limit: 100,
        clock_jump: Duration::from_secs(60),
        driver_timeout: Duration::from_secs(1),
        log_capacity: 0,
        is_production: false,
    };

    /// For a small processor: as [`DEFAULT`](Self::DEFAULT) with 10,000 jobs, whose memory is
    /// allocated at the start.
    pub const SMALL: Self = {
        let mut small = Self::DEFAULT;
        small.quota = 10_000;
        small.capacity = 10_000;
        small.overflow_capacity = 10_000;
        small.is_fixed = true;
        small
    };

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
