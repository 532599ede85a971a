//! The shutdown engine behind a lock, shared between the threads that add tasks and the driver.
//!
//! In addition to the rules of the [engine](super): the lock is held for one call of the engine,
//! never while a task, its drop, a waker or a guard runs. Refused and cancelled tasks are moved out
//! of the lock before they are dropped. The driver is started after the engine has recorded the
//! request for the shutdown, so the driver's first poll sees the request.

use alloc::vec::Vec;
use core::task::Context;

use clockjack_sync::spin_lock::SpinLock;

use super::{
    Begin, CoordinatedShutdown, Guard, Phase, Progress, Reason, Report, ShutdownConfig,
    ShutdownError, TakeTasks, TaskFuture, TaskHandle, poll_and_return,
};

/// A shutdown to which any thread may add tasks; see the [module](super).
pub(crate) struct SharedShutdown(SpinLock<CoordinatedShutdown>);

impl SharedShutdown {
    /// A shutdown that has not been requested yet.
    pub(crate) fn new(config: &ShutdownConfig) -> Result<Self, super::InvalidConfig> {
        Ok(Self(SpinLock::new(CoordinatedShutdown::new(config)?)))
    }

    /// As [`CoordinatedShutdown::add_task`]. A task of an earlier phase may call this function.
    pub(crate) fn add_task(
        &self,
        phase: Phase,
        name: &str,
        task: TaskFuture,
    ) -> Result<TaskHandle, ShutdownError> {
        self.0.with(|engine| engine.add_task(phase, name, task))
    }

    /// As [`CoordinatedShutdown::cancel`].
    pub(crate) fn cancel(&self, task: &TaskHandle) -> Option<TaskFuture> {
        self.0.with(|engine| engine.cancel(task))
    }

    /// As [`CoordinatedShutdown::discard_tasks`].
    pub(crate) fn discard_tasks(&self) -> Vec<TaskFuture> {
        self.0.with(CoordinatedShutdown::discard_tasks)
    }

    /// As [`CoordinatedShutdown::run`].
    pub(crate) fn run(&self, reason: Reason, from: Option<Phase>) -> Result<Begin, ShutdownError> {
        self.0.with(|engine| engine.run(reason, from))
    }

    /// The report so far; `None` if no shutdown was requested.
    pub(crate) fn report_so_far(&self) -> Option<Report> {
        self.0.with(|engine| engine.report_so_far().cloned())
    }

    /// Polls the tasks and advances as far as possible. Only the driver calls this function;
    /// `now_nanos` never decreases.
    pub(crate) fn poll(
        &self,
        now_nanos: u64,
        cx: &mut Context<'_>,
        guard: &mut Guard<'_>,
    ) -> Progress {
        // At most one round per phase and one for the result: see "why it cannot hang".
        loop {
            match self.0.with(|engine| engine.take_tasks(now_nanos)) {
                TakeTasks::Tasks(tasks) => {
                    let return_tasks =
                        |tasks| self.0.with(|engine| engine.return_tasks(tasks, now_nanos));
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
