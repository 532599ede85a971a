//! Tasks of a pool with names, dumps of all tasks, and the figures of single workers.

use std::borrow::Cow;

use clockjack_exec::{JoinHandle, LiveTask, WorkerStats};

use super::WorkerPool;
use crate::task_span;

impl WorkerPool {
    /// Runs a future as a task. If the task cannot be started, the join returns the reason.
    #[track_caller]
    pub fn spawn_future<F>(&self, future: F) -> JoinHandle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        task_span::spawn_on(&self.handle, None, future)
    }

    /// As [`spawn_future`](Self::spawn_future), with a name for [dumps](Self::task_dump).
    ///
    /// # Examples
    ///
    /// ```
    /// use clockjack_rt::{PoolConfig, WorkerPool, exec::Commands};
    ///
    /// let pool = WorkerPool::new(PoolConfig::DEFAULT, Commands::new())?;
    /// let answer = pool.spawn_named("the answer", async { 6 * 7 });
    /// assert_eq!(pool.block_on(answer)?, 42);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[track_caller]
    pub fn spawn_named<F>(
        &self,
        name: impl Into<Cow<'static, str>>,
        future: F,
    ) -> JoinHandle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        task_span::spawn_on(&self.handle, Some(name.into()), future)
    }

    /// All live tasks of the pool; see [`Handle::task_dump`](clockjack_exec::Handle::task_dump).
    ///
    /// # Examples
    ///
    /// ```
    /// use clockjack_rt::{PoolConfig, WorkerPool, exec::Commands};
    /// use std::future::pending;
    ///
    /// let pool = WorkerPool::new(PoolConfig::DEFAULT, Commands::new())?;
    /// let _never = pool.spawn_named("never", pending::<()>());
    /// for task in pool.task_dump() {
    ///     println!("{task}"); // {0|0.1} "never" .. is idle, 1 polls, .., spawned at ..
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn task_dump(&self) -> Vec<LiveTask> {
        self.handle.task_dump()
    }

    /// Statistics of each worker that runs now: the length of its run queue, the mean time of a
    /// poll, how long it was parked, how late its timers were.
    ///
    /// # Examples
    ///
    /// ```
    /// use clockjack_rt::{PoolConfig, WorkerPool, exec::Commands};
    ///
    /// let pool = WorkerPool::new(PoolConfig::DEFAULT, Commands::new())?;
    /// for worker in pool.worker_stats() {
    ///     println!("{}: {} tasks wait", worker.worker, worker.queue_len);
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn worker_stats(&self) -> Vec<WorkerStats> {
        self.handle.worker_stats()
    }
}
