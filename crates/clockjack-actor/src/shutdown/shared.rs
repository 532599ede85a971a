//! The engine of a shutdown, shared between those who add tasks and the one who drives it.
//!
//! Beside the rules of the [engine](super):
//!
//! 1. The lock is held for one call of the engine, never while a task, its drop, a waker or a guard
//!    runs: refused and cancelled tasks leave the lock before they are dropped.
//! 2. The driver leaves its waker before it looks; who asks for the shutdown wakes after the engine
//!    knows. So either the driver's look finds the shutdown asked for, or it is woken.

use alloc::vec::Vec;
use core::{fmt, task::Context};

use clockjack_sync::{Counted, lock::Lock, waker::AtomicWaker};

use super::{
    Begin, CoordinatedShutdown, Guard, Phase, Progress, Reason, Report, ShutdownConfig,
    ShutdownConfigError, ShutdownTaskError, TaskFuture, TaskHandle, TakeTasks, UnknownPhase,
    poll_and_return,
};

/// A shutdown that any thread may add to; see the [module](super). Cheap to clone.
#[derive(Clone)]
pub struct SharedShutdown(Counted<Inner>);

struct Inner {
    engine: Lock<CoordinatedShutdown>,
    driver: AtomicWaker,
}

impl SharedShutdown {
    /// A shutdown that nobody has asked for yet.
    ///
    /// # Errors
    ///
    /// As [`ShutdownConfig::validate`].
    pub fn new(config: &ShutdownConfig) -> Result<Self, ShutdownConfigError> {
        let engine = Lock::new(CoordinatedShutdown::new(config)?);
        Ok(Self(Counted::new(Inner { engine, driver: AtomicWaker::new() })))
    }

    /// Adds a task to a phase, also from a task of an earlier one.
    ///
    /// # Errors
    ///
    /// As [`CoordinatedShutdown::add_task`].
    pub fn add_task(
        &self,
        phase: Phase,
        name: &str,
        task: TaskFuture,
    ) -> Result<TaskHandle, ShutdownTaskError> {
        self.0.engine.with(|engine| engine.add_task(phase, name, task))
    }

    /// Takes a task back whose phase has not begun; none if it has, or if it was taken before.
    pub fn cancel(&self, task: &TaskHandle) -> Option<TaskFuture> {
        self.0.engine.with(|engine| engine.cancel(task))
    }

    /// As [`CoordinatedShutdown::discard_tasks`].
    pub fn discard_tasks(&self) -> Vec<TaskFuture> {
        self.0.engine.with(CoordinatedShutdown::discard_tasks)
    }

    /// Asks for the shutdown and wakes the driver.
    ///
    /// # Errors
    ///
    /// As [`CoordinatedShutdown::run`].
    pub fn run(&self, reason: Reason, from: Option<Phase>) -> Result<Begin, UnknownPhase> {
        let begin = self.0.engine.with(|engine| engine.run(reason, from))?;
        if begin == Begin::Started {
            self.0.driver.wake();
        }
        Ok(begin)
    }

    /// What is known so far; none if nobody has asked for a shutdown.
    #[must_use]
    pub fn report_so_far(&self) -> Option<Report> {
        self.0.engine.with(|engine| engine.report_so_far().cloned())
    }

    /// Goes on as far as possible. Only the driver calls this; `now_nanos` never goes back.
    ///
    /// The waker is kept also while nobody has asked for the shutdown.
    pub fn poll(&self, now_nanos: u64, cx: &mut Context<'_>, guard: &mut Guard<'_>) -> Progress {
        self.0.driver.register(cx.waker());
        let engine = &self.0.engine;
        // At most one round a phase and one for the end, as for the engine.
        loop {
            match engine.with(|engine| engine.take_tasks(now_nanos)) {
                TakeTasks::Tasks(tasks) => {
                    let return_tasks = |tasks| engine.with(|engine| engine.return_tasks(tasks, now_nanos));
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
}

impl fmt::Debug for SharedShutdown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedShutdown").finish_non_exhaustive()
    }
}
