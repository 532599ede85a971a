//! The tasks of a phase: how they are kept, refused, and run together.
//!
//! Everything that calls a task's own code is here, in [`PhaseTasks`], and goes through the host's
//! guard: its poll, the text of its failure, and its drop.

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

/// What a task is: a future that is polled from the beginning of its phase on.
pub type TaskFuture = Pin<Box<dyn Future<Output = Result<(), Failure>> + Send>>;

/// The host's way to call code of the application: it runs the closure once, and if that panics,
/// and the host can catch it, answers with the text of the panic.
pub type Guard<'a> = dyn FnMut(&mut dyn FnMut()) -> Result<(), String> + 'a;

/// The [`Guard`] of a host that cannot catch a panic. Where panics unwind, one goes on to who polls
/// the shutdown; the task has then failed, and the others are there to be polled again.
///
/// # Errors
///
/// None.
pub fn unguarded(call: &mut dyn FnMut()) -> Result<(), String> {
    call();
    Ok(())
}

/// A task that waits until an actor has ended.
///
/// `stop`, if any, is called when the phase begins, and the future that it makes usually sends the
/// actor its stop message; `terminated` is ready once the actor has ended. That it ended earlier,
/// even long before, is as good, so a stop message that finds nobody is no failure.
pub fn termination<S, D, T>(stop: Option<S>, terminated: T) -> TaskFuture
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

/// Names a task that was added, for its cancellation. It means nothing to another shutdown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskHandle {
    pub(super) phase_index: usize,
    pub(super) id: u64,
}

/// A task that was refused; it comes back with [`into_task`](Self::into_task).
pub struct ShutdownTaskError {
    pub(super) why: Refusal,
    pub(super) phase: Phase,
    pub(super) name: Box<str>,
    pub(super) task: TaskFuture,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    Unnamed,
    UnknownPhase,
    Late,
    Full,
    Sealed,
}

impl ShutdownTaskError {
    /// Whether its name is empty.
    #[must_use]
    pub fn is_unnamed(&self) -> bool {
        self.why == Refusal::Unnamed
    }

    /// Whether there is no such phase.
    #[must_use]
    pub fn is_unknown_phase(&self) -> bool {
        self.why == Refusal::UnknownPhase
    }

    /// Whether the phase has begun already, is over, or will not come any more. Adding it had no
    /// effect.
    #[must_use]
    pub fn is_late(&self) -> bool {
        self.why == Refusal::Late
    }

    /// Whether there are [`TASKS_MAX`](super::TASKS_MAX) tasks already.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.why == Refusal::Full
    }

    /// Whether the system allocates no more, since it was sealed.
    #[must_use]
    pub fn is_sealed(&self) -> bool {
        self.why == Refusal::Sealed
    }

    /// A system that was sealed takes no more of them.
    pub(crate) fn sealed(phase: Phase, name: &str, task: TaskFuture) -> Self {
        Self { why: Refusal::Sealed, phase, name: name.into(), task }
    }

    /// The task, never polled.
    #[must_use]
    pub fn into_task(self) -> TaskFuture {
        self.task
    }
}

impl fmt::Display for ShutdownTaskError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { why, phase, name, .. } = self;
        match why {
            Refusal::Unnamed => write!(f, "a task of phase `{phase}` has an empty name"),
            Refusal::UnknownPhase => {
                write!(f, "there is no phase `{phase}` for task `{name}`")
            }
            Refusal::Late => write!(f, "task `{name}` comes too late for phase `{phase}`"),
            Refusal::Full => write!(f, "there are too many tasks for `{name}` in `{phase}`"),
            Refusal::Sealed => write!(f, "a sealed system takes no task `{name}` for `{phase}`"),
        }
    }
}

impl fmt::Debug for ShutdownTaskError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ShutdownTaskError").field(&self.why).field(&self.to_string()).finish()
    }
}

impl core::error::Error for ShutdownTaskError {}

/// A task whose phase has not begun.
pub(super) struct PendingTask {
    pub(super) id: u64,
    pub(super) name: Box<str>,
    pub(super) future: TaskFuture,
}

/// The tasks of one phase, on loan to whoever polls them.
///
/// It must be given back to the [`CoordinatedShutdown`](super::CoordinatedShutdown) that lent it.
pub struct PhaseTasks {
    pub(super) phase_index: usize,
    pub(super) began_nanos: u64,
    /// From when on what is not done is too late; none if never.
    deadline_nanos: Option<u64>,
    /// Set if its tasks are to be dropped only.
    skip: Option<Skip>,
    tasks: Vec<Task>,
    /// What went wrong first.
    error: Option<String>,
}

struct Task {
    name: Box<str>,
    /// None once it has ended.
    future: Option<TaskFuture>,
    /// What came of it; only a guess while there is a future.
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

    /// When it has to be polled at the latest, if nothing wakes the task before.
    #[must_use]
    pub fn deadline_nanos(&self) -> Option<u64> {
        self.deadline_nanos
    }

    /// Whether some task is neither done nor given up.
    #[must_use]
    pub fn is_pending(&self) -> bool {
        self.tasks.iter().any(|task| task.future.is_some())
    }

    /// Polls each task that is not done. What is then still not done and too late is dropped.
    ///
    /// This runs the application's code: hold no lock.
    pub fn poll(&mut self, now_nanos: u64, cx: &mut Context<'_>, guard: &mut Guard<'_>) {
        if self.skip.is_some() {
            self.tasks.iter_mut().for_each(|task| task.end(TaskOutcome::NotRun, guard));
            return;
        }
        for task in &mut self.tasks {
            // A task that is done when the time is over is done: it is asked once more.
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

    /// What went wrong first; none if nothing did.
    pub(super) fn take_error(&mut self) -> Option<String> {
        // A panic that came through the guard left no time to write it down.
        self.error.take().or_else(|| self.tasks.iter().find_map(Task::error))
    }

    pub(super) fn reports(&mut self) -> Vec<TaskReport> {
        let tasks = mem::take(&mut self.tasks).into_iter();
        tasks.map(|Task { name, outcome, .. }| TaskReport { name, outcome }).collect()
    }
}

impl fmt::Debug for PhaseTasks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PhaseTasks")
            .field("deadline_nanos", &self.deadline_nanos)
            .field("tasks", &self.tasks.iter().map(|task| &task.name).collect::<Vec<_>>())
            .finish_non_exhaustive()
    }
}

impl Task {
    fn poll(&mut self, cx: &mut Context<'_>, guard: &mut Guard<'_>) {
        let Some(mut future) = self.future.take() else { return };
        // Stays if the guard lets a panic through; the future then goes with the stack.
        self.outcome = TaskOutcome::Failed(Cow::Borrowed("panicked"));
        let mut answer = Poll::Pending;
        // The failure's text and its drop are the application's code as well.
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

    /// Drops the future. A panic then is the task's failure, unless something else is already.
    fn end(&mut self, outcome: TaskOutcome, guard: &mut Guard<'_>) {
        self.outcome = outcome;
        let mut future = self.future.take();
        if let Err(panic) = guard(&mut || drop(future.take()))
            && self.outcome == TaskOutcome::Completed
        {
            self.outcome = TaskOutcome::Failed(panic.into());
        }
    }

    /// What went wrong; none if nothing has.
    fn error(&self) -> Option<String> {
        match &self.outcome {
            _ if self.future.is_some() => None,
            TaskOutcome::Failed(text) => Some(format!("task `{}` failed: {text}", self.name)),
            TaskOutcome::TimedOut => Some(format!("task `{}` timed out", self.name)),
            TaskOutcome::Completed | TaskOutcome::NotRun => None,
        }
    }
}

/// Polls tasks that are on loan and gives them back, also if the guard lets a panic through. Says
/// how far they are, or nothing if they are all done.
pub(super) fn poll_and_return(
    tasks: PhaseTasks,
    now_nanos: u64,
    cx: &mut Context<'_>,
    guard: &mut Guard<'_>,
    return_tasks: impl FnMut(PhaseTasks),
) -> Option<Progress> {
    let mut loan = ReturnOnDrop { tasks: Some(tasks), return_tasks };
    let tasks = loan.tasks.as_mut().expect("it was just put there");
    tasks.poll(now_nanos, cx, guard);
    let deadline_nanos = tasks.deadline_nanos();
    tasks.is_pending().then_some(Progress::Running { deadline_nanos })
}

/// Tasks on their way back.
struct ReturnOnDrop<F: FnMut(PhaseTasks)> {
    tasks: Option<PhaseTasks>,
    return_tasks: F,
}

impl<F: FnMut(PhaseTasks)> Drop for ReturnOnDrop<F> {
    fn drop(&mut self) {
        self.tasks.take().into_iter().for_each(&mut self.return_tasks);
    }
}
