//! Workers that are bound to processors: to those that they may use, wherever these begin.

use std::{
    sync::{Arc, Barrier},
    thread,
};

use clockjack_rt::{PoolConfig, WorkerPool, exec::Commands, thread::pin_to_cpu};
use clockjack_testing::InTime;
use rustix::thread::{CpuSet, sched_getaffinity};

fn allowed() -> Vec<usize> {
    let set = sched_getaffinity(None).unwrap();
    (0..CpuSet::MAX_CPU).filter(|cpu| set.is_set(*cpu)).collect()
}

fn pool(workers: usize) -> InTime<WorkerPool> {
    let config = PoolConfig { workers: Some(workers), pin_workers: true, ..PoolConfig::DEFAULT };
    let pool = WorkerPool::new(config, Commands::new()).unwrap();
    InTime::new(pool, PoolConfig::DEFAULT.drop_timeout)
}

/// Where each of the workers may run.
fn allowed_of(pool: &WorkerPool) -> Vec<Vec<usize>> {
    let n_workers = pool.workers();
    // Each holds a worker until all are held.
    let all_are_held = Arc::new(Barrier::new(n_workers));
    let looks: Vec<_> = (0..n_workers)
        .map(|_| {
            let all_are_held = Arc::clone(&all_are_held);
            pool.spawn_future(async move {
                all_are_held.wait();
                allowed()
            })
        })
        .collect();
    let mut found: Vec<_> = looks.into_iter().map(|look| pool.block_on(look).unwrap()).collect();
    found.sort();
    found
}

#[test]
fn each_worker_has_a_cpu_for_itself_as_far_as_they_go() {
    let cpus = allowed();
    let n_workers = cpus.len().min(4);
    let each: Vec<_> = cpus.iter().take(n_workers).map(|cpu| vec![*cpu]).collect();
    assert_eq!(allowed_of(&pool(n_workers)), each);
}

#[test]
fn workers_stay_on_the_cpus_that_the_maker_of_the_pool_may_use() {
    let last = *allowed().last().unwrap();
    thread::scope(|scope| {
        scope.spawn(|| {
            pin_to_cpu(last).unwrap();
            let pool = pool(2);
            assert_eq!(allowed_of(&pool), [[last], [last]]);
        });
    });
}

#[test]
fn a_pool_that_a_bound_worker_makes_larger_uses_the_other_cpus_too() {
    let cpus = allowed();
    let n_workers = cpus.len().min(4);
    let pool = Arc::new(pool(1));
    let theirs = Arc::clone(&pool);
    pool.block_on(pool.spawn_future(async move { theirs.resize(n_workers) })).unwrap().unwrap();
    let each: Vec<_> = cpus.iter().take(n_workers).map(|cpu| vec![*cpu]).collect();
    assert_eq!(allowed_of(&pool), each);
}
