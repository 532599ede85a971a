//! A13, A18, A20, A25: refusals, policies, shards, and what tests can reach.

use alloc::{
    boxed::Box,
    string::{String, ToString as _},
    sync::Arc,
    vec,
    vec::Vec,
};
use core::sync::atomic::{AtomicUsize, Ordering::SeqCst};

use clockjack_sched::{
    Affinity, BatchMode, CatchUp, DispatcherId, DumpFormat, ExecutionBatch, FireContext, JobNumber,
    LogKind, LogRecord, Policy, PolicyRegistry, PressureReason, ScheduleErrorKind, Scheduler,
    SchedulerConfig, SchedulerDump, TimerPriority,
};
use clockjack_time::{ClockKind, Resolution, Tick};

use crate::bench::{Diary, ELSEWHERE, HERE, Host, manual, ms, picture, plain, secs};

/// A closure that can be known again.
fn delivery(token: &Arc<()>) -> impl FnMut(&FireContext) + Send + 'static + use<> {
    let token = Arc::clone(token);
    move |_: &FireContext| drop(Arc::clone(&token))
}

#[test]
fn a13_a_refused_request_leaves_no_trace_and_comes_back() {
    let policies = PolicyRegistry::new()
        .set(Affinity::Dispatcher(ELSEWHERE), Policy::DEFAULT.priority(TimerPriority::Low));
    let config = SchedulerConfig { quota: 3, capacity: 2, policies, ..SchedulerConfig::DEFAULT };
    let host = Host::new(ClockKind::RealtimeHost, Resolution::TEN_MILLIS);
    let scheduler = host.scheduler(config);
    let token = Arc::new(());
    let check = |delay, dispatcher, expected: ScheduleErrorKind| {
        let before = picture(&scheduler);
        for form in 0..3 {
            let f = delivery(&token);
            let refused = match form {
                0 => scheduler.schedule_once_fn(delay, dispatcher, f),
                1 => scheduler.schedule_at_fixed_rate_fn(delay, ms(10), dispatcher, f),
                _ => scheduler.schedule_with_fixed_delay_fn(delay, ms(10), dispatcher, f),
            };
            let refused = refused.map(|_| ()).unwrap_err();
            assert_eq!(refused.kind(), expected);
            assert_eq!(Arc::strong_count(&token), 2, "neither dropped nor kept");
            drop(refused.into_inner());
            assert_eq!(Arc::strong_count(&token), 1);
        }
        assert_eq!(picture(&scheduler), before, "{expected}");
    };
    check(secs(1 << 60), HERE, ScheduleErrorKind::InvalidDelay);
    check(ms(10), DispatcherId(9), ScheduleErrorKind::ReceiverGone);
    let first = scheduler.schedule_once_fn(secs(1), HERE, |_| ()).unwrap();
    scheduler.schedule_once_fn(secs(1), HERE, |_| ()).unwrap();
    check(ms(10), HERE, ScheduleErrorKind::CapacityExceeded);
    assert!(first.cancel());
    scheduler.set_pressure(PressureReason::Host, 100);
    check(ms(10), HERE, ScheduleErrorKind::Backpressured);
    check(ms(10), ELSEWHERE, ScheduleErrorKind::Backpressured);
    scheduler.set_pressure(PressureReason::Host, 0);
    scheduler.shutdown();
    check(ms(10), HERE, ScheduleErrorKind::Closed);
    // And at the quota, with room in the wheel.
    let manual = manual(SchedulerConfig { quota: 1, ..SchedulerConfig::DEFAULT });
    manual.scheduler().schedule_once_fn(ms(10), HERE, |_| ()).unwrap();
    let before = picture(manual.scheduler());
    let refused = manual.scheduler().schedule_once_fn(ms(10), HERE, delivery(&token)).unwrap_err();
    assert_eq!(refused.kind(), ScheduleErrorKind::QuotaExceeded);
    assert_eq!(picture(manual.scheduler()), before);
    assert_eq!(manual.advance(ms(10)), 1);
    let f = refused.into_inner();
    manual.scheduler().schedule_once_fn(ms(10), HERE, f).unwrap();
    assert_eq!(manual.advance(ms(10)), 1, "what came back is as good as new");
}

/// Fills a scheduler of three shards; the closures count their runs.
fn filled(config: SchedulerConfig, ran: &Arc<AtomicUsize>) -> (Host, Scheduler, usize) {
    let host = Host::new(ClockKind::RealtimeHost, Resolution::TEN_MILLIS);
    let scheduler = host.scheduler(SchedulerConfig { shards: 3, ..config });
    let mut accepted = 0;
    for shard in 0..3 {
        host.shard.store(shard, SeqCst);
        loop {
            let ran = Arc::clone(ran);
            let run = move |_: &FireContext| _ = ran.fetch_add(1, SeqCst);
            if scheduler.schedule_once_fn(ms(10), HERE, run).is_err() {
                break;
            }
            accepted += 1;
        }
    }
    (host, scheduler, accepted)
}

/// Every reason at once, by several threads, in all forms: each closure returns to its caller, what
/// was accepted runs, and the scheduler looks as before. A full store is not among the reasons:
/// a thread that does not get the guard learns of it later, by the eviction of its job.
#[test]
fn a13_requests_of_several_threads_that_are_refused_leave_no_trace() {
    const THREADS: usize = 4;
    const REQUESTS: usize = 100;
    let by_quota = SchedulerConfig { quota: 300, ..SchedulerConfig::DEFAULT };
    for (config, full, is_closed) in [
        (by_quota.clone(), ScheduleErrorKind::QuotaExceeded, false),
        (by_quota, ScheduleErrorKind::Closed, true),
    ] {
        let ran = Arc::new(AtomicUsize::new(0));
        let (host, scheduler, accepted) = filled(config, &ran);
        assert!(accepted >= 99, "{accepted}");
        if is_closed {
            scheduler.shutdown();
        }
        let or_closed = |kind| if is_closed { ScheduleErrorKind::Closed } else { kind };
        let (before, token) = (picture(&scheduler), Arc::new(()));
        let refused = |delay, dispatcher, expected: ScheduleErrorKind| {
            let period = ms(10);
            let results = [
                scheduler.schedule_once_fn(delay, dispatcher, delivery(&token)),
                scheduler.schedule_at_fixed_rate_fn(delay, period, dispatcher, delivery(&token)),
                scheduler.schedule_with_fixed_delay_fn(delay, period, dispatcher, delivery(&token)),
            ];
            for result in results {
                let refused = result.map(|_| ()).unwrap_err();
                assert_eq!(refused.kind(), expected);
                drop(refused.into_inner());
            }
        };
        std::thread::scope(|scope| {
            for _ in 0..THREADS {
                scope.spawn(|| {
                    for _ in 0..REQUESTS {
                        refused(ms(10), HERE, full);
                        let unknown = or_closed(ScheduleErrorKind::ReceiverGone);
                        refused(ms(10), DispatcherId(9), unknown);
                        refused(secs(1 << 60), HERE, or_closed(ScheduleErrorKind::InvalidDelay));
                    }
                });
            }
        });
        assert_eq!(Arc::strong_count(&token), 1, "each came back");
        assert_eq!(picture(&scheduler), before, "{full}");
        host.clock.advance(ms(10));
        for shard in 0..3 {
            while scheduler.poll_shard(shard, 0, 1_000).is_more {}
        }
        let expected = if is_closed { 0 } else { accepted };
        assert_eq!(ran.load(SeqCst), expected, "what was accepted runs, or the close cancelled it");
    }
}

#[test]
fn a18_a_policy_is_found_by_affinity_and_the_most_special_one_holds() {
    let priority = |class| Policy::DEFAULT.priority(class);
    let dispatcher = Affinity::Dispatcher(DispatcherId(3));
    let guardian = Affinity::Guardian("/user".into());
    let subsystem = Affinity::Subsystem("telemetry".into());
    let actor = Affinity::ActorClass("Meter".into());
    let registry = PolicyRegistry::new()
        .set_default(Policy::DEFAULT.burst_threshold(1))
        .set(actor.clone(), Policy::DEFAULT.backlog_limit(4))
        .set(dispatcher.clone(), priority(TimerPriority::High))
        .set(dispatcher.clone(), priority(TimerPriority::Low))
        .set(guardian.clone(), Policy::DEFAULT.catch_up(CatchUp::Folded))
        .set(subsystem.clone(), Policy::DEFAULT.burst_threshold(3));
    let all = [dispatcher, guardian, subsystem, actor];
    assert_eq!(registry.resolve(&[]).burst_threshold, 1);
    assert_eq!(registry.resolve(&all[..1]), priority(TimerPriority::Low), "the last that was set");
    assert_eq!(registry.resolve(&all[..2]).catch_up, CatchUp::Folded);
    assert_eq!(registry.resolve(&all[..3]).burst_threshold, 3);
    assert_eq!(registry.resolve(&all).backlog_limit, Some(4));
    assert_eq!(registry.of_dispatcher(DispatcherId(3)), priority(TimerPriority::Low));
    assert_eq!(registry.of_dispatcher(DispatcherId(4)).burst_threshold, 1);
}

/// Public calls take no extra argument: the dispatcher brings the policy along.
#[test]
fn a18_a_job_is_treated_by_the_policy_of_its_dispatcher() {
    let folded = Policy::DEFAULT.catch_up(CatchUp::Folded).priority(TimerPriority::High);
    let policies = PolicyRegistry::new().set(Affinity::Dispatcher(ELSEWHERE), folded);
    let host = Host::new(ClockKind::RealtimeHost, Resolution::TEN_MILLIS);
    let scheduler = host.scheduler(SchedulerConfig { policies, ..SchedulerConfig::DEFAULT });
    let diary = Diary::default();
    for (dispatcher, name) in [(HERE, "here"), (ELSEWHERE, "elsewhere")] {
        let f = diary.writer(name);
        scheduler.schedule_at_fixed_rate_fn(ms(10), ms(10), dispatcher, f).unwrap();
    }
    host.clock.advance(ms(30));
    scheduler.poll_shard(0, 0, usize::MAX);
    for work in host.take_work() {
        work.run();
    }
    let expected = [("here", 3, 1), ("here", 3, 1), ("here", 3, 1), ("elsewhere", 3, 3)];
    assert_eq!(diary.entries(), expected);
    let jobs = &scheduler.diagnostics().dump().shards[0].jobs;
    assert_eq!(
        jobs.iter().map(|job| job.priority).collect::<Vec<_>>(),
        [TimerPriority::Normal, TimerPriority::High]
    );
}

/// One shard has one order over all jobs, whichever thread schedules.
#[test]
fn a20_one_shard_is_fifo_over_the_whole_system() {
    assert_eq!(SchedulerConfig::DEFAULT.shards, 1);
    assert_eq!(SchedulerConfig::SMALL.shards, 1);
    let host = Host::new(ClockKind::RealtimeHost, Resolution::TEN_MILLIS);
    let scheduler = host.scheduler(SchedulerConfig::DEFAULT);
    let diary = Diary::default();
    for (worker, name) in [(0, "a"), (1, "b"), (0, "c"), (2, "d")] {
        host.shard.store(worker, SeqCst);
        let job = scheduler.schedule_once_fn(ms(10), HERE, diary.writer(name)).unwrap();
        assert_eq!(job.id().shard, 0);
    }
    host.clock.advance(ms(10));
    scheduler.poll_shard(0, 0, usize::MAX);
    assert_eq!(diary.names(), ["a", "b", "c", "d"]);
}

#[test]
fn a20_with_many_shards_each_registering_worker_has_its_order() {
    let host = Host::new(ClockKind::RealtimeHost, Resolution::TEN_MILLIS);
    let scheduler = host.scheduler(SchedulerConfig { shards: 3, ..SchedulerConfig::DEFAULT });
    assert_eq!(scheduler.shards(), 3);
    let diary = Diary::default();
    let jobs: Vec<_> = [(0, "a"), (1, "b"), (0, "c"), (2, "d"), (1, "e"), (4, "f")]
        .into_iter()
        .map(|(worker, name)| {
            host.shard.store(worker, SeqCst);
            scheduler.schedule_once_fn(ms(10), HERE, diary.writer(name)).unwrap()
        })
        .collect();
    let shards: Vec<_> = jobs.iter().map(|job| job.id().shard).collect();
    assert_eq!(shards, [0, 1, 0, 2, 1, 1], "more workers than shards go round");
    host.clock.advance(ms(10));
    for (shard, names) in [(2, vec!["d"]), (0, vec!["a", "c"]), (1, vec!["b", "e", "f"])] {
        let before = diary.len();
        scheduler.poll_shard(shard, 0, usize::MAX);
        assert_eq!(diary.names()[before..], names);
    }
    assert_eq!(scheduler.metrics().executed_total, 6, "metrics are of all shards");
    assert!(jobs.iter().all(|job| job.is_completed()));
}

/// A cancel and the close reach every shard, whatever thread they come from.
#[test]
fn a20_cancels_and_the_close_reach_all_shards() {
    let host = Host::new(ClockKind::RealtimeHost, Resolution::TEN_MILLIS);
    let scheduler = host.scheduler(SchedulerConfig { shards: 4, ..SchedulerConfig::DEFAULT });
    let jobs: Vec<_> = (0..8)
        .map(|worker| {
            host.shard.store(worker, SeqCst);
            scheduler.schedule_once_fn(secs(1), HERE, |_| ()).unwrap()
        })
        .collect();
    host.shard.store(0, SeqCst);
    assert!(jobs[..4].iter().all(|job| job.cancel()));
    jobs[7].run_on_close();
    let report = scheduler.shutdown();
    assert_eq!((report.accepted, report.executed, report.cancelled), (8, 1, 7));
    assert_eq!(host.stopped.load(SeqCst), 1);
}

#[test]
fn a25_the_store_grows_or_has_its_room_from_the_start() {
    let (small, default) = (SchedulerConfig::SMALL, SchedulerConfig::DEFAULT);
    assert_eq!((small.is_fixed, small.quota), (true, 10_000));
    assert_eq!((default.is_fixed, default.quota), (false, 1 << 20));
    for is_fixed in [false, true] {
        let config = SchedulerConfig { is_fixed, capacity: 100, ..SchedulerConfig::DEFAULT };
        let manual = manual(config);
        for _ in 0..3 {
            let jobs: Vec<_> = (0..100)
                .map(|_| manual.scheduler().schedule_once_fn(ms(10), HERE, |_| ()).unwrap())
                .collect();
            let refused = manual.scheduler().schedule_once_fn(ms(10), HERE, |_| ()).unwrap_err();
            assert_eq!(refused.kind(), ScheduleErrorKind::CapacityExceeded);
            assert_eq!(manual.advance(ms(10)), 100);
            drop(jobs);
        }
    }
}

#[test]
fn a25_the_log_can_be_in_a_buffer_of_the_callers_and_names_the_executor() {
    let host = Host::new(ClockKind::RealtimeHost, Resolution::TEN_MILLIS);
    let scheduler = host.scheduler(SchedulerConfig::DEFAULT);
    let record = LogRecord {
        kind: LogKind::Schedule,
        job: JobNumber { shard: 0, number: 0 },
        scheduled_at: Tick::ZERO,
        deadline: Tick::ZERO,
        at: Tick::ZERO,
        runs: 0,
        executor: 0,
    };
    scheduler.diagnostics().enable_log_in(Box::leak(Box::new([record; 3])));
    for _ in 0..2 {
        scheduler.schedule_once_fn(ms(10), HERE, |_| ()).unwrap();
    }
    host.clock.advance(ms(10));
    scheduler.poll_shard(0, 7, 1);
    scheduler.poll_shard(0, 9, 1);
    let trace = scheduler.diagnostics().trace();
    let records: Vec<_> =
        trace.records().iter().map(|it| (it.kind, it.job.number, it.executor)).collect();
    let expected = [(LogKind::Schedule, 2, 0), (LogKind::Fire, 1, 7), (LogKind::Fire, 2, 9)];
    assert_eq!(records, expected, "the last three");
}

#[test]
fn a25_ticks_can_be_injected_and_the_last_batch_be_asked_for() {
    let policies = PolicyRegistry::new().set_default(Policy::DEFAULT.catch_up(CatchUp::Folded));
    let manual = manual(SchedulerConfig { policies, ..SchedulerConfig::DEFAULT });
    let diagnostics = manual.scheduler().diagnostics();
    assert_eq!(diagnostics.last_fire_batch(), None);
    manual.scheduler().schedule_at_fixed_rate_fn(ms(10), ms(10), HERE, |_| ()).unwrap();
    assert_eq!(diagnostics.inject_tick(manual.clock(), Tick::new(5)), Ok(1));
    let job = JobNumber { shard: 0, number: 1 };
    let batch = ExecutionBatch::folded(4, BatchMode::FixedRate);
    assert_eq!(diagnostics.last_fire_batch(), Some((job, batch)));
    assert_eq!(diagnostics.inject_tick(manual.clock(), Tick::new(5)), Ok(0));
    assert_eq!(
        diagnostics.inject_tick(manual.clock(), Tick::new(2)),
        Ok(0),
        "time does not go back"
    );
    let host = Host::new(ClockKind::RealtimeHost, Resolution::TEN_MILLIS);
    let real = host.scheduler(SchedulerConfig::DEFAULT);
    let refused = real.diagnostics().inject_tick(&host.clock, Tick::new(5));
    assert!(refused.is_err_and(|error| error.is_not_manual()));
}

#[test]
fn a25_closures_are_told_their_batch_and_a_dump_can_be_asked_for() {
    let manual = plain();
    let told = Arc::new(AtomicUsize::new(0));
    let runs = Arc::clone(&told);
    let f = move |fire: &FireContext| {
        assert_eq!((fire.batch().mode, fire.job().number), (BatchMode::FixedRate, 1));
        runs.fetch_add(fire.batch().runs.get() as usize, SeqCst);
    };
    let job = manual.scheduler().schedule_at_fixed_rate_fn(ms(10), ms(10), HERE, f).unwrap();
    manual.advance(ms(30));
    assert_eq!(told.load(SeqCst), 3);
    assert!(!job.is_completed());
    let dump: SchedulerDump = manual.scheduler().diagnostics().dump();
    let mut text = String::new();
    dump.write(DumpFormat::Text, &mut text).unwrap();
    assert!(text.contains(&BatchMode::FixedRate.to_string()), "{text}");
}
