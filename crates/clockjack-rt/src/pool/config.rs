//! The configuration of a pool.

use core::time::Duration;
use std::borrow::Cow;

use clockjack_exec::{Limits, StuckWorker};
use clockjack_time::Resolution;

use crate::{BlockingConfig, PoolSchedulerConfig};

/// The configuration of a [`WorkerPool`](crate::WorkerPool).
#[derive(Clone, Debug)]
pub struct PoolConfig {
    /// The number of workers at the start; `None` for one per available CPU.
    pub workers: Option<usize>,
    /// The maximum number of workers, also after a resize; at most 1024. The default, 64, means
    /// the number of CPUs if there are more.
    pub workers_max: usize,
    /// The length of a tick: the precision of timers.
    pub resolution: Resolution,
    /// Limits for processes, timers and messages, and for the work of a process in one step.
    pub limits: Limits,
    /// The name of the worker threads; the worker's number is appended.
    pub name: Cow<'static, str>,
    /// The stack size of a worker in bytes, or `None` for std's default.
    pub stack_size: Option<usize>,
    /// Whether each worker is pinned to one CPU: worker *n* to the *n*th CPU that the creating
    /// thread may run on, modulo their number. If the system refuses a CPU, the start fails.
    pub pin_workers: bool,
    /// How late the timers of a busy worker may be before other workers fire them.
    pub timer_tolerance: Duration,
    /// The duration of one step after which a worker is reported as stuck.
    pub stuck_after: Duration,
    /// Receives a report for each stuck step, once per step. The watchdog thread calls it; it
    /// should return quickly.
    pub on_stuck: Option<fn(StuckWorker)>,
    /// The configuration of the threads for blocking work.
    pub blocking: BlockingConfig,
    /// The configuration of the [scheduler](crate::WorkerPool::scheduler).
    pub scheduler: PoolSchedulerConfig,
    /// How long a pool waits for its processes when it is dropped without a shutdown.
    pub drop_timeout: Duration,
    /// The seed of every random choice. Runs on several threads are not reproducible even so.
    pub seed: u64,
    /// The number of events that the flight recorder keeps for each worker, and as many for all
    /// other threads; rounded up to a power of two, 24 bytes each. With 0 nothing is recorded. See
    /// [`Runtime::write_trace`](crate::Runtime::write_trace).
    pub flight_records: usize,
    /// The number of threads that run a tokio runtime, at most 1024; 0 for none. With such a
    /// runtime, tokio's sockets and timers work inside processes, because every worker enters the
    /// runtime. One thread is enough for sockets and timers of processes; what a library starts by
    /// `tokio::spawn` runs on these threads, and may need more of them. With more than one, one
    /// further thread owns the runtime and sleeps. Requires the feature `tokio`; without the
    /// feature, the start fails.
    pub tokio: usize,
}

impl PoolConfig {
    /// One worker per CPU, ticks of one millisecond.
    pub const DEFAULT: Self = Self {
        workers: None,
        workers_max: 64,
        resolution: Resolution::MILLI,
        limits: Limits::DEFAULT,
        name: Cow::Borrowed("cj-worker"),
        stack_size: None,
        pin_workers: false,
        timer_tolerance: Duration::from_millis(1),
        stuck_after: Duration::from_secs(1),
        on_stuck: None,
        blocking: BlockingConfig::DEFAULT,
        scheduler: PoolSchedulerConfig::DEFAULT,
        drop_timeout: Duration::from_secs(10),
        seed: 0,
        flight_records: 1 << 12,
        tokio: 0,
    };
}

impl Default for PoolConfig {
    fn default() -> Self {
        Self::DEFAULT
    }
}
