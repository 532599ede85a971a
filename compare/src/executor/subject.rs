//! The interface of a measured executor, and its description in the report.
//!
//! A subject is started for each run, with [`N_WORKERS`] threads that run its tasks, and is stopped
//! after the run. It uses its own timers. The measuring thread only waits.

use core::future::Future;
use core::time::Duration;

use crate::failure::Failure;
use crate::report::Facts;

/// The number of threads that run the tasks of a subject.
pub(crate) const N_WORKERS: usize = 2;

/// An executor under measurement. All functions but `start`, `block_on` and `stop` are called
/// within a task.
pub(crate) trait Subject: Sized + 'static {
    /// The properties of this subject.
    const FACTS: Facts;

    /// The output of a spawned task. The loads always await it before they drop it.
    type Join<T: Send + 'static>: Future<Output = T> + Send + 'static;

    /// Starts the workers.
    ///
    /// # Errors
    ///
    /// If the operating system refuses a thread or another resource.
    fn start() -> Result<Self, Failure>;

    /// Runs `root` as a task on a worker. The calling thread only waits for its output.
    fn block_on<F>(&self, root: F) -> F::Output
    where
        F: Future<Output: Send + 'static> + Send + 'static;

    /// Starts a further task.
    fn spawn<F>(task: F) -> Self::Join<F::Output>
    where
        F: Future<Output: Send + 'static> + Send + 'static;

    /// Yields to other tasks.
    fn yield_now() -> impl Future<Output = ()> + Send;

    /// Waits on the subject's own timers.
    fn sleep(duration: Duration) -> impl Future<Output = ()> + Send + 'static;

    /// Stops the workers; no task is left.
    fn stop(self);
}

/// The cases. The documentation of the suite defines them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Case {
    /// A task spawns n empty tasks and awaits them.
    Spawn,
    /// Two tasks per worker yield n times each.
    Yield,
    /// Two tasks wake each other, n round trips.
    Wake,
    /// Four pairs of tasks bounce a message n times.
    #[value(name = "ping_pong")]
    PingPong,
    /// A binary tree of tasks with n leaves of about one microsecond.
    #[value(name = "fork_join")]
    ForkJoin,
    /// One task spawns n tasks of about 500 ns and awaits them.
    Steal,
    /// A sleep of one hour is polled once and dropped, n times.
    #[value(name = "timer_arm_drop")]
    TimerArmDrop,
    /// Idle for n milliseconds.
    #[value(name = "idle_cpu")]
    IdleCpu,
}

impl Case {
    pub(crate) const ALL: [Self; 8] = [
        Self::Spawn,
        Self::Yield,
        Self::Wake,
        Self::PingPong,
        Self::ForkJoin,
        Self::Steal,
        Self::TimerArmDrop,
        Self::IdleCpu,
    ];

    /// The name in tables and JSON, the same as on the command line.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Spawn => "spawn",
            Self::Yield => "yield",
            Self::Wake => "wake",
            Self::PingPong => "ping_pong",
            Self::ForkJoin => "fork_join",
            Self::Steal => "steal",
            Self::TimerArmDrop => "timer_arm_drop",
            Self::IdleCpu => "idle_cpu",
        }
    }

    /// The unit of its figures.
    pub(crate) const fn unit(self) -> &'static str {
        match self {
            Self::IdleCpu => "switches + us",
            _ => "ns",
        }
    }
}
