//! R1: one-shots, exact.

use alloc::{sync::Arc, vec::Vec};
use core::time::Duration;

use clockjack_sched::{
    DELAY_TICKS_MAX, FireContext, HandlerError, JobState, PERIOD_TICKS_MAX, ScheduleErrorKind,
    SchedulerConfig, SchedulerTask,
};
use clockjack_time::{ClockKind, MonotonicClock as _, Resolution, Tick, TickSpan};

use crate::bench::{Diary, HERE, Host, listen, manual, ms, picture, plain, secs, warnings};

/// The clock is ten times finer than a tick, and the job is registered at each of its steps.
#[test]
fn r1_1_a_one_shot_runs_exactly_once_within_a_tick_of_its_delay() {
    let delays =
        [1, 999_999, 1_000_000, 9_000_000, 10_000_000, 10_000_001, 25_000_000, 640_000_000];
    for (delay, offset) in delays.iter().flat_map(|delay| (0..11).map(move |at| (*delay, at))) {
        let host = Host::new(ClockKind::RealtimeHost, Resolution::MILLI);
        let scheduler = host.scheduler(SchedulerConfig::DEFAULT);
        let diary = Diary::default();
        host.clock.advance(ms(offset));
        let begun = host.clock.now();
        let delay = Duration::from_nanos(delay);
        scheduler.schedule_once_fn(delay, HERE, diary.writer("job")).unwrap();
        let mut window = Vec::new();
        for _ in 0..700 {
            scheduler.poll_shard(0, 0, usize::MAX);
            if diary.len() > window.len() {
                window.push(host.clock.now().since(begun));
            }
            host.clock.advance(ms(1));
        }
        assert_eq!(diary.len(), 1, "{delay:?} from {offset} ms on");
        let (earliest, latest) = (delay, delay + ms(10));
        assert!(window[0] >= earliest, "{delay:?} from {offset} ms on: {window:?}");
        assert!(window[0] <= latest, "{delay:?} from {offset} ms on: {window:?}");
    }
}

#[test]
fn r1_1_long_delays_come_in_their_tick_and_once() {
    let near = 1_u64 << 20;
    for ticks in [63, 64, 65, 4095, 4096, near - 1, near, near + 1, DELAY_TICKS_MAX] {
        let manual = plain();
        let diary = Diary::default();
        let delay = Resolution::TEN_MILLIS.duration(TickSpan::new(ticks));
        manual.scheduler().schedule_once_fn(delay, HERE, diary.writer("job")).unwrap();
        assert_eq!(manual.advance(delay - ms(10)), 0, "{ticks}");
        assert_eq!(manual.advance(ms(10)), 1, "{ticks}");
        assert_eq!(diary.ticks(), [ticks]);
        assert_eq!(manual.advance(delay), 0, "{ticks}");
    }
}

#[test]
fn r1_2_jobs_of_one_tick_run_in_the_order_of_registration() {
    let manual = plain();
    let scheduler = manual.scheduler();
    let diary = Diary::default();
    let at = |tick: u64, name| {
        let now = manual.clock().now().tick().get();
        let delay = Resolution::TEN_MILLIS.duration(TickSpan::new(tick - now));
        scheduler.schedule_once_fn(delay, HERE, diary.writer(name)).unwrap()
    };
    // From the overflow, from each level of the wheel, and from close by.
    let due = (1 << 20) + 5000;
    at(due, "a");
    at(due, "b");
    for (tick, name) in [(due - 5000, "c"), (due - 1000, "d"), (due - 60, "e"), (due - 1, "f")] {
        manual.advance_to(Tick::new(tick));
        at(due + 1, "later");
        at(due, name);
    }
    at(due, "g");
    manual.advance_to(Tick::new(due));
    assert_eq!(diary.names(), ["a", "b", "c", "d", "e", "f", "g"]);
}

#[test]
fn r1_2_what_is_due_earlier_runs_first_though_both_are_late() {
    let manual = plain();
    let scheduler = manual.scheduler();
    let diary = Diary::default();
    scheduler.schedule_once_fn(ms(30), HERE, diary.writer("third")).unwrap();
    scheduler.schedule_once_fn(ms(20), HERE, diary.writer("second")).unwrap();
    scheduler.schedule_once_fn(ms(10), HERE, diary.writer("first")).unwrap();
    scheduler.schedule_once_fn(ms(30), HERE, diary.writer("fourth")).unwrap();
    manual.clock().advance(secs(1));
    assert_eq!(manual.run_due(), 4);
    assert_eq!(diary.names(), ["first", "second", "third", "fourth"]);
}

#[test]
fn r1_3_fires_in_virtual_time_do_not_drift_at_all() {
    let manual = plain();
    let scheduler = manual.scheduler();
    let mut stream = listen(scheduler);
    let diary = Diary::default();
    for (name, period) in [("seven", 70), ("eleven", 110), ("one", 10)] {
        let f = diary.writer(name);
        scheduler.schedule_at_fixed_rate_fn(ms(period), ms(period), HERE, f).unwrap();
    }
    manual.advance(secs(77));
    let metrics = scheduler.metrics();
    assert_eq!(metrics.lateness.count, 1100 + 700 + 7700);
    assert_eq!(metrics.lateness.max, 0);
    assert_eq!(metrics.drift.count, 0);
    assert_eq!(warnings(&mut stream), []);
}

/// Holds something until it is dropped.
struct Task(#[expect(dead_code, reason = "its drop is what it is for")] Arc<()>);

impl SchedulerTask for Task {
    fn run(&mut self, _fire: &FireContext) -> Result<(), HandlerError> {
        panic!("it was cancelled before")
    }
}

#[test]
fn r1_4_a_cancelled_job_never_runs_and_lets_go_at_once() {
    let manual = plain();
    let scheduler = manual.scheduler();
    let token = Arc::new(());
    let hold = || {
        let token = Arc::clone(&token);
        move |_: &FireContext| drop(Arc::clone(&token))
    };
    let long = secs(3600 * 24 * 100);
    let jobs = [
        scheduler.schedule_once_fn(ms(10), HERE, hold()).unwrap(),
        scheduler.schedule_once_fn(secs(3600), HERE, hold()).unwrap(),
        scheduler.schedule_once_fn(long, HERE, hold()).unwrap(),
        scheduler.schedule_at_fixed_rate_fn(ms(10), ms(10), HERE, hold()).unwrap(),
        scheduler.schedule_with_fixed_delay_fn(secs(9), ms(10), HERE, hold()).unwrap(),
    ];
    assert_eq!(Arc::strong_count(&token), 6);
    for (index, job) in jobs.iter().enumerate() {
        assert!(job.cancel());
        assert_eq!(Arc::strong_count(&token), 5 - index, "the handle keeps nothing of it");
    }
    let shard = &scheduler.diagnostics().dump().shards[0];
    assert_eq!((shard.pending, shard.overflow, shard.queued, shard.jobs.len()), (0, 0, 0, 0));
    assert_eq!(scheduler.metrics().active_total, 0);
    assert_eq!(manual.advance(long + secs(1)), 0);
}

#[test]
fn r1_4_a_task_that_wants_to_be_told_lets_go_within_a_tick() {
    let manual = plain();
    let token = Arc::new(());
    let task = Task(Arc::clone(&token));
    let job = manual.scheduler().schedule_once_task(secs(3600), HERE, task).unwrap();
    assert!(job.cancel());
    assert_eq!(manual.advance(ms(10)), 0);
    assert_eq!(Arc::strong_count(&token), 1);
}

#[test]
fn r1_4_a_job_that_is_due_already_is_still_cancelled_before_its_turn() {
    let manual = plain();
    let scheduler = manual.scheduler();
    let token = Arc::new(());
    let held = Arc::clone(&token);
    let victim = Arc::new(std::sync::OnceLock::<clockjack_sched::Cancellable>::new());
    let known = Arc::clone(&victim);
    let seen = Diary::default();
    let write = seen.clone();
    let first = move |fire: &FireContext| {
        let victim = known.get().expect("it was put there");
        assert_eq!(victim.state(), JobState::Queued);
        assert!(victim.cancel() && !victim.cancel());
        write.note("first", fire);
    };
    scheduler.schedule_once_fn(ms(10), HERE, first).unwrap();
    let second = scheduler.schedule_once_fn(ms(10), HERE, move |_| drop(held)).unwrap();
    assert!(victim.set(second).is_ok());
    assert_eq!(manual.advance(ms(10)), 1);
    assert_eq!(seen.names(), ["first"], "it did not fail");
    assert_eq!(Arc::strong_count(&token), 1);
    assert_eq!(scheduler.metrics().cancelled_total, 1);
}

#[test]
fn r1_5_delays_and_periods_that_cannot_be_are_refused() {
    let max = Resolution::TEN_MILLIS.duration(TickSpan::new(DELAY_TICKS_MAX));
    let nanosecond = Duration::from_nanos(1);
    let bad = [max + nanosecond, max + ms(10), Duration::from_secs(u64::MAX), Duration::MAX];
    let manual = manual(SchedulerConfig { strict_delays: true, ..SchedulerConfig::DEFAULT });
    let scheduler = manual.scheduler();
    let before = picture(scheduler);
    let invalid = Some(ScheduleErrorKind::InvalidDelay);
    for bad in bad.into_iter().chain([Duration::ZERO]) {
        let once = scheduler.schedule_once_fn(bad, HERE, |_| ()).err();
        assert_eq!(once.map(|refused| refused.kind()), invalid, "{bad:?}");
        for (initial, period) in [(bad, ms(10)), (ms(10), bad), (bad, bad)] {
            let rate = scheduler.schedule_at_fixed_rate_fn(initial, period, HERE, |_| ()).err();
            assert_eq!(rate.map(|refused| refused.kind()), invalid, "{initial:?} {period:?}");
            let delay = scheduler.schedule_with_fixed_delay_fn(initial, period, HERE, |_| ()).err();
            assert_eq!(delay.map(|refused| refused.kind()), invalid, "{initial:?} {period:?}");
        }
    }
    assert_eq!(picture(scheduler), before);
    let period_max = Resolution::TEN_MILLIS.duration(TickSpan::new(PERIOD_TICKS_MAX));
    for (good, period) in [(nanosecond, nanosecond), (max, period_max)] {
        scheduler.schedule_once_fn(good, HERE, |_| ()).unwrap();
        scheduler.schedule_at_fixed_rate_fn(good, period, HERE, |_| ()).unwrap();
        scheduler.schedule_with_fixed_delay_fn(good, period, HERE, |_| ()).unwrap();
        let period = period_max + nanosecond;
        assert!(scheduler.schedule_at_fixed_rate_fn(good, period, HERE, |_| ()).is_err());
    }
    assert_eq!(scheduler.metrics().active_total, 6);
}

#[test]
fn r1_6_the_shortest_tick_and_the_highest_frequency_are_published() {
    let manual = plain();
    assert_eq!(manual.scheduler().max_frequency(), 100);
    assert_eq!(manual.scheduler().resolution(), Resolution::TEN_MILLIS);
    let config = SchedulerConfig { resolution: Resolution::MILLI, ..SchedulerConfig::DEFAULT };
    let manual = crate::bench::manual(config);
    assert_eq!(manual.scheduler().max_frequency(), 1000);
    // And it cannot be exceeded: the shortest period is a tick.
    let diary = Diary::default();
    let f = diary.writer("job");
    let shortest = Duration::from_nanos(1);
    manual.scheduler().schedule_at_fixed_rate_fn(shortest, shortest, HERE, f).unwrap();
    manual.advance(secs(1));
    assert_eq!(diary.len(), 1000);
}
