//! The shutdown engine behind a lock, shared between the threads that add tasks and the driver.
//!
//! In addition to the rules of the [engine](super):
//!
//! 1. The lock is held for one call of the engine, never while a task, its drop, a waker or a guard
//!    runs: refused and cancelled tasks are moved out of the lock before they are dropped.
//! 2. The driver registers its waker before it polls the engine. A thread that requests the
//!    shutdown wakes the driver after the engine has recorded the request. So either the driver's
//!    poll sees the request, or the driver is woken.

use alloc::vec::Vec;
use core::{fmt, task::Context};

use clockjack_sync::{Arc, spin_lock::SpinLock, waker::AtomicWaker};

use super::{
    Begin, CoordinatedShutdown, Guard, Phase, Progress, Reason, Report, ShutdownConfig,
    ShutdownConfigError, ShutdownTaskError, TakeTasks, TaskFuture, TaskHandle, UnknownPhase,
    poll_and_return,
};

/// A shutdown to which any thread may add tasks; see the [module](super). Cheap to clone.
#[derive(Clone)]
pub struct SharedShutdown(Arc<Inner>);

struct Inner {
    engine: SpinLock<CoordinatedShutdown>,
    driver: AtomicWaker,
}

impl SharedShutdown {
    /// A shutdown that has not been requested yet.
    ///
    /// # Errors
    ///
    /// As [`ShutdownConfig::validate`].
    pub fn new(config: &ShutdownConfig) -> Result<Self, ShutdownConfigError> {
        let engine = SpinLock::new(CoordinatedShutdown::new(config)?);
        Ok(Self(Arc::new(Inner { engine, driver: AtomicWaker::new() })))
    }

    /// Adds a task to a phase. A task of an earlier phase may call this function.
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

    /// Cancels a task whose phase has not begun and returns the task; `None` if the phase has
    /// begun, or the task was cancelled before.
    pub fn cancel(&self, task: &TaskHandle) -> Option<TaskFuture> {
        self.0.engine.with(|engine| engine.cancel(task))
    }

    /// As [`CoordinatedShutdown::discard_tasks`].
    pub fn discard_tasks(&self) -> Vec<TaskFuture> {
        self.0.engine.with(CoordinatedShutdown::discard_tasks)
    }

    /// Requests the shutdown and wakes the driver.
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

    /// The report so far; `None` if no shutdown was requested.
    #[must_use]
    pub fn report_so_far(&self) -> Option<Report> {
        self.0.engine.with(|engine| engine.report_so_far().cloned())
    }

    /// Polls the tasks and advances as far as possible. Only the driver calls this function;
    /// `now_nanos` never decreases.
    ///
    /// The waker is registered even if no shutdown was requested.
    pub fn poll(&self, now_nanos: u64, cx: &mut Context<'_>, guard: &mut Guard<'_>) -> Progress {
        self.0.driver.register(cx.waker());
        let engine = &self.0.engine;
        // At most one round per phase and one for the result, as for the engine.
        loop {
            match engine.with(|engine| engine.take_tasks(now_nanos)) {
                TakeTasks::Tasks(tasks) => {
                    let return_tasks =
                        |tasks| engine.with(|engine| engine.return_tasks(tasks, now_nanos));
                    if let Some(running) =
                        poll_and_return(tasks, now_nanos, cx, guard, return_tasks)
                    {
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
