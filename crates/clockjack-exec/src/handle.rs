//! The handle of an executor: starts processes from anywhere, finds them, arms timers.
#![expect(unsafe_code, reason = "promises that what it starts may go to any worker")]

use core::{fmt, task::Waker, time::Duration};

use clockjack_time::{Tick, TimerId, TimerInstant};

use crate::{
    error::{SendError, SubmitError, TimerError},
    executor::ExecutorShared,
    executor_ref::ExecutorRef,
    join::JoinHandle,
    limits::Limits,
    payload::{Payload, Payloads},
    pid::Pid,
    process::Process,
    process_ref::ProcessRef,
    state::State,
    stats::ExecStats,
    task::Header,
    timer::{self, Sleep, Timer},
    timer_action::TimerAction,
};

/// A handle of an executor, to be cloned and given away. It does not keep the executor running:
/// after the executor has stopped, everything is refused.
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

    /// Runs a future as a process. If it cannot be started, the join says why.
    pub fn spawn<F>(&self, future: F) -> JoinHandle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        // SAFETY: the future and its output are `Send`.
        unsafe { ExecutorShared::spawn(&self.0, future) }
    }

    /// Starts a process.
    ///
    /// # Errors
    ///
    /// The process comes back: if its `init` fails or panics, if there is no room for another, or
    /// after the executor was stopped.
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

    /// As [`submit_method`](Self::submit_method), with a call before the first turn.
    pub(crate) fn submit_linked<P>(
        &self,
        process: P,
        method: &str,
        input: Payloads,
        before: &dyn Fn(&Header),
    ) -> Result<ProcessRef<P::Message>, SubmitError<P>>
    where
        P: Process + Send,
        P::Message: Send,
    {
        // SAFETY: the process and its messages are `Send`.
        unsafe { ExecutorShared::submit_linked(&self.0, process, method, input, before) }
    }

    /// Sends a message to a process of which only the pid is known.
    ///
    /// # Errors
    ///
    /// The message comes back: if there is no such process, it has ended, as many wait as its limit
    /// allows, or it takes messages of another type.
    pub fn send(&self, to: Pid, message: Payload) -> Result<(), SendError<Payload>> {
        self.0.send(to, message)
    }

    /// Asks a process to stop; false if there is no such process.
    pub fn cancel(&self, pid: Pid, reason: &'static str) -> bool {
        self.0.cancel(pid, reason)
    }

    /// Ends a process at its next turn; false if there is no such process.
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

    /// A future that waits.
    pub fn sleep(&self, after: Duration) -> Sleep {
        Sleep::on(self.clone(), after)
    }

    /// When what begins now and takes so long is over.
    #[doc(hidden)]
    #[must_use]
    pub fn deadline_after(&self, after: Duration) -> Tick {
        self.0.toolbox().deadline_after(after)
    }

    /// Wakes `waker` at a tick, unless that is [disarmed](Self::disarm) before. The waker knows of
    /// no process of this executor.
    ///
    /// # Errors
    ///
    /// As [`Timer::arm`].
    #[doc(hidden)]
    pub fn wake_at(&self, deadline: Tick, waker: Waker) -> Result<TimerId, TimerError> {
        timer::arm(&self.0, deadline, TimerAction::Wake(waker))
    }

    /// Disarms what [`wake_at`](Self::wake_at) has armed; true if it never wakes.
    #[doc(hidden)]
    #[expect(clippy::must_use_candidate, reason = "most callers do not care who was faster")]
    pub fn disarm(&self, id: TimerId) -> bool {
        self.0.disarm(id)
    }

    /// Whether everything runs on one thread, that of a [`LocalExecutor`](crate::LocalExecutor).
    #[must_use]
    pub fn is_local(&self) -> bool {
        self.0.workers.is_empty()
    }

    /// How many workers there are to step processes; one on an executor of one thread.
    ///
    /// One that sleeps or is in the middle of a step counts, one that was asked to leave does not,
    /// even while it ends its step. A pool has all its workers when it is handed out.
    #[must_use]
    pub fn n_workers(&self) -> usize {
        self.0.workers.iter().filter(|worker| worker.has_worker()).count().max(1)
    }

    /// How much there may be of everything.
    #[must_use]
    pub fn limits(&self) -> &Limits {
        self.0.limits()
    }

    /// The executor's time, read now.
    #[must_use]
    pub fn now(&self) -> TimerInstant {
        self.0.now()
    }

    /// The executor's time in nanoseconds, read now: finer than its ticks, for measuring. No timer
    /// goes by it.
    #[must_use]
    pub fn nanos(&self) -> u64 {
        self.0.toolbox().nanos()
    }

    /// The latest tick at which a worker has looked at the clock: cheaper than [`now`](Self::now),
    /// and behind by as long as the workers sleep. For statistics and coarse limits, not for
    /// deadlines. Tick zero on an executor of one thread.
    #[must_use]
    pub fn coarse_now(&self) -> Tick {
        self.0.coarse_now()
    }

    /// Whether the executor takes nothing new.
    #[must_use]
    pub fn is_stopping(&self) -> bool {
        self.0.is_stopping()
    }

    /// Counts of what has happened.
    #[must_use]
    pub fn stats(&self) -> ExecStats {
        self.0.stats()
    }
}

impl fmt::Debug for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Handle").finish_non_exhaustive()
    }
}
