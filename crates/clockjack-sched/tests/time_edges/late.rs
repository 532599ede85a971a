//! Several slots in one wake, and wake-ups that come late.

use alloc::sync::Arc;
use core::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};
use std::sync::mpsc;

use clockjack_time::{ClockKind, MonotonicClock, Resolution};

use crate::support::{CountingTask, D, Fine, starting_at, ticks};

/// One wake passes 5,000 slots, with jobs in all levels of the wheel: all run, in order, once.
#[test]
fn several_slots_in_one_wake_run_in_order() {
    for start in [0, 61, 4090, (1 << 32) - 2500] {
        let manual = starting_at(start);
        let (tell, told) = mpsc::channel();
        // From the last to the first, so that order of registration is of no help; each tick twice.
        for delay in (1..=5000_u64).rev().chain((1..=5000).rev()) {
            let tell = tell.clone();
            let job = manual.scheduler().schedule_once_fn(ticks(delay), D, move |fire| {
                tell.send((fire.due().get(), fire.now().ticks, fire.late()))
            });
            assert!(job.is_ok());
        }
        manual.clock().advance(ticks(5000));
        assert_eq!(manual.run_due(), 10_000);
        let now = start + 5000;
        let expected = (1..=5000).flat_map(|delay| {
            let due = start + delay;
            [(due, now, ticks(now - due)); 2]
        });
        assert!(told.try_iter().eq(expected), "from {start}");
    }
}

/// What a handler schedules or cancels among the slots of one wake is heeded.
#[test]
fn a_job_of_one_wake_can_cancel_a_later_one_of_the_same_wake() {
    let manual = starting_at(0);
    let told = CountingTask::default();
    let victim = manual.scheduler().schedule_once_fn(ticks(30), D, told.handler());
    let victim = victim.expect("there is room");
    let (tell, heard) = mpsc::channel();
    let killer = manual.scheduler().schedule_once_fn(ticks(20), D, {
        let victim = victim.clone();
        move |_| tell.send((victim.cancel(), victim.cancel()))
    });
    assert!(killer.is_ok());
    manual.clock().advance(ticks(40));
    assert_eq!(manual.run_due(), 1);
    assert_eq!(heard.try_recv(), Ok((true, false)));
    assert_eq!(told.all(), []);
    assert!(victim.is_cancelled());
}

/// A host that oversleeps each time: one-shots say by how much, and none is early.
#[test]
fn an_oversleep_is_told_and_not_carried_on() {
    let micros = Duration::from_micros;
    let fine = Fine::new(3, Resolution::MICRO);
    let rate = CountingTask::default();
    let scheduler = &fine.scheduler;
    let job =
        scheduler.schedule_at_fixed_rate_fn(micros(50_000), micros(50_000), D, rate.handler());
    assert!(job.is_ok());
    let mut wakes = Vec::new();
    for over in (1..=200_u64).map(|wake| wake * 7919 % 9_999) {
        let wake = fine.turn().next_wake.expect("it goes on");
        let to = wake.get() * 10_000 + over;
        fine.clock.advance(micros(to - fine.clock.now().ticks));
        assert_eq!(fine.turn().ran, 1, "one for each wake");
        wakes.push(to);
    }
    // Counted from the first tick that is not before 50,003 us.
    let due = (0..200).map(|run| 6 + 5 * run);
    let expected: Vec<_> = due.zip(wakes).map(|(due, at)| (due, at, 1)).collect();
    assert_eq!(rate.all(), expected);
}

/// A fixed delay counts from the end of the late run, to the microsecond, and is rounded up once.
#[test]
fn a_fixed_delay_behind_an_oversleep_is_not_cut_short() {
    let micros = Duration::from_micros;
    let fine = Fine::new(0, Resolution::MICRO);
    let told = CountingTask::default();
    let scheduler = &fine.scheduler;
    let delay = micros(25_000);
    let job = scheduler.schedule_with_fixed_delay_fn(delay, delay, D, told.handler());
    assert!(job.is_ok());
    for over in [0, 1, 4_999, 5_000, 5_001, 9_999, 0] {
        let wake = fine.turn().next_wake.expect("it goes on").get() * 10_000 + over;
        fine.clock.advance(micros(wake - fine.clock.now().ticks));
        assert_eq!(fine.turn().ran, 1);
    }
    let runs = told.all();
    for pair in runs.windows(2) {
        let (end, due) = (pair[0].1, pair[1].0);
        assert_eq!(due, (end + 25_000).div_ceil(10_000), "behind a run that ended at {end}");
    }
}

/// The clock advances between two checks: a job that becomes due then is not left behind.
#[test]
fn a_handler_that_takes_long_makes_the_others_late_and_not_lost() {
    let manual = starting_at(0);
    let (tell, told) = mpsc::channel();
    for job in 1..=20_u64 {
        let (tell, runner) = (tell.clone(), manual.clone());
        let job = manual.scheduler().schedule_once_fn(ticks(job), D, move |fire| {
            runner.clock().advance(ticks(3));
            tell.send((fire.due().get(), fire.now().ticks, fire.late()))
        });
        assert!(job.is_ok());
    }
    assert_eq!(manual.advance(ticks(20)), 20);
    let expected = (1..=20).map(|due| {
        let at = 1 + 3 * (due - 1);
        (due, at, ticks(at - due))
    });
    assert!(told.try_iter().eq(expected));
}

/// A job owes 300 runs of 1 ms each, and others come due while it makes up for them: each of those
/// starts within a tick of its deadline, on a clock that is read for every run and on one that is
/// read for every eighth.
#[test]
fn a_job_that_catches_up_does_not_keep_another_waiting() {
    const OWED: u64 = 300;
    let run = Duration::from_millis(1);
    for kind in [ClockKind::Deterministic, ClockKind::RealtimeHost, ClockKind::RealtimeHardware] {
        let fine = Fine::of_kind(kind, 0, Resolution::MICRO);
        let caught_up = Arc::new(AtomicU64::new(0));
        let job = fine.scheduler.schedule_at_fixed_rate_fn(ticks(1), ticks(1), D, {
            let (clock, caught_up) = (Arc::clone(&fine.clock), Arc::clone(&caught_up));
            move |fire| {
                assert_eq!(fire.batch().runs.get(), 1, "one by one");
                clock.advance(run);
                caught_up.fetch_add(1, Ordering::Relaxed);
            }
        });
        assert!(job.is_ok());
        let (tell, told) = mpsc::channel();
        for ahead in 1..=20 {
            let (tell, caught_up) = (tell.clone(), Arc::clone(&caught_up));
            let job = fine.scheduler.schedule_once_fn(ticks(OWED + ahead), D, move |fire| {
                let runs = caught_up.load(Ordering::Relaxed);
                tell.send((fire.due().get(), fire.late(), runs))
            });
            assert!(job.is_ok());
        }
        // There is no poll for 300 ticks.
        fine.clock.advance(ticks(OWED));
        let ran = fine.turn().ran;
        let told: Vec<_> = told.try_iter().collect();
        assert!(told.iter().map(|(due, ..)| *due).eq(OWED + 1..=OWED + 20), "{kind:?}: {told:?}");
        for (due, late, runs) in told {
            assert!(late < ticks(1), "{kind:?}: {due} is late by {late:?}");
            // Ten runs to a tick, and two more readings of the clock at most.
            let most = 10 * (due - OWED) + 16;
            assert!(runs <= most, "{kind:?}: {due} waited for {runs} runs");
        }
        // And it has caught up: with the pending runs, and with those that became pending
        // meanwhile.
        let runs = fine.clock.now().ticks / 10_000;
        assert_eq!(caught_up.load(Ordering::Relaxed), runs, "{kind:?}");
        assert_eq!(ran as u64, runs + 20, "{kind:?}");
    }
}
