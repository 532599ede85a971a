//! The interface of a measured scheduler, and its description in the report.
//!
//! A subject is started for each run, with [`N_WORKERS`] threads if it has workers, and is stopped
//! after the run. The measuring thread only waits.

use core::future::Future;
use core::time::Duration;

use crate::failure::Failure;
use crate::receiver::Shot;
use crate::report::Facts;

/// The number of threads that run the tasks of a subject that has workers.
pub(crate) const N_WORKERS: usize = 2;

/// A scheduler under measurement, with its runtime.
pub(crate) trait Subject: Sized + 'static {
    /// The properties of this subject.
    const FACTS: Facts;

    /// The handle by which a user's task schedules.
    type Timers: Timers;

    /// Starts the workers.
    ///
    /// # Errors
    ///
    /// If the operating system refuses a thread or another resource.
    fn start() -> Result<Self, Failure>;

    /// A handle to schedule by.
    fn timers(&self) -> Self::Timers;

    /// Runs `root` where a user of this scheduler would: as a task on a worker, if it has workers.
    /// The calling thread waits for its output.
    fn block_on<F>(&self, root: F) -> F::Output
    where
        F: Future<Output: Send + 'static> + Send + 'static;

    /// Yields to other tasks; called within `block_on`.
    fn yield_now() -> impl Future<Output = ()> + Send;

    /// Stops the workers; no timer is left.
    fn stop(self);
}

/// The calls that are measured.
pub(crate) trait Timers: Send + 'static {
    /// The key that `schedule` returns and `cancel` takes. Dropping it cancels nothing.
    type Key: Send + 'static;

    /// Fires `shot` once, `delay` from now.
    fn schedule(&self, delay: Duration, shot: Shot) -> Self::Key;

    /// Cancels a one-shot that has not fired: it never fires, and its token is dropped soon.
    fn cancel(&self, key: Self::Key);
}

/// The cases. The documentation of the suite defines them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Case {
    /// Schedule n one-shots and cancel all of them.
    #[value(name = "schedule_cancel")]
    ScheduleCancel,
    /// Schedule n one-shots and let all of them fire.
    #[value(name = "schedule_fire")]
    ScheduleFire,
}

impl Case {
    pub(crate) const ALL: [Self; 2] = [Self::ScheduleCancel, Self::ScheduleFire];

    /// The name in tables and JSON, the same as on the command line.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::ScheduleCancel => "schedule_cancel",
            Self::ScheduleFire => "schedule_fire",
        }
    }
}
