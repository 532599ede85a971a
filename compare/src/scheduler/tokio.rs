//! tokio's multi-threaded runtime, which both of its subjects use.

use core::future::Future;

use tokio::runtime::{Builder, Runtime};

use super::subject::{N_WORKERS, Subject, Timers};
use crate::failure::Failure;
use crate::report::Facts;

/// A subject that runs on this runtime.
pub(crate) trait Guest: 'static {
    /// The properties of this subject.
    const FACTS: Facts;

    /// The handle by which a user's task schedules.
    type Timers: Timers;

    /// Starts the tasks of the subject.
    fn start(runtime: &Runtime) -> Self;

    /// A handle to schedule by.
    fn timers(&self) -> Self::Timers;
}

/// The runtime and its subject. With timers and without I/O, which would cost it a system call now
/// and then.
pub(crate) struct MultiThread<G> {
    guest: G,
    runtime: Runtime,
}

impl<G: Guest> Subject for MultiThread<G> {
    const FACTS: Facts = G::FACTS;

    type Timers = G::Timers;

    fn start() -> Result<Self, Failure> {
        let runtime = Builder::new_multi_thread().worker_threads(N_WORKERS).enable_time().build();
        let runtime = runtime.map_err(|source| Failure::start(G::FACTS.name, source))?;
        Ok(Self { guest: G::start(&runtime), runtime })
    }

    fn timers(&self) -> G::Timers {
        self.guest.timers()
    }

    fn block_on<F>(&self, root: F) -> F::Output
    where
        F: Future<Output: Send + 'static> + Send + 'static,
    {
        let joined = self.runtime.block_on(self.runtime.spawn(root));
        joined.expect("no task of a load panics or is cancelled")
    }

    fn yield_now() -> impl Future<Output = ()> + Send {
        tokio::task::yield_now()
    }

    fn stop(self) {
        drop(self.guest);
        drop(self.runtime);
    }
}
