//! Known bugs of thread pools, each tested by the behaviour that it broke. The crate
//! `clockjack-exec` has the list of their sources.
#![cfg(not(loom))]

#[path = "support/in_time.rs"]
mod in_time;

use core::time::Duration;

use clockjack_rt::{PoolConfig, WorkerPool, exec::Commands};
use clockjack_testing::InTime;
use in_time::ShutdownInTime as _;

fn pool(workers: usize) -> InTime<WorkerPool> {
    let config = PoolConfig { workers: Some(workers), workers_max: 8, ..PoolConfig::DEFAULT };
    let pool = WorkerPool::new(config, Commands::new()).expect("a pool of a few threads starts");
    InTime::new(pool, PoolConfig::DEFAULT.drop_timeout)
}

/// A bug of this crate: a worker was reported as started before it had registered. A thread that
/// then asked it to leave had no effect, and its index looked free to the next start.
#[test]
fn a_worker_that_is_dismissed_as_soon_as_it_is_there_leaves() {
    let pool = pool(1);
    for round in 0..5 {
        pool.resize(8).unwrap();
        pool.resize(1).unwrap();
        assert_eq!(pool.workers(), 1, "round {round}");
    }
    let report = pool.shutdown_in_time(Duration::from_secs(5));
    assert!(report.is_clean(), "{report:?}");
}
