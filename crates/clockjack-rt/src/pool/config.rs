//! What a pool is made of.

use core::time::Duration;
use std::borrow::Cow;

use clockjack_exec::{Limits, StuckWorker};
use clockjack_time::Resolution;

use crate::{BlockingConfig, PoolSchedulerConfig};

/// What a [`WorkerPool`](crate::WorkerPool) is made of.
#[derive(Clone, Debug)]
pub struct PoolConfig {
    /// How many workers at first; `None` for as many as the machine runs at a time.
    pub workers: Option<usize>,
    /// How many there may be after a resize, at most 1024.
    pub workers_max: usize,
    /// The length of a tick: how finely timers are told apart.
    pub resolution: Resolution,
    /// Bounds on processes, timers, messages, and on what a process does in one turn.
    pub limits: Limits,
    /// What the workers are called, with a number behind it.
    pub name: Cow<'static, str>,
    /// Bytes of stack of a worker, or `None` for what std takes.
    pub stack_size: Option<usize>,
    /// Whether each worker stays on one CPU: the *n*th on the *n*th of those that the thread which
    /// makes the pool may run on, counted round. A CPU that the system refuses is a start error.
    pub pin_workers: bool,
    /// How late a busy worker's timers may be before others take them over.
    pub timer_tolerance: Duration,
    /// After which time in one step a worker is reported as stuck.
    pub stuck_after: Duration,
    /// Whom a stuck worker is reported to: each step once. Called by the metronome; it should not
    /// take long.
    pub on_stuck: Option<fn(StuckWorker)>,
    /// The threads for blocking work.
    pub blocking: BlockingConfig,
    /// What the [scheduler](crate::WorkerPool::scheduler) is made of.
    pub scheduler: PoolSchedulerConfig,
    /// How long a pool waits for its processes when it is dropped and not shut down.
    pub drop_deadline: Duration,
    /// The seed of every choice that is left open; it makes no run of several threads the same.
    pub seed: u64,
    /// Whether tokio's sockets and timers work inside processes: one more thread runs a tokio
    /// reactor, and every worker is entered into it. Needs the feature `tokio`; without it a pool
    /// that asks for it does not start.
    pub tokio: bool,
}

impl PoolConfig {
    /// A worker for each CPU, ticks of a millisecond.
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
        drop_deadline: Duration::from_secs(10),
        seed: 0,
        tokio: false,
    };
}

impl Default for PoolConfig {
    fn default() -> Self {
        Self::DEFAULT
    }
}
