//! A2, A3, A21, A23: runs that came too late, one run at a time, and leaps of the clock.

use alloc::{vec, vec::Vec};
use core::{sync::atomic::Ordering::SeqCst, time::Duration};

use clockjack_sched::{CatchUp, Policy, PolicyRegistry, PressureReason, SchedulerConfig, Warning};
use clockjack_time::{ClockKind, Resolution, Tick};

use crate::bench::{Diary, ELSEWHERE, HERE, Host, listen, manual, ms, plain, secs, warnings};

fn with_policy(policy: Policy) -> SchedulerConfig {
    let policies = PolicyRegistry::new().set_default(policy);
    SchedulerConfig { policies, ..SchedulerConfig::DEFAULT }
}

fn jumps(warnings: &[Warning]) -> Vec<Duration> {
    let by = |warning: &Warning| match warning {
        Warning::ClockJump { by } => Some(*by),
        _ => None,
    };
    warnings.iter().filter_map(by).collect()
}

/// A job that is due and has to wait for other handlers misses no more runs than one that had to
/// wait for the driver.
#[test]
fn a03_a_run_that_waits_for_its_turn_is_not_missed() {
    let manual = manual(with_policy(Policy::DEFAULT.backlog_limit(1).catch_up(CatchUp::Folded)));
    let scheduler = manual.scheduler();
    let diary = Diary::default();
    // So many that time is read again before the job gets its turn, at tick 2.
    for _ in 0..12 {
        let manual = manual.clone();
        scheduler
            .schedule_once_fn(ms(10), HERE, move |_| {
                manual.clock().advance_to(Tick::new(2));
            })
            .unwrap();
    }
    let job =
        scheduler.schedule_at_fixed_rate_fn(ms(10), ms(10), HERE, diary.writer("job")).unwrap();
    manual.advance(ms(10));
    assert_eq!(diary.entries(), [("job", 2, 1)], "the run that was due by then");
    manual.run_due();
    assert_eq!(diary.entries(), [("job", 2, 1), ("job", 2, 1)], "and the one behind it");
    assert!(!job.is_cancelled());
}

#[test]
fn a21_a_periodic_job_does_not_die_when_its_run_is_dropped() {
    let host = Host::new(ClockKind::RealtimeHost, Resolution::TEN_MILLIS);
    let scheduler = host.scheduler(SchedulerConfig::DEFAULT);
    let mut stream = listen(&scheduler);
    let diary = Diary::default();
    let rate = scheduler
        .schedule_at_fixed_rate_fn(ms(10), ms(10), ELSEWHERE, diary.writer("rate"))
        .unwrap();
    let delay = scheduler
        .schedule_with_fixed_delay_fn(ms(10), ms(10), ELSEWHERE, diary.writer("delay"))
        .unwrap();
    let once = scheduler.schedule_once_fn(ms(10), ELSEWHERE, diary.writer("once")).unwrap();
    let turn = || {
        host.clock.advance(ms(10));
        scheduler.turn(0, 0, usize::MAX);
        host.take_work()
    };
    drop(turn());
    assert!(once.is_completed(), "a one-shot has had its run");
    let work = turn();
    assert_eq!(work.len(), 2, "the others go on");
    for work in work {
        work.run();
    }
    assert_eq!(diary.names(), ["rate", "delay"]);
    host.refuses.store(true, SeqCst);
    assert!(turn().is_empty());
    host.refuses.store(false, SeqCst);
    assert_eq!(turn().len(), 2, "also after a refusal");
    assert!(!rate.is_completed() && !delay.is_completed());
    let heard = warnings(&mut stream);
    let failures = heard.iter().filter(|it| matches!(it, Warning::HandlerFailed { .. }));
    assert_eq!(failures.count(), 1, "of the one-shot: {heard:?}");
    let reason = PressureReason::Dispatcher;
    assert!(heard.contains(&Warning::BackpressureState { engaged: true, reason }));
}

/// What comes due by a leap is folded, however many looks at the wheel it takes.
#[test]
fn a23_a_leap_is_folded_beyond_the_budget_of_one_look() {
    let manual = plain();
    let scheduler = manual.scheduler();
    let diary = Diary::default();
    for _ in 0..64 {
        scheduler.schedule_once_fn(secs(1), HERE, |_| ()).unwrap();
    }
    scheduler.schedule_at_fixed_rate_fn(secs(50), secs(1), HERE, diary.writer("job")).unwrap();
    manual.clock().advance(secs(100));
    manual.run_due();
    assert_eq!(diary.runs(), [51]);
}

#[test]
fn a23_a_leap_that_meets_a_late_scheduler_is_told() {
    let manual = plain();
    let scheduler = manual.scheduler();
    let mut stream = listen(scheduler);
    let diary = Diary::default();
    for index in 0..70 {
        let runner = manual.clone();
        let f = move |_: &_| {
            if index == 0 {
                runner.clock().advance(secs(3600));
            }
        };
        scheduler.schedule_once_fn(ms(10), HERE, f).unwrap();
    }
    scheduler.schedule_at_fixed_rate_fn(ms(10), secs(1), HERE, diary.writer("job")).unwrap();
    // Two seconds late, which is told; and then the first handler takes an hour.
    manual.clock().advance(secs(2));
    manual.run_due();
    assert_eq!(diary.runs(), [1, 1], "what was due when the hour began");
    manual.run_due();
    assert_eq!(jumps(&warnings(&mut stream)), [secs(3600) - ms(10)]);
    assert_eq!(diary.runs(), [1, 1, 3600]);
}

#[test]
fn a23_a_leap_is_known_by_its_own_limit() {
    for (catch_up_limit, clock_jump) in [(u32::MAX, secs(60)), (100, ms(500))] {
        let config = SchedulerConfig { catch_up_limit, clock_jump, ..SchedulerConfig::DEFAULT };
        let manual = manual(config);
        let mut stream = listen(manual.scheduler());
        let diary = Diary::default();
        let f = diary.writer("job");
        manual.scheduler().schedule_at_fixed_rate_fn(ms(10), ms(10), HERE, f).unwrap();
        manual.clock().advance(clock_jump + ms(10));
        manual.run_due();
        assert_eq!(jumps(&warnings(&mut stream)), vec![], "as far as it may go");
        let before = diary.len();
        manual.clock().advance(clock_jump + ms(20));
        manual.run_due();
        assert_eq!(jumps(&warnings(&mut stream)), [clock_jump + ms(10)]);
        assert_eq!(diary.len(), before + 1, "folded");
    }
}
