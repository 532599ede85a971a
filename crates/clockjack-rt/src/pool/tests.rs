//! Parts of the pool that its users do not see.

mod linux;

use super::*;

/// Waits for what another thread is about to do.
#[track_caller]
fn eventually(is_so: impl Fn() -> bool) {
    let start = std::time::Instant::now();
    while !is_so() {
        assert!(start.elapsed() < Duration::from_secs(60), "still not");
        std::thread::yield_now();
    }
}

/// A task that keeps its worker in a step until the sender is dropped.
fn block(pool: &WorkerPool) -> mpsc::Sender<()> {
    let (hold, held) = mpsc::channel::<()>();
    let (begin, begun) = mpsc::channel();
    drop(pool.spawn_future(async move {
        let _ = begin.send(());
        let _ = held.recv();
    }));
    begun.recv().unwrap();
    hold
}

#[test]
fn a_worker_is_awake_during_a_step_and_not_while_it_sleeps_or_is_gone() {
    let config = PoolConfig { workers: Some(1), workers_max: 2, ..PoolConfig::DEFAULT };
    let pool = WorkerPool::new(config, Commands::new()).unwrap();
    let executor = pool.inner.executor.clone();
    eventually(|| !executor.is_worker_awake(0));
    let hold = block(&pool);
    assert!(executor.is_worker_awake(0));
    assert!(!executor.is_worker_awake(1), "there is no such worker");
    drop(hold);
    eventually(|| !executor.is_worker_awake(0));
    let timeout = Duration::from_secs(60);
    let report = clockjack_testing::keeps_deadline(timeout, || pool.shutdown(timeout));
    assert!(report.is_clean(), "{report:?}");
    assert!(!executor.is_worker_awake(0));
}

#[test]
fn a_large_machine_has_a_worker_for_each_cpu() {
    let check = |workers, workers_max, cpus, expected| {
        let config = PoolConfig { workers, workers_max, ..PoolConfig::DEFAULT };
        assert_eq!(workers_of(&config, cpus).ok(), expected);
    };
    let default = PoolConfig::DEFAULT.workers_max;
    check(None, default, 2, Some((2, 64)));
    check(None, default, 192, Some((192, 192)));
    check(None, default, 5000, Some((1024, 1024)));
    check(Some(100), default, 192, Some((100, 192)));
    check(Some(100), default, 2, None);
    check(Some(0), default, 2, None);
    // A limit that was set is kept.
    check(None, 8, 192, Some((8, 8)));
    check(Some(9), 8, 192, None);
}
