//! A8, A19, A24: quota, pressure, room and who is given up for it.

use alloc::{sync::Arc, vec::Vec};
use core::sync::atomic::Ordering::SeqCst;

use clockjack_sched::{
    Affinity, DispatcherId, Policy, PolicyRegistry, PressureReason, ScheduleErrorKind, Scheduler,
    SchedulerConfig, TimerPriority, Warning,
};
use clockjack_time::{ClockKind, Resolution, TickSpan};

use crate::bench::{Diary, ELSEWHERE, HERE, Host, listen, manual, ms, secs, warnings};

/// What dispatcher 2 runs is more important than the rest.
const HIGH: DispatcherId = DispatcherId(2);

/// What dispatcher 1 runs is less important than the rest.
fn by_class() -> PolicyRegistry {
    let priority = |class| Policy::DEFAULT.priority(class);
    PolicyRegistry::new()
        .set(Affinity::Dispatcher(ELSEWHERE), priority(TimerPriority::Low))
        .set(Affinity::Dispatcher(HIGH), priority(TimerPriority::High))
}

#[test]
fn a24_who_is_evicted_is_dropped_soon_and_not_when_something_is_due() {
    let host = Host::new(ClockKind::RealtimeHost, Resolution::TEN_MILLIS);
    let config = SchedulerConfig { capacity: 1, policies: by_class(), ..SchedulerConfig::DEFAULT };
    let scheduler = host.scheduler(config);
    let token = Arc::new(());
    let held = Arc::clone(&token);
    let low = scheduler.schedule_once_fn(secs(1800), ELSEWHERE, move |_| drop(held)).unwrap();
    scheduler.poll_shard(0, 0, usize::MAX);
    host.take_calls();
    scheduler.schedule_once_fn(secs(3600), HERE, |_| ()).unwrap();
    assert!(low.is_cancelled());
    // The job comes after the poller wakes by itself, but there is something to drop.
    assert_eq!(host.take_calls(), 1);
    scheduler.poll_shard(0, 0, usize::MAX);
    assert_eq!(Arc::strong_count(&token), 1);
}

fn kind(scheduler: &Scheduler, dispatcher: DispatcherId) -> Option<ScheduleErrorKind> {
    scheduler.schedule_once_fn(secs(1), dispatcher, |_| ()).err().map(|refused| refused.kind())
}

fn by_class_host(config: SchedulerConfig) -> (Host, Scheduler) {
    let host = Host::new(ClockKind::RealtimeHost, Resolution::TEN_MILLIS);
    let scheduler = host.scheduler(SchedulerConfig { policies: by_class(), ..config });
    (host, scheduler)
}

#[test]
fn a08_with_one_shard_the_quota_is_exact_and_counts_all_that_lives() {
    let manual = manual(SchedulerConfig { quota: 4, ..SchedulerConfig::DEFAULT });
    let scheduler = manual.scheduler();
    let quota = Some(ScheduleErrorKind::QuotaExceeded);
    for _ in 0..3 {
        let rate = scheduler.schedule_at_fixed_rate_fn(ms(10), ms(10), HERE, |_| ()).unwrap();
        let delay = scheduler.schedule_with_fixed_delay_fn(ms(10), ms(10), HERE, |_| ()).unwrap();
        let once = scheduler.schedule_once_fn(secs(1), HERE, |_| ()).unwrap();
        scheduler.schedule_once_fn(ms(10), HERE, |_| ()).unwrap();
        assert_eq!(kind(scheduler, HERE), quota);
        manual.advance(ms(10));
        let again = scheduler.schedule_once_fn(secs(1), HERE, |_| ()).unwrap();
        assert_eq!(kind(scheduler, HERE), quota, "periodic jobs still live");
        for job in [rate, delay, once, again] {
            assert!(job.cancel());
        }
    }
    assert_eq!(scheduler.metrics().active_total, 0);
}

/// A handler of a one-shot lives until it returns.
#[test]
fn a08_a_one_shot_that_runs_still_counts() {
    let manual = manual(SchedulerConfig { quota: 1, ..SchedulerConfig::DEFAULT });
    let scheduler = manual.scheduler().clone();
    let diary = Diary::default();
    let write = diary.clone();
    let f = move |fire: &clockjack_sched::FireContext| {
        if kind(&scheduler, HERE) == Some(ScheduleErrorKind::QuotaExceeded) {
            write.note("refused", fire);
        }
    };
    manual.scheduler().schedule_once_fn(ms(10), HERE, f).unwrap();
    manual.advance(ms(10));
    assert_eq!(diary.len(), 1);
    assert_eq!(kind(manual.scheduler(), HERE), None);
}

#[test]
fn a08_under_pressure_half_may_live_and_the_low_go_first() {
    let (_host, scheduler) =
        by_class_host(SchedulerConfig { quota: 10, ..SchedulerConfig::DEFAULT });
    assert_eq!(scheduler.metrics().quota_limit, 10);
    assert_eq!(kind(&scheduler, ELSEWHERE), None);
    scheduler.set_pressure(PressureReason::Mailboxes, 80);
    assert_eq!(scheduler.metrics().quota_limit, 5);
    let pressed = Some(ScheduleErrorKind::Backpressured);
    assert_eq!(kind(&scheduler, ELSEWHERE), pressed, "low, though there is room");
    for dispatcher in [HERE, HIGH, HERE, HIGH] {
        assert_eq!(kind(&scheduler, dispatcher), None);
    }
    assert_eq!(kind(&scheduler, HERE), pressed);
    assert_eq!(kind(&scheduler, HIGH), pressed);
    assert_eq!(scheduler.metrics().active_total, 5);
    scheduler.set_pressure(PressureReason::Mailboxes, 41);
    assert_eq!(kind(&scheduler, HERE), pressed, "more than half of what engaged it");
    scheduler.set_pressure(PressureReason::Mailboxes, 40);
    for _ in 5..10 {
        assert_eq!(kind(&scheduler, ELSEWHERE), None);
    }
    assert_eq!(kind(&scheduler, HIGH), Some(ScheduleErrorKind::QuotaExceeded));
}

#[test]
fn a08_the_adaptive_quota_can_be_set() {
    for (adaptive_quota, expected) in [(None, 50), (Some(7), 7), (Some(0), 0), (Some(200), 100)] {
        let config = SchedulerConfig { quota: 100, adaptive_quota, ..SchedulerConfig::DEFAULT };
        let manual = manual(config);
        let scheduler = manual.scheduler();
        scheduler.set_pressure(PressureReason::Host, 100);
        let accepted = (0..300).filter(|_| kind(scheduler, HERE).is_none()).count();
        assert_eq!(accepted, expected);
    }
}

/// Jobs that live when pressure begins are left alone.
#[test]
fn a08_pressure_takes_nothing_back() {
    let manual = manual(SchedulerConfig { quota: 4, ..SchedulerConfig::DEFAULT });
    let scheduler = manual.scheduler();
    let jobs: Vec<_> =
        (0..4).map(|_| scheduler.schedule_once_fn(ms(10), HERE, |_| ()).unwrap()).collect();
    scheduler.set_pressure(PressureReason::Host, 100);
    assert_eq!(kind(scheduler, HERE), Some(ScheduleErrorKind::QuotaExceeded));
    jobs[0].cancel();
    assert_eq!(kind(scheduler, HERE), Some(ScheduleErrorKind::Backpressured));
    assert_eq!(manual.advance(ms(10)), 3);
}

#[test]
fn a08_with_many_shards_the_quota_is_not_exceeded_and_refuses_by_blocks_early() {
    const SHARDS: usize = 4;
    let host = Host::new(ClockKind::RealtimeHost, Resolution::TEN_MILLIS);
    let quota = 1000;
    let config = SchedulerConfig { quota, shards: 4, ..SchedulerConfig::DEFAULT };
    let scheduler = host.scheduler(config);
    for worker in 1..SHARDS {
        host.shard.store(worker, SeqCst);
        assert_eq!(kind(&scheduler, HERE), None);
    }
    host.shard.store(0, SeqCst);
    while kind(&scheduler, HERE).is_none() {}
    let live = scheduler.metrics().active_total;
    assert!(live <= quota && live + 64 * SHARDS >= quota, "{live}");
    for worker in 0..SHARDS {
        host.shard.store(worker, SeqCst);
        while kind(&scheduler, HERE).is_none() {}
    }
    assert_eq!(scheduler.metrics().active_total, quota, "each shard has spent what it had");
}

#[test]
fn a08_a_dispatcher_that_refuses_is_pressure() {
    let (host, scheduler) = by_class_host(SchedulerConfig { quota: 9, ..SchedulerConfig::DEFAULT });
    let mut stream = listen(&scheduler);
    let reason = PressureReason::Dispatcher;
    let f = |_: &clockjack_sched::FireContext| ();
    scheduler.schedule_at_fixed_rate_fn(ms(10), ms(10), HIGH, f).unwrap();
    for (refuses, limit) in [(true, 4), (true, 4), (false, 9)] {
        host.refuses.store(refuses, SeqCst);
        host.clock.advance(ms(10));
        scheduler.poll_shard(0, 0, usize::MAX);
        assert_eq!(scheduler.metrics().quota_limit, limit);
    }
    let told = [true, false].map(|engaged| Warning::BackpressureState { engaged, reason });
    assert_eq!(warnings(&mut stream), told);
}

/// Jobs of a low class are refused under pressure. If they are the only ones of their dispatcher,
/// none of them would ever find out that it takes jobs again.
#[test]
fn a08_a_refusal_of_a_dispatcher_does_not_shut_out_its_jobs_for_ever() {
    let (host, scheduler) = by_class_host(SchedulerConfig::DEFAULT);
    let mut stream = listen(&scheduler);
    let backpressured = Some(ScheduleErrorKind::Backpressured);
    assert_eq!(kind(&scheduler, ELSEWHERE), None);
    host.refuses.store(true, SeqCst);
    host.clock.advance(secs(1));
    scheduler.poll_shard(0, 0, usize::MAX);
    host.refuses.store(false, SeqCst);
    assert_eq!(kind(&scheduler, ELSEWHERE), backpressured);
    host.clock.advance(ms(990));
    assert_eq!(kind(&scheduler, ELSEWHERE), backpressured);
    host.clock.advance(ms(10));
    assert_eq!(kind(&scheduler, ELSEWHERE), None);
    let reason = PressureReason::Dispatcher;
    let told = warnings(&mut stream);
    let told: Vec<_> =
        told.into_iter().filter(|told| matches!(told, Warning::BackpressureState { .. })).collect();
    assert_eq!(told, [true, false].map(|engaged| Warning::BackpressureState { engaged, reason }));
    // What the host says itself it takes back itself.
    scheduler.set_pressure(reason, 100);
    host.clock.advance(secs(100));
    assert_eq!(kind(&scheduler, ELSEWHERE), backpressured);
}

/// However few return from the overflow at one tick, each runs at its own.
#[test]
fn a19_a_due_job_fires_in_its_tick_though_the_limit_of_reinsertion_was_reached() {
    for reinsertion_batch_limit in [1, 3, 100] {
        let manual =
            manual(SchedulerConfig { reinsertion_batch_limit, ..SchedulerConfig::DEFAULT });
        let scheduler = manual.scheduler();
        let diary = Diary::default();
        let far = 1_u64 << 21;
        let ticks = |n| Resolution::TEN_MILLIS.duration(TickSpan::new(n));
        for _ in 0..20 {
            for due in [far, far + 1] {
                let f = diary.writer("job");
                scheduler.schedule_once_fn(ticks(due), HERE, f).unwrap();
            }
        }
        assert_eq!(scheduler.diagnostics().dump().shards[0].overflow, 40);
        manual.advance(ticks(far + 1));
        let mut expected = [far; 40];
        expected[20..].fill(far + 1);
        assert_eq!(diary.ticks(), expected);
    }
}

#[test]
fn a19_low_goes_first_then_normal_and_what_is_far_too() {
    let (_host, scheduler) =
        by_class_host(SchedulerConfig { capacity: 4, ..SchedulerConfig::DEFAULT });
    let mut stream = listen(&scheduler);
    let far = secs(3600 * 24);
    scheduler.schedule_once_fn(far, HERE, |_| ()).unwrap();
    scheduler.schedule_once_fn(far, ELSEWHERE, |_| ()).unwrap();
    scheduler.schedule_once_fn(ms(10), HERE, |_| ()).unwrap();
    scheduler.schedule_at_fixed_rate_fn(ms(10), ms(10), ELSEWHERE, |_| ()).unwrap();
    for _ in 0..4 {
        scheduler.schedule_once_fn(far, HIGH, |_| ()).unwrap();
    }
    let dropped = |warning: &Warning| match warning {
        Warning::DroppedLowPriority { job, priority } => Some((*priority, job.number)),
        _ => None,
    };
    let mut told: Vec<_> = warnings(&mut stream).iter().filter_map(dropped).collect();
    assert!(told.is_sorted_by_key(|(priority, _)| *priority), "{told:?}");
    told.sort_unstable();
    assert_eq!(
        told,
        [
            (TimerPriority::Low, 2),
            (TimerPriority::Low, 4),
            (TimerPriority::Normal, 1),
            (TimerPriority::Normal, 3)
        ]
    );
    let metrics = scheduler.metrics();
    assert_eq!((metrics.dropped_total, metrics.cancelled_total), (4, 4));
    assert_eq!((metrics.active_total, metrics.periodic_total), (4, 0));
}

#[test]
fn a24_only_a_strictly_lower_class_is_evicted() {
    let classes = [ELSEWHERE, HERE, HIGH];
    for (index, there) in classes.iter().enumerate() {
        for (other, comes) in classes.iter().enumerate() {
            let (_host, scheduler) =
                by_class_host(SchedulerConfig { capacity: 1, ..SchedulerConfig::DEFAULT });
            let job = scheduler.schedule_once_fn(secs(1), *there, |_| ()).unwrap();
            let refused = kind(&scheduler, *comes);
            let evicts = other > index;
            let full = (!evicts).then_some(ScheduleErrorKind::CapacityExceeded);
            assert_eq!(refused, full);
            assert_eq!(job.is_cancelled(), evicts);
        }
    }
}

/// A job with a fixed delay has no timer while it runs, and no less a place.
#[test]
fn a24_a_job_with_a_fixed_delay_does_not_lose_its_place_while_it_runs() {
    let manual = manual(SchedulerConfig { capacity: 1, ..SchedulerConfig::DEFAULT });
    let scheduler = manual.scheduler().clone();
    let f = move |_: &clockjack_sched::FireContext| _ = kind(&scheduler, HERE);
    let job = manual.scheduler().schedule_with_fixed_delay_fn(ms(10), ms(10), HERE, f).unwrap();
    manual.advance(ms(30));
    assert!(!job.is_cancelled());
    assert_eq!(manual.scheduler().metrics().fired_total, 3);
    assert_eq!(manual.scheduler().metrics().dropped_total, 0);
}

/// Jobs of users fill the quota, the wheel and all slots that handles can keep in use.
#[test]
fn a08_jobs_of_the_runtime_have_a_reserve_that_users_cannot_use() {
    for is_fixed in [false, true] {
        let policies = PolicyRegistry::new();
        let policies = policies.set_default(Policy::DEFAULT.priority(TimerPriority::High));
        let config = SchedulerConfig {
            quota: 4,
            capacity: 4,
            internal_reserve: 3,
            is_fixed,
            policies,
            ..SchedulerConfig::DEFAULT
        };
        let manual = manual(config);
        let scheduler = manual.scheduler();
        let mut kept = Vec::new();
        for _ in 0..500 {
            kept.extend(scheduler.schedule_once_fn(ms(0), HERE, |_| ()).ok());
        }
        for _ in 0..5 {
            kept.extend(scheduler.schedule_once_fn(secs(9), HERE, |_| ()).ok());
        }
        let diary = Diary::default();
        let internal = |scheduler: &Scheduler| {
            let f = diary.writer("internal");
            scheduler.schedule_internal(ms(10), f).map_err(|refused| refused.kind())
        };
        for round in 1..=3_usize {
            let mut jobs: Vec<_> =
                (0..3).map(|_| internal(scheduler).expect("its place")).collect();
            let refused = internal(scheduler).map(|_| ()).expect_err("the reserve is used up");
            assert!(matches!(
                refused,
                ScheduleErrorKind::QuotaExceeded | ScheduleErrorKind::CapacityExceeded
            ));
            assert!(jobs.remove(0).cancel(), "and a cancelled job returns its place");
            drop(internal(scheduler).expect("its place"));
            assert_eq!(scheduler.metrics().reserve_exceeded_total, round as u64);
            manual.advance(ms(10));
            assert_eq!(diary.len(), 3 * round, "fixed: {is_fixed}");
        }
        drop(kept);
        scheduler.shutdown();
    }
}
