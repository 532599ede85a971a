//! Clockjack's own one-shots: closures on the scheduler of a pool, cancelled by their handles.

use core::future::Future;
use core::time::Duration;
use std::io;

use clockjack_exec::Commands;
use clockjack_rt::{
    PoolConfig, WorkerPool,
    sched::{Cancellable, DispatcherId, Scheduler},
};

use super::subject::{N_WORKERS, Subject, Timers};
use crate::failure::Failure;
use crate::receiver::Shot;
use crate::report::{Facts, Standing};

/// No timer is left when a pool is stopped, so this deadline is never reached.
const STOP_DEADLINE: Duration = Duration::from_secs(10);

pub(crate) struct Ours {
    pool: WorkerPool,
}

/// Schedules on the pool.
pub(crate) struct OnPool(Scheduler);

impl Timers for OnPool {
    type Key = Cancellable;

    fn schedule(&self, delay: Duration, mut shot: Shot) -> Cancellable {
        let job = self.0.schedule_once_fn(delay, DispatcherId::DEFAULT, move |_| shot.fire());
        job.expect("a scheduler has room for a million jobs")
    }

    fn cancel(&self, key: Cancellable) {
        key.cancel();
    }
}

impl Subject for Ours {
    const FACTS: Facts = Facts {
        name: "clockjack",
        package: Some("clockjack-rt"),
        standing: Standing::Ours,
        note: "one closure per timer on the scheduler of a `WorkerPool`, cancelled by its handle",
    };

    type Timers = OnPool;

    fn start() -> Result<Self, Failure> {
        let config = PoolConfig { workers: Some(N_WORKERS), ..PoolConfig::DEFAULT };
        let refused = |source| Failure::start(Self::FACTS.name, io::Error::other(source));
        Ok(Self { pool: WorkerPool::new(config, Commands::new()).map_err(refused)? })
    }

    fn timers(&self) -> OnPool {
        OnPool(self.pool.scheduler().clone())
    }

    fn block_on<F>(&self, root: F) -> F::Output
    where
        F: Future<Output: Send + 'static> + Send + 'static,
    {
        let joined = self.pool.block_on(self.pool.spawn_future(root));
        joined.expect("no task of a load panics or is cancelled")
    }

    fn yield_now() -> impl Future<Output = ()> + Send {
        clockjack_rt::yield_now()
    }

    fn stop(self) {
        let report = self.pool.shutdown(STOP_DEADLINE);
        assert!(report.stragglers.is_empty(), "every timer has fired or was cancelled");
    }
}
