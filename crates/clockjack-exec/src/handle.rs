//! The handle of an executor: starts and finds processes from any thread, and arms timers.
#![expect(unsafe_code, reason = "promises that what it starts may go to any worker")]

use alloc::{borrow::Cow, vec::Vec};
use core::{fmt, task::Waker, time::Duration};

use clockjack_time::{Tick, TimerId, TimerInstant};

use crate::{
    error::{SendError, SubmitError, TimerError},
    executor::ExecutorShared,
    executor_ref::ExecutorRef,
    limits::Limits,
    payload::{Payload, Payloads},
    pid::Pid,
    process::Process,
    process::process_ref::ProcessRef,
    state::State,
    stats::ExecStats,
    task::HeaderRef,
    task::join::JoinHandle,
    task::live_task::LiveTask,
    timer::action::TimerAction,
    timer::{self, Sleep, Timer, timeout::Timeout},
    worker::worker_stats::WorkerStats,
};

/// A handle of an executor, which can be cloned and sent to other threads. It does not keep the
/// executor running: after the executor has shut down, it refuses everything.
#[derive(Clone)]
pub struct Handle(ExecutorRef);

impl Handle {
    #[doc(hidden)]
    #[must_use]
    pub fn new(executor: ExecutorRef) -> Self {
        Self(executor)
    }

    #[doc(hidden)]
    #[must_use]
    pub fn executor(&self) -> &ExecutorRef {
        &self.0
    }

    /// Runs a future. If it cannot be started, the [`JoinHandle`] returns the reason.
    #[track_caller]
    pub fn spawn_future<F>(&self, future: F) -> JoinHandle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        // SAFETY: the future and its output are `Send`.
        unsafe { ExecutorShared::spawn(&self.0, future, None) }
    }

    /// As [`spawn_future`](Self::spawn_future), with a name for dumps.
    ///
    /// # Examples
    ///
    /// ```
    /// use clockjack_exec::{Handle, JoinHandle};
    ///
    /// fn start(handle: &Handle, n: u32) -> JoinHandle<u32> {
    ///     handle.spawn_named(format!("doubler {n}"), async move { 2 * n })
    /// }
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
        // SAFETY: the future and its output are `Send`.
        unsafe { ExecutorShared::spawn(&self.0, future, Some(name.into())) }
    }

    /// All live tasks, each as it was at some time during the call: what it does, how often and
    /// when it was polled, where it was spawned and where it waits.
    ///
    /// The tasks continue during the call. Its cost is linear in the largest number of tasks that
    /// the executor has had at a time.
    ///
    /// # Examples
    ///
    /// ```
    /// use clockjack_exec::Handle;
    ///
    /// fn print_tasks(handle: &Handle) {
    ///     for task in handle.task_dump() {
    ///         println!("{task}");
    ///     }
    /// }
    /// ```
    #[must_use]
    pub fn task_dump(&self) -> Vec<LiveTask> {
        let mut tasks = Vec::new();
        self.0.live_tasks(|task| tasks.push(task));
        tasks
    }

    /// Starts a process.
    ///
    /// # Errors
    ///
    /// Returns the process to the caller: if its `init` fails or panics, if there is no room for
    /// another, or after the shutdown of the executor has begun.
    pub fn submit<P>(&self, process: P) -> Result<ProcessRef<P::Message>, SubmitError<P>>
    where
        P: Process + Send,
        P::Message: Send,
    {
        self.submit_method(process, "", Payloads::new())
    }

    /// Starts a process by one of its methods, with input for it.
    ///
    /// # Errors
    ///
    /// As [`submit`](Self::submit).
    pub fn submit_method<P>(
        &self,
        process: P,
        method: &str,
        input: Payloads,
    ) -> Result<ProcessRef<P::Message>, SubmitError<P>>
    where
        P: Process + Send,
        P::Message: Send,
    {
        self.submit_linked(process, method, input, &|_| {})
    }

    /// As [`submit_method`](Self::submit_method), with a call before the first poll.
    pub(crate) fn submit_linked<P>(
        &self,
        process: P,
        method: &str,
        input: Payloads,
        before: &dyn Fn(HeaderRef<'_>),
    ) -> Result<ProcessRef<P::Message>, SubmitError<P>>
    where
        P: Process + Send,
        P::Message: Send,
    {
        // SAFETY: the process and its messages are `Send`.
        unsafe { ExecutorShared::submit_linked(&self.0, process, method, input, before) }
    }

    /// Sends a message to a process by its pid.
    ///
    /// # Errors
    ///
    /// Returns the message to the caller: if there is no such process, it has ended, its mailbox is
    /// full, or it takes messages of another type.
    pub fn send(&self, to: Pid, message: Payload) -> Result<(), SendError<Payload>> {
        self.0.send(to, message)
    }

    /// Asks a process to stop; false if there is no such process.
    pub fn cancel(&self, pid: Pid, reason: &'static str) -> bool {
        self.0.cancel(pid, reason)
    }

    /// Ends a process instead of its next step; false if there is no such process.
    pub fn terminate(&self, pid: Pid) -> bool {
        self.0.terminate(pid)
    }

    /// What a process does; `None` if there is no such process.
    #[must_use]
    pub fn state(&self, pid: Pid) -> Option<State> {
        self.0.state(pid)
    }

    /// A timer that is not armed.
    #[must_use]
    pub fn timer(&self) -> Timer {
        Timer::new(self.clone())
    }

    /// A future that completes after a delay.
    pub fn sleep(&self, after: Duration) -> Sleep {
        Sleep::on(self.clone(), after)
    }

    /// Limits the time of a future, which may be awaited anywhere. The time counts from now.
    ///
    /// # Examples
    ///
    /// ```
    /// use clockjack_exec::{Handle, TimerError};
    /// use core::{future::pending, time::Duration};
    ///
    /// async fn impatient(handle: &Handle) -> Result<(), TimerError> {
    ///     handle.timeout(Duration::from_millis(5), pending()).await
    /// }
    /// ```
    pub fn timeout<F: IntoFuture>(&self, after: Duration, future: F) -> Timeout<F::IntoFuture> {
        Timeout::new(self.sleep(after), future.into_future())
    }

    /// The deadline of a delay that begins now.
    #[doc(hidden)]
    #[must_use]
    pub fn deadline_after(&self, after: Duration) -> Tick {
        self.0.toolbox().deadline_after(after)
    }

    /// Wakes `waker` at a tick, unless it is [cancelled](Self::cancel_timer) before. The waker is
    /// not that of a task of this executor.
    ///
    /// # Errors
    ///
    /// As [`Timer::arm`].
    #[doc(hidden)]
    pub fn wake_at(&self, deadline: Tick, waker: Waker) -> Result<TimerId, TimerError> {
        timer::arm(&self.0, deadline, TimerAction::Wake(waker))
    }

    /// Cancels what [`wake_at`](Self::wake_at) has armed; true if it never wakes.
    #[doc(hidden)]
    #[expect(clippy::must_use_candidate, reason = "most callers do not care whether it had fired")]
    pub fn cancel_timer(&self, id: TimerId) -> bool {
        self.0.cancel_timer(id)
    }

    /// Whether everything runs on one thread, that of a [`LocalExecutor`](crate::LocalExecutor).
    #[must_use]
    pub fn is_local(&self) -> bool {
        self.0.workers.is_empty()
    }

    /// How many workers there are; one on an executor of one thread.
    ///
    /// A worker that sleeps or polls counts; one that was asked to stop does not, even while its
    /// last poll still runs. A pool has all its workers when it is returned to the caller.
    #[must_use]
    pub fn n_workers(&self) -> usize {
        self.0.workers.iter().filter(|worker| worker.has_worker()).count().max(1)
    }

    /// The limits of the executor.
    #[must_use]
    pub fn limits(&self) -> &Limits {
        self.0.limits()
    }

    /// The executor's time, read now.
    #[must_use]
    pub fn now(&self) -> TimerInstant {
        self.0.now()
    }

    /// The executor's time in nanoseconds, read now: finer than its ticks, for measuring. Timers do
    /// not use it.
    #[must_use]
    pub fn nanos(&self) -> u64 {
        self.0.toolbox().nanos()
    }

    /// The latest tick at which a worker has read the clock. Cheaper than [`now`](Self::now), and
    /// late by as long as the workers sleep. For statistics and coarse limits, not for deadlines.
    /// Tick zero on an executor of one thread.
    #[must_use]
    pub fn coarse_now(&self) -> Tick {
        self.0.coarse_now()
    }

    /// Whether the executor is shutting down, and refuses everything new.
    #[must_use]
    pub fn is_stopping(&self) -> bool {
        self.0.is_stopping()
    }

    /// Statistics of the executor.
    #[must_use]
    pub fn stats(&self) -> ExecStats {
        self.0.stats()
    }

    /// Statistics of each worker that runs now; none on an executor of one thread.
    ///
    /// # Examples
    ///
    /// ```
    /// use clockjack_exec::Handle;
    ///
    /// fn longest_queue(handle: &Handle) -> usize {
    ///     handle.worker_stats().iter().map(|worker| worker.queue_len).max().unwrap_or(0)
    /// }
    /// ```
    #[must_use]
    pub fn worker_stats(&self) -> Vec<WorkerStats> {
        self.0.worker_stats()
    }
}

impl fmt::Debug for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Handle").finish_non_exhaustive()
    }
}
