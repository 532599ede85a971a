//! A pool with nothing to do does nothing: none of its threads is switched on.

use core::time::Duration;

use clockjack_rt::{
    OsInstant, Parker, PoolConfig, WorkerPool, exec::Commands, sched::DispatcherId,
};

use crate::{
    eventually::eventually,
    switches::{all_sleep, context_switches, n_threads},
};

/// For how long nothing may happen.
const QUIET: Duration = Duration::from_secs(5);
const LONG: Duration = Duration::from_secs(30);

/// The metronome has the same name in all pools, so there is one pool at a time in this file.
const METRONOME: &str = "cj-metronome";
const WORKERS: &str = "cj-test-pool";

fn pool() -> WorkerPool {
    let config = PoolConfig { workers: Some(4), name: WORKERS.into(), ..PoolConfig::DEFAULT };
    WorkerPool::new(config, Commands::new()).unwrap()
}

fn switches() -> u64 {
    context_switches(WORKERS).unwrap() + context_switches(METRONOME).unwrap()
}

fn pause(time: Duration) {
    Parker::new().park(Some(OsInstant::now().saturating_add(time)));
}

/// Waits until the pool has settled, and then for a time in which it must not do anything.
#[track_caller]
fn stays_asleep(what: &str) {
    eventually("all sleep, and did for a while", || {
        let before = switches();
        // Longer than the metronome sleeps while there is something to watch.
        pause(Duration::from_millis(2_500));
        all_sleep(WORKERS).unwrap() && all_sleep(METRONOME).unwrap() && switches() == before
    });
    let before = switches();
    pause(QUIET);
    assert_eq!(switches() - before, 0, "switches in {QUIET:?} {what}");
}

#[test]
fn the_threads_of_a_pool_without_work_are_not_switched_on() {
    let pool = pool();
    assert_eq!((n_threads(WORKERS).unwrap(), n_threads(METRONOME).unwrap()), (4, 1));
    stays_asleep("after the start");

    // What is woken in a step is put first, for which the metronome watches.
    let busy: Vec<_> = (0..100)
        .map(|_| {
            pool.spawn(async {
                for _ in 0..100 {
                    clockjack_rt::yield_now().await;
                    clockjack_rt::spawn(async {}).await.unwrap();
                }
                clockjack_rt::sleep(Duration::from_millis(2)).await.unwrap();
            })
        })
        .collect();
    for join in busy {
        pool.block_on(join).unwrap();
    }
    stays_asleep("after work");

    let hour = pool.spawn(clockjack_rt::exec::sleep(Duration::from_secs(3_600)));
    stays_asleep("with a timer that is an hour away");
    hour.abort();

    let (told, heard) = std::sync::mpsc::channel();
    let scheduler = pool.scheduler();
    let soon = Duration::from_millis(2);
    scheduler.schedule_once_fn(soon, DispatcherId::DEFAULT, move |_| told.send(())).unwrap();
    heard.recv().unwrap();
    let hour = Duration::from_secs(3_600);
    let job = scheduler.schedule_at_fixed_rate_fn(hour, hour, DispatcherId::DEFAULT, |_| ());
    stays_asleep("with a job that is an hour away");
    assert!(job.unwrap().cancel());
    assert!(pool.shutdown(LONG).is_clean());
}
