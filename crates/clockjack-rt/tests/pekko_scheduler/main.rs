//! Pekko's own tests of its scheduler that need a real clock, on a pool. The README of this
//! directory says which sentence each test stands for.
#![cfg(not(loom))]

mod once;
mod periodic;

use core::time::Duration;
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use clockjack_rt::{PoolConfig, WorkerPool, exec::Commands, sched::DispatcherId};
use clockjack_testing::InTime;

const ANY: DispatcherId = DispatcherId::DEFAULT;
/// Far beyond what a loaded machine needs: reached only by a fault.
const LONG: Duration = Duration::from_secs(60);

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

static CALM: RwLock<()> = RwLock::new(());

fn start() -> InTime<WorkerPool> {
    let config = PoolConfig { workers: Some(2), ..PoolConfig::DEFAULT };
    let pool = WorkerPool::new(config, Commands::new()).unwrap();
    InTime::new(pool, PoolConfig::DEFAULT.drop_timeout)
}

/// A pool for a test that sleeps for most of the time, and the right not to run beside a busy one:
/// rates are measured here.
fn calm_pool() -> (InTime<WorkerPool>, RwLockReadGuard<'static, ()>) {
    let calm = CALM.read().unwrap_or_else(PoisonError::into_inner);
    (start(), calm)
}

/// A pool for a busy test, and the right to be the only test that runs.
fn busy_pool() -> (InTime<WorkerPool>, RwLockWriteGuard<'static, ()>) {
    let alone = CALM.write().unwrap_or_else(PoisonError::into_inner);
    (start(), alone)
}
