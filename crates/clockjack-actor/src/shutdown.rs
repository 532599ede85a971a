//! Coordinated shutdown, as in Pekko: tasks are grouped in phases, phases run one after the other,
//! and each phase has a time-out.
//!
//! This module is the engine only. It has no clock, no thread and no actor: the host polls it with
//! the current time, the engine returns when it has to be polled at the latest, and it calls the
//! application's code through a `Guard` of the host. [`ShutdownConfig`] defines the order of the
//! phases; [`Report`] contains their results.
//!
//! # Protocol
//!
//! Roles: any number of *adders*, which add and cancel tasks and request the shutdown, and one
//! *driver*, which polls it.
//!
//! ```text
//!   idle ── run ──► phase 0 ──► phase 1 ── .. ──► done
//!                      │  failed or late, no recover   ▲
//!                      └──► the rest is skipped ───────┘
//! ```
//!
//! 1. The first `run` decides: its reason and its first phase stay. Later calls change nothing.
//! 2. A phase accepts tasks until it begins, if it will still run. It begins when the previous
//!    phase has finished; then all its tasks are taken out at once, and its time begins.
//! 3. Each poll polls all tasks of the current phase. The phase finishes when each task is done, or
//!    when its time is over: then the tasks are polled a last time, and those that are not done are
//!    dropped. If a task fails, the other tasks of its phase continue, because they began together
//!    with it.
//! 4. A phase in which something went wrong is recorded. If it is not configured to recover, the
//!    later phases are skipped. The tasks of a skipped phase are dropped without being polled, and
//!    are recorded, too.
//! 5. The application's code (a poll, the text of a failure, a drop) runs only in
//!    `PhaseTasks::poll`, while the driver has taken the tasks and nothing of the engine is
//!    borrowed. So a host that keeps the engine under a lock holds the lock for `take_tasks` and
//!    for `return_tasks`, and releases it in between: a task may add tasks to later phases, as
//!    may other threads.
//!
//! *Why it cannot hang*: each round finishes a phase, or leaves one with a task that has registered
//! the driver's waker, and with a deadline, unless the phase has no time-out. There are finitely
//! many phases, and by rule 2 none gets new tasks once it has begun. Adding a task need not wake
//! the driver: the current phase has tasks that will.

mod config;
mod report;
mod shared;
mod task;
#[cfg(test)]
mod tests;

use alloc::vec::Vec;
use core::{mem, time::Duration};

pub(crate) use config::InvalidConfig;
pub use config::{Phase, PhaseConfig, ShutdownConfig};
pub use report::{Abort, PhaseOutcome, PhaseReport, Reason, Report, Skip, TaskOutcome, TaskReport};
pub(crate) use shared::SharedShutdown;
pub use task::ShutdownError;
pub(crate) use task::{Guard, TaskFuture, TaskHandle, termination};
use task::{PendingTask, PhaseTasks, Refusal, poll_and_return};

/// The most tasks that may wait for their phase. A larger number suggests a leak in the
/// application, and each task is polled whenever one task of its phase is woken.
pub(crate) const TASKS_MAX: usize = 1 << 16;

/// The phases with their tasks, before, during and after the shutdown; see the [module](self).
pub(crate) struct CoordinatedShutdown {
    /// In the order in which the phases run.
    phases: Vec<PhaseEntry>,
    state: State,
    n_waiting: usize,
    next_id: u64,
}

struct PhaseEntry {
    config: PhaseConfig,
    waiting: Vec<PendingTask>,
}

enum State {
    Idle,
    Running(RunState),
    Done(Report),
}

struct RunState {
    /// The report so far; it contains the phases that are over.
    report: Report,
    /// The index of the first phase to run.
    from_index: usize,
    /// The index of the first phase that has not begun.
    next_index: usize,
    tasks_at: TasksAt,
}

/// Where the tasks of the current phase are.
enum TasksAt {
    /// No phase is running.
    NoPhase,
    /// In the engine.
    ExecutorShared(PhaseTasks),
    /// Taken by the driver.
    Driver,
}

/// The result of [`CoordinatedShutdown::run`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Begin {
    /// The shutdown begins: the driver has to poll.
    Started,
    /// The shutdown was requested before; this call changed nothing.
    Already,
}

/// The progress of a shutdown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    /// No shutdown was requested.
    Idle,
    /// Tasks are running; they have registered the waker.
    Running {
        /// When to poll at the latest; `None` if only the waker counts.
        deadline_nanos: Option<u64>,
    },
    /// The shutdown has finished.
    Done(Report),
}

/// The result of [`CoordinatedShutdown::take_tasks`].
enum TakeTasks {
    /// The driver has to poll these tasks and pass them to [`CoordinatedShutdown::return_tasks`].
    Tasks(PhaseTasks),
    /// No shutdown was requested.
    Idle,
    /// The tasks are already taken.
    Taken,
    /// The shutdown has finished.
    Done(Report),
}

impl CoordinatedShutdown {
    /// A shutdown that has not been requested yet.
    pub(crate) fn new(config: &ShutdownConfig) -> Result<Self, InvalidConfig> {
        let phases = config.in_order()?.into_iter();
        let phases = phases.map(|config| PhaseEntry { config, waiting: Vec::new() }).collect();
        Ok(Self { phases, state: State::Idle, n_waiting: 0, next_id: 0 })
    }

    /// Adds a task to a phase. Several tasks may have the same name.
    ///
    /// # Errors
    ///
    /// If the name is empty, if there is no such phase, if the phase will not begin any more, or if
    /// there are [`TASKS_MAX`] tasks already. The error contains the task, and nothing has changed.
    pub(crate) fn add_task(
        &mut self,
        phase: Phase,
        name: &str,
        task: TaskFuture,
    ) -> Result<TaskHandle, ShutdownError> {
        let phase_index = match self.check_task(phase, name) {
            Ok(phase_index) => phase_index,
            Err(why) => return Err(ShutdownError::new(why, phase, name, Some(task))),
        };
        let id = self.next_id;
        self.next_id += 1;
        self.n_waiting += 1;
        self.phases[phase_index].waiting.push(PendingTask { id, name: name.into(), future: task });
        Ok(TaskHandle { phase_index, id })
    }

    /// Cancels a task whose phase has not begun and returns the task; `None` if the phase has
    /// begun, or the task was cancelled before.
    pub(crate) fn cancel(&mut self, task: &TaskHandle) -> Option<TaskFuture> {
        let waiting = &mut self.phases.get_mut(task.phase_index)?.waiting;
        let index = waiting.iter().position(|waiting| waiting.id == task.id)?;
        self.n_waiting -= 1;
        Some(waiting.remove(index).future)
    }

    /// Closes the shutdown of a system that has terminated without it: returns all waiting tasks,
    /// and accepts no more.
    pub(crate) fn discard_tasks(&mut self) -> Vec<TaskFuture> {
        if matches!(self.state, State::Idle) {
            let report = Report { reason: Reason::UNKNOWN, phases: Vec::new(), aborted: None };
            self.state = State::Done(report);
        }
        self.n_waiting = 0;
        let waiting = self.phases.iter_mut().flat_map(|slot| mem::take(&mut slot.waiting));
        waiting.map(|waiting| waiting.future).collect()
    }

    /// Requests the shutdown, beginning with the given phase or with the first.
    ///
    /// # Errors
    ///
    /// If there is no such phase, and no shutdown was requested before.
    pub(crate) fn run(
        &mut self,
        reason: Reason,
        from: Option<Phase>,
    ) -> Result<Begin, ShutdownError> {
        if !matches!(self.state, State::Idle) {
            return Ok(Begin::Already);
        }
        let from_index = match from {
            Some(phase) => {
                let unknown = || ShutdownError::new(Refusal::UnknownPhase, phase, "", None);
                self.index_of(phase).ok_or_else(unknown)?
            }
            None => 0,
        };
        let report = Report { reason, phases: Vec::new(), aborted: None };
        self.state = State::Running(RunState {
            report,
            from_index,
            next_index: 0,
            tasks_at: TasksAt::NoPhase,
        });
        Ok(Begin::Started)
    }

    /// The report so far. A driver can log progress by comparing it with the report that it saw
    /// before.
    pub(crate) fn report_so_far(&self) -> Option<&Report> {
        match &self.state {
            State::Idle => None,
            State::Running(run) => Some(&run.report),
            State::Done(report) => Some(report),
        }
    }

    /// Takes the tasks of the current phase, or of the next phase that has any.
    fn take_tasks(&mut self, now_nanos: u64) -> TakeTasks {
        let run = match &mut self.state {
            State::Idle => return TakeTasks::Idle,
            State::Done(report) => return TakeTasks::Done(report.clone()),
            State::Running(run) => run,
        };
        match mem::replace(&mut run.tasks_at, TasksAt::Driver) {
            TasksAt::Driver => return TakeTasks::Taken,
            TasksAt::ExecutorShared(tasks) => return TakeTasks::Tasks(tasks),
            TasksAt::NoPhase => {}
        }
        for phase_index in run.next_index..self.phases.len() {
            let slot = &mut self.phases[phase_index];
            run.next_index = phase_index + 1;
            let waiting = mem::take(&mut slot.waiting);
            self.n_waiting -= waiting.len();
            let has_tasks = !waiting.is_empty();
            let mut tasks =
                PhaseTasks::new(phase_index, run.skip(phase_index, &slot.config), waiting);
            tasks.begin(now_nanos, deadline(now_nanos, slot.config.timeout));
            if has_tasks {
                return TakeTasks::Tasks(tasks);
            }
            run.record_phase(tasks, &slot.config, now_nanos);
        }
        let report = run.report.clone();
        self.state = State::Done(report.clone());
        TakeTasks::Done(report)
    }

    /// Returns the tasks that [`take_tasks`](Self::take_tasks) gave out, after
    /// [`PhaseTasks::poll`].
    ///
    /// # Panics
    ///
    /// If the tasks do not come from this shutdown.
    fn return_tasks(&mut self, tasks: PhaseTasks, now_nanos: u64) {
        let State::Running(run) = &mut self.state else {
            panic!("tasks were returned while no shutdown is running");
        };
        assert!(matches!(run.tasks_at, TasksAt::Driver), "the returned tasks were not taken");
        assert_eq!(
            tasks.phase_index + 1,
            run.next_index,
            "the returned tasks belong to another phase"
        );
        if tasks.is_pending() {
            run.tasks_at = TasksAt::ExecutorShared(tasks);
        } else {
            run.tasks_at = TasksAt::NoPhase;
            let config = &self.phases[tasks.phase_index].config;
            run.record_phase(tasks, config, now_nanos);
        }
    }

    fn check_task(&self, phase: Phase, name: &str) -> Result<usize, Refusal> {
        let phase_index = self.index_of(phase).ok_or(Refusal::UnknownPhase)?;
        if name.is_empty() {
            return Err(Refusal::Unnamed);
        }
        let is_open = match &self.state {
            State::Idle => true,
            State::Running(run) => run.is_open(phase_index),
            State::Done(_) => false,
        };
        if !is_open {
            return Err(Refusal::Late);
        }
        if self.n_waiting >= TASKS_MAX {
            return Err(Refusal::Full);
        }
        Ok(phase_index)
    }

    fn index_of(&self, phase: Phase) -> Option<usize> {
        self.phases.iter().position(|slot| slot.config.phase == phase)
    }
}

impl RunState {
    /// Whether a task that is added to this phase now will be taken when the phase begins.
    fn is_open(&self, phase_index: usize) -> bool {
        let first_index = self.next_index.max(self.from_index);
        self.report.aborted.is_none() && phase_index >= first_index
    }

    fn skip(&self, phase_index: usize, config: &PhaseConfig) -> Option<Skip> {
        if phase_index < self.from_index {
            Some(Skip::BeforeStart)
        } else if self.report.aborted.is_some() {
            Some(Skip::Aborted)
        } else {
            (!config.enabled).then_some(Skip::Disabled)
        }
    }

    /// Records a phase that is over.
    fn record_phase(&mut self, mut tasks: PhaseTasks, config: &PhaseConfig, now_nanos: u64) {
        let phase = config.phase;
        if let Some(error) = tasks.take_error()
            && !config.recover
        {
            self.report.aborted = Some(Abort { phase, error });
        }
        let took = Duration::from_nanos(now_nanos.saturating_sub(tasks.began_nanos));
        let outcome = tasks.outcome();
        let tasks = tasks.reports();
        self.report.phases.push(PhaseReport { phase, outcome, tasks, took });
    }
}

/// The deadline of a phase that begins now; `None` if the clock cannot represent it.
fn deadline(now_nanos: u64, timeout: Duration) -> Option<u64> {
    let timeout_nanos = u64::try_from(timeout.as_nanos()).ok()?;
    now_nanos.checked_add(timeout_nanos)
}
