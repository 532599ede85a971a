//! The tasks of a phase: how they are stored, refused and polled.
//!
//! Every call into a task's own code (its poll, the text of its failure, its drop) is in
//! [`PhaseTasks`] and goes through the host's guard.

use alloc::{
    borrow::Cow,
    boxed::Box,
    format,
    string::{String, ToString as _},
    vec::Vec,
};
use core::{
    fmt, mem,
    pin::Pin,
    task::{Context, Poll},
};

use clockjack_exec::Failure;

use super::{Phase, PhaseOutcome, Progress, Skip, TaskOutcome, TaskReport};

/// A task: a future that is polled from the beginning of its phase.
pub(crate) type TaskFuture = Pin<Box<dyn Future<Output = Result<(), Failure>> + Send>>;

/// The host's function to call code of the application: it calls the closure once. If the closure
/// panics and the host can catch that, it returns the text of the panic.
pub(crate) type Guard<'a> = dyn FnMut(&mut dyn FnMut()) -> Result<(), String> + 'a;

/// A task that waits until an actor has stopped.
///
/// `stop`, if given, is called when the phase begins; the future that it returns usually sends the
/// actor its stop message. `terminated` has to complete when the actor has stopped. The task also
/// succeeds if the actor stopped earlier, so a stop message that cannot be delivered is not a
/// failure.
pub(crate) fn termination<S, D, T>(stop: Option<S>, terminated: T) -> TaskFuture
where
    S: FnOnce() -> D + Send + 'static,
    D: Future<Output = ()> + Send + 'static,
    T: Future<Output = ()> + Send + 'static,
{
    Box::pin(async move {
        if let Some(stop) = stop {
            stop().await;
        }
        terminated.await;
        Ok(())
    })
}

/// Identifies a task, for its cancellation. Only valid for the shutdown to which the task was
/// added.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TaskHandle {
    pub(super) phase_index: usize,
    pub(super) id: u64,
}

/// A task of the coordinated shutdown, or its first phase, was refused; the error contains the
/// task.
pub struct ShutdownError {
    why: Refusal,
    phase: Phase,
    name: Box<str>,
    task: Option<TaskFuture>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    Unnamed,
    UnknownPhase,
    Late,
    Full,
    Sealed,
}

impl ShutdownError {
    /// Whether the name of the task is empty.
    #[must_use]
    pub fn is_unnamed(&self) -> bool {
        self.why == Refusal::Unnamed
    }

    /// Whether there is no such phase.
    #[must_use]
    pub fn is_unknown_phase(&self) -> bool {
        self.why == Refusal::UnknownPhase
    }

    /// Whether the phase has already begun, is over, or will not run any more.
    #[must_use]
    pub fn is_late(&self) -> bool {
        self.why == Refusal::Late
    }

    /// Whether 65,536 tasks are waiting already.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.why == Refusal::Full
    }

    /// Whether the system is sealed.
    #[must_use]
    pub fn is_sealed(&self) -> bool {
        self.why == Refusal::Sealed
    }

    pub(super) fn new(why: Refusal, phase: Phase, name: &str, task: Option<TaskFuture>) -> Self {
        Self { why, phase, name: name.into(), task }
    }

    /// The error of a sealed system.
    pub(crate) fn sealed(phase: Phase, name: &str, task: TaskFuture) -> Self {
        Self::new(Refusal::Sealed, phase, name, Some(task))
    }

    /// The task, which was never polled; `None` if the error is about the first phase.
    #[must_use]
    pub fn into_inner(self) -> Option<TaskFuture> {
        self.task
    }
}

impl fmt::Display for ShutdownError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { why, phase, name, .. } = self;
        match why {
            Refusal::Unnamed => write!(f, "a task of phase `{phase}` has an empty name"),
            Refusal::UnknownPhase if name.is_empty() => write!(f, "there is no phase `{phase}`"),
            Refusal::UnknownPhase => write!(f, "task `{name}`: there is no phase `{phase}`"),
            Refusal::Late => write!(f, "task `{name}` is too late for phase `{phase}`"),
            Refusal::Full => write!(f, "too many tasks to add `{name}` to phase `{phase}`"),
            Refusal::Sealed => {
                write!(f, "the system is sealed: cannot add task `{name}` to phase `{phase}`")
            }
        }
    }
}

impl fmt::Debug for ShutdownError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ShutdownError").field(&self.why).field(&self.to_string()).finish()
    }
}

impl core::error::Error for ShutdownError {}

/// A task whose phase has not begun.
pub(super) struct PendingTask {
    pub(super) id: u64,
    pub(super) name: Box<str>,
    pub(super) future: TaskFuture,
}

/// The tasks of one phase, taken out of the engine to be polled.
///
/// They must be returned to the [`CoordinatedShutdown`](super::CoordinatedShutdown) that they come
/// from.
pub(super) struct PhaseTasks {
    pub(super) phase_index: usize,
    pub(super) began_nanos: u64,
    /// After this time, unfinished tasks time out; `None` if there is no time-out.
    deadline_nanos: Option<u64>,
    /// Set if the tasks have to be dropped without being polled.
    skip: Option<Skip>,
    tasks: Vec<Task>,
    /// The first error.
    error: Option<String>,
}

struct Task {
    name: Box<str>,
    /// `None` once the task is done.
    future: Option<TaskFuture>,
    /// The outcome; preliminary while there is a future.
    outcome: TaskOutcome,
}

impl PhaseTasks {
    pub(super) fn new(phase_index: usize, skip: Option<Skip>, waiting: Vec<PendingTask>) -> Self {
        let task = |PendingTask { name, future, .. }| Task {
            name,
            future: Some(future),
            outcome: TaskOutcome::NotRun,
        };
        let tasks = waiting.into_iter().map(task).collect();
        Self { phase_index, began_nanos: 0, deadline_nanos: None, skip, tasks, error: None }
    }

    pub(super) fn begin(&mut self, now_nanos: u64, deadline_nanos: Option<u64>) {
        self.began_nanos = now_nanos;
        self.deadline_nanos = deadline_nanos;
    }

    /// When the tasks have to be polled at the latest, if nothing wakes them before.
    pub(super) fn deadline_nanos(&self) -> Option<u64> {
        self.deadline_nanos
    }

    /// Whether some task is neither done nor dropped.
    pub(super) fn is_pending(&self) -> bool {
        self.tasks.iter().any(|task| task.future.is_some())
    }

    /// Polls each task that is not done. Tasks that are still not done after the deadline are
    /// dropped.
    ///
    /// This function runs the application's code: do not hold a lock while calling it.
    pub(super) fn poll(&mut self, now_nanos: u64, cx: &mut Context<'_>, guard: &mut Guard<'_>) {
        if self.skip.is_some() {
            self.tasks.iter_mut().for_each(|task| task.end(TaskOutcome::NotRun, guard));
            return;
        }
        for task in &mut self.tasks {
            // Each task is polled once more after the deadline: a task that is done then counts as
            // done.
            task.poll(cx, guard);
            if self.error.is_none() {
                self.error = task.error();
            }
        }
        if self.deadline_nanos.is_none_or(|deadline| now_nanos < deadline) {
            return;
        }
        for task in self.tasks.iter_mut().filter(|task| task.future.is_some()) {
            task.end(TaskOutcome::TimedOut, guard);
            if self.error.is_none() {
                self.error = task.error();
            }
        }
    }

    pub(super) fn outcome(&self) -> PhaseOutcome {
        let has = |is: fn(&TaskOutcome) -> bool| self.tasks.iter().any(|task| is(&task.outcome));
        if let Some(skip) = self.skip {
            PhaseOutcome::Skipped(skip)
        } else if has(|outcome| matches!(outcome, TaskOutcome::TimedOut)) {
            PhaseOutcome::TimedOut
        } else if has(|outcome| matches!(outcome, TaskOutcome::Failed(_))) {
            PhaseOutcome::Failed
        } else {
            PhaseOutcome::Completed
        }
    }

    /// The first error; `None` if there was none.
    pub(super) fn take_error(&mut self) -> Option<String> {
        // A panic that propagates through the guard leaves no time to record the error; find it in
        // the outcomes.
        self.error.take().or_else(|| self.tasks.iter().find_map(Task::error))
    }

    pub(super) fn reports(&mut self) -> Vec<TaskReport> {
        let tasks = mem::take(&mut self.tasks).into_iter();
        tasks.map(|Task { name, outcome, .. }| TaskReport { name, outcome }).collect()
    }
}

impl Task {
    fn poll(&mut self, cx: &mut Context<'_>, guard: &mut Guard<'_>) {
        let Some(mut future) = self.future.take() else { return };
        // This outcome stays if the guard lets a panic propagate; the future is then dropped by the
        // unwinding.
        self.outcome = TaskOutcome::Failed(Cow::Borrowed("panicked"));
        let mut answer = Poll::Pending;
        // Formatting and dropping the failure runs the application's code as well.
        let call = &mut || {
            answer = future.as_mut().poll(cx).map_err(|failure| failure.to_string());
        };
        let ran = guard(call);
        self.future = Some(future);
        let outcome = match (ran, answer) {
            (Err(panic), _) => TaskOutcome::Failed(panic.into()),
            (Ok(()), Poll::Ready(Err(text))) => TaskOutcome::Failed(text.into()),
            (Ok(()), Poll::Ready(Ok(()))) => TaskOutcome::Completed,
            (Ok(()), Poll::Pending) => return,
        };
        self.end(outcome, guard);
    }

    /// Sets the outcome and drops the future. If the drop panics, the task has failed, unless it
    /// has another outcome than success.
    fn end(&mut self, outcome: TaskOutcome, guard: &mut Guard<'_>) {
        self.outcome = outcome;
        let mut future = self.future.take();
        if let Err(panic) = guard(&mut || drop(future.take()))
            && self.outcome == TaskOutcome::Completed
        {
            self.outcome = TaskOutcome::Failed(panic.into());
        }
    }

    /// The error of the task; `None` if there is none.
    fn error(&self) -> Option<String> {
        match &self.outcome {
            _ if self.future.is_some() => None,
            TaskOutcome::Failed(text) => Some(format!("task `{}` failed: {text}", self.name)),
            TaskOutcome::TimedOut => Some(format!("task `{}` timed out", self.name)),
            TaskOutcome::Completed | TaskOutcome::NotRun => None,
        }
    }
}

/// Polls tasks and returns them to the engine, also if the guard lets a panic propagate. Returns
/// the progress, or `None` if all tasks are done.
pub(super) fn poll_and_return(
    tasks: PhaseTasks,
    now_nanos: u64,
    cx: &mut Context<'_>,
    guard: &mut Guard<'_>,
    return_tasks: impl FnMut(PhaseTasks),
) -> Option<Progress> {
    let mut returning = ReturnOnDrop { tasks: Some(tasks), return_tasks };
    let tasks = returning.tasks.as_mut().expect("set above");
    tasks.poll(now_nanos, cx, guard);
    let deadline_nanos = tasks.deadline_nanos();
    tasks.is_pending().then_some(Progress::Running { deadline_nanos })
}

/// Returns the tasks to the engine when it is dropped.
struct ReturnOnDrop<F: FnMut(PhaseTasks)> {
    tasks: Option<PhaseTasks>,
    return_tasks: F,
}

impl<F: FnMut(PhaseTasks)> Drop for ReturnOnDrop<F> {
    fn drop(&mut self) {
        self.tasks.take().into_iter().for_each(&mut self.return_tasks);
    }
}
