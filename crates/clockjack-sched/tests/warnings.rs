//! Every warning, provoked: its text, and that it is reported once.
#![cfg(not(loom))]

extern crate alloc;

#[expect(dead_code, reason = "the tests of decisions need more of it")]
#[path = "requirements/bench.rs"]
mod bench;

use alloc::{string::ToString as _, vec::Vec};
use core::time::Duration;

use bench::{ELSEWHERE, HERE, Host, events, listen, manual, ms, plain, secs, warnings};
use clockjack_sched::{
    Affinity, BatchMode, CatchUp, DiagnosticEvent, EventKinds, ExecutionBatch, FireContext,
    HandlerError, JobNumber, Policy, PolicyRegistry, PressureReason, ScheduleErrorKind, Scheduler,
    SchedulerConfig, TaskRunPriority, TimerPriority, Warning,
};
use clockjack_time::{ClockKind, Resolution};

const fn job(number: u64) -> JobNumber {
    JobNumber { shard: 0, number }
}

/// Leaves out drift, which a stall of a deterministic clock always is.
fn without_drift(warnings: Vec<Warning>) -> Vec<Warning> {
    let is_other = |it: &Warning| !matches!(it, Warning::DriftExceeded { .. });
    warnings.into_iter().filter(is_other).collect()
}

fn with_policy(policy: Policy) -> SchedulerConfig {
    let policies = PolicyRegistry::new().set_default(policy);
    SchedulerConfig { policies, ..SchedulerConfig::DEFAULT }
}

/// Fires `n` jobs, one every 20 ms, each of them `late`; returns the warnings and their times.
fn late_fires(host: &Host, scheduler: &Scheduler, n: u32, late: Duration) -> Vec<(u32, Warning)> {
    let mut stream = listen(scheduler);
    let mut told = Vec::new();
    for fire in 1..=n {
        scheduler.schedule_once_fn(ms(10), HERE, |_| ()).unwrap();
        host.clock.advance(ms(10) + late);
        scheduler.poll_shard(0, 0, usize::MAX);
        host.clock.advance(ms(10) - late);
        told.extend(warnings(&mut stream).into_iter().map(|warning| (fire, warning)));
    }
    told
}

#[test]
fn drift_exceeded() {
    let host = Host::new(ClockKind::RealtimeHost, Resolution::MILLI);
    let scheduler = host.scheduler(SchedulerConfig::DEFAULT);
    let drift = |unreported| {
        let (observed, budget) = (ms(2), ms(1));
        Warning::DriftExceeded { shard: 0, observed, budget, fires: 64, unreported }
    };
    // A window is 1.28 s. The next report follows a minute after the first, and then two minutes
    // after that.
    let told = late_fires(&host, &scheduler, 64 * 150, ms(2));
    let expected = [(64, drift(0)), (64 * 48, drift(46)), (64 * 142, drift(93))];
    assert_eq!(told, expected);
    assert_eq!(scheduler.metrics().drift.count, 150, "each window is counted");
}

/// What an idle server on a virtual machine sees: ticks of 1 ms, and a thread that is woken 93 µs
/// late or, in a bad minute, 900 µs.
#[test]
fn the_latency_of_an_operating_system_is_no_drift() {
    let host = Host::new(ClockKind::RealtimeHost, Resolution::from_nanos(1_000).unwrap());
    let config = SchedulerConfig { resolution: Resolution::MILLI, ..SchedulerConfig::DEFAULT };
    let scheduler = host.scheduler(config);
    for late_us in [93, 900, 1000] {
        assert_eq!(late_fires(&host, &scheduler, 640, Duration::from_micros(late_us)), []);
    }
    assert_eq!(scheduler.metrics().drift.count, 0);
    assert_eq!(late_fires(&host, &scheduler, 640, Duration::from_micros(1001)).len(), 1);
}

#[test]
fn driver_catch_up_exceeded() {
    for (late, is_told) in [(secs(1), false), (secs(1) + ms(10), true)] {
        let manual = plain();
        let mut stream = listen(manual.scheduler());
        for _ in 0..200 {
            manual.scheduler().schedule_once_fn(ms(10), HERE, |_| ()).unwrap();
        }
        manual.clock().advance(ms(10) + late);
        assert_eq!(manual.run_due(), 200);
        let told = Warning::DriverCatchUpExceeded { shard: 0, ticks: 101, limit: 100 };
        let told = if is_told { [told].to_vec() } else { Vec::new() };
        assert_eq!(without_drift(warnings(&mut stream)), told, "once, for all that was late");
    }
}

#[test]
fn burst_fire() {
    let manual = manual(with_policy(Policy::DEFAULT.burst_threshold(2).catch_up(CatchUp::Folded)));
    let mut stream = listen(manual.scheduler());
    manual.scheduler().schedule_at_fixed_rate_fn(ms(10), ms(10), HERE, |_| ()).unwrap();
    manual.clock().advance(ms(30));
    manual.run_due();
    assert_eq!(without_drift(warnings(&mut stream)), []);
    manual.clock().advance(ms(40));
    manual.run_due();
    let burst = Warning::BurstFire { job: job(1), missed: 3, threshold: 2 };
    assert_eq!(without_drift(warnings(&mut stream)), [burst]);
}

#[test]
fn backlog_exceeded() {
    let manual = manual(with_policy(Policy::DEFAULT.backlog_limit(2)));
    let mut stream = listen(manual.scheduler());
    manual.scheduler().schedule_at_fixed_rate_fn(ms(10), ms(10), HERE, |_| ()).unwrap();
    manual.clock().advance(ms(40));
    assert_eq!(manual.run_due(), 0);
    let exceeded = Warning::BacklogExceeded { job: job(1), backlog: 3, limit: 2 };
    assert_eq!(without_drift(warnings(&mut stream)), [exceeded]);
}

/// There are more live jobs than the limit under pressure allows: that limit is reported.
#[test]
fn quota_reached_under_pressure_names_the_limit_that_was_met() {
    let manual = manual(SchedulerConfig { quota: 4, ..SchedulerConfig::DEFAULT });
    let scheduler = manual.scheduler();
    let mut stream = listen(scheduler);
    let schedule = || scheduler.schedule_once_fn(secs(1), HERE, |_| ());
    let jobs: Vec<_> = (0..4).map(|_| schedule().unwrap()).collect();
    scheduler.set_pressure(PressureReason::Host, 100);
    warnings(&mut stream);
    assert_eq!(schedule().unwrap_err().kind(), ScheduleErrorKind::QuotaExceeded);
    assert_eq!(warnings(&mut stream), [Warning::QuotaReached { limit: 4, adaptive: false }]);
    drop(jobs);
}

#[test]
fn quota_reached() {
    let manual = manual(SchedulerConfig { quota: 4, ..SchedulerConfig::DEFAULT });
    let scheduler = manual.scheduler();
    let mut stream = listen(scheduler);
    let schedule = || scheduler.schedule_once_fn(secs(1), HERE, |_| ());
    let jobs: Vec<_> = (0..4).map(|_| schedule().unwrap()).collect();
    assert_eq!(warnings(&mut stream), [], "the last that may live is no refusal");
    for _ in 0..3 {
        assert_eq!(schedule().unwrap_err().kind(), ScheduleErrorKind::QuotaExceeded);
    }
    let reached = |limit, adaptive| Warning::QuotaReached { limit, adaptive };
    assert_eq!(warnings(&mut stream), [reached(4, false)], "once");
    jobs[0].cancel();
    schedule().unwrap();
    assert!(schedule().is_err());
    assert_eq!(warnings(&mut stream), [reached(4, false)], "and again, after there was room");
    scheduler.set_pressure(PressureReason::Host, 100);
    jobs[1].cancel();
    assert_eq!(schedule().unwrap_err().kind(), ScheduleErrorKind::Backpressured);
    warnings(&mut stream);
    jobs[2].cancel();
    jobs[3].cancel();
    schedule().unwrap();
    assert_eq!(schedule().unwrap_err().kind(), ScheduleErrorKind::Backpressured);
    assert_eq!(warnings(&mut stream), [reached(2, true)]);
}

#[test]
fn backpressure_state() {
    let manual = plain();
    let scheduler = manual.scheduler();
    let mut stream = listen(scheduler);
    let state = |engaged, reason| [Warning::BackpressureState { engaged, reason }].to_vec();
    let (host, mailboxes) = (PressureReason::Host, PressureReason::Mailboxes);
    let steps = [
        (mailboxes, 79, Vec::new()),
        (mailboxes, 80, state(true, mailboxes)),
        (mailboxes, 100, Vec::new()),
        (host, 90, Vec::new()),
        (mailboxes, 0, Vec::new()),
        (host, 41, Vec::new()),
        (host, 40, state(false, host)),
        (host, 0, Vec::new()),
    ];
    for (reason, percent, expected) in steps {
        scheduler.set_pressure(reason, percent);
        assert_eq!(warnings(&mut stream), expected, "{reason} {percent}");
    }
}

#[test]
fn overflow_near_capacity() {
    let manual = manual(SchedulerConfig { overflow_capacity: 4, ..SchedulerConfig::DEFAULT });
    let scheduler = manual.scheduler();
    let mut stream = listen(scheduler);
    let far = || scheduler.schedule_once_fn(secs(3600 * 24), HERE, |_| ()).unwrap();
    let jobs = [far(), far()];
    assert_eq!(warnings(&mut stream), [], "half full");
    let third = far();
    let near = Warning::OverflowNearCapacity { shard: 0, len: 3, capacity: 4 };
    assert_eq!(warnings(&mut stream), core::slice::from_ref(&near), "three quarters");
    far();
    assert_eq!(warnings(&mut stream), [], "it was told");
    for job in [&jobs[0], &jobs[1], &third] {
        assert!(job.cancel());
    }
    far();
    far();
    assert_eq!(warnings(&mut stream), [near], "it has emptied since");
}

#[test]
fn dropped_low_priority() {
    let policies = PolicyRegistry::new()
        .set(Affinity::Dispatcher(ELSEWHERE), Policy::DEFAULT.priority(TimerPriority::High));
    let host = Host::new(ClockKind::RealtimeHost, Resolution::TEN_MILLIS);
    let config = SchedulerConfig { capacity: 1, policies, ..SchedulerConfig::DEFAULT };
    let scheduler = host.scheduler(config);
    let mut stream = listen(&scheduler);
    scheduler.schedule_once_fn(ms(10), HERE, |_| ()).unwrap();
    scheduler.schedule_once_fn(ms(10), ELSEWHERE, |_| ()).unwrap();
    let dropped = Warning::DroppedLowPriority { job: job(1), priority: TimerPriority::Normal };
    assert_eq!(warnings(&mut stream), [dropped]);
}

#[test]
fn handler_failed() {
    let manual = manual(with_policy(Policy::DEFAULT.catch_up(CatchUp::Folded)));
    let scheduler = manual.scheduler();
    let mut stream = listen(scheduler);
    let fail = |_: &FireContext| Err::<(), _>("no");
    scheduler.schedule_at_fixed_rate_fn(ms(10), ms(10), HERE, fail).unwrap();
    let burst = |_: &FireContext| -> () { panic!("burst") };
    scheduler.schedule_once_fn(ms(30), HERE, burst).unwrap();
    manual.clock().advance(ms(30));
    manual.run_due();
    manual.advance(ms(100));
    let batch = ExecutionBatch::folded(2, BatchMode::FixedRate);
    let failed = Warning::HandlerFailed { job: job(1), error: HandlerError::new("no"), batch };
    let batch = ExecutionBatch::single(BatchMode::OneShot);
    let burst = Warning::HandlerFailed { job: job(2), error: HandlerError::panic("burst"), batch };
    assert_eq!(without_drift(warnings(&mut stream)), [failed, burst], "each once");
}

#[test]
fn task_run_failed() {
    let manual = plain();
    let scheduler = manual.scheduler();
    let mut stream = listen(scheduler);
    let user = TaskRunPriority::User;
    scheduler.register_on_close(|| Err(HandlerError::new("no")), user).unwrap();
    scheduler.register_on_close(|| Ok(()), user).unwrap();
    scheduler.register_on_close(|| panic!("burst"), TaskRunPriority::SystemCritical).unwrap();
    scheduler.shutdown();
    let failed = |task, error| Warning::TaskRunFailed { task, error };
    let expected = [failed(3, HandlerError::panic("burst")), failed(1, HandlerError::new("no"))];
    assert_eq!(warnings(&mut stream), expected);
}

#[test]
fn diagnostics_dropped() {
    let manual = plain();
    let scheduler = manual.scheduler();
    let mut stream = scheduler.diagnostics().subscribe(EventKinds::SCHEDULE, 4).unwrap();
    for _ in 0..50 {
        scheduler.schedule_once_fn(secs(1), HERE, |_| ()).unwrap();
    }
    let heard = events(&mut stream);
    let told = |event: &DiagnosticEvent| match event {
        DiagnosticEvent::Warned(Warning::DiagnosticsDropped { dropped }) => Some(*dropped),
        _ => None,
    };
    let dropped: Vec<_> = heard.iter().filter_map(told).collect();
    let n_heard = heard.len() as u64 - 1;
    assert_eq!(dropped, [50 - n_heard], "told though only schedules were asked for");
    assert!(n_heard >= 4, "as many as were to be kept: {n_heard}");
    assert_eq!(scheduler.metrics().diagnostics_dropped as u64, dropped[0]);
}

#[test]
fn clock_jump() {
    let manual = plain();
    let mut stream = listen(manual.scheduler());
    manual.scheduler().schedule_at_fixed_rate_fn(ms(10), secs(1), HERE, |_| ()).unwrap();
    manual.clock().advance(secs(61) + ms(10));
    manual.run_due();
    let told = without_drift(warnings(&mut stream));
    let by = secs(61);
    assert!(told.contains(&Warning::ClockJump { by }), "{told:?}");
    let late = Warning::DriverCatchUpExceeded { shard: 0, ticks: 6100, limit: 100 };
    assert!(told.contains(&late), "{told:?}");
    let burst = Warning::BurstFire { job: job(1), missed: 61, threshold: 10 };
    assert_eq!(told, [late, Warning::ClockJump { by }, burst]);
}

#[test]
fn a_drift_is_a_line() {
    let all = [
        (
            Warning::DriftExceeded {
                shard: 1,
                observed: ms(2),
                budget: ms(1),
                fires: 64,
                unreported: 0,
            },
            "shard 1: 64 fires in a row were late by 2ms or more, with a budget of 1ms",
        ),
        (
            Warning::DriftExceeded {
                shard: 1,
                observed: ms(2),
                budget: ms(1),
                fires: 64,
                unreported: 12,
            },
            "shard 1: 64 fires in a row were late by 2ms or more, with a budget of 1ms; \
             12 more windows since the last warning",
        ),
        (
            Warning::DriftExceeded {
                shard: 1,
                observed: ms(2),
                budget: ms(0),
                fires: 3,
                unreported: 0,
            },
            "shard 1: a fire was late by 2ms, and none may be",
        ),
    ];
    for (warning, line) in all {
        assert_eq!(warning.to_string(), line);
    }
}

/// Other tests detect the timeout of the driver; here is only the text.
#[test]
fn each_warning_is_a_line() {
    let job = job(7);
    let error = HandlerError::new("no");
    let batch = ExecutionBatch::folded(2, BatchMode::FixedRate);
    let all = [
        (
            Warning::DriverCatchUpExceeded { shard: 1, ticks: 200, limit: 100 },
            "shard 1: made up for 200 ticks at once, 100 are usual",
        ),
        (Warning::DriverSilent { silent_for: secs(2) }, "the tick driver has been silent for 2s"),
        (
            Warning::BurstFire { job, missed: 11, threshold: 10 },
            "job 0#7: 11 runs came due at once, 10 are usual",
        ),
        (
            Warning::BacklogExceeded { job, backlog: 6, limit: 5 },
            "job 0#7: cancelled 6 runs behind, 5 are allowed",
        ),
        (
            Warning::QuotaReached { limit: 5, adaptive: true },
            "jobs are refused under pressure: the limit is 5 live jobs",
        ),
        (
            Warning::BackpressureState { engaged: false, reason: PressureReason::Dispatcher },
            "pressure ended: a dispatcher refuses work",
        ),
        (
            Warning::OverflowNearCapacity { shard: 1, len: 3, capacity: 4 },
            "shard 1: 3 of at most 4 jobs are in the overflow",
        ),
        (
            Warning::DroppedLowPriority { job, priority: TimerPriority::Low },
            "job 0#7: evicted for lack of room, its class was low",
        ),
        (
            Warning::HandlerFailed { job, error: error.clone(), batch },
            "job 0#7: its handler failed (fixed-rate x3 (2 missed)): no",
        ),
        (Warning::TaskRunFailed { task: 3, error }, "close task 3 failed: no"),
        (Warning::DiagnosticsDropped { dropped: 9 }, "9 diagnostic events were dropped"),
        (Warning::ClockJump { by: secs(61) }, "the clock went forward by 61s at once"),
    ];
    for (warning, line) in all {
        assert_eq!(warning.to_string(), line);
    }
}
