//! A2, A3, A21, A23: runs that came too late, one run at a time, and leaps of the clock.

use alloc::{sync::Arc, vec, vec::Vec};
use core::{sync::atomic::Ordering::SeqCst, time::Duration};
use std::sync::Mutex;

use clockjack_sched::{
    BatchMode, Bus, CatchUp, Delivery, EventKinds, ExecutionBatch, FireContext, JobSpec, JobState,
    JobTable, Policy, PolicyRegistry, PressureReason, SchedulerConfig, Warning,
};
use clockjack_time::{ClockKind, GrowingWheel, Resolution, Tick, TimerInstant, WheelConfig};

use crate::bench::{Diary, ELSEWHERE, HERE, Host, listen, manual, ms, plain, secs, warnings};

fn with_policy(policy: Policy) -> SchedulerConfig {
    let policies = PolicyRegistry::new().set_default(policy);
    SchedulerConfig { policies, ..SchedulerConfig::DEFAULT }
}

fn at(tick: u64) -> TimerInstant {
    TimerInstant::new(Tick::new(tick), Resolution::TEN_MILLIS)
}

fn bursts(warnings: &[Warning]) -> Vec<u32> {
    let missed = |warning: &Warning| match warning {
        Warning::BurstFire { missed, .. } => Some(*missed),
        _ => None,
    };
    warnings.iter().filter_map(missed).collect()
}

fn jumps(warnings: &[Warning]) -> Vec<Duration> {
    let by = |warning: &Warning| match warning {
        Warning::ClockJump { by } => Some(*by),
        _ => None,
    };
    warnings.iter().filter_map(by).collect()
}

/// A run that is queued is about to be handed over, whatever kept it from that.
#[test]
fn a03_a_run_that_waits_for_its_turn_is_not_missed() {
    let mut wheel = GrowingWheel::new(WheelConfig::DEFAULT);
    let mut jobs = JobTable::new(&SchedulerConfig::DEFAULT, 0, ClockKind::Deterministic);
    let policy = Policy::DEFAULT.backlog_limit(2).catch_up(CatchUp::Folded);
    let spec = JobSpec::fixed_rate(ms(10), ms(10)).policy(policy);
    let job = jobs.schedule(&mut wheel, at(0), spec, ()).unwrap();
    let mut runs = Vec::new();
    for now in [1, 3] {
        jobs.advance(&mut wheel, at(now), 100, |fire| runs.push(fire.batch.runs.get()));
    }
    jobs.completed(&mut wheel, job, at(3));
    assert_eq!(jobs.state(job), JobState::Queued, "two runs are owed");
    jobs.advance(&mut wheel, at(4), 100, |fire| runs.push(fire.batch.runs.get()));
    assert_eq!(runs, [1, 3], "of which two were missed, as many as may be");
    assert!(!jobs.is_cancelled(job));
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
        scheduler.poll_shard(0, 0, usize::MAX);
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

/// Runs that become due by a clock jump are folded, however many advances of the wheel it takes.
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
    // Two seconds late, which is reported; and then the first handler takes an hour.
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

/// No warning at the threshold, and one for one missed run more, in both ways to catch up.
#[test]
fn a02_missed_runs_come_one_by_one_or_folded_and_a_burst_is_told() {
    for catch_up in [CatchUp::Individually, CatchUp::Folded] {
        for missed in [10, 11] {
            let policy = Policy::DEFAULT.catch_up(catch_up).burst_threshold(10);
            let manual = manual(with_policy(policy));
            let mut stream = listen(manual.scheduler());
            let diary = Diary::default();
            let f = diary.writer("job");
            manual.scheduler().schedule_at_fixed_rate_fn(ms(10), ms(10), HERE, f).unwrap();
            manual.clock().advance(ms(10 * (missed + 1)));
            manual.run_due();
            let missed = u32::try_from(missed).unwrap();
            match catch_up {
                CatchUp::Individually => assert_eq!(diary.runs(), vec![1; missed as usize + 1]),
                CatchUp::Folded => assert_eq!(diary.runs(), [missed + 1]),
            }
            let told = if missed > 10 { vec![missed] } else { vec![] };
            assert_eq!(bursts(&warnings(&mut stream)), told);
            assert_eq!(manual.advance(ms(10)), 1, "and then it is on time again");
        }
    }
}

#[test]
fn a02_batches_say_what_a_call_stands_for() {
    let manual = manual(with_policy(Policy::DEFAULT.catch_up(CatchUp::Folded)));
    let scheduler = manual.scheduler();
    let diary = Diary::default();
    let check = |mode, missed_runs| {
        let write = diary.clone();
        move |fire: &FireContext| {
            let is_first = fire.due() == Tick::new(1);
            let expected = ExecutionBatch::folded(if is_first { missed_runs } else { 0 }, mode);
            if fire.batch() == expected {
                write.note("good", fire);
            }
        }
    };
    scheduler.schedule_once_fn(ms(10), HERE, check(BatchMode::OneShot, 0)).unwrap();
    let f = check(BatchMode::FixedRate, 4);
    scheduler.schedule_at_fixed_rate_fn(ms(10), ms(10), HERE, f).unwrap();
    let f = check(BatchMode::FixedDelay, 0);
    scheduler.schedule_with_fixed_delay_fn(ms(10), ms(10), HERE, f).unwrap();
    manual.clock().advance(ms(50));
    assert_eq!(manual.run_due(), 3);
    assert_eq!(diary.runs(), [1, 5, 1]);
}

#[test]
fn a02_a_burst_is_told_once_until_it_is_caught_up_with() {
    let mut wheel = GrowingWheel::new(WheelConfig::DEFAULT);
    let mut jobs = JobTable::new(&SchedulerConfig::DEFAULT, 0, ClockKind::Deterministic);
    let mut stream = Bus::subscribe(jobs.bus(), EventKinds::WARNING, 64).unwrap();
    let spec = JobSpec::fixed_rate(ms(10), ms(10)).policy(Policy::DEFAULT.burst_threshold(3));
    let job = jobs.schedule(&mut wheel, at(0), spec, ()).unwrap();
    // It runs from tick 1 to tick 9; then each run takes a tick, so it hovers; then none does.
    for now in 1..=9 {
        jobs.advance(&mut wheel, at(now), 100, |_| ());
    }
    assert_eq!(bursts(&warnings(&mut stream)), [4]);
    for now in 10..20 {
        jobs.completed(&mut wheel, job, at(now));
        jobs.advance(&mut wheel, at(now), 100, |_| ());
    }
    for _ in 0..10 {
        jobs.completed(&mut wheel, job, at(19));
        jobs.advance(&mut wheel, at(19), 100, |_| ());
    }
    assert_eq!(bursts(&warnings(&mut stream)), vec![], "it is the same burst");
    assert_eq!(jobs.state(job), JobState::Scheduled, "it has caught up");
    jobs.advance(&mut wheel, at(24), 100, |_| ());
    assert_eq!(bursts(&warnings(&mut stream)), [4]);
}

#[test]
fn a03_a_job_is_cancelled_when_its_backlog_is_greater_than_its_limit() {
    for limit in [0_u32, 1, 7] {
        for (missed, is_cancelled) in [(limit, false), (limit + 1, true)] {
            let manual = manual(with_policy(Policy::DEFAULT.backlog_limit(limit)));
            let scheduler = manual.scheduler();
            let mut stream = listen(scheduler);
            let job = scheduler.schedule_at_fixed_rate_fn(ms(10), ms(10), HERE, |_| ()).unwrap();
            manual.clock().advance(ms(10 * (u64::from(missed) + 1)));
            let ran = manual.run_due();
            assert_eq!(job.is_cancelled(), is_cancelled, "{missed} of {limit}");
            assert_eq!(ran, if is_cancelled { 0 } else { missed as usize + 1 });
            let told = warnings(&mut stream).into_iter().find_map(|warning| match warning {
                Warning::BacklogExceeded { job, backlog, limit } => {
                    Some((job.number, backlog, limit))
                }
                _ => None,
            });
            assert_eq!(told, is_cancelled.then_some((1, missed, limit)));
        }
    }
}

/// While its handler runs, everything that comes due is behind.
#[test]
fn a03_a_job_that_falls_behind_while_it_runs_is_cancelled_and_ends() {
    for (ticks, is_cancelled) in [(2, false), (3, true)] {
        let manual = manual(with_policy(Policy::DEFAULT.backlog_limit(2)));
        let scheduler = manual.scheduler();
        let runner = manual.clone();
        let f = move |fire: &FireContext| {
            if fire.due() == Tick::new(1) {
                runner.clock().advance(ms(ticks * 10));
                // Somebody else moves time on meanwhile.
                runner.run_due();
            }
        };
        let job = scheduler.schedule_at_fixed_rate_fn(ms(10), ms(10), HERE, f).unwrap();
        manual.advance_to_next();
        assert_eq!(job.is_cancelled(), is_cancelled);
        manual.run_due();
        let metrics = scheduler.metrics();
        assert_eq!(
            (metrics.fired_total, metrics.cancelled_total),
            if is_cancelled { (1, 1) } else { (3, 0) }
        );
    }
}

#[test]
fn a03_by_default_nothing_is_cancelled_and_a_burst_can_be_told() {
    assert_eq!(Policy::DEFAULT.backlog_limit, None);
    assert_eq!(Policy::DEFAULT.burst_threshold, 10);
    let manual = plain();
    let mut stream = listen(manual.scheduler());
    let diary = Diary::default();
    let f = diary.writer("job");
    manual.scheduler().schedule_at_fixed_rate_fn(ms(10), ms(10), HERE, f).unwrap();
    manual.clock().advance(secs(50));
    assert_eq!(manual.run_due(), 5000);
    assert_eq!(bursts(&warnings(&mut stream)), [4999]);
}

#[test]
fn a21_one_run_of_a_job_is_out_at_a_time() {
    let mut wheel = GrowingWheel::new(WheelConfig::DEFAULT);
    let mut jobs = JobTable::new(&SchedulerConfig::DEFAULT, 0, ClockKind::Deterministic);
    let rate = JobSpec::fixed_rate(ms(10), ms(10));
    let rate = jobs.schedule(&mut wheel, at(0), rate, "rate").unwrap();
    let delay = JobSpec::fixed_delay(ms(10), ms(10));
    let delay = jobs.schedule(&mut wheel, at(0), delay, "delay").unwrap();
    let mut ran = Vec::new();
    for now in 1..=5 {
        jobs.advance(&mut wheel, at(now), 100, |fire| match fire.delivery {
            Delivery::Again(name) => ran.push((*name, now, fire.due.get())),
            Delivery::Last(name) => panic!("{name} goes on"),
        });
    }
    assert_eq!(ran, [("rate", 1, 1), ("delay", 1, 1)]);
    assert_eq!(jobs.state(rate), JobState::Executing);
    ran.clear();
    for _ in 0..6 {
        jobs.completed(&mut wheel, rate, at(5));
        jobs.completed(&mut wheel, delay, at(5));
        jobs.advance(&mut wheel, at(5), 100, |fire| {
            ran.push(("rate", 5, fire.due.get()));
        });
    }
    assert_eq!(ran, [("rate", 5, 2), ("rate", 5, 3), ("rate", 5, 4), ("rate", 5, 5)]);
    assert_eq!((jobs.state(rate), jobs.state(delay)), (JobState::Scheduled, JobState::Scheduled));
}

#[test]
fn a21_what_comes_due_while_a_run_is_out_is_counted() {
    let policies = PolicyRegistry::new().set_default(Policy::DEFAULT.catch_up(CatchUp::Folded));
    let host = Host::new(ClockKind::RealtimeHost, Resolution::TEN_MILLIS);
    let scheduler = host.scheduler(SchedulerConfig { policies, ..SchedulerConfig::DEFAULT });
    let diary = Diary::default();
    let f = diary.writer("job");
    scheduler.schedule_at_fixed_rate_fn(ms(10), ms(10), ELSEWHERE, f).unwrap();
    let mut out = Vec::new();
    for _ in 0..5 {
        host.clock.advance(ms(10));
        scheduler.poll_shard(0, 0, usize::MAX);
        out.extend(host.take_work());
    }
    assert_eq!(out.len(), 1);
    assert_eq!(scheduler.diagnostics().dump().shards[0].jobs[0].backlog, 4);
    host.take_calls();
    out.remove(0).run();
    assert_eq!(host.take_calls(), 1, "the rest is due at once");
    scheduler.poll_shard(0, 0, usize::MAX);
    for work in host.take_work() {
        work.run();
    }
    assert_eq!(diary.runs(), [1, 4]);
}

#[test]
fn a23_a_leap_of_more_than_a_minute_is_told_and_folded() {
    for (leap, is_leap) in [(secs(60), false), (secs(60) + ms(10), true)] {
        let manual = plain();
        let mut stream = listen(manual.scheduler());
        let diary = Diary::default();
        let f = diary.writer("job");
        manual.scheduler().schedule_at_fixed_rate_fn(ms(10), secs(1), HERE, f).unwrap();
        let once = diary.writer("once");
        manual.scheduler().schedule_once_fn(secs(30), HERE, once).unwrap();
        manual.clock().advance(ms(10) + leap);
        manual.run_due();
        let told = if is_leap { vec![leap] } else { vec![] };
        assert_eq!(jumps(&warnings(&mut stream)), told);
        let runs = diary.entries().iter().filter(|entry| entry.0 == "job").count();
        assert_eq!(runs, if is_leap { 1 } else { 61 });
        let sum: u32 = diary.runs().iter().sum();
        assert_eq!(sum, 62, "nothing is lost");
        manual.advance(secs(3));
        assert_eq!(diary.len(), if is_leap { 5 } else { 65 }, "and then all is as before");
    }
}

/// Standing still while nothing is due is no leap.
#[test]
fn a23_a_long_rest_is_no_leap() {
    let manual = plain();
    let mut stream = listen(manual.scheduler());
    let diary = Diary::default();
    let f = diary.writer("job");
    manual.scheduler().schedule_at_fixed_rate_fn(secs(7200), ms(10), HERE, f).unwrap();
    manual.clock().advance(secs(7200) + ms(30));
    manual.run_due();
    assert_eq!(diary.runs(), [1; 4]);
    assert_eq!(jumps(&warnings(&mut stream)), vec![]);
}

/// The backlog has one meaning: due runs that wait behind an earlier run. The limit, the warning
/// and a dump agree, whether the job waits or runs when they become due.
#[test]
fn a03_limit_warning_and_dump_mean_the_same_backlog() {
    for (limit, is_running) in [(3_u32, false), (4, false), (3, true), (4, true)] {
        let host = Host::new(ClockKind::RealtimeHost, Resolution::TEN_MILLIS);
        let scheduler = host.scheduler(with_policy(Policy::DEFAULT.backlog_limit(limit)));
        let mut stream = listen(&scheduler);
        let (seen, inside) = (Arc::new(Mutex::new(None)), scheduler.clone());
        let write = Arc::clone(&seen);
        let look = move |_: &FireContext| {
            let jobs = inside.diagnostics().dump().shards.remove(0).jobs;
            let job = jobs.iter().find(|job| job.mode == BatchMode::FixedRate);
            *write.lock().unwrap() = job.map(|job| job.backlog);
        };
        // It runs first, while the other one is due and waits, or is with its dispatcher.
        scheduler.schedule_once_fn(ms(50), HERE, look).unwrap();
        let job = scheduler.schedule_at_fixed_rate_fn(ms(10), ms(10), ELSEWHERE, |_| ()).unwrap();
        if is_running {
            host.clock.advance(ms(10));
            scheduler.poll_shard(0, 0, usize::MAX);
            assert_eq!(job.state(), JobState::Executing);
        }
        host.clock.advance(if is_running { ms(40) } else { ms(50) });
        scheduler.poll_shard(0, 0, usize::MAX);
        let told = warnings(&mut stream).into_iter().find_map(|warning| match warning {
            Warning::BacklogExceeded { backlog, limit, .. } => Some((backlog, limit)),
            _ => None,
        });
        assert_eq!(job.is_cancelled(), limit < 4, "four are behind, {limit} may be");
        assert_eq!(told, (limit < 4).then_some((4, limit)));
        if limit == 4 {
            assert_eq!(*seen.lock().unwrap(), Some(4), "running: {is_running}");
        }
        drop(host.take_work());
    }
}
