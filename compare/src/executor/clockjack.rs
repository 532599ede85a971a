//! Clockjack's own pool.

use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll};
use core::time::Duration;
use std::io;

use clockjack_exec::Commands;
use clockjack_rt::{PoolConfig, WorkerPool};

use super::subject::{N_WORKERS, Subject};
use crate::failure::Failure;
use crate::report::{Facts, Standing};

/// No task is left when a pool is stopped, so this deadline is never reached.
const STOP_DEADLINE: Duration = Duration::from_secs(10);

pub(crate) struct Pool {
    pool: WorkerPool,
}

impl Subject for Pool {
    const FACTS: Facts = Facts {
        name: "clockjack",
        package: Some("clockjack-rt"),
        standing: Standing::Ours,
        note: "`WorkerPool` with two workers and no commands",
    };

    type Join<T: Send + 'static> = Join<T>;

    fn start() -> Result<Self, Failure> {
        let config = PoolConfig { workers: Some(N_WORKERS), ..PoolConfig::DEFAULT };
        let refused = |source| Failure::start(Self::FACTS.name, io::Error::other(source));
        Ok(Self { pool: WorkerPool::new(config, Commands::new()).map_err(refused)? })
    }

    fn block_on<F>(&self, root: F) -> F::Output
    where
        F: Future<Output: Send + 'static> + Send + 'static,
    {
        self.pool.block_on(Join(self.pool.spawn_future(root)))
    }

    fn spawn<F>(task: F) -> Join<F::Output>
    where
        F: Future<Output: Send + 'static> + Send + 'static,
    {
        Join(clockjack_rt::spawn_future(task))
    }

    fn yield_now() -> impl Future<Output = ()> + Send {
        clockjack_rt::yield_now()
    }

    fn sleep(duration: Duration) -> impl Future<Output = ()> + Send + 'static {
        Sleep(clockjack_rt::sleep(duration))
    }

    fn stop(self) {
        let report = self.pool.shutdown(STOP_DEADLINE);
        assert!(report.stragglers.is_empty(), "every load awaits its tasks");
    }
}

pub(crate) struct Join<T>(clockjack_exec::JoinHandle<T>);

impl<T> Future for Join<T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<T> {
        let joined = Pin::new(&mut self.0).poll(context);
        joined.map(|result| result.expect("no task of a load panics or is cancelled"))
    }
}

/// The sleep without its error.
struct Sleep(clockjack_exec::Sleep);

impl Future for Sleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let slept = Pin::new(&mut self.0).poll(context);
        slept.map(|result| result.map(drop).expect("the pool outlives its loads"))
    }
}
