//! R4: many threads, and more jobs than there is room for.

use alloc::{sync::Arc, vec::Vec};
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::thread;

use clockjack_sched::{
    Affinity, DispatcherId, Policy, PolicyRegistry, PressureReason, ScheduleErrorKind,
    SchedulerConfig, TimerPriority, Warning,
};
use clockjack_time::{ClockKind, Resolution};

use crate::bench::{Diary, ELSEWHERE, HERE, Host, listen, manual, ms, plain, secs, warnings};

const N_THREADS: usize = 4;
const N_JOBS: u64 = 2_000;

#[test]
fn r4_1_threads_schedule_and_cancel_while_time_moves() {
    let manual = plain();
    let scheduler = manual.scheduler();
    let (ran, cancelled) = (Arc::new(AtomicUsize::new(0)), AtomicUsize::new(0));
    let busy = AtomicUsize::new(N_THREADS);
    thread::scope(|scope| {
        for seed in 0..N_THREADS as u64 {
            let (ran, cancelled, busy) = (&ran, &cancelled, &busy);
            scope.spawn(move || {
                for index in 0..N_JOBS {
                    let ran = Arc::clone(ran);
                    let f = move |_: &_| {
                        ran.fetch_add(1, SeqCst);
                    };
                    let delay = ms((index * 7 + seed) % 300);
                    let job = scheduler.schedule_once_fn(delay, HERE, f).unwrap();
                    if index % 3 == 0 && job.cancel() {
                        cancelled.fetch_add(1, SeqCst);
                    }
                }
                busy.fetch_sub(1, SeqCst);
            });
        }
        while busy.load(SeqCst) > 0 {
            manual.advance(ms(10));
        }
    });
    manual.advance(ms(400));
    let all = N_THREADS * usize::try_from(N_JOBS).unwrap();
    assert_eq!(ran.load(SeqCst) + cancelled.load(SeqCst), all);
    let metrics = scheduler.metrics();
    assert_eq!(metrics.accepted_total, all as u64);
    assert_eq!(metrics.executed_total + metrics.cancelled_total, all as u64);
    assert_eq!(metrics.cancelled_total, cancelled.load(SeqCst) as u64);
    assert_eq!(metrics.active_total, 0);
}

#[test]
fn r4_2_a_cancel_that_races_with_the_run_leaves_one_of_them() {
    let manual = plain();
    let scheduler = manual.scheduler();
    for _ in 0..500 {
        let ran = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&ran);
        let f = move |_: &_| {
            counter.fetch_add(1, SeqCst);
        };
        let job = scheduler.schedule_once_fn(ms(10), HERE, f).unwrap();
        let is_cancelled = thread::scope(|scope| {
            let canceller = scope.spawn(|| job.cancel());
            manual.advance(ms(10));
            canceller.join().unwrap()
        });
        assert_eq!(ran.load(SeqCst) + usize::from(is_cancelled), 1);
        assert_eq!((job.is_cancelled(), job.is_completed()), (is_cancelled, !is_cancelled));
    }
}

#[test]
fn r4_2_a_job_that_several_threads_run_for_runs_once() {
    let host = Host::new(ClockKind::RealtimeHost, Resolution::TEN_MILLIS);
    let scheduler = host.scheduler(SchedulerConfig::DEFAULT);
    let ran = Arc::new(AtomicUsize::new(0));
    let jobs: Vec<_> = (0..1000)
        .map(|_| {
            let ran = Arc::clone(&ran);
            let f = move |_: &_| {
                ran.fetch_add(1, SeqCst);
            };
            scheduler.schedule_once_fn(ms(10), HERE, f).unwrap()
        })
        .collect();
    host.clock.advance(ms(10));
    let cancelled = thread::scope(|scope| {
        for executor in 0..2 {
            let scheduler = &scheduler;
            scope.spawn(move || while scheduler.poll_shard(0, executor, 10).is_more {});
        }
        jobs.iter().rev().filter(|job| job.cancel()).count()
    });
    scheduler.poll_shard(0, 0, usize::MAX);
    assert_eq!(ran.load(SeqCst) + cancelled, 1000);
}

#[test]
fn r4_3_the_first_cancel_wins_and_every_later_one_does_not() {
    let manual = plain();
    let scheduler = manual.scheduler();
    let once = scheduler.schedule_once_fn(secs(1), HERE, |_| ()).unwrap();
    let rate = scheduler.schedule_at_fixed_rate_fn(ms(0), secs(1), HERE, |_| ()).unwrap();
    let delay = scheduler.schedule_with_fixed_delay_fn(ms(0), secs(1), HERE, |_| ()).unwrap();
    for job in [once, rate, delay] {
        let other = job.clone();
        assert!(job.cancel());
        for _ in 0..3 {
            assert!(!job.cancel() && !other.cancel());
        }
    }
}

#[test]
fn r4_3_of_many_threads_one_cancels() {
    let manual = plain();
    for _ in 0..200 {
        let job = manual.scheduler().schedule_once_fn(secs(1), HERE, |_| ()).unwrap();
        let begin = AtomicBool::new(false);
        let winners = thread::scope(|scope| {
            let cancel = || {
                while !begin.load(SeqCst) {
                    core::hint::spin_loop();
                }
                usize::from(job.cancel())
            };
            let threads: Vec<_> = (0..3).map(|_| scope.spawn(cancel)).collect();
            begin.store(true, SeqCst);
            threads.into_iter().map(|thread| thread.join().unwrap()).sum::<usize>()
        });
        assert_eq!(winners, 1);
    }
    assert_eq!(manual.scheduler().metrics().cancelled_total, 200);
}

#[test]
fn r4_4_a_cancelled_job_stays_so_for_ever() {
    let manual = plain();
    let scheduler = manual.scheduler();
    let job = scheduler.schedule_once_fn(ms(20), HERE, |_| ()).unwrap();
    let ran = scheduler.schedule_once_fn(ms(10), HERE, |_| ()).unwrap();
    assert!(!job.is_cancelled());
    assert!(job.cancel() && job.is_cancelled());
    // Others come and go, and would have its slot if the handle did not keep it.
    for _ in 0..1000 {
        let other = scheduler.schedule_once_fn(ms(10), HERE, |_| ()).unwrap();
        assert_ne!((other.id(), other.is_cancelled()), (job.id(), true));
        manual.advance(ms(10));
        assert!(job.is_cancelled() && !job.is_completed());
        assert!(ran.is_completed() && !ran.is_cancelled());
    }
    scheduler.shutdown();
    assert!(job.is_cancelled() && !job.cancel());
}

#[test]
fn r4_5_under_pressure_what_is_beyond_the_limit_is_refused() {
    let config = SchedulerConfig { quota: 10, adaptive_quota: Some(3), ..SchedulerConfig::DEFAULT };
    let manual = manual(config);
    let scheduler = manual.scheduler();
    let schedule = || scheduler.schedule_once_fn(secs(1), HERE, |_| ());
    scheduler.set_pressure(PressureReason::Host, 100);
    let jobs: Vec<_> = (0..3).map(|_| schedule().unwrap()).collect();
    assert_eq!(schedule().unwrap_err().kind(), ScheduleErrorKind::Backpressured);
    assert_eq!(scheduler.metrics().active_total, 3);
    assert!(jobs[0].cancel());
    schedule().unwrap();
    assert_eq!(schedule().unwrap_err().kind(), ScheduleErrorKind::Backpressured);
    scheduler.set_pressure(PressureReason::Host, 0);
    for _ in 3..10 {
        schedule().unwrap();
    }
    assert_eq!(schedule().unwrap_err().kind(), ScheduleErrorKind::QuotaExceeded);
}

#[test]
fn r4_6_a_full_wheel_tells_and_gives_up_the_least_important_first() {
    const HIGH: DispatcherId = ELSEWHERE;
    const LOW: DispatcherId = DispatcherId(2);
    let policies = PolicyRegistry::new()
        .set(Affinity::Dispatcher(HIGH), Policy::DEFAULT.priority(TimerPriority::High))
        .set(Affinity::Dispatcher(LOW), Policy::DEFAULT.priority(TimerPriority::Low));
    let host = Host::new(ClockKind::RealtimeHost, Resolution::TEN_MILLIS);
    let scheduler =
        host.scheduler(SchedulerConfig { capacity: 3, policies, ..SchedulerConfig::DEFAULT });
    let mut stream = listen(&scheduler);
    let schedule = |class| scheduler.schedule_once_fn(ms(10), class, |_| ());
    let normal = schedule(HERE).unwrap();
    let low = [schedule(LOW).unwrap(), schedule(LOW).unwrap()];
    let high = [schedule(HIGH).unwrap(), schedule(HIGH).unwrap()];
    assert!(low.iter().all(|job| job.is_cancelled()) && !normal.is_cancelled());
    let last = schedule(HIGH).unwrap();
    assert!(normal.is_cancelled() && !high[0].is_cancelled() && !last.is_cancelled());
    for class in [HIGH, HERE, LOW] {
        assert_eq!(schedule(class).unwrap_err().kind(), ScheduleErrorKind::CapacityExceeded);
    }
    let given_up = |warning: &Warning| match warning {
        Warning::DroppedLowPriority { job, priority } => Some((job.number, *priority)),
        _ => None,
    };
    let mut told: Vec<_> = warnings(&mut stream).iter().filter_map(given_up).collect();
    told[..2].sort_unstable();
    assert_eq!(
        told,
        [(2, TimerPriority::Low), (3, TimerPriority::Low), (1, TimerPriority::Normal)]
    );
    assert_eq!(scheduler.metrics().dropped_total, 3);
}

#[test]
fn r4_7_active_jobs_periodic_ones_and_drops_are_counted() {
    let policies = PolicyRegistry::new()
        .set(Affinity::Dispatcher(ELSEWHERE), Policy::DEFAULT.priority(TimerPriority::Low));
    let host = Host::new(ClockKind::RealtimeHost, Resolution::TEN_MILLIS);
    let config = SchedulerConfig { capacity: 3, quota: 5, policies, ..SchedulerConfig::DEFAULT };
    let scheduler = host.scheduler(config);
    let count = || {
        let metrics = scheduler.metrics();
        (metrics.active_total, metrics.periodic_total, metrics.dropped_total)
    };
    let diary = Diary::default();
    assert_eq!(count(), (0, 0, 0));
    scheduler.schedule_once_fn(ms(10), HERE, diary.writer("once")).unwrap();
    let f = diary.writer("rate");
    let rate = scheduler.schedule_at_fixed_rate_fn(ms(10), ms(10), HERE, f).unwrap();
    let f = diary.writer("low");
    scheduler.schedule_with_fixed_delay_fn(ms(10), ms(10), ELSEWHERE, f).unwrap();
    assert_eq!(count(), (3, 2, 0));
    scheduler.schedule_once_fn(secs(1), HERE, |_| ()).unwrap();
    assert_eq!(count(), (3, 1, 1));
    host.clock.advance(ms(10));
    scheduler.poll_shard(0, 0, usize::MAX);
    assert_eq!(count(), (2, 1, 1));
    assert_eq!(diary.names(), ["once", "rate"]);
    rate.cancel();
    assert_eq!(count(), (1, 0, 1));
    let metrics = scheduler.metrics();
    assert_eq!(metrics.quota_limit, 5);
    assert_eq!((metrics.accepted_total, metrics.fired_total), (4, 2));
    assert_eq!((metrics.executed_total, metrics.cancelled_total, metrics.failed_total), (1, 2, 0));
}
