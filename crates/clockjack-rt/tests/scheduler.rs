//! Schedulers on the clock of the system: on a pool and on a thread.
#![cfg(not(loom))]

#[path = "scheduler/close.rs"]
mod close;
#[path = "scheduler/cost.rs"]
mod cost;
#[path = "support/dues.rs"]
mod dues;
#[path = "support/eventually.rs"]
mod eventually;
#[path = "scheduler/handlers.rs"]
mod handlers;
#[path = "support/in_time.rs"]
mod in_time;
#[path = "scheduler/requirements.rs"]
mod requirements;
#[path = "scheduler/silence.rs"]
mod silence;
#[path = "scheduler/thread.rs"]
mod thread;

use core::time::Duration;

use clockjack_rt::{
    PoolConfig, PoolSchedulerConfig, WorkerPool,
    exec::Commands,
    sched::{DispatcherId, SchedulerConfig},
};
use clockjack_testing::InTime;

const ANY: DispatcherId = DispatcherId::DEFAULT;
/// Far beyond what a loaded machine needs: reached only by a fault.
const LONG: Duration = Duration::from_secs(30);

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn pool_of(workers: usize) -> InTime<WorkerPool> {
    pool_with(workers, PoolSchedulerConfig::DEFAULT)
}

fn pool_with(workers: usize, scheduler: PoolSchedulerConfig) -> InTime<WorkerPool> {
    let config = PoolConfig { workers: Some(workers), scheduler, ..PoolConfig::DEFAULT };
    let pool = WorkerPool::new(config, Commands::new()).unwrap();
    InTime::new(pool, PoolConfig::DEFAULT.drop_timeout)
}

/// A scheduler whose driver is called silent after 50 ms.
fn impatient() -> SchedulerConfig {
    SchedulerConfig { driver_timeout: ms(50), ..SchedulerConfig::DEFAULT }
}
