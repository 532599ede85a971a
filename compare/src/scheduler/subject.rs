//! What a scheduler must offer to be measured, and what is said about it beside the figures.
//!
//! A subject is started anew for each run, with [`N_WORKERS`] threads where it has workers, and is
//! stopped behind it. The thread that measures only waits.

use core::future::Future;
use core::time::Duration;

use crate::failure::Failure;
use crate::receiver::Shot;
use crate::report::Facts;

/// How many threads run the tasks of a subject that has any.
pub(crate) const N_WORKERS: usize = 2;

/// A scheduler under measurement, with whatever it runs on.
pub(crate) trait Subject: Sized + 'static {
    /// What is known about this subject before it runs.
    const FACTS: Facts;

    /// What a task of the user holds to schedule by.
    type Timers: Timers;

    /// Starts the workers.
    ///
    /// # Errors
    ///
    /// If the system refuses a thread or what else it needs.
    fn start() -> Result<Self, Failure>;

    /// What schedules on it.
    fn timers(&self) -> Self::Timers;

    /// Runs `root` where a user of this scheduler would call it: as a task on a worker, if it has
    /// workers. The calling thread waits for its output.
    fn block_on<F>(&self, root: F) -> F::Output
    where
        F: Future<Output: Send + 'static> + Send + 'static;

    /// Lets the others go first; called within `block_on`.
    fn yield_now() -> impl Future<Output = ()> + Send;

    /// Stops the workers; no timer is left.
    fn stop(self);
}

/// The calls that are measured.
pub(crate) trait Timers: Send + 'static {
    /// What `schedule` gives out and `cancel` takes. Dropping it cancels nothing.
    type Key: Send + 'static;

    /// Fires `shot` once, `delay` from now.
    fn schedule(&self, delay: Duration, shot: Shot) -> Self::Key;

    /// Cancels a one-shot that has not fired: it will not, and its shot is dropped soon.
    fn cancel(&self, key: Self::Key);
}

/// What is measured. The definitions are those of the suite.
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
