//! tokio's multi-threaded runtime, on which both of its subjects stand.

use core::future::Future;

use tokio::runtime::{Builder, Runtime};

use super::subject::{N_WORKERS, Subject, Timers};
use crate::failure::Failure;
use crate::report::Facts;

/// A way to schedule that needs this runtime.
pub(crate) trait Guest: 'static {
    /// What is known about the subject before it runs.
    const FACTS: Facts;

    /// What a task of the user holds to schedule by.
    type Timers: Timers;

    /// Starts what it has beside the workers.
    fn start(runtime: &Runtime) -> Self;

    /// What schedules on it.
    fn timers(&self) -> Self::Timers;
}

/// The runtime and its guest. With timers and without I/O, which would cost it a system call now
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
