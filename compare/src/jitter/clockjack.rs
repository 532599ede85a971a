//! Clockjack's own interval, on a worker of its pool.
//!
//! Its timers tick in milliseconds since the pool was made, and say at which tick they were due, so
//! that lateness is measured from that instant by the clock that the pool itself sleeps by.

use core::time::Duration;
use std::io;

use clockjack_exec::Commands;
use clockjack_rt::{OsClock, OsInstant, PoolConfig, WorkerPool};

use super::subject::{PERIOD, Role, Sleeper};
use crate::failure::Failure;

/// Two workers, as in the suite `executor`.
const N_WORKERS: usize = 2;

/// No task is left when the pool is stopped, so that this is never waited for.
const STOP_DEADLINE: Duration = Duration::from_secs(10);

pub(crate) const SLEEPER: Sleeper = Sleeper {
    name: NAME,
    package: Some("clockjack-rt"),
    role: Role::Ours,
    note: "interval in a pool with two workers, measured from its tick",
    run,
};

pub(crate) const NAME: &str = "clockjack";

fn run(n_ticks: u32) -> Result<Vec<Duration>, Failure> {
    let config = PoolConfig { workers: Some(N_WORKERS), ..PoolConfig::DEFAULT };
    let refused = |source| Failure::start(NAME, io::Error::other(source));
    let pool = WorkerPool::new(config, Commands::new()).map_err(refused)?;
    let ticked = pool.block_on(pool.spawn(tick(pool.clock(), n_ticks)));
    let report = pool.shutdown(STOP_DEADLINE);
    assert!(report.stragglers.is_empty(), "the only task has ended");
    Ok(ticked.expect("the task only ticks and nobody cancels it"))
}

async fn tick(clock: OsClock, n_ticks: u32) -> Vec<Duration> {
    let mut late = Vec::with_capacity(n_ticks as usize);
    let mut interval = clockjack_rt::interval(PERIOD);
    for _ in 0..n_ticks {
        let due = interval.tick().await.expect("the pool runs until this has ended").due;
        late.push(OsInstant::now().saturating_since(clock.instant_of(due)));
    }
    late
}
