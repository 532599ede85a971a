//! A driver that does not poll is reported by its watcher, once per timeout.
#![cfg(not(loom))]

extern crate alloc;

#[path = "support/host.rs"]
mod host;

use core::{sync::atomic::Ordering::SeqCst, time::Duration};

use clockjack_sched::{
    DiagnosticEvent, DispatcherId, EventKinds, Scheduler, SchedulerConfig, Subscription, Warning,
};
use clockjack_time::{Resolution, Tick};
use host::Host;

const ANY: DispatcherId = DispatcherId::DEFAULT;

fn scheduler() -> (Scheduler, Host, Subscription) {
    let host = Host::default();
    let config = SchedulerConfig {
        resolution: Resolution::MILLI,
        driver_timeout: Duration::from_millis(100),
        // Coming back late is another warning.
        catch_up_limit: u32::MAX,
        ..SchedulerConfig::DEFAULT
    };
    let scheduler = Scheduler::new(config, host.clone()).unwrap();
    let warnings = scheduler.diagnostics().subscribe(EventKinds::WARNING, 8).unwrap();
    (scheduler, host, warnings)
}

fn silent_for(warnings: &mut Subscription) -> Option<Duration> {
    warnings.try_next().map(|event| match event {
        DiagnosticEvent::Warned(Warning::DriverSilent { silent_for }) => silent_for,
        other => panic!("{other}"),
    })
}

#[test]
fn a_driver_that_takes_no_turn_is_told_of_once_for_each_silence() {
    let (scheduler, host, mut warnings) = scheduler();
    let at = |ms: u64| host.now.store(ms, SeqCst);
    assert_eq!(scheduler.check_driver(), None);
    let every = Duration::from_millis(50);
    scheduler.schedule_at_fixed_rate_fn(every, every, ANY, |_| ()).unwrap();
    assert_eq!(scheduler.check_driver(), Some(Tick::new(150)));

    at(150);
    assert_eq!(scheduler.check_driver(), Some(Tick::new(250)));
    at(249);
    assert_eq!(scheduler.check_driver(), Some(Tick::new(250)));
    assert_eq!(silent_for(&mut warnings), None);
    let calls = host.calls.load(SeqCst);
    at(250);
    assert_eq!(scheduler.check_driver(), Some(Tick::new(350)));
    assert_eq!(silent_for(&mut warnings), Some(Duration::from_millis(100)));
    assert_eq!(host.calls.load(SeqCst), calls + 1);
    at(350);
    scheduler.check_driver();
    assert_eq!(silent_for(&mut warnings), None, "it was told");

    // It comes back, and goes again.
    scheduler.poll_shard(0, 0, usize::MAX);
    assert_eq!(scheduler.check_driver(), Some(Tick::new(500)));
    at(500);
    scheduler.check_driver();
    at(600);
    scheduler.check_driver();
    assert_eq!(silent_for(&mut warnings), Some(Duration::from_millis(100)));

    scheduler.shutdown();
    assert_eq!(scheduler.check_driver(), None);
}

#[test]
fn a_wheel_that_stood_still_with_nothing_due_is_no_silence() {
    let (scheduler, host, mut warnings) = scheduler();
    host.now.store(3_600_000, SeqCst);
    scheduler.schedule_once_fn(Duration::ZERO, ANY, |_| ()).unwrap();
    for ms in [0, 99] {
        host.now.store(3_600_000 + ms, SeqCst);
        scheduler.check_driver();
    }
    scheduler.poll_shard(0, 0, usize::MAX);
    host.now.store(3_700_000, SeqCst);
    assert_eq!(scheduler.check_driver(), None);
    assert_eq!(silent_for(&mut warnings), None);
}
