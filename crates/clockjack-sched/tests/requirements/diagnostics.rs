//! R5: virtual time, the log, the stream and the dump.

use alloc::{
    string::{String, ToString},
    sync::Arc,
    task::Wake,
    vec::Vec,
};
use core::{
    sync::atomic::{AtomicUsize, Ordering::SeqCst},
    task::{Context, Poll, Waker},
};

use clockjack_sched::{
    BatchMode, DiagnosticEvent, DumpFormat, EventKinds, FireContext, JobNumber, LogKind,
    ManualRunner, Policy, PolicyRegistry, RunnerMode, ScheduleErrorKind, SchedulerConfig,
    TimerPriority,
};
use clockjack_time::{Resolution, Tick};

use crate::bench::{Diary, HERE, events, listen_to, manual, ms, plain, secs};

/// Counts its wakes.
struct Bell(AtomicUsize);

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, SeqCst);
    }
}

/// A listener that sleeps must not have to wait until the shard is polled, which may be in an
/// hour.
#[test]
fn r5_3_a_listener_that_waits_is_woken_by_a_schedule_a_refusal_and_a_cancel() {
    let manual = manual(SchedulerConfig { quota: 1, ..SchedulerConfig::DEFAULT });
    let scheduler = manual.scheduler();
    let mut stream = listen_to(scheduler, EventKinds::ALL);
    let bell = Arc::new(Bell(AtomicUsize::new(0)));
    let waker = Waker::from(Arc::clone(&bell));

    assert_eq!(stream.poll_next(&mut Context::from_waker(&waker)), Poll::Pending);
    let job = scheduler.schedule_once_fn(secs(3600), HERE, |_| ()).unwrap();
    assert_eq!(bell.0.load(SeqCst), 1, "scheduled");
    events(&mut stream);
    assert_eq!(stream.poll_next(&mut Context::from_waker(&waker)), Poll::Pending);
    let refused = scheduler.schedule_once_fn(ms(10), HERE, |_| ()).unwrap_err();
    assert_eq!(refused.kind(), ScheduleErrorKind::QuotaExceeded);
    assert_eq!(bell.0.load(SeqCst), 2, "refused");
    events(&mut stream);
    assert_eq!(stream.poll_next(&mut Context::from_waker(&waker)), Poll::Pending);
    assert!(job.cancel());
    assert_eq!(bell.0.load(SeqCst), 3, "cancelled");
}

#[test]
fn r5_1_virtual_time_alone_makes_jobs_fire() {
    // In ticks of 10 ms a year is more than may be; in those of 20 ms it is not.
    let resolution = Resolution::from_nanos(20_000_000).unwrap();
    let manual = manual(SchedulerConfig { resolution, ..SchedulerConfig::DEFAULT });
    let scheduler = manual.scheduler();
    assert_eq!(scheduler.metadata().mode, RunnerMode::Manual);
    let diary = Diary::default();
    let write = |name| diary.writer(name);
    scheduler.schedule_once_fn(secs(3600 * 24 * 365), HERE, write("a year")).unwrap();
    let (hour, period) = (secs(3600), secs(3600 * 24 * 100));
    scheduler.schedule_at_fixed_rate_fn(hour, period, HERE, write("rate")).unwrap();
    assert_eq!(manual.run_due(), 0);
    assert_eq!(manual.advance_to_next(), Some(1));
    assert_eq!(diary.entries(), [("rate", 360_000, 1)]);
    assert_eq!(manual.advance(secs(3600 * 24 * 365 - 3600)), 4);
    assert_eq!(diary.names()[1..], ["rate", "rate", "rate", "a year"]);
    assert_eq!(diary.ticks()[4], 3_153_600_000);
}

/// Each job runs with the clock at its deadline; what it schedules runs in the same advance.
#[test]
fn r5_1_one_advance_is_as_good_as_many() {
    let run = |steps: &[u64]| {
        let manual = plain();
        let diary = Diary::default();
        let (scheduler, write) = (manual.scheduler().clone(), diary.clone());
        let f = move |fire: &FireContext| {
            write.note("rate", fire);
            scheduler.schedule_once_fn(ms(20), HERE, write.writer("child")).unwrap();
        };
        manual.scheduler().schedule_at_fixed_rate_fn(ms(30), ms(30), HERE, f).unwrap();
        for step in steps {
            manual.advance(ms(*step));
        }
        diary.entries()
    };
    let whole = run(&[200]);
    assert_eq!(whole.len(), 12);
    assert_eq!(whole[..3], [("rate", 3, 1), ("child", 5, 1), ("rate", 6, 1)]);
    assert_eq!(whole, run(&[10; 20]));
    assert_eq!(whole, run(&[70, 10, 120]));
}

fn logged(manual: &ManualRunner) -> Vec<(LogKind, u64, u64, u64, u32)> {
    let trace = manual.scheduler().diagnostics().trace();
    let record = |record: &clockjack_sched::LogRecord| {
        let (deadline, at) = (record.deadline.get(), record.at.get());
        (record.kind, record.job.number, deadline, at, record.runs)
    };
    trace.records().iter().map(record).collect()
}

#[test]
fn r5_2_schedules_fires_and_cancels_are_logged_with_ids_and_ticks() {
    let manual = manual(SchedulerConfig { log_capacity: 100, ..SchedulerConfig::DEFAULT });
    let scheduler = manual.scheduler();
    let once = scheduler.schedule_once_fn(ms(20), HERE, |_| ()).unwrap();
    let rate = scheduler.schedule_at_fixed_rate_fn(ms(10), ms(20), HERE, |_| ()).unwrap();
    let never = scheduler.schedule_once_fn(ms(90), HERE, |_| ()).unwrap();
    manual.advance(ms(20));
    manual.clock().advance(ms(10));
    assert!(never.cancel());
    manual.clock().advance(ms(10));
    manual.run_due();
    assert!(once.is_completed() && rate.cancel());
    let expected = [
        (LogKind::Schedule, 1, 2, 0, 0),
        (LogKind::Schedule, 2, 1, 0, 0),
        (LogKind::Schedule, 3, 9, 0, 0),
        (LogKind::Fire, 2, 1, 1, 1),
        (LogKind::Fire, 1, 2, 2, 1),
        (LogKind::Cancel, 3, 9, 3, 0),
        (LogKind::Fire, 2, 3, 4, 1),
        (LogKind::Cancel, 2, 5, 4, 0),
    ];
    assert_eq!(logged(&manual), expected);
}

#[test]
fn r5_2_the_same_run_gives_the_same_log() {
    let run = |last: u64| {
        let manual = manual(SchedulerConfig { log_capacity: 1000, ..SchedulerConfig::DEFAULT });
        for index in 0..50 {
            let delay = ms(index * 37 % 110);
            let job = manual.scheduler().schedule_once_fn(delay, HERE, |_| ()).unwrap();
            if index % 7 == 0 {
                job.cancel();
            }
            manual.advance(ms(index % 3 * 10));
        }
        manual.scheduler().schedule_once_fn(ms(last), HERE, |_| ()).unwrap();
        manual.advance(secs(1));
        logged(&manual)
    };
    assert_eq!(run(10), run(10));
    assert_ne!(run(10), run(20));
}

#[test]
fn r5_3_every_schedule_fire_and_cancel_is_on_the_stream() {
    let manual = plain();
    let scheduler = manual.scheduler();
    let mut stream = listen_to(scheduler, EventKinds::ALL);
    let mut fires = listen_to(scheduler, EventKinds::FIRE);
    let mut late = None;
    scheduler.schedule_once_fn(ms(20), HERE, |_| ()).unwrap();
    let rate = scheduler.schedule_at_fixed_rate_fn(ms(10), ms(20), HERE, |_| ()).unwrap();
    manual.advance(ms(30));
    late.get_or_insert_with(|| listen_to(scheduler, EventKinds::ALL));
    rate.cancel();
    let heard: Vec<_> = events(&mut stream).iter().map(ToString::to_string).collect();
    let expected = [
        "job 0#1: scheduled at 0, due at 2, once",
        "job 0#2: scheduled at 0, due at 1, fixed-rate",
        "job 0#2: fired at 1, 0 ticks late, fixed-rate x1, by 0",
        "job 0#1: fired at 2, 0 ticks late, once x1, by 0",
        "job 0#2: fired at 3, 0 ticks late, fixed-rate x1, by 0",
        "job 0#2: cancelled at 3",
    ];
    assert_eq!(heard, expected);
    assert_eq!(events(&mut fires).len(), 3, "only what was asked for");
    assert_eq!(late.map(|mut late| events(&mut late).len()), Some(1), "only from then on");
}

#[test]
fn r5_3_what_is_dropped_and_what_falls_behind_is_a_cancel_too() {
    let policies = PolicyRegistry::new()
        .set_default(Policy::DEFAULT.priority(TimerPriority::Low).backlog_limit(0));
    let manual = manual(SchedulerConfig { policies, ..SchedulerConfig::DEFAULT });
    let scheduler = manual.scheduler();
    let mut stream = listen_to(scheduler, EventKinds::CANCEL);
    scheduler.schedule_at_fixed_rate_fn(ms(10), ms(10), HERE, |_| ()).unwrap();
    scheduler.schedule_once_fn(secs(9), HERE, |_| ()).unwrap();
    manual.clock().advance(ms(20));
    manual.run_due();
    scheduler.shutdown();
    let heard = events(&mut stream);
    let job = |number| JobNumber { shard: 0, number };
    let at = Tick::new(2);
    let cancelled = [1, 2].map(|number| DiagnosticEvent::Cancelled { job: job(number), at });
    assert_eq!(heard, cancelled);
}

/// What a fuzzer needs: ticks are injected, and what happened is read from the stream.
#[test]
fn r5_4_order_cancels_and_compensation_can_be_checked_from_outside() {
    let manual = plain();
    let scheduler = manual.scheduler();
    let mut stream = listen_to(scheduler, EventKinds::ALL);
    let rate = scheduler.schedule_at_fixed_rate_fn(ms(10), ms(10), HERE, |_| ()).unwrap();
    let mut seed = 7_u64;
    let mut cancelled = Vec::new();
    let (mut now, mut ran) = (0, 0);
    let mut latest = Tick::ZERO;
    let mut compensated = 0;
    for _ in 0..40 {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let random = seed >> 33;
        now += random % 9;
        let job = scheduler.schedule_once_fn(ms(random % 50), HERE, |_| ()).unwrap();
        ran += scheduler.diagnostics().inject_tick(manual.clock(), Tick::new(now)).unwrap();
        if random.is_multiple_of(3) && job.cancel() {
            cancelled.push(job);
        }
        for event in events(&mut stream) {
            if let DiagnosticEvent::Fired { job, due, at, batch, .. } = event {
                assert!(at >= latest && at >= due, "ticks go one way, and nothing is early");
                latest = at;
                compensated += u64::from(job.number == 1) * u64::from(batch.runs.get());
            }
        }
    }
    assert!(ran > 40 && !cancelled.is_empty(), "{ran} {}", cancelled.len());
    assert!(cancelled.iter().all(|job| job.is_cancelled() && !job.is_completed()));
    assert_eq!(compensated, now, "one run each tick, however they were handed in");
    assert!(rate.cancel());
    assert_eq!(scheduler.metrics().cancelled_total, cancelled.len() as u64 + 1);
}

#[test]
fn r5_5_a_dump_shows_the_wheel_what_waits_and_what_repeats() {
    let manual = plain();
    let scheduler = manual.scheduler();
    scheduler.schedule_once_fn(secs(1), HERE, |_| ()).unwrap();
    scheduler.schedule_once_fn(secs(3600 * 24), HERE, |_| ()).unwrap();
    scheduler.schedule_at_fixed_rate_fn(ms(10), ms(30), HERE, |_| ()).unwrap();
    scheduler.schedule_with_fixed_delay_fn(ms(20), ms(50), HERE, |_| ()).unwrap();
    manual.advance(ms(20));
    let dump = scheduler.diagnostics().dump();
    assert_eq!((dump.mode, dump.now, dump.is_closed), ("manual", Tick::new(2), false));
    assert_eq!((dump.active, dump.quota_limit), (4, 1 << 20));
    let shard = &dump.shards[0];
    assert_eq!((shard.wheel_offset, shard.pending, shard.overflow), (Tick::new(2), 4, 1));
    assert_eq!((shard.queued, shard.jobs_left_out), (0, 0));
    let jobs: Vec<_> = shard
        .jobs
        .iter()
        .map(|job| (job.job.number, job.mode, job.due.get(), job.period_ticks))
        .collect();
    let expected = [
        (3, BatchMode::FixedRate, 4, 3),
        (4, BatchMode::FixedDelay, 7, 5),
        (1, BatchMode::OneShot, 100, 0),
        (2, BatchMode::OneShot, 8_640_000, 0),
    ];
    assert_eq!(jobs, expected);
    assert_eq!(shard.jobs[0].last_fire, Some(Tick::new(1)));
}

#[test]
fn r5_5_a_dump_can_be_read_by_people() {
    let manual = plain();
    let scheduler = manual.scheduler();
    scheduler.schedule_once_fn(secs(1), HERE, |_| ()).unwrap();
    scheduler.schedule_at_fixed_rate_fn(ms(10), ms(30), HERE, |_| ()).unwrap();
    for format in [DumpFormat::Text, DumpFormat::Lines] {
        let mut text = String::new();
        scheduler.dump(format, &mut text).unwrap();
        assert!(text.contains("fixed-rate") && text.contains("scheduled"), "{text}");
        assert!(text.lines().count() >= 3, "{text}");
    }
}
