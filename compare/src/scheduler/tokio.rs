//! tokio's multi-threaded runtime, on which both of its subjects stand.

use core::future::Future;

use tokio::runtime::{Builder, Runtime};

use super::subject::N_WORKERS;
use crate::failure::Failure;

pub(crate) struct MultiThread {
    runtime: Runtime,
}

impl MultiThread {
    /// With timers and without I/O, which would cost it a system call now and then.
    ///
    /// # Errors
    ///
    /// If the system refuses a thread; `name` is the subject's.
    pub(crate) fn start(name: &'static str) -> Result<Self, Failure> {
        let runtime = Builder::new_multi_thread().worker_threads(N_WORKERS).enable_time().build();
        Ok(Self { runtime: runtime.map_err(|source| Failure::start(name, source))? })
    }

    /// Starts a task that nobody awaits.
    pub(crate) fn spawn_detached(&self, task: impl Future<Output = ()> + Send + 'static) {
        drop(self.runtime.spawn(task));
    }

    /// Runs `root` as a task on a worker and waits for it.
    pub(crate) fn block_on<F>(&self, root: F) -> F::Output
    where
        F: Future<Output: Send + 'static> + Send + 'static,
    {
        let joined = self.runtime.block_on(self.runtime.spawn(root));
        joined.expect("no task of a load panics or is cancelled")
    }
}
