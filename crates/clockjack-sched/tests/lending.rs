//! What a table lends comes back, also if who has it panics.
#![cfg(not(loom))]

use core::{panic::AssertUnwindSafe, time::Duration};
use std::panic::catch_unwind;

use clockjack_sched::{Delivery, Fire, JobSpec, JobTable, SchedulerConfig};
use clockjack_time::{
    ClockKind, GrowingWheel, ManualClock, MonotonicClock, Resolution, WheelConfig,
};

const TICK: Duration = Duration::from_millis(10);

#[test]
fn a_job_that_was_lent_to_somebody_who_panics_goes_on() {
    let clock = ManualClock::new(Resolution::TEN_MILLIS);
    let mut wheel = GrowingWheel::new(WheelConfig::DEFAULT);
    let mut jobs = JobTable::new(&SchedulerConfig::DEFAULT, 0, ClockKind::Deterministic);
    let rate = JobSpec::fixed_rate(TICK, TICK);
    let job = jobs.schedule(&mut wheel, clock.now(), rate, "beat").unwrap();

    clock.advance(TICK);
    let panics = |fire: Fire<'_, &str>| panic!("at {}", fire.due.get());
    let advance = || jobs.advance(&mut wheel, clock.now(), 8, panics);
    assert!(catch_unwind(AssertUnwindSafe(advance)).is_err());

    jobs.completed(&mut wheel, job, clock.now());
    clock.advance(TICK);
    let mut told = Vec::new();
    jobs.advance(&mut wheel, clock.now(), 8, |fire| match fire.delivery {
        Delivery::Again(text) => told.push(*text),
        Delivery::Last(text) => panic!("{text} has ended"),
    });
    assert_eq!(told, ["beat"]);
}
