//! What the scheduler of a pool is made of.

use clockjack_sched::SchedulerConfig;
use clockjack_time::Resolution;

/// How many shards the scheduler of a pool has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum TimerTopology {
    /// One for each worker that there is when the scheduler is made. Workers register side by side,
    /// and jobs of one tick run in the order in which one worker has registered them.
    #[default]
    PerWorker,
    /// One: jobs of one tick are begun in the order in which they were registered, by whomever.
    Single,
}

/// What the scheduler of a pool is made of.
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
    /// The length of a tick; `None` for that of the pool. Below the pool's, runs are late by up to
    /// a tick of the pool.
    pub resolution: Option<Resolution>,
    /// How many shards it has.
    pub topology: TimerTopology,
    /// Its limits and choices. The pool decides `resolution`, `start` and `shards`: what stands
    /// there is not looked at.
    pub settings: SchedulerConfig,
}

impl PoolSchedulerConfig {
    /// The pool's ticks, a shard for each worker, a million jobs.
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
