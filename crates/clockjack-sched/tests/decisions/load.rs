//! A8, A19, A24: quota, pressure, room and who is given up for it.

use alloc::sync::Arc;

use clockjack_sched::{Affinity, Class, Policy, PolicyRegistry, SchedulerConfig};
use clockjack_time::{ClockKind, Resolution};

use crate::bench::{ELSEWHERE, HERE, Host, secs};

/// Dispatcher 1 is for what is less important than the rest.
fn low_elsewhere() -> PolicyRegistry {
    let low = Policy::DEFAULT.priority(Class::Low);
    PolicyRegistry::new().set(Affinity::Dispatcher(ELSEWHERE), low)
}

#[test]
fn a24_who_is_evicted_is_dropped_soon_and_not_when_something_is_due() {
    let host = Host::new(ClockKind::RealtimeHost, Resolution::TEN_MILLIS);
    let config =
        SchedulerConfig { capacity: 1, policies: low_elsewhere(), ..SchedulerConfig::DEFAULT };
    let scheduler = host.scheduler(config);
    let token = Arc::new(());
    let held = Arc::clone(&token);
    let low = scheduler.schedule_once_fn(secs(1800), ELSEWHERE, move |_| drop(held)).unwrap();
    scheduler.turn(0, 0, usize::MAX);
    host.take_calls();
    scheduler.schedule_once_fn(secs(3600), HERE, |_| ()).unwrap();
    assert!(low.is_cancelled());
    // The job comes after what the runner sleeps for, but there is something to be dropped.
    assert_eq!(host.take_calls(), 1);
    scheduler.turn(0, 0, usize::MAX);
    assert_eq!(Arc::strong_count(&token), 1);
}
