//! The limits and choices of a scheduler.

use core::time::Duration;

use clockjack_time::{Resolution, Tick};

use crate::PolicyRegistry;

/// The limits and choices of a scheduler; fixed once it is made.
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
    /// The length of a tick: no run is sooner after another than that.
    pub resolution: Resolution,
    /// The tick at which time stands at first.
    pub start: Tick,
    /// How many shards there are. One gives one order over all jobs; more let threads register side
    /// by side, and then jobs of one tick run in order by shard.
    pub shards: u32,
    /// How many jobs may live at a time, in all shards together.
    pub quota: usize,
    /// How many jobs may live while the runtime is under pressure; half the quota if `None`.
    pub adaptive_quota: Option<usize>,
    /// How many jobs one shard may have. An insert beyond it gives up one of a lower class, or is
    /// refused.
    pub capacity: usize,
    /// Whether the room for `capacity` jobs is made at the start, and nothing later: for hosts that
    /// must not allocate once they run.
    pub is_fixed: bool,
    /// How many jobs of a shard may lie further ahead than 2^20 ticks.
    pub overflow_capacity: usize,
    /// At how many percent of that an
    /// [`OverflowNearCapacity`](crate::Warning::OverflowNearCapacity) is told.
    pub overflow_warn_pct: u8,
    /// How many jobs return from the overflow at one tick. Those beyond it run on time all the
    /// same.
    pub reinsertion_batch_limit: u32,
    /// Whether a delay of zero is refused. Otherwise it runs at once.
    pub strict_delays: bool,
    /// Policies by affinity.
    pub policies: PolicyRegistry,
    /// How much of a tick the least late of 64 fires may be late, in percent.
    pub drift_budget_pct: u8,
    /// How many ticks one advance may make up for before that is told.
    pub catch_up_limit: u32,
    /// By how much the clock may go forward at once before that is told as a jump, and the runs
    /// that it has passed are folded.
    pub clock_jump: Duration,
    /// After how long a driver that supplies no ticks while some are wanted is called silent.
    pub driver_timeout: Duration,
    /// How many records the log of a shard keeps; zero for no log.
    pub log_capacity: usize,
    /// Whether a clock that is moved by hand is refused.
    pub is_production: bool,
}

impl SchedulerConfig {
    /// Ticks of 10 ms, one shard, a million jobs.
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

    /// For a small processor: as [`DEFAULT`](Self::DEFAULT) with 10,000 jobs, room for which is
    /// made at the start.
    pub const SMALL: Self = {
        let mut small = Self::DEFAULT;
        small.quota = 10_000;
        small.capacity = 10_000;
        small.overflow_capacity = 10_000;
        small.is_fixed = true;
        small
    };

    /// How many jobs may live while the runtime is under pressure.
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
