//! What an executor must offer to be measured, and what is said about it beside the figures.
//!
//! A subject is started anew for each run, with [`N_WORKERS`] threads that run its tasks, and is
//! stopped behind it. Its timers are its own. The thread that measures only waits.

use core::future::Future;
use core::time::Duration;

use crate::failure::Failure;
use crate::report::Facts;

/// How many threads run the tasks of a subject.
pub(crate) const N_WORKERS: usize = 2;

/// An executor under measurement. All but `start`, `block_on` and `stop` is called within a task.
pub(crate) trait Subject: Sized + 'static {
    /// What is known about this subject before it runs.
    const FACTS: Facts;

    /// The output of a spawned task. The loads await it, nobody drops it before.
    type Join<T: Send + 'static>: Future<Output = T> + Send + 'static;

    /// Starts the workers.
    ///
    /// # Errors
    ///
    /// If the system refuses a thread or what else it needs.
    fn start() -> Result<Self, Failure>;

    /// Runs `root` as a task on a worker. The calling thread waits for its output and helps with
    /// nothing.
    fn block_on<F>(&self, root: F) -> F::Output
    where
        F: Future<Output: Send + 'static> + Send + 'static;

    /// Starts a further task.
    fn spawn<F>(task: F) -> Self::Join<F::Output>
    where
        F: Future<Output: Send + 'static> + Send + 'static;

    /// Lets the others go first.
    fn yield_now() -> impl Future<Output = ()> + Send;

    /// Waits on the subject's own timers.
    fn sleep(duration: Duration) -> impl Future<Output = ()> + Send + 'static;

    /// Stops the workers; no task is left.
    fn stop(self);
}

/// What is measured. The definitions are those of the suite.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Case {
    /// A task spawns n empty ones and awaits them.
    Spawn,
    /// Two tasks a worker yield n times each.
    Yield,
    /// Two tasks wake each other, n times there and back.
    Wake,
    /// Four pairs of tasks bounce a message n times.
    #[value(name = "ping_pong")]
    PingPong,
    /// A binary tree of tasks with n leaves of about one microsecond.
    #[value(name = "fork_join")]
    ForkJoin,
    /// One task spawns n of about 500 ns and awaits them.
    Steal,
    /// A sleep of one hour is polled once and dropped, n times.
    #[value(name = "timer_arm_drop")]
    TimerArmDrop,
    /// Nothing to do for n milliseconds.
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
