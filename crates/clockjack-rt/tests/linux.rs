//! What only Linux shows: which threads there are, how often one was switched, signals.
#![cfg(all(target_os = "linux", not(loom)))]

#[path = "support/child.rs"]
mod child;
#[path = "linux/dispatchers.rs"]
mod dispatchers;
#[path = "support/eventually.rs"]
mod eventually;
#[path = "linux/idle_pool.rs"]
mod idle_pool;
#[path = "linux/ignored_on_one_thread.rs"]
mod ignored_on_one_thread;
#[path = "support/in_time.rs"]
mod in_time;
#[path = "linux/inversion.rs"]
mod inversion;
#[path = "linux/pins.rs"]
mod pins;
#[path = "linux/signals.rs"]
mod signals;
#[path = "support/signals_on_one_thread.rs"]
mod signals_on_one_thread;
#[path = "support/switches.rs"]
mod switches;

use core::time::Duration;
use std::sync::Arc;

use clockjack_rt::{
    BlockingConfig, BlockingPool, OsInstant, Parked, Parker,
    thread::{self, ThreadConfig},
};
use eventually::eventually;
use in_time::ShutdownInTime as _;
use switches::{all_sleep, context_switches, n_threads};

/// Two signals, one after the other, and the exit code of a program that the second one ends.
const PAIRS: [(u32, u32, i32); 2] =
    [(child::SIGINT, child::SIGTERM, 143), (child::SIGTERM, child::SIGINT, 130)];

#[test]
fn a_thread_that_is_parked_is_not_switched_on() {
    const NAME: &str = "cj-test-parked";
    let parker = Arc::new(Parker::new());
    let config = ThreadConfig { name: NAME.into(), ..ThreadConfig::DEFAULT };
    let sleeper = thread::start(&config, {
        let parker = Arc::clone(&parker);
        move || parker.park(Some(OsInstant::MAX))
    });
    eventually("asleep", || format!("{parker:?}").contains("asleep") && all_sleep(NAME).unwrap());
    let before = context_switches(NAME).unwrap();
    assert!(before > 0, "a thread that sleeps was switched off");

    let pause = OsInstant::now().saturating_add(Duration::from_millis(20));
    assert_eq!(Parker::new().park(Some(pause)), Parked::TimedOut);
    assert_eq!(context_switches(NAME).unwrap(), before);

    parker.unpark();
    assert_eq!(sleeper.unwrap().join().unwrap(), Parked::Notified);
}

#[test]
fn an_idle_pool_for_blocking_work_is_not_switched_on() {
    const NAME: &str = "cj-test-idle";
    let config = BlockingConfig { name: NAME.into(), ..BlockingConfig::DEFAULT };
    let pool = BlockingPool::new(config).unwrap();
    for _ in 0..3 {
        pool.submit(|| ()).unwrap();
    }
    eventually("idle", || {
        let stats = pool.stats();
        stats.finished == 3 && stats.idle == stats.threads && all_sleep(NAME).unwrap()
    });
    let before = context_switches(NAME).unwrap();
    let pause = OsInstant::now().saturating_add(Duration::from_millis(20));
    assert_eq!(Parker::new().park(Some(pause)), Parked::TimedOut);
    assert_eq!(context_switches(NAME).unwrap(), before);

    pool.shutdown_in_time(Duration::MAX);
    eventually("no thread is left", || n_threads(NAME).unwrap() == 0);
}
