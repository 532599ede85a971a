//! The pool from a user's side: processes, futures, timers, faults, the end.
#![cfg(not(loom))]

#[path = "support/eventually.rs"]
mod eventually;
#[path = "support/in_time.rs"]
mod in_time;
#[path = "pool/tasks.rs"]
mod tasks;

use core::{
    future::pending,
    sync::atomic::{AtomicUsize, Ordering::SeqCst},
    time::Duration,
};
use std::{sync::Arc, time::Instant};

use clockjack_rt::{
    PoolConfig, WorkerPool,
    exec::{
        Command, CommandId, Commands, Event, Events, Failure, Limits, Payload, Process, StepOutput,
        Tag,
    },
};
use clockjack_testing::InTime;
use clockjack_time::Resolution;
use eventually::eventually;
use in_time::ShutdownInTime as _;

const LONG: Duration = Duration::from_secs(30);

fn pool(workers: usize) -> InTime<WorkerPool> {
    let config = PoolConfig { workers: Some(workers), ..PoolConfig::DEFAULT };
    let pool = WorkerPool::new(config, Commands::new()).expect("a pool of a few threads starts");
    InTime::new(pool, PoolConfig::DEFAULT.drop_timeout)
}

struct Fetch(u32);
impl Command for Fetch {
    const ID: CommandId = CommandId(300);
    type Reply = String;
}

/// Fetches what it is told to, all at once, and ends with it when it is cancelled.
#[derive(Default)]
struct Fetcher(Vec<String>);

impl Process for Fetcher {
    type Message = [u32; 2];

    fn step(
        &mut self,
        events: &mut Events<'_, [u32; 2]>,
        out: &mut StepOutput,
    ) -> Result<(), Failure> {
        out.wait();
        for event in events {
            match event {
                Event::Message(keys) => {
                    keys.into_iter().for_each(|key| out.yield_command(Tag(key.into()), Fetch(key)));
                }
                Event::YieldComplete { result, .. } => self.0.extend(result?.downcast().ok()),
                _ => {
                    out.done(Payload::new(core::mem::take(&mut self.0)));
                    return Ok(());
                }
            }
        }
        if self.0.len() == 2 {
            out.idle();
        }
        Ok(())
    }
}

#[test]
fn a_process_a_future_a_resize_and_a_shutdown() {
    let commands =
        Commands::new().handle(|Fetch(key), done| done.complete(Ok(format!("value {key}"))));
    let pool = InTime::new(
        WorkerPool::new(PoolConfig::DEFAULT, commands).unwrap(),
        PoolConfig::DEFAULT.drop_timeout,
    );
    let fetcher = pool.submit(Fetcher::default()).unwrap();
    fetcher.tell([1, 2]).unwrap();
    assert_eq!(pool.block_on(pool.spawn_future(async { 6 * 7 })).unwrap(), 42);
    pool.resize(8).unwrap();
    assert_eq!(pool.workers(), 8);
    let result = fetcher.join();
    // The cancel overtakes nothing that was completed before it; wait for both completions.
    while fetcher.state() != clockjack_rt::exec::State::Idle {
        std::thread::yield_now();
    }
    assert!(fetcher.cancel("enough"));
    let fetched = pool.block_on(result).unwrap().downcast::<Vec<String>>().unwrap();
    assert_eq!(fetched, ["value 1", "value 2"]);
    assert!(pool.shutdown_in_time(LONG).is_clean());
}

#[test]
fn many_futures_on_few_workers_all_end() {
    let pool = pool(2);
    let done = Arc::new(AtomicUsize::new(0));
    let all = pool.spawn_future({
        let done = Arc::clone(&done);
        async move {
            let joins: Vec<_> = (0..10_000)
                .map(|_| {
                    let done = Arc::clone(&done);
                    clockjack_rt::spawn_future(async move {
                        clockjack_rt::yield_now().await;
                        done.fetch_add(1, SeqCst);
                    })
                })
                .collect();
            for join in joins {
                join.await.unwrap();
            }
        }
    });
    pool.block_on(all).unwrap();
    assert_eq!(done.load(SeqCst), 10_000);
    let stats = pool.stats();
    assert_eq!((stats.spawned, stats.finished), (10_001, 10_001));
    assert!(pool.shutdown_in_time(LONG).is_clean());
}

#[test]
fn a_sleep_lasts_at_least_as_long_as_asked() {
    let pool = pool(2);
    let begun = Instant::now();
    pool.block_on(pool.spawn_future(async {
        clockjack_rt::sleep(Duration::from_millis(20)).await.unwrap();
    }))
    .unwrap();
    assert!(begun.elapsed() >= Duration::from_millis(20));
    pool.block_on(async { clockjack_rt::sleep(Duration::from_millis(5)).await.unwrap() });
    assert!(begun.elapsed() >= Duration::from_millis(25));
}

#[test]
fn a_sleep_that_is_made_outside_belongs_to_the_pool_that_waits_for_it() {
    let pool = pool(1);
    let begun = Instant::now();
    pool.block_on(clockjack_rt::sleep(Duration::from_millis(10))).unwrap();
    assert!(begun.elapsed() >= Duration::from_millis(10));
}

#[test]
fn a_sleep_that_is_made_on_one_pool_and_awaited_on_another_is_not_early() {
    let of = |resolution| {
        let config = PoolConfig { workers: Some(1), resolution, ..PoolConfig::DEFAULT };
        WorkerPool::new(config, Commands::new()).unwrap()
    };
    // Ticks of one are no ticks of the other: three here are over at once there.
    let (coarse, fine) = (of(Resolution::TEN_MILLIS), of(Resolution::MICRO));
    let delay = Duration::from_millis(30);
    let make = coarse.spawn_future(async move { (Instant::now(), clockjack_rt::sleep(delay)) });
    let (begun, sleep) = coarse.block_on(make).unwrap();
    fine.block_on(fine.spawn_future(sleep)).unwrap().unwrap();
    assert!(begun.elapsed() >= delay, "{:?}", begun.elapsed());
}

#[test]
fn statistics_tell_what_became_of_timers() {
    let pool = pool(1);
    pool.block_on(pool.spawn_future(async {
        clockjack_rt::sleep(Duration::from_millis(2)).await.unwrap();
    }))
    .unwrap();
    let hour = Duration::from_secs(3600);
    let mut timer = pool.handle().timer();
    timer.arm(hour, core::task::Waker::noop().clone()).unwrap();
    let armed = pool.stats();
    assert!(timer.reset(2 * hour).unwrap());
    assert!(timer.cancel());
    // Freed at the next look at the shard, if the worker had it just then.
    let settled = loop {
        let stats = pool.stats();
        if stats.timers_stale == 0 && stats.timers_pending == 0 {
            break stats;
        }
        std::thread::yield_now();
    };
    assert_eq!((armed.timers_armed, armed.timers_pending), (2, 1), "{armed:?}");
    assert_eq!((settled.timers_armed, settled.timers_rescheduled), (3, 1), "{settled:?}");
    assert_eq!((settled.timers_fired, settled.timers_cancelled), (1, 2), "{settled:?}");
    assert_eq!((settled.timers_dropped, settled.shards_reassigned), (0, 0), "{settled:?}");
    assert_eq!(settled.timers_by_lateness.iter().sum::<u64>(), 1, "{settled:?}");
    let lateness = settled.timers_by_lateness.iter().position(|n| *n == 1).unwrap();
    let lateness_max = settled.lateness_max_ticks;
    assert_eq!(lateness, (u64::BITS - lateness_max.leading_zeros()).min(15) as usize);
    let of_worker = pool.worker_stats()[0].counts;
    assert_eq!((of_worker.timers_fired, of_worker.timers_armed, of_worker.timer_shards), (1, 3, 1));
    assert!(of_worker.steps > 0 && of_worker.steps <= pool.stats().steps);
}

#[test]
fn the_coarse_time_follows_the_clock_while_a_worker_works_and_is_never_ahead() {
    let pool = pool(1);
    let handle = pool.handle();
    let lags = pool.spawn_future(async move {
        let (mut last, mut lags) = (0, Vec::new());
        let end = handle.now().ticks + 30_000;
        // A loaded machine takes the CPU away for most of the time.
        while lags.len() < 20 && handle.now().ticks < end {
            let coarse = handle.coarse_now().get();
            let now = handle.now().ticks;
            assert!(coarse <= now, "ahead of the clock");
            assert!(coarse >= last, "the time goes back");
            if coarse > last {
                lags.push(now - coarse);
            }
            last = coarse;
            clockjack_rt::yield_now().await;
        }
        lags
    });
    let lags = pool.block_on(lags).unwrap();
    assert_eq!(lags.len(), 20, "it stood still: {lags:?}");
    assert!(lags.iter().any(|lag| *lag <= 1), "it never was up to date: {lags:?}");
}

#[test]
fn a_pool_has_a_worker_for_each_cpu_unless_it_is_told_otherwise() {
    let cpus = std::thread::available_parallelism().unwrap().get();
    let by_default = InTime::new(
        WorkerPool::new(PoolConfig::DEFAULT, Commands::new()).unwrap(),
        PoolConfig::DEFAULT.drop_timeout,
    );
    assert_eq!(by_default.workers(), cpus.min(1024));
    assert_eq!(pool(3).workers(), 3);
}

#[test]
fn a_panic_ends_its_future_and_nothing_else() {
    let pool = pool(1);
    let exit =
        pool.block_on(pool.spawn_future(async { panic!("boom") })).map(|(): ()| ()).unwrap_err();
    assert!(exit.is_panicked());
    assert_eq!(exit.panic_message(), Some("boom"));
    assert_eq!(pool.block_on(pool.spawn_future(async { 1 })).unwrap(), 1);
}

/// Runs something on another pool when it is dropped.
struct Waits(Arc<InTime<WorkerPool>>, Arc<AtomicUsize>);

impl Drop for Waits {
    fn drop(&mut self) {
        self.0.block_on(async {});
        self.1.fetch_add(1, SeqCst);
    }
}

#[test]
fn a_future_that_is_refused_may_enter_another_pool_when_it_is_dropped() {
    let limits = Limits::DEFAULT.processes(1);
    let config = PoolConfig { workers: Some(1), limits, ..PoolConfig::DEFAULT };
    let full = InTime::new(
        WorkerPool::new(config, Commands::new()).unwrap(),
        PoolConfig::DEFAULT.drop_timeout,
    );
    let (other, dropped) = (Arc::new(pool(1)), Arc::new(AtomicUsize::new(0)));
    let only = full.spawn_future(pending::<()>());
    let waits = Waits(Arc::clone(&other), Arc::clone(&dropped));
    let refused = full.block_on(async {
        clockjack_rt::spawn_future(async move {
            pending::<()>().await;
            drop(waits);
        })
        .await
    });
    assert!(refused.unwrap_err().is_refused());
    assert_eq!(dropped.load(SeqCst), 1);
    only.abort();
    assert!(full.shutdown_in_time(LONG).is_clean());
}
