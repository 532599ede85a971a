//! tokio's multi-threaded runtime.

use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll};
use core::time::Duration;

use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinHandle;

use super::subject::{N_WORKERS, Subject};
use crate::failure::Failure;
use crate::report::{Facts, Standing};

pub(crate) struct MultiThread {
    runtime: Runtime,
}

impl Subject for MultiThread {
    const FACTS: Facts = Facts {
        name: "tokio",
        package: Some("tokio"),
        standing: Standing::Rival,
        note: "multi_thread with timers and without I/O, which would cost it a system call now \
               and then",
    };

    type Join<T: Send + 'static> = Join<T>;

    fn start() -> Result<Self, Failure> {
        let runtime = Builder::new_multi_thread().worker_threads(N_WORKERS).enable_time().build();
        let runtime = runtime.map_err(|source| Failure::start(Self::FACTS.name, source))?;
        Ok(Self { runtime })
    }

    fn block_on<F>(&self, root: F) -> F::Output
    where
        F: Future<Output: Send + 'static> + Send + 'static,
    {
        self.runtime.block_on(Join(self.runtime.spawn(root)))
    }

    fn spawn<F>(task: F) -> Join<F::Output>
    where
        F: Future<Output: Send + 'static> + Send + 'static,
    {
        Join(tokio::spawn(task))
    }

    fn yield_now() -> impl Future<Output = ()> + Send {
        tokio::task::yield_now()
    }

    fn sleep(duration: Duration) -> impl Future<Output = ()> + Send + 'static {
        tokio::time::sleep(duration)
    }

    fn stop(self) {
        drop(self.runtime);
    }
}

pub(crate) struct Join<T>(JoinHandle<T>);

impl<T> Future for Join<T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<T> {
        let joined = Pin::new(&mut self.0).poll(context);
        joined.map(|result| result.expect("no task of a load panics or is cancelled"))
    }
}
