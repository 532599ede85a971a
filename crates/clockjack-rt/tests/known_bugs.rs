//! Bugs that pools have had, each as the behaviour that it broke; `museum.md` beside the executor
//! names where.
#![cfg(not(loom))]

use core::time::Duration;

use clockjack_rt::{PoolConfig, WorkerPool, exec::Commands};

fn pool(workers: usize) -> WorkerPool {
    let config = PoolConfig { workers: Some(workers), workers_max: 8, ..PoolConfig::DEFAULT };
    WorkerPool::new(config, Commands::new()).expect("a pool of a few threads starts")
}

/// Our own: a worker was reported as there before it had taken its seat. Who asked it to leave then
/// asked in vain, and the seat looked free to the next.
#[test]
fn a_worker_that_is_dismissed_as_soon_as_it_is_there_leaves() {
    let pool = pool(1);
    for round in 0..5 {
        pool.resize(8).unwrap();
        pool.resize(1).unwrap();
        assert_eq!(pool.workers(), 1, "round {round}");
    }
    let report = pool.shutdown(Duration::from_secs(5));
    assert!(report.is_clean(), "{report:?}");
}
