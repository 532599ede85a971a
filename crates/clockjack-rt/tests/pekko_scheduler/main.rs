//! Pekko's own tests of its scheduler that need a real clock, on a pool. The README of this
//! directory says which sentence each test stands for.
#![cfg(not(loom))]

mod once;
mod periodic;

use core::time::Duration;
use std::sync::{Mutex, MutexGuard, PoisonError};

use clockjack_rt::{PoolConfig, WorkerPool, exec::Commands, sched::DispatcherId};

const ANY: DispatcherId = DispatcherId::DEFAULT;
/// Far beyond what a loaded machine needs: reached only by a fault.
const LONG: Duration = Duration::from_secs(60);

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// A pool, and the right to be the only test that runs: rates are measured here.
fn pool() -> (WorkerPool, MutexGuard<'static, ()>) {
    static ALONE: Mutex<()> = Mutex::new(());
    let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let config = PoolConfig { workers: Some(2), ..PoolConfig::DEFAULT };
    (WorkerPool::new(config, Commands::new()).unwrap(), alone)
}
