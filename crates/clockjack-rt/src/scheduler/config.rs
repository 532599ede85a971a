//! The configuration of a pool's scheduler.

use clockjack_sched::SchedulerConfig;

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
///     },
///     ..PoolConfig::DEFAULT
/// };
/// assert_eq!(config.scheduler.settings.quota, 10_000);
/// ```
#[derive(Clone, Debug)]
pub struct PoolSchedulerConfig {
    /// The number of shards.
    pub topology: TimerTopology,
    /// Limits and options. The pool determines `resolution`, `start` and `shards`: its start fails
    /// if one of them is not the default.
    pub settings: SchedulerConfig,
}

impl PoolSchedulerConfig {
    /// The pool's ticks, one shard per worker, one million jobs.
    pub const DEFAULT: Self =
        Self { topology: TimerTopology::PerWorker, settings: SchedulerConfig::DEFAULT };
}

impl Default for PoolSchedulerConfig {
    fn default() -> Self {
        Self::DEFAULT
    }
}
