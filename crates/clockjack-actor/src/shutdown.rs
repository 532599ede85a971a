//! Coordinated shutdown: tasks in phases, phases one after the other, each with its time.
//!
//! This is the engine only. It knows no clock, no thread and no actor: it is polled with the time,
//! says when it wants to be polled at the latest, and calls the application's code through a
//! [`Guard`] of the host. The order of the phases is in [`ShutdownConfig`], what came of them in
//! [`Report`].
//!
//! # Protocol
//!
//! Roles: any number of *adders*, who add and cancel tasks and ask for the shutdown, and one
//! *driver*, who polls it.
//!
//! ```text
//!   idle ── run ──► phase 0 ──► phase 1 ── .. ──► done
//!                      │  failed or late, no recover   ▲
//!                      └──► the rest is skipped ───────┘
//! ```
//!
//! 1. The first `run` decides: its reason and its first phase stay. Later ones change nothing.
//! 2. A phase is open for tasks until it begins, if it still will. It begins when the one before it
//!    has ended; then its tasks are taken out, all at once, and its time begins.
//! 3. All its tasks are polled each time. It ends when each is done, or when its time is over: then
//!    they are polled a last time, and what is not done is dropped. The others of a phase in which
//!    a task fails go on, because they began together with it.
//! 4. A phase in which something went wrong is noted. If it does not recover, the later ones are
//!    skipped. Tasks of a skipped phase are dropped, never polled, and noted too.
//! 5. The application's code (a poll, the text of a failure, a drop) runs in [`PhaseTasks::poll`] only,
//!    while the tasks are on loan, and nothing of the engine is borrowed. So who puts the engine
//!    under a lock takes it for [`take_tasks`] and for [`return_tasks`], and lets go in between: a task
//!    may add tasks to later phases, as may other threads.
//!
//! *Why it cannot hang*: each turn ends a phase or leaves one with a task that has the driver's
//! waker, and with a deadline, unless the phase has been given for ever. There are finitely many
//! phases, and by rule 2 none gets new tasks once it has begun. Who adds a task need not wake the
//! driver: the current phase has some that will.
//!
//! [`take_tasks`]: CoordinatedShutdown::take_tasks
//! [`return_tasks`]: CoordinatedShutdown::return_tasks

mod config;
mod report;
mod shared;
mod task;
#[cfg(test)]
mod tests;

use alloc::vec::Vec;
use core::{fmt, mem, task::Context, time::Duration};

pub use config::{Phase, PhaseConfig, ShutdownConfig, ShutdownConfigError};
pub use report::{Abort, PhaseOutcome, PhaseReport, Reason, Report, Skip, TaskOutcome, TaskReport};
pub use shared::SharedShutdown;
pub use task::{PhaseTasks, Guard, ShutdownTaskError, TaskFuture, TaskHandle, termination, unguarded};
use task::{Refusal, PendingTask, poll_and_return};

/// How many tasks may wait for their phase. More than that is a leak in the application, and each
/// of them is polled whenever one of its phase is woken.
pub const TASKS_MAX: usize = 1 << 16;

/// The phases with their tasks, before, during and after the shutdown; see the [module](self).
///
/// # Examples
///
/// ```
/// use clockjack_actor::shutdown::{
///     CoordinatedShutdown, Phase, Progress, Reason, ShutdownConfig, unguarded,
/// };
/// use core::task::{Context, Waker};
///
/// let mut shutdown = CoordinatedShutdown::new(&ShutdownConfig::default())?;
/// shutdown.add_task(Phase::SERVICE_UNBIND, "close the door", Box::pin(async { Ok(()) }))?;
/// shutdown.run(Reason::new("closing time"), None)?;
/// let cx = &mut Context::from_waker(Waker::noop());
/// let Progress::Done(report) = shutdown.poll(0, cx, &mut unguarded) else {
///     panic!("nothing had to wait");
/// };
/// assert!(report.is_clean());
/// # Ok::<(), Box<dyn core::error::Error>>(())
/// ```
pub struct CoordinatedShutdown {
    /// In the order in which they run.
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
    /// What is known so far; a phase has an entry once it is over.
    report: Report,
    /// The first phase that is to run.
    from_index: usize,
    /// The first phase that has not begun.
    next_index: usize,
    tasks_at: TasksAt,
}

/// Where the tasks of the phase that has begun are.
enum TasksAt {
    /// No phase is between its beginning and its end.
    NoPhase,
    /// Here.
    Engine(PhaseTasks),
    /// With the driver.
    Driver,
}

/// What [`CoordinatedShutdown::run`] did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Begin {
    /// The shutdown begins: the driver has to poll.
    Started,
    /// It was asked for before, so this changed nothing.
    Already,
}

/// How far a shutdown is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Progress {
    /// Nobody has asked for it.
    Idle,
    /// Tasks are running; the waker is with them.
    Running {
        /// When to poll at the latest; none if only the waker counts.
        deadline_nanos: Option<u64>,
    },
    /// It is over.
    Done(Report),
}

/// What the driver may do now.
#[derive(Debug)]
pub enum TakeTasks {
    /// Poll these and give them to [`CoordinatedShutdown::return_tasks`].
    Tasks(PhaseTasks),
    /// Nothing: nobody has asked for a shutdown.
    Idle,
    /// Nothing: the tasks are on loan already.
    Taken,
    /// Nothing: it is over.
    Done(Report),
}

impl CoordinatedShutdown {
    /// A shutdown that nobody has asked for yet.
    ///
    /// # Errors
    ///
    /// As [`ShutdownConfig::validate`].
    pub fn new(config: &ShutdownConfig) -> Result<Self, ShutdownConfigError> {
        let phases = config.in_order()?.into_iter();
        let phases = phases.map(|config| PhaseEntry { config, waiting: Vec::new() }).collect();
        Ok(Self { phases, state: State::Idle, n_waiting: 0, next_id: 0 })
    }

    /// The phases in the order in which they run.
    pub fn phases(&self) -> impl Iterator<Item = &PhaseConfig> {
        self.phases.iter().map(|slot| &slot.config)
    }

    /// Adds a task to a phase. Several may have one name.
    ///
    /// # Errors
    ///
    /// If the name is empty, there is no such phase, the phase will not begin any more, or there
    /// are [`TASKS_MAX`] already. The task comes back and nothing has changed.
    pub fn add_task(
        &mut self,
        phase: Phase,
        name: &str,
        task: TaskFuture,
    ) -> Result<TaskHandle, ShutdownTaskError> {
        let phase_index = match self.check_task(phase, name) {
            Ok(phase_index) => phase_index,
            Err(why) => return Err(ShutdownTaskError { why, phase, name: name.into(), task }),
        };
        let id = self.next_id;
        self.next_id += 1;
        self.n_waiting += 1;
        self.phases[phase_index].waiting.push(PendingTask { id, name: name.into(), future: task });
        Ok(TaskHandle { phase_index, id })
    }

    /// Takes a task back whose phase has not begun; none if it has, or if it was taken before.
    pub fn cancel(&mut self, task: &TaskHandle) -> Option<TaskFuture> {
        let waiting = &mut self.phases.get_mut(task.phase_index)?.waiting;
        let index = waiting.iter().position(|waiting| waiting.id == task.id)?;
        self.n_waiting -= 1;
        Some(waiting.remove(index).future)
    }

    /// The system has ended without it: gives all tasks that wait, and takes no more.
    pub fn discard_tasks(&mut self) -> Vec<TaskFuture> {
        if matches!(self.state, State::Idle) {
            let report = Report { reason: Reason::UNKNOWN, phases: Vec::new(), aborted: None };
            self.state = State::Done(report);
        }
        self.n_waiting = 0;
        let waiting = self.phases.iter_mut().flat_map(|slot| mem::take(&mut slot.waiting));
        waiting.map(|waiting| waiting.future).collect()
    }

    /// Asks for the shutdown, beginning with the given phase or with the first.
    ///
    /// # Errors
    ///
    /// If there is no such phase, and nobody has asked before.
    pub fn run(&mut self, reason: Reason, from: Option<Phase>) -> Result<Begin, UnknownPhase> {
        if !matches!(self.state, State::Idle) {
            return Ok(Begin::Already);
        }
        let from_index = match from {
            Some(phase) => self.index_of(phase).ok_or(UnknownPhase(phase))?,
            None => 0,
        };
        let report = Report { reason, phases: Vec::new(), aborted: None };
        self.state = State::Running(RunState { report, from_index, next_index: 0, tasks_at: TasksAt::NoPhase });
        Ok(Begin::Started)
    }

    /// The reason of the first who asked for it; none if nobody has.
    #[must_use]
    pub fn reason(&self) -> Option<&Reason> {
        self.report_so_far().map(|report| &report.reason)
    }

    /// What is known so far: a driver that logs compares it with what it has seen.
    #[must_use]
    pub fn report_so_far(&self) -> Option<&Report> {
        match &self.state {
            State::Idle => None,
            State::Running(run) => Some(&run.report),
            State::Done(report) => Some(report),
        }
    }

    /// Goes on as far as possible. `now_nanos` never goes back.
    ///
    /// For a driver that has the engine for itself; one that shares it takes [`SharedShutdown`].
    pub fn poll(
        &mut self,
        now_nanos: u64,
        cx: &mut Context<'_>,
        guard: &mut Guard<'_>,
    ) -> Progress {
        // At most one round a phase and one for the end: see "why it cannot hang".
        loop {
            match self.take_tasks(now_nanos) {
                TakeTasks::Tasks(tasks) => {
                    let return_tasks = |tasks| self.return_tasks(tasks, now_nanos);
                    if let Some(running) = poll_and_return(tasks, now_nanos, cx, guard, return_tasks) {
                        return running;
                    }
                }
                TakeTasks::Idle => return Progress::Idle,
                TakeTasks::Taken => return Progress::Running { deadline_nanos: None },
                TakeTasks::Done(report) => return Progress::Done(report),
            }
        }
    }

    /// Lends the tasks of the current phase, or of the next one that has any.
    pub fn take_tasks(&mut self, now_nanos: u64) -> TakeTasks {
        let run = match &mut self.state {
            State::Idle => return TakeTasks::Idle,
            State::Done(report) => return TakeTasks::Done(report.clone()),
            State::Running(run) => run,
        };
        match mem::replace(&mut run.tasks_at, TasksAt::Driver) {
            TasksAt::Driver => return TakeTasks::Taken,
            TasksAt::Engine(tasks) => return TakeTasks::Tasks(tasks),
            TasksAt::NoPhase => {}
        }
        for phase_index in run.next_index..self.phases.len() {
            let slot = &mut self.phases[phase_index];
            run.next_index = phase_index + 1;
            let waiting = mem::take(&mut slot.waiting);
            self.n_waiting -= waiting.len();
            let has_tasks = !waiting.is_empty();
            let mut tasks = PhaseTasks::new(phase_index, run.skip(phase_index, &slot.config), waiting);
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

    /// Takes back what [`take_tasks`](Self::take_tasks) lent, after [`PhaseTasks::poll`].
    ///
    /// # Panics
    ///
    /// If this shutdown has not lent it.
    pub fn return_tasks(&mut self, tasks: PhaseTasks, now_nanos: u64) {
        let State::Running(run) = &mut self.state else {
            panic!("tasks are given back while no shutdown runs");
        };
        assert!(matches!(run.tasks_at, TasksAt::Driver), "tasks are given back that were not lent");
        assert_eq!(tasks.phase_index + 1, run.next_index, "tasks of another phase are given back");
        if tasks.is_pending() {
            run.tasks_at = TasksAt::Engine(tasks);
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

impl fmt::Debug for CoordinatedShutdown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CoordinatedShutdown")
            .field("n_waiting", &self.n_waiting)
            .field("report", &self.report_so_far())
            .finish_non_exhaustive()
    }
}

impl RunState {
    /// Whether a task that is added to this phase now will be looked at when it begins.
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

    /// Writes down a phase that is over.
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

/// A phase that is neither defined nor mentioned in the configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownPhase(Phase);

impl UnknownPhase {
    /// Which one.
    #[must_use]
    pub fn phase(&self) -> Phase {
        self.0
    }
}

impl fmt::Display for UnknownPhase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "there is no phase `{}`", self.0)
    }
}

impl core::error::Error for UnknownPhase {}

/// When a phase that begins now is too late; none if that is beyond what the clock can say.
fn deadline(now_nanos: u64, timeout: Duration) -> Option<u64> {
    let timeout_nanos = u64::try_from(timeout.as_nanos()).ok()?;
    now_nanos.checked_add(timeout_nanos)
}
