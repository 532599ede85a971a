//! Workers that come and go under timers and work: nothing is lost, nothing is early.
#![cfg(not(loom))]

#[path = "support/in_time.rs"]
mod in_time;

use core::{
    sync::atomic::{
        AtomicBool, AtomicUsize,
        Ordering::{Relaxed, SeqCst},
    },
    time::Duration,
};
use std::{
    sync::{Arc, Barrier},
    thread,
};

use clockjack_rt::{
    OsInstant, PoolConfig, WorkerPool,
    exec::{Commands, Timer},
};
use clockjack_testing::InTime;
use in_time::ShutdownInTime as _;

const LONG: Duration = Duration::from_secs(60);

fn pool(workers: usize, workers_max: usize) -> InTime<WorkerPool> {
    let config = PoolConfig { workers: Some(workers), workers_max, ..PoolConfig::DEFAULT };
    let pool = WorkerPool::new(config, Commands::new()).expect("a pool of a few threads starts");
    InTime::new(pool, PoolConfig::DEFAULT.drop_timeout)
}

/// Looks until `is_so`, and shows the pool if that takes longer than it can.
#[track_caller]
fn eventually(pool: &WorkerPool, what: &str, is_so: impl Fn() -> bool) {
    let until = OsInstant::now().saturating_add(LONG);
    while !is_so() {
        if OsInstant::now() > until {
            let mut alive = Vec::new();
            pool.handle().executor().live_tasks(|process| alive.push(process));
            alive.truncate(8);
            panic!("still not: {what}; {:?}; {alive:?}", pool.stats());
        }
        thread::yield_now();
    }
}

/// What became of sleeps.
#[derive(Default)]
struct Tally {
    done: AtomicUsize,
    early: AtomicUsize,
}

impl Tally {
    async fn sleep(self: Arc<Self>, after: Duration) {
        let due = OsInstant::now().saturating_add(after);
        clockjack_rt::sleep(after).await.unwrap();
        // Relaxed, here and below: counts that are read when all is over.
        self.early.fetch_add(usize::from(OsInstant::now() < due), Relaxed);
        self.done.fetch_add(1, SeqCst);
    }
}

/// Says that it is over.
struct OnDrop<'a>(&'a AtomicBool);

impl Drop for OnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, SeqCst);
    }
}

#[test]
fn none_of_a_hundred_thousand_timers_is_lost_or_early_when_seven_of_eight_workers_leave() {
    const N: usize = 100_000;
    let pool = pool(8, 8);
    let tally = Arc::new(Tally::default());
    // From inside, so that every worker arms in its own shard.
    for worker in 0..8 {
        let tally = Arc::clone(&tally);
        drop(pool.spawn_future(async move {
            for i in 0..N / 8 {
                let after = 10 + (i * 7 + worker * 61) % 490;
                let after = Duration::from_millis(after as u64);
                drop(clockjack_rt::spawn_future(Arc::clone(&tally).sleep(after)));
                if i % 64 == 0 {
                    clockjack_rt::yield_now().await;
                }
            }
        }));
    }
    eventually(&pool, "all are started", || pool.stats().spawned == N as u64 + 8);
    assert_eq!(pool.resize(1).unwrap(), 8);
    assert_eq!(pool.workers(), 1);
    eventually(&pool, "all have fired", || tally.done.load(SeqCst) == N);
    assert_eq!(tally.early.load(SeqCst), 0);
    let stats = pool.stats();
    assert_eq!(stats.timers_fired, N as u64);
    assert!(stats.timer_shards <= 8, "{stats:?}");
    assert!(pool.shutdown_in_time(LONG).is_clean());
}

#[test]
fn timers_survive_workers_that_come_and_go_while_others_arm_and_cancel() {
    const ROUNDS: usize = 60;
    let pool = pool(4, 8);
    let (tally, is_over) = (Arc::new(Tally::default()), Arc::new(AtomicBool::new(false)));
    let n_started = AtomicUsize::new(0);
    thread::scope(|scope| {
        for thread in 0..2_u64 {
            let (pool, tally, is_over, n_started) = (&pool, &tally, &is_over, &n_started);
            scope.spawn(move || {
                let mut round = thread;
                while !is_over.load(SeqCst) {
                    round = round.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    let after = Duration::from_millis((round >> 32) % 40);
                    let join = pool.spawn_future(Arc::clone(tally).sleep(after));
                    n_started.fetch_add(1, SeqCst);
                    // Some that are armed for long and given up.
                    let given_up = pool.spawn_future(clockjack_rt::exec::sleep(LONG));
                    given_up.abort();
                    drop((join, given_up));
                    if round % 8 == 0 {
                        let _ = pool.block_on(pool.spawn_future(clockjack_rt::yield_now()));
                    }
                }
            });
        }
        // Also if something fails here: the others must end.
        let _end = OnDrop(&is_over);
        for round in 0..ROUNDS {
            let workers = [1, 8, 2, 7, 3][round % 5];
            pool.resize(workers).unwrap();
            assert_eq!(pool.workers(), workers, "as many as were asked for");
            assert!(pool.stats().timer_shards <= 8);
            pool.block_on(pool.handle().sleep(Duration::from_millis(3))).unwrap();
        }
    });
    let n = n_started.load(SeqCst);
    eventually(&pool, "all have fired", || tally.done.load(SeqCst) == n);
    assert_eq!(tally.early.load(SeqCst), 0);
    eventually(&pool, "those that were given up are gone", || {
        let stats = pool.stats();
        stats.spawned == stats.finished
    });
    let report = pool.shutdown_in_time(LONG);
    assert!(report.is_clean(), "{report:?}");
}

#[test]
fn a_pool_has_as_many_workers_as_it_was_last_told() {
    let pool = pool(1, 4);
    for round in 0..200 {
        let workers = [4, 1, 3, 4, 2][round % 5];
        pool.resize(workers).unwrap();
        assert_eq!(pool.workers(), workers);
    }
    pool.resize(4).unwrap();
    // As many steps at the same time as there are workers, or this does not end.
    let barrier = Arc::new(Barrier::new(4));
    let joins: Vec<_> = (0..4)
        .map(|_| {
            let barrier = Arc::clone(&barrier);
            pool.spawn_future(async move {
                barrier.wait();
            })
        })
        .collect();
    for join in joins {
        pool.block_on(join).unwrap();
    }
    let report = pool.shutdown_in_time(LONG);
    assert!(report.is_clean(), "{report:?}");
}

#[test]
fn a_worker_that_cannot_leave_its_step_is_kept_when_it_is_wanted_again() {
    let pool = pool(2, 2);
    let barrier = Arc::new(Barrier::new(3));
    let block = || {
        let barrier = Arc::clone(&barrier);
        pool.spawn_future(async move {
            barrier.wait();
            barrier.wait();
        })
    };
    let blocked = [block(), block()];
    barrier.wait();
    pool.resize(1).unwrap();
    assert_eq!(pool.resize(2).unwrap(), 1);
    assert_eq!(pool.workers(), 2, "both seats are taken, and both are wanted");
    barrier.wait();
    for join in blocked {
        pool.block_on(join).unwrap();
    }
    let again = [block(), block()];
    barrier.wait();
    barrier.wait();
    for join in again {
        pool.block_on(join).unwrap();
    }
    assert!(pool.shutdown_in_time(LONG).is_clean());
}

#[test]
fn a_timer_may_be_armed_as_soon_as_there_is_a_pool() {
    for _ in 0..50 {
        let pool = pool(1, 4);
        let mut timer: Timer = pool.handle().timer();
        timer.arm(LONG, core::task::Waker::noop().clone()).unwrap();
        assert!(timer.cancel());
    }
}

#[test]
fn who_asks_how_many_workers_there_are_is_told_of_all_that_stay() {
    for workers in [1, 2, 8] {
        let pool = pool(workers, 8);
        // At once: none of them need have done anything.
        assert_eq!(pool.handle().n_workers(), workers);
    }
    let pool = pool(4, 8);
    let all_are_busy = Arc::new(Barrier::new(5));
    let may_end = Arc::new(Barrier::new(5));
    let busy: Vec<_> = (0..4)
        .map(|_| {
            let (all_are_busy, may_end) = (Arc::clone(&all_are_busy), Arc::clone(&may_end));
            pool.spawn_future(async move {
                all_are_busy.wait();
                may_end.wait();
            })
        })
        .collect();
    all_are_busy.wait();
    let n_workers = || pool.handle().n_workers();
    assert_eq!(n_workers(), 4, "one in the middle of a step counts");
    pool.resize(1).unwrap();
    assert_eq!(n_workers(), 1, "one that is to leave after its step does not");
    pool.resize(3).unwrap();
    assert_eq!(n_workers(), 3, "one that was called back does");
    pool.resize(6).unwrap();
    assert_eq!(n_workers(), 6, "and one that has come");
    may_end.wait();
    busy.into_iter().for_each(|one| pool.block_on(one).unwrap());
    assert_eq!(n_workers(), 6);
    assert!(pool.shutdown_in_time(LONG).is_clean());
}
