//! R2: periodic jobs and time.

use alloc::vec::Vec;

use clockjack_sched::{
    BatchMode, CatchUp, Delivery, FireContext, JobSpec, JobState, JobTable, Policy, PolicyRegistry,
    SchedulerConfig, Warning,
};
use clockjack_time::{
    ClockKind, GrowingWheel, MonotonicClock as _, Resolution, Tick, TimerInstant, WheelConfig,
};

use crate::bench::{Diary, HERE, listen, manual, ms, plain, secs, warnings};

fn with_policy(policy: Policy) -> SchedulerConfig {
    let policies = PolicyRegistry::new().set_default(policy);
    SchedulerConfig { policies, ..SchedulerConfig::DEFAULT }
}

#[test]
fn r2_1_a_fixed_rate_keeps_the_grid_of_its_first_run() {
    let manual = plain();
    let diary = Diary::default();
    let f = diary.writer("job");
    manual.advance(ms(50));
    manual.scheduler().schedule_at_fixed_rate_fn(ms(20), ms(30), HERE, f).unwrap();
    for step in [10, 20, 10, 90, 30, 40, 100] {
        manual.advance(ms(step));
    }
    let grid: Vec<u64> = (0..10).map(|n| 7 + 3 * n).collect();
    assert_eq!(diary.ticks(), grid);
}

#[test]
fn r2_1_late_runs_move_nothing() {
    let manual = manual(with_policy(Policy::DEFAULT.catch_up(CatchUp::Folded)));
    let diary = Diary::default();
    let f = diary.writer("job");
    manual.scheduler().schedule_at_fixed_rate_fn(ms(30), ms(30), HERE, f).unwrap();
    // Late by a tick, by two, and by two periods and a tick.
    for step in [40, 10, 30, 60] {
        manual.clock().advance(ms(step));
        manual.run_due();
    }
    manual.advance(ms(40));
    assert_eq!(
        diary.entries(),
        [("job", 4, 1), ("job", 8, 1), ("job", 14, 2), ("job", 15, 1), ("job", 18, 1)]
    );
}

#[test]
fn r2_1_ten_hours_at_a_fixed_rate_drift_by_no_tick() {
    let manual = plain();
    let diary = Diary::default();
    let f = diary.writer("job");
    manual.scheduler().schedule_at_fixed_rate_fn(ms(990), ms(990), HERE, f).unwrap();
    manual.advance(secs(36_000));
    let ticks = diary.ticks();
    assert_eq!(ticks.len(), 36_363);
    assert!(ticks.iter().zip(1..).all(|(tick, n)| *tick == 99 * n));
}

#[test]
fn r2_2_what_a_long_handler_misses_is_folded_into_one_run_that_is_told() {
    let manual = manual(with_policy(Policy::DEFAULT.catch_up(CatchUp::Folded)));
    let diary = Diary::default();
    let (runner, write) = (manual.clone(), diary.clone());
    let f = move |fire: &FireContext| {
        assert_eq!(fire.batch().mode, BatchMode::FixedRate);
        assert_eq!(fire.batch().missed_runs, fire.batch().runs.get() - 1);
        write.note("job", fire);
        if fire.due() == Tick::new(1) {
            runner.clock().advance(ms(35));
        }
    };
    let job = manual.scheduler().schedule_at_fixed_rate_fn(ms(10), ms(10), HERE, f).unwrap();
    manual.advance(ms(10));
    manual.advance(ms(20));
    assert!(!job.is_completed(), "no assertion failed in it");
    assert_eq!(diary.entries(), [("job", 1, 1), ("job", 4, 3), ("job", 5, 1), ("job", 6, 1)]);
}

/// Time that is handed in may stand still or go back, as if a clock had been set.
#[test]
fn r2_3_time_that_goes_back_fires_nothing_twice_and_nothing_early() {
    let at = |tick| TimerInstant::new(Tick::new(tick), Resolution::TEN_MILLIS);
    let mut wheel = GrowingWheel::new(WheelConfig::DEFAULT);
    let mut jobs = JobTable::new(&SchedulerConfig::DEFAULT, 0, ClockKind::RealtimeHost);
    let rate = JobSpec::fixed_rate(ms(50), ms(50));
    let rate = jobs.schedule(&mut wheel, at(0), rate, "rate").unwrap();
    jobs.schedule(&mut wheel, at(0), JobSpec::once(ms(120)), "once").unwrap();
    let mut ran = Vec::new();
    for now in [4, 5, 1, 0, 5, 9, 2, 10, 11, 3, 12, 0, 14, 15, 13] {
        jobs.advance(&mut wheel, at(now), 100, |fire| match fire.delivery {
            Delivery::Last(name) => ran.push((name, now)),
            Delivery::Again(name) => ran.push((*name, now)),
        });
        jobs.completed(&mut wheel, rate, at(now));
    }
    assert_eq!(ran, [("rate", 5), ("rate", 10), ("once", 12), ("rate", 15)]);
}

/// Nothing but the host's clock makes time pass, however long this test takes.
#[test]
fn r2_3_only_the_monotonic_source_makes_time_pass() {
    let manual = plain();
    let diary = Diary::default();
    manual.scheduler().schedule_once_fn(ms(10), HERE, diary.writer("job")).unwrap();
    for _ in 0..10_000 {
        assert_eq!(manual.run_due(), 0);
    }
    assert_eq!(manual.scheduler().now(), manual.clock().now());
    assert_eq!(manual.advance(ms(10)), 1);
}

#[test]
fn r2_4_a_fixed_delay_counts_from_the_end_of_a_run() {
    let manual = plain();
    let diary = Diary::default();
    let (runner, write) = (manual.clone(), diary.clone());
    let f = move |fire: &FireContext| {
        write.note("begins", fire);
        runner.clock().advance(ms(35));
    };
    let job = manual.scheduler().schedule_with_fixed_delay_fn(ms(20), ms(50), HERE, f).unwrap();
    manual.advance(ms(20));
    assert_eq!(job.state(), JobState::Scheduled);
    manual.advance(ms(250));
    let begins = diary.ticks();
    // The first ends in tick 5 and a half, the second half a tick later.
    assert_eq!(begins, [2, 10, 19, 27]);
    assert!(diary.runs().iter().all(|runs| *runs == 1), "nothing is missed");
}

#[test]
fn r2_5_after_a_stall_missed_runs_come_one_by_one_and_are_told() {
    let manual = plain();
    let scheduler = manual.scheduler();
    let mut stream = listen(scheduler);
    let diary = Diary::default();
    let f = diary.writer("job");
    scheduler.schedule_at_fixed_rate_fn(secs(1), secs(1), HERE, f).unwrap();
    manual.clock().advance(secs(30));
    assert_eq!(manual.run_due(), 30);
    assert_eq!(diary.entries(), [("job", 3000, 1); 30]);
    let burst = warnings(&mut stream).into_iter().find_map(|warning| match warning {
        Warning::BurstFire { job, missed, threshold } => Some((job.number, missed, threshold)),
        _ => None,
    });
    assert_eq!(burst, Some((1, 29, 10)));
    manual.advance(secs(2));
    assert_eq!(diary.ticks()[30..], [3100, 3200]);
}

#[test]
fn r2_5_runs_of_one_job_never_overlap() {
    let manual = plain();
    let scheduler = manual.scheduler();
    let diary = Diary::default();
    let (runner, write) = (manual.clone(), diary.clone());
    let f = move |fire: &FireContext| {
        write.note("begin", fire);
        if fire.due() == Tick::new(1) {
            // What else is due runs within, but not the job itself.
            runner.clock().advance(ms(30));
            runner.run_due();
        }
        write.note("end", fire);
    };
    let job = scheduler.schedule_at_fixed_rate_fn(ms(10), ms(10), HERE, f).unwrap();
    scheduler.schedule_once_fn(ms(30), HERE, diary.writer("other")).unwrap();
    manual.advance_to_next();
    assert!(!job.is_completed());
    assert_eq!(diary.names(), ["begin", "other", "end"]);
    // What came due meanwhile lay behind the tick that time was moved to.
    manual.run_due();
    let names = diary.names();
    assert_eq!(names[3..], ["begin", "end", "begin", "end", "begin", "end"]);
}

#[test]
fn r2_6_a_job_that_falls_further_behind_than_its_limit_is_cancelled() {
    for (stall, is_cancelled) in [(60, false), (70, true)] {
        let manual = manual(with_policy(Policy::DEFAULT.backlog_limit(5)));
        let scheduler = manual.scheduler();
        let mut stream = listen(scheduler);
        let diary = Diary::default();
        let f = diary.writer("job");
        let job = scheduler.schedule_at_fixed_rate_fn(ms(10), ms(10), HERE, f).unwrap();
        manual.clock().advance(ms(stall));
        manual.run_due();
        assert_eq!(job.is_cancelled(), is_cancelled, "{stall}");
        assert_eq!(diary.len(), if is_cancelled { 0 } else { 6 });
        let told = warnings(&mut stream);
        let exceeded = told.iter().filter(|it| matches!(it, Warning::BacklogExceeded { .. }));
        assert_eq!(exceeded.count(), usize::from(is_cancelled), "{told:?}");
        let before = diary.len();
        manual.advance(ms(100));
        assert_eq!(diary.len(), if is_cancelled { before } else { before + 10 });
    }
}
