//! Counts that wrap, or come to their end.

use core::time::Duration;

use clockjack_sched::ScheduleErrorKind;
use clockjack_time::{MonotonicClock, Resolution, Tick};

use crate::support::{CountingTask, D, Fine, starting_at, ticks};

/// Just before counts of 20, 31, 32, 53 and 63 bits are full.
const BEFORE_EDGES: [u64; 6] = [
    (1 << 20) - 5,
    (1 << 31) - 5,
    (1 << 32) - 5,
    (1 << 53) - 5,
    (1 << 63) - 5,
    (1 << 63) - (1 << 30),
];

#[test]
fn one_shots_cross_the_edge_of_a_count() {
    for start in BEFORE_EDGES {
        let manual = starting_at(start);
        let delays =
            [1, 4, 5, 6, 64, 70, 4096, 300_000, 1 << 20, (1 << 20) + 9, 1 << 30, (1 << 31) - 1];
        let jobs = delays.map(|delay| {
            let told = CountingTask::default();
            let job = manual.scheduler().schedule_once_fn(ticks(delay), D, told.handler());
            assert!(job.is_ok(), "{start} + {delay}");
            (delay, told)
        });
        manual.advance(ticks(1 << 31));
        for (delay, told) in jobs {
            assert_eq!(told.on_time(), [start + delay], "{start} + {delay}");
        }
    }
}

#[test]
fn periodic_jobs_cross_the_edge_of_a_count() {
    for start in BEFORE_EDGES {
        let manual = starting_at(start);
        let (rate, delay) = (CountingTask::default(), CountingTask::default());
        let scheduler = manual.scheduler();
        let job = scheduler.schedule_at_fixed_rate_fn(ticks(2), ticks(3), D, rate.handler());
        let job = job.expect("there is room");
        let other = scheduler.schedule_with_fixed_delay_fn(ticks(1), ticks(2), D, delay.handler());
        assert!(other.is_ok());
        manual.advance(ticks(11));
        assert_eq!(rate.on_time(), [2, 5, 8, 11].map(|at| start + at));
        assert_eq!(delay.on_time(), [1, 3, 5, 7, 9, 11].map(|at| start + at));
        assert!(job.cancel());
        manual.advance(ticks(4));
        assert_eq!((rate.on_time().len(), delay.on_time().len()), (4, 8));
    }
}

#[test]
fn a_stall_across_the_edge_of_a_count_is_made_up_for() {
    for start in BEFORE_EDGES {
        let manual = starting_at(start);
        let told = CountingTask::default();
        let scheduler = manual.scheduler();
        let job = scheduler.schedule_at_fixed_rate_fn(ticks(1), ticks(2), D, told.handler());
        assert!(job.is_ok());
        manual.clock().advance(ticks(10));
        assert_eq!(manual.run_due(), 5);
        let expected = [1, 3, 5, 7, 9].map(|due| (start + due, start + 10, 1));
        assert_eq!(told.all(), expected);
    }
}

#[test]
fn jobs_of_one_tick_keep_their_order_across_the_edge_of_a_count() {
    for start in BEFORE_EDGES {
        let manual = starting_at(start);
        let (tell, told) = std::sync::mpsc::channel();
        // All are due at one tick, behind the edge; registered near and far from it.
        for job in 0..200 {
            let tell = tell.clone();
            let left = (1 << 20) + 200 - job;
            let scheduler = manual.scheduler();
            let job = scheduler.schedule_once_fn(ticks(left), D, move |_| tell.send(job));
            assert!(job.is_ok());
            manual.advance(ticks(1));
        }
        assert_eq!(manual.advance(ticks(1 << 20)), 200);
        assert!(told.try_iter().eq(0..200), "from {start}");
    }
}

/// The clock itself is near the end of its count, and counts finer than the scheduler.
#[test]
fn a_fine_clock_crosses_the_edge_of_a_count() {
    let micros = Duration::from_micros;
    for start in [(1 << 32) - 7, (1 << 63) - 7, u64::MAX - 100_000] {
        let fine = Fine::new(start, Resolution::MICRO);
        let told = CountingTask::default();
        let job = fine.scheduler.schedule_once_fn(micros(20_001), D, told.handler());
        assert!(job.is_ok());
        // The first edge of a tick that is not before the delay is over.
        let edge = (start + 20_001).next_multiple_of(10_000);
        fine.clock.advance(micros(edge - start - 1));
        assert_eq!(fine.turn().ran, 0, "a microsecond early");
        fine.clock.advance(micros(1));
        assert_eq!(fine.turn().ran, 1);
        assert_eq!(told.all(), [(edge / 10_000, edge, 1)]);
    }
}

/// What is published of the next wake-up has few bits: it must tell earlier from later at any time.
#[test]
fn the_runner_is_called_for_what_is_earlier_and_not_for_what_is_later() {
    let near = [(1 << 29) - 3, (1 << 30) - 3, (1 << 31) - 3, (1 << 32) - 3, (1 << 63) - 3];
    for start in near.into_iter().chain([0, 1, u64::MAX - (1 << 20)]) {
        let fine = Fine::new(start, Resolution::TEN_MILLIS);
        let schedule = |delay| {
            let job = fine.scheduler.schedule_once_fn(ticks(delay), D, |_| ());
            assert!(job.is_ok());
            fine.was_called()
        };
        assert!(schedule(100), "from {start}: nothing was scheduled before");
        assert!(!schedule(101), "from {start}");
        assert!(!schedule(100), "from {start}: the first of a tick has called");
        assert!(!schedule(1 << 19), "from {start}");
        assert!(schedule(99), "from {start}");
        assert!(schedule(1), "from {start}");
        assert!(!schedule(2), "from {start}");
        // Once it has slept and woken, it is called for what is earlier than its next wake-up.
        fine.clock.advance(ticks(1));
        assert_eq!((fine.turn().ran, fine.turn().next_wake), (1, Some(Tick::new(start + 2))));
        assert!(!schedule(1), "from {start}");
        fine.clock.advance(ticks(1));
        assert_eq!((fine.turn().ran, fine.turn().next_wake), (2, Some(Tick::new(start + 99))));
        assert!(!schedule(97) && schedule(96), "from {start}");
    }
}

#[test]
fn at_the_end_of_the_count_a_delay_beyond_it_is_refused() {
    let manual = starting_at(u64::MAX - 20);
    let told = CountingTask::default();
    let refused = manual.scheduler().schedule_once_fn(ticks(21), D, told.handler());
    assert_eq!(refused.map_err(|error| error.kind()).err(), Some(ScheduleErrorKind::InvalidDelay));
    let last = manual.scheduler().schedule_once_fn(ticks(20), D, told.handler());
    assert!(last.is_ok());
    assert_eq!(manual.advance(ticks(19)), 0);
    assert_eq!(manual.advance(ticks(1)), 1);
    assert_eq!(told.on_time(), [u64::MAX]);
    assert!(!manual.clock().is_saturated());
}

#[test]
fn at_the_end_of_the_count_periodic_jobs_have_no_next_run() {
    let manual = starting_at(u64::MAX - 20);
    let scheduler = manual.scheduler();
    let (rate, delay) = (CountingTask::default(), CountingTask::default());
    let jobs = [
        scheduler.schedule_at_fixed_rate_fn(ticks(6), ticks(7), D, rate.handler()).ok(),
        scheduler.schedule_with_fixed_delay_fn(ticks(5), ticks(5), D, delay.handler()).ok(),
    ];
    manual.advance(Duration::MAX);
    assert_eq!(manual.clock().now().tick(), Tick::MAX);
    assert_eq!(rate.on_time(), [14, 7, 0].map(|left| u64::MAX - left));
    assert_eq!(delay.on_time(), [15, 10, 5, 0].map(|left| u64::MAX - left));
    assert_eq!(manual.advance(ticks(1)) + manual.run_due(), 0, "time stands still");
    for job in jobs {
        assert!(job.expect("there is room").cancel(), "they wait, and can be cancelled");
    }
    let metrics = scheduler.metrics();
    assert_eq!((metrics.active_total, metrics.cancelled_total), (0, 2));
}

#[test]
fn at_the_end_of_the_count_a_stall_is_made_up_for() {
    let manual = starting_at(u64::MAX - 20);
    let told = CountingTask::default();
    let job = manual.scheduler().schedule_at_fixed_rate_fn(ticks(1), ticks(5), D, told.handler());
    assert!(job.is_ok());
    manual.clock().advance(ticks(100));
    assert!(manual.clock().is_saturated());
    assert_eq!(manual.run_due(), 4);
    assert_eq!(told.all(), [19, 14, 9, 4].map(|left| (u64::MAX - left, u64::MAX, 1)));
}
