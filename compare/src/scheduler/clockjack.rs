//! Clockjack's own one-shots: a process of the pool that sleeps and fires, aborted by its join.
//!
//! What schedules is [`OnPool`] and nothing else here knows how: its three items are all that
//! changes with the way in which a pool schedules closures.

use core::future::Future;
use core::time::Duration;
use std::io;

use clockjack_exec::{Commands, Handle, Join};
use clockjack_rt::{PoolConfig, WorkerPool};

use super::receiver::Shot;
use super::subject::{Facts, N_WORKERS, Role, Subject, Timers};
use crate::failure::Failure;

/// No timer is left when a pool is stopped, so that this is never waited for.
const STOP_DEADLINE: Duration = Duration::from_secs(10);

pub(crate) struct Ours {
    pool: WorkerPool,
}

/// What schedules on the pool.
pub(crate) struct OnPool(Handle);

impl Timers for OnPool {
    type Key = Join<()>;

    fn schedule(&self, delay: Duration, mut shot: Shot) -> Join<()> {
        self.0.spawn(async move {
            let slept = clockjack_rt::sleep(delay).await;
            assert!(slept.is_ok(), "the pool outlives its timers");
            shot.fire();
        })
    }

    fn cancel(&self, key: Join<()>) {
        key.abort();
    }
}

impl Subject for Ours {
    const FACTS: Facts = Facts {
        name: "clockjack",
        package: Some("clockjack-rt"),
        role: Role::Ours,
        note: "a process with `sleep` a timer in a `WorkerPool`, aborted by its `Join`",
    };

    type Timers = OnPool;

    fn start() -> Result<Self, Failure> {
        let config = PoolConfig { workers: Some(N_WORKERS), ..PoolConfig::DEFAULT };
        let refused = |source| Failure::start(Self::FACTS.name, io::Error::other(source));
        Ok(Self { pool: WorkerPool::new(config, Commands::new()).map_err(refused)? })
    }

    fn timers(&self) -> OnPool {
        OnPool(self.pool.handle())
    }

    fn block_on<F>(&self, root: F) -> F::Output
    where
        F: Future<Output: Send + 'static> + Send + 'static,
    {
        let joined = self.pool.block_on(self.pool.spawn(root));
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
