//! What needs threads that are pinned to a CPU.
#![cfg(target_os = "linux")]

use super::*;

/// Only where threads can be pinned can the start of one be made to fail.
#[test]
fn a_resize_that_has_failed_is_made_up_for_by_the_next_one() {
    const NO_SUCH_CPU: usize = 1_000_000;
    let config =
        PoolConfig { workers: Some(1), workers_max: 1, pin_workers: true, ..PoolConfig::DEFAULT };
    let mut pool = WorkerPool::new(config, Commands::new()).unwrap();
    let executor = pool.inner.executor.clone();
    let hold = block(&pool);
    // A worker that is asked to leave and has accepted that, but has not left.
    let worker = pool.inner.worker_threads().workers[0].take().unwrap();
    pool.inner.worker_threads().leaving.push((0, worker));
    let cpus = {
        let inner = Arc::get_mut(&mut pool.inner).expect("nobody else has the pool");
        core::mem::replace(&mut inner.cpus, vec![NO_SUCH_CPU])
    };
    assert!(pool.resize(1).is_err());
    Arc::get_mut(&mut pool.inner).expect("as above").cpus = cpus;
    assert_eq!(pool.resize(1).unwrap(), 0);
    // Now it leaves, and its successor, which has waited, takes over.
    executor.request_worker_stop(0);
    drop(hold);
    eventually(|| pool.inner.worker_threads().ending.iter().all(ThreadHandle::is_finished));
    eventually(|| executor.is_worker_running(0));
    pool.block_on(pool.spawn_future(async {})).unwrap();
    let timeout = Duration::from_secs(60);
    let report = clockjack_testing::keeps_deadline(timeout, || pool.shutdown(timeout));
    assert!(report.is_clean(), "{report:?}");
}
