//! tokio's runtimes, which plain tasks and three of the crates use.

use core::future::Future;
use std::io;

use tokio::runtime::Builder;
use tokio::task;

use super::subject::{ActorRuntime, Side, Threads};

/// A subject that runs on tokio and of which the driver needs no value.
pub(crate) trait OnTokio: Copy + Send + Sync + 'static {
    /// The subject itself.
    const SELF: Self;
}

impl<S: OnTokio> ActorRuntime for S {
    /// With everything enabled, as in `#[tokio::main]`.
    fn run<F>(
        threads: Threads,
        root: impl FnOnce(Self) -> F + Send + 'static,
    ) -> io::Result<F::Output>
    where
        F: Future<Output: Send + 'static> + Send + 'static,
    {
        let root = root(Self::SELF);
        Ok(match threads {
            Threads::One => Builder::new_current_thread().enable_all().build()?.block_on(root),
            Threads::Two => {
                let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
                runtime.block_on(runtime.spawn(root)).expect("no load panics")
            }
        })
    }

    fn spawn_task(&self, task: impl Future<Output = ()> + Send + 'static, _: Side) {
        drop(task::spawn(task));
    }

    fn yield_now() -> impl Future<Output = ()> + Send {
        task::yield_now()
    }
}
