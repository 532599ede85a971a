//! Tasks of a runtime with names, a dump of all tasks and actors, and the figures of its workers.

use std::{borrow::Cow, collections::HashMap};

use clockjack_exec::{Handle, JoinHandle, LiveTask, Pid, WorkerStats};

use super::Runtime;

impl Runtime {
    /// As [`spawn_future`](Self::spawn_future), with a name for [dumps](Self::task_dump).
    ///
    /// # Examples
    ///
    /// ```
    /// use clockjack_rt::Runtime;
    ///
    /// let rt = Runtime::new("named")?;
    /// let answer = rt.spawn_named("the answer", async { 6 * 7 });
    /// assert_eq!(rt.block_on(answer)?, 42);
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
        self.pool().spawn_named(name, future)
    }

    /// All live tasks: the futures, processes and actors of the pool and of all dispatchers. The
    /// name of an actor is its path.
    ///
    /// Each entry says what the task does, how often and when it was polled, and for a future where
    /// it was spawned and at which `.await` it waits. The tasks continue during the call.
    ///
    /// # Examples
    ///
    /// ```
    /// use clockjack_rt::Runtime;
    /// use std::time::Duration;
    ///
    /// let rt = Runtime::new("dumped")?;
    /// let _sleeper = rt.spawn_named("sleeper", async {
    ///     clockjack_rt::sleep(Duration::from_secs(3600)).await
    /// });
    /// for task in rt.task_dump() {
    ///     println!("{task}"); // {0|3.1} "sleeper" .. is idle, .., waits at src/main.rs:7:50
    /// }
    /// assert!(rt.task_dump().iter().any(|task| task.name.as_deref() == Some("sleeper")));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn task_dump(&self) -> Vec<LiveTask> {
        let mut tasks: Vec<_> = self.handles().iter().flat_map(Handle::task_dump).collect();
        let paths: HashMap<Pid, _> = self.system().actors().into_iter().collect();
        for task in &mut tasks {
            if let Some(path) = paths.get(&task.pid) {
                task.name = Some(Cow::Owned(path.to_string()));
            }
        }
        tasks
    }

    /// Statistics of each worker of the pool: the length of its run queue, the mean time of a poll,
    /// how long it was parked, how late its timers were.
    ///
    /// # Examples
    ///
    /// ```
    /// use clockjack_rt::Runtime;
    ///
    /// let rt = Runtime::new("measured")?;
    /// for worker in rt.worker_stats() {
    ///     println!(
    ///         "worker {}: {} in its queue, {:?} per poll, timers {} ticks late at most",
    ///         worker.worker, worker.queue_len, worker.poll_mean, worker.counts.lateness_max_ticks,
    ///     );
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn worker_stats(&self) -> Vec<WorkerStats> {
        self.pool().worker_stats()
    }

    /// The pool first.
    fn handles(&self) -> Vec<Handle> {
        let threads = self.threads.as_ref().expect("they are taken out by the shutdown only");
        let mut handles = vec![threads.pool.handle()];
        handles.extend(threads.dispatchers.handles());
        handles
    }
}
