//! The configuration of a runtime.

use core::time::Duration;
use std::borrow::Cow;

use clockjack_exec::{Limits, StuckWorker};
use clockjack_sched::SchedulerConfig;
use clockjack_time::Resolution;

use crate::{BlockingConfig, FailureLog, PoolConfig, PoolSchedulerConfig, TimerTopology};

/// The configuration of a [`Runtime`](crate::Runtime): its threads and its clock. Limits and the
/// settings of the scheduler belong to the
/// [`SystemBuilder`](clockjack_actor::SystemBuilder), because every host of a system has them.
///
/// # Examples
///
/// ```
/// use clockjack_rt::{Runtime, RuntimeConfig, actor::ActorSystem};
///
/// let config = RuntimeConfig { workers: Some(2), ..RuntimeConfig::DEFAULT };
/// let rt = Runtime::start_with(ActorSystem::builder("shop"), config)?;
/// assert_eq!(rt.pool().workers(), 2);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct RuntimeConfig {
    /// The number of workers at the start; `None` for one per available CPU.
    pub workers: Option<usize>,
    /// The maximum number of workers, also after a resize; at most 1024. The default, 64, means
    /// the number of CPUs if there are more.
    pub workers_max: usize,
    /// The length of a tick: the precision of timers.
    pub resolution: Resolution,
    /// The name of the worker threads; the worker's number is appended.
    pub name: Cow<'static, str>,
    /// The stack size of a worker in bytes, or `None` for std's default.
    pub stack_size: Option<usize>,
    /// Whether each worker is pinned to one CPU; see [`PoolConfig::pin_workers`].
    pub pin_workers: bool,
    /// How late the timers of a busy worker may be before other workers fire them.
    pub timer_tolerance: Duration,
    /// How many shards the scheduler has.
    pub timer_topology: TimerTopology,
    /// The duration of one handler after which a worker is reported as stuck.
    pub stuck_after: Duration,
    /// Receives a report for each stuck handler; see [`PoolConfig::on_stuck`].
    pub on_stuck: Option<fn(StuckWorker)>,
    /// The configuration of the threads for blocking work.
    pub blocking: BlockingConfig,
    /// How long the runtime waits for its actors when it is dropped, or stopped by a signal; see
    /// [`RunConfig::drain_timeout`](crate::RunConfig::drain_timeout).
    pub drop_timeout: Duration,
    /// The seed of every random choice. Runs on several threads are not reproducible even so.
    pub seed: u64,
    /// The number of events that the flight recorder keeps for each worker, and as many for all
    /// other threads; see [`PoolConfig::flight_records`].
    pub flight_records: usize,
    /// The number of threads that run a tokio runtime, so that tokio's sockets and timers work
    /// inside actors; 0 for none. See [`PoolConfig::tokio`].
    pub tokio: usize,
    /// Whether failures of actors are written to standard error, or to `tracing`.
    pub failure_log: FailureLog,
}

impl RuntimeConfig {
    /// One worker per CPU, ticks of one millisecond.
    pub const DEFAULT: Self = Self {
        workers: None,
        workers_max: 64,
        resolution: Resolution::MILLI,
        name: Cow::Borrowed("cj-worker"),
        stack_size: None,
        pin_workers: false,
        timer_tolerance: Duration::from_millis(1),
        timer_topology: TimerTopology::PerWorker,
        stuck_after: Duration::from_secs(1),
        on_stuck: None,
        blocking: BlockingConfig::DEFAULT,
        drop_timeout: Duration::from_secs(10),
        seed: 0,
        flight_records: 1 << 12,
        tokio: 0,
        failure_log: FailureLog::On,
    };

    /// The configuration of the pool, with what the system determines.
    pub(super) fn into_pool(self, limits: Limits, settings: SchedulerConfig) -> PoolConfig {
        let topology = self.timer_topology;
        PoolConfig {
            workers: self.workers,
            workers_max: self.workers_max,
            resolution: self.resolution,
            limits,
            name: self.name,
            stack_size: self.stack_size,
            pin_workers: self.pin_workers,
            timer_tolerance: self.timer_tolerance,
            stuck_after: self.stuck_after,
            on_stuck: self.on_stuck,
            blocking: self.blocking,
            scheduler: PoolSchedulerConfig { topology, settings },
            drop_timeout: self.drop_timeout,
            seed: self.seed,
            flight_records: self.flight_records,
            tokio: self.tokio,
        }
    }
}

impl Default for RuntimeConfig {
    fn default() -> Self {
        Self::DEFAULT
    }
}
