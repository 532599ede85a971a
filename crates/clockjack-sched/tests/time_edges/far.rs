//! Revolutions of the wheel, and the longest delays.

use core::time::Duration;
use std::sync::mpsc;

use clockjack_sched::{
    DELAY_TICKS_MAX, ManualRunner, PERIOD_TICKS_MAX, ScheduleErrorKind, SchedulerConfig,
};
use clockjack_time::{Resolution, TickSpan};

use crate::support::{CountingTask, D, starting_at, ticks};

const DAY: Duration = Duration::from_secs(86_400);
const YEAR: Duration = Duration::from_secs(365 * 86_400);

#[test]
fn delays_around_whole_revolutions_are_kept() {
    for start in [0, 1, 63, 64, 4095, (1 << 20) - 1, 987_654_321] {
        let manual = starting_at(start);
        let around = [64, 64 * 32, 64 * 64, 64 * 64 * 5, 64 * 64 * 64, 1 << 20, 7 << 20];
        let delays = around.into_iter().flat_map(|turn| [turn - 1, turn, turn + 1]);
        let jobs: Vec<_> = delays
            .map(|delay| {
                let told = CountingTask::default();
                let job = manual.scheduler().schedule_once_fn(ticks(delay), D, told.handler());
                assert!(job.is_ok());
                (delay, told)
            })
            .collect();
        manual.advance(ticks(8 << 20));
        for (delay, told) in jobs {
            assert_eq!(told.on_time(), [start + delay], "{start} + {delay}");
        }
    }
}

#[test]
fn a_rate_is_kept_over_many_revolutions() {
    let manual = starting_at(17);
    let told = CountingTask::default();
    let period = 64 * 64;
    let scheduler = manual.scheduler();
    let job = scheduler.schedule_at_fixed_rate_fn(ticks(64), ticks(period), D, told.handler());
    assert!(job.is_ok());
    manual.advance(ticks(64 + 1000 * period));
    let expected: Vec<_> = (0..=1000).map(|run| 17 + 64 + run * period).collect();
    assert_eq!(told.on_time(), expected);
}

/// Exactly the longest delay is accepted and kept; a tick more is refused, and the closure is back.
#[test]
fn the_longest_delay_is_kept_and_a_tick_more_is_refused() {
    for start in [0, 12_345, (1 << 31) - 1, 1 << 40] {
        let manual = starting_at(start);
        let scheduler = manual.scheduler();
        let told = CountingTask::default();
        let longest = ticks(DELAY_TICKS_MAX);
        let job = scheduler.schedule_once_fn(longest, D, told.handler());
        assert!(job.is_ok());
        let too_long = longest + Duration::from_nanos(1);
        let refused = scheduler.schedule_once_fn(too_long, D, |_| ());
        assert_eq!(
            refused.as_ref().map_err(|e| e.kind()).err(),
            Some(ScheduleErrorKind::InvalidDelay)
        );
        assert_eq!(scheduler.metrics().active_total, 1, "it left no trace");
        manual.advance(ticks(DELAY_TICKS_MAX - 1));
        assert_eq!(told.all(), []);
        manual.advance(ticks(1));
        assert_eq!(told.on_time(), [start + DELAY_TICKS_MAX]);
    }
}

#[test]
fn the_longest_period_is_kept_and_a_tick_more_is_refused() {
    let manual = starting_at(3);
    let scheduler = manual.scheduler();
    let (longest, too_long) = (ticks(PERIOD_TICKS_MAX), ticks(PERIOD_TICKS_MAX + 1));
    let too_far = ticks(DELAY_TICKS_MAX + 1);
    let (rate, delay) = (CountingTask::default(), CountingTask::default());
    let first = scheduler.schedule_at_fixed_rate_fn(ticks(1), longest, D, rate.handler());
    let second = scheduler.schedule_with_fixed_delay_fn(longest, longest, D, delay.handler());
    assert!(first.is_ok() && second.is_ok());
    for (initial, period) in [(ticks(1), too_long), (too_far, ticks(1))] {
        let handler = || CountingTask::default().handler();
        let refused = [
            scheduler
                .schedule_at_fixed_rate_fn(initial, period, D, handler())
                .map_err(|e| e.kind()),
            scheduler
                .schedule_with_fixed_delay_fn(initial, period, D, handler())
                .map_err(|e| e.kind()),
        ];
        for refused in refused {
            assert_eq!(refused.err(), Some(ScheduleErrorKind::InvalidDelay));
        }
    }
    assert_eq!(scheduler.metrics().periodic_total, 2);
    manual.advance(ticks(2 * PERIOD_TICKS_MAX + 1));
    assert_eq!(rate.on_time(), [0, 1, 2].map(|run| 4 + run * PERIOD_TICKS_MAX));
    assert_eq!(delay.on_time(), [1, 2].map(|run| 3 + run * PERIOD_TICKS_MAX));
}

/// In ticks of a millisecond a year has more than `i32::MAX` of them.
#[test]
fn a_delay_of_a_year_is_kept() {
    for millis in [1, 10, 15, 100, 1000] {
        let resolution = Resolution::from_nanos(millis * 1_000_000).expect("not zero");
        let config = SchedulerConfig { resolution, ..SchedulerConfig::DEFAULT };
        let manual = ManualRunner::new(config).expect("it is not for production");
        let told = CountingTask::default();
        let job = manual.scheduler().schedule_once_fn(YEAR, D, told.handler());
        assert!(job.is_ok(), "{millis} ms");
        manual.advance(YEAR - Duration::from_secs(1));
        assert_eq!(told.all(), []);
        manual.advance(Duration::from_secs(1));
        let due = resolution.ticks_ceil(YEAR).map(TickSpan::get);
        assert_eq!(Some(told.on_time()), due.map(|due| vec![due]));
    }
}

/// A year in one delay, next to a job that counts its days.
#[test]
fn a_year_of_ticks_of_10_ms_is_kept() {
    let manual = starting_at(0);
    let scheduler = manual.scheduler();
    let (days, year) = (CountingTask::default(), CountingTask::default());
    let daily = scheduler.schedule_at_fixed_rate_fn(DAY, DAY, D, days.handler());
    let far = scheduler.schedule_once_fn(YEAR, D, year.handler());
    assert!(daily.is_ok() && far.is_ok());
    manual.advance(YEAR);
    let expected: Vec<_> = (1..=365).map(|day| day * 8_640_000).collect();
    assert_eq!(days.on_time(), expected);
    assert_eq!(year.on_time(), [365 * 8_640_000]);
}

/// More come out of the overflow at one tick than may be put back in one: all run in that tick.
#[test]
fn many_far_jobs_of_one_tick_all_run_in_it_and_in_order() {
    let manual = starting_at(5);
    let (tell, told) = mpsc::channel();
    for job in 0..1000 {
        let tell = tell.clone();
        let far = manual.scheduler().schedule_once_fn(ticks(3 << 20), D, move |fire| {
            tell.send((job, fire.due() == fire.now().tick()))
        });
        assert!(far.is_ok());
    }
    assert_eq!(manual.advance(ticks((3 << 20) - 1)), 0);
    assert_eq!(manual.advance(ticks(1)), 1000);
    assert!(told.try_iter().eq((0..1000).map(|job| (job, true))));
}
