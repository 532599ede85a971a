//! The configuration of a pool's scheduler.

use clockjack_sched::SchedulerConfig;
use clockjack_time::Resolution;

/// How many shards the scheduler of a pool has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum TimerTopology {
    /// One shard per worker that exists when the scheduler is created. Workers register jobs
    /// concurrently; jobs of one tick run in the order in which one worker has registered them.
    #[default]
    PerWorker,
    /// One shard: jobs of one tick start in the order in which they were registered, by any thread.
    Single,
}

/// The configuration of a pool's scheduler.
///
/// # Examples
///
/// ```
/// use clockjack_rt::{PoolConfig, PoolSchedulerConfig, TimerTopology, sched::SchedulerConfig};
///
/// let config = PoolConfig {
///     scheduler: PoolSchedulerConfig {
///         topology: TimerTopology::Single,
///         settings: SchedulerConfig { quota: 10_000, ..SchedulerConfig::DEFAULT },
///         ..PoolSchedulerConfig::DEFAULT
///     },
///     ..PoolConfig::DEFAULT
/// };
/// assert_eq!(config.scheduler.resolution, None);
/// ```
#[derive(Clone, Debug)]
pub struct PoolSchedulerConfig {
    /// The length of a tick; `None` for the tick of the pool. If it is shorter than the pool's
    /// tick, runs are late by up to one tick of the pool.
    pub resolution: Option<Resolution>,
    /// The number of shards.
    pub topology: TimerTopology,
    /// Limits and options. The pool sets `resolution`, `start` and `shards`: the values given here
    /// are ignored.
    pub settings: SchedulerConfig,
}

impl PoolSchedulerConfig {
    /// The pool's ticks, one shard per worker, one million jobs.
    pub const DEFAULT: Self = Self {
        resolution: None,
        topology: TimerTopology::PerWorker,
        settings: SchedulerConfig::DEFAULT,
    };
}

impl Default for PoolSchedulerConfig {
    fn default() -> Self {
        Self::DEFAULT
    }
}
