//! A pool with nothing to do does nothing: none of its threads is switched on.

use core::time::Duration;

use clockjack_rt::{
    OsInstant, Parker, PoolConfig, WorkerPool, exec::Commands, sched::DispatcherId,
};
use clockjack_testing::InTime;

use crate::in_time::ShutdownInTime as _;
use crate::{
    eventually::eventually,
    switches::{all_sleep, context_switches, n_threads},
};

/// For how long nothing may happen.
const QUIET: Duration = Duration::from_secs(5);
const LONG: Duration = Duration::from_secs(30);

/// The watchdog has the same name in all pools, so nothing else in this file may start one.
const POOL_WATCH: &str = "cj-pool-watch";
/// The workers of each pool, by what lies behind it or ahead of it. The kernel keeps 15 bytes.
const NEW: &str = "cj-quiet-new";
const WORKED: &str = "cj-quiet-worked";
const TIMER: &str = "cj-quiet-timer";
const JOB: &str = "cj-quiet-job";
const ALL: [&str; 5] = [NEW, WORKED, TIMER, JOB, POOL_WATCH];

fn pool(name: &'static str) -> InTime<WorkerPool> {
    let config = PoolConfig { workers: Some(4), name: name.into(), ..PoolConfig::DEFAULT };
    let pool = WorkerPool::new(config, Commands::new()).unwrap();
    InTime::new(pool, PoolConfig::DEFAULT.drop_timeout)
}

fn switches() -> [(&'static str, u64); 5] {
    ALL.map(|name| (name, context_switches(name).unwrap()))
}

fn pause(time: Duration) {
    Parker::new().park(Some(OsInstant::now().saturating_add(time)));
}

fn work(pool: &WorkerPool) {
    // What is woken in a step is put first, for which the watchdog watches.
    let busy: Vec<_> = (0..100)
        .map(|_| {
            pool.spawn_future(async {
                for _ in 0..100 {
                    clockjack_rt::yield_now().await;
                    clockjack_rt::spawn_future(async {}).await.unwrap();
                }
                clockjack_rt::sleep(Duration::from_millis(2)).await.unwrap();
            })
        })
        .collect();
    for join in busy {
        pool.block_on(join).unwrap();
    }
}

/// Four pools beside each other, so that they are watched for one time and not for four: a new one,
/// one that has worked, one with a timer and one with a job that are an hour away.
#[test]
fn the_threads_of_a_pool_without_work_are_not_switched_on() {
    let pools = [NEW, WORKED, TIMER, JOB].map(pool);
    let [_, worked, timer, job] = &pools;
    // A thread takes its name when it begins.
    eventually("all have begun", || ALL.map(|name| n_threads(name).unwrap()) == [4; 5]);
    for pool in [worked, timer, job] {
        work(pool);
    }
    let hour = Duration::from_secs(3_600);
    let sleeper = timer.spawn_future(clockjack_rt::exec::sleep(hour));
    let (sender, receiver) = std::sync::mpsc::channel();
    let (scheduler, soon) = (job.scheduler(), Duration::from_millis(2));
    scheduler.schedule_once_fn(soon, DispatcherId::DEFAULT, move |_| sender.send(())).unwrap();
    receiver.recv().unwrap();
    let far = scheduler.schedule_at_fixed_rate_fn(hour, hour, DispatcherId::DEFAULT, |_| ());

    eventually("all sleep, and did for a while", || {
        let before = switches();
        // Longer than the watchdog sleeps while there is something to watch.
        pause(Duration::from_millis(2_500));
        ALL.iter().all(|name| all_sleep(name).unwrap()) && switches() == before
    });
    let before = switches();
    pause(QUIET);
    assert_eq!(switches(), before, "switches in {QUIET:?}");

    assert!(far.unwrap().cancel());
    sleeper.abort();
    for pool in pools {
        assert!(pool.shutdown_in_time(LONG).is_clean());
    }
}
