//! One-shots: lines 1 to 8.

use std::sync::mpsc;

use clockjack_sched::SchedulerConfig;

use crate::support::{Bench, D, Notified, ms, secs};

#[test]
fn line_01_a_one_shot_runs_exactly_once() {
    let bench = Bench::new();
    let (tell, told) = mpsc::channel();
    // What is sent, and a closure of its own.
    let sent = bench.scheduler().schedule_once_fn(ms(300), D, move |_| tell.send("tick"));
    let closure = bench.once(ms(300));
    bench.advance(ms(100));
    assert!(told.try_recv().is_err() && closure.runs.n() == 0, "none by 100 ms");
    bench.advance(ms(190));
    assert!(told.try_recv().is_err() && closure.runs.n() == 0, "none by 290 ms");
    bench.advance(ms(10));
    assert_eq!(told.try_recv(), Ok("tick"));
    assert_eq!(closure.runs.times(), [300]);
    bench.advance(secs(2));
    assert!(told.try_recv().is_err(), "and never again");
    assert_eq!(closure.runs.n(), 1);
    assert!(sent.expect("there is room").is_completed());
}

#[test]
fn line_02_one_shots_that_are_cancelled_at_once_stay_silent() {
    let bench = Bench::new();
    let cancelled = || {
        let job = bench.once(secs(1));
        assert!(job.handle.cancel() && job.handle.is_cancelled());
        job
    };
    let jobs: Vec<_> = (0..10).map(|_| cancelled()).collect();
    // One that is not cancelled shows that time passes.
    let other = bench.once(secs(1));
    for _ in 0..200 {
        bench.advance(ms(10));
        assert!(jobs.iter().all(|job| job.runs.n() == 0));
    }
    assert!(jobs.iter().all(|job| job.handle.is_cancelled() && !job.handle.is_completed()));
    assert_eq!(other.runs.times(), [1_000]);
    let metrics = bench.scheduler().metrics();
    assert_eq!((metrics.active_total, metrics.cancelled_total, metrics.fired_total), (0, 10, 1));
}

#[test]
fn line_03_a_cancel_before_the_run_succeeds_once() {
    let bench = Bench::new();
    let job = bench.once(secs(10)).handle;
    assert!(!job.is_cancelled());
    assert!(job.cancel());
    assert!(job.is_cancelled());
    assert!(!job.cancel());
    assert!(job.is_cancelled());
}

#[test]
fn line_04_a_cancel_tells_the_task() {
    let bench = Bench::new();
    let (task, runs, cancels) = Notified::new(&bench);
    let job = bench.scheduler().schedule_once_task(ms(100), D, task).expect("there is room");
    assert!(job.cancel());
    bench.advance(ms(100));
    assert_eq!(cancels.n(), 1, "within 100 ms");
    bench.advance(secs(1));
    assert_eq!((cancels.n(), runs.n()), (1, 0), "once, and it never runs");
}

#[test]
fn line_05_a_cancel_after_the_run_fails() {
    let bench = Bench::new();
    let job = bench.once(ms(10));
    bench.advance(ms(10));
    assert_eq!(job.runs.n(), 1);
    for _ in 0..2 {
        assert!(!job.handle.cancel());
        assert!(!job.handle.is_cancelled());
    }
    assert!(job.handle.is_completed());
}

/// Pekko compares with the time of scheduling only. Here no timer comes before its delay is over,
/// nor more than a tick behind it; and each handler takes time of its own.
#[test]
fn line_06_no_timer_is_premature() {
    let bench = Bench::fine();
    let timers: Vec<_> = (0..300)
        .map(|_| {
            let scheduled_at = bench.now();
            let timer = bench.once(ms(20));
            bench.advance(ms(5));
            (scheduled_at, timer)
        })
        .collect();
    bench.advance(ms(20));
    assert!(bench.now() <= 3000);
    for (scheduled_at, timer) in timers {
        assert_eq!(timer.runs.times(), [scheduled_at + 20]);
    }
}

/// The same with handlers that take 3 ms: runs get late, and none is early or lost.
#[test]
fn line_06_no_timer_is_premature_behind_slow_handlers() {
    let bench = Bench::fine();
    let timers: Vec<_> = (0..300)
        .map(|_| {
            let (scheduled_at, runner) = (bench.now(), bench.runner());
            let (tell, told) = mpsc::channel();
            let job = bench.scheduler().schedule_once_fn(ms(20), D, move |fire| {
                let sent = tell.send((fire.now().ticks, fire.late()));
                runner.clock().advance(ms(3));
                sent
            });
            assert!(job.is_ok());
            bench.advance(ms(1));
            (scheduled_at, told)
        })
        .collect();
    bench.advance(secs(3));
    let mut before = 0;
    for (scheduled_at, told) in timers {
        let (ran_at, late) = told.try_recv().expect("all arrive");
        assert!(ran_at >= scheduled_at + 20, "{ran_at} for {scheduled_at}");
        assert_eq!(late, ms(ran_at - scheduled_at - 20));
        assert!(ran_at >= before + 3, "one after the other");
        before = ran_at;
    }
}

#[test]
fn line_07_a_delay_of_whole_revolutions_is_kept() {
    let bench = Bench::new();
    let job = bench.once(ms(3200));
    bench.advance(ms(3190));
    assert_eq!(job.runs.n(), 0);
    bench.advance(ms(1810));
    assert_eq!(job.runs.times(), [3200]);
    // A revolution of the wheel here is 64 ticks at the lowest level, and 64 of those at the next.
    for ticks in [64, 64 * 64, 64 * 64 * 64, 1 << 20] {
        let (begun, job) = (bench.now(), bench.once(ms(10 * ticks)));
        bench.advance(ms(10 * ticks));
        assert_eq!(job.runs.times(), [begun + 10 * ticks], "{ticks} ticks");
    }
}

#[test]
fn line_08_a_hundred_thousand_timers_all_arrive() {
    const N: u64 = 100_000;
    let config =
        SchedulerConfig { resolution: clockjack_time::Resolution::MILLI, ..Default::default() };
    let bench = Bench::with(config);
    let (tell, told) = mpsc::channel();
    let mut state = 1_u64;
    let mut shortest_and_longest = (u64::MAX, 0);
    for timer in 0..N {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let (delay, tell) = ((state >> 33) % 3000, tell.clone());
        let (shortest, longest) = shortest_and_longest;
        shortest_and_longest = (delay.min(shortest), delay.max(longest));
        let due = bench.now() + delay;
        let job = bench
            .scheduler()
            .schedule_once_fn(ms(delay), D, move |fire| tell.send((timer, due, fire.now().ticks)));
        assert!(job.is_ok());
        if timer % 100 == 0 {
            bench.advance(ms(1));
        }
    }
    bench.advance_to(clockjack_time::Tick::new(10_000));
    let mut seen = vec![false; usize::try_from(N).expect("it fits")];
    for (timer, due, at) in told.try_iter() {
        assert_eq!(due, at, "timer {timer}");
        let seen = &mut seen[usize::try_from(timer).expect("it fits")];
        assert!(!*seen, "timer {timer} came twice");
        *seen = true;
    }
    assert!(seen.iter().all(|seen| *seen), "all are delivered");
    assert_eq!(shortest_and_longest, (0, 2_999), "all delays occur, also none");
    let metrics = bench.scheduler().metrics();
    assert_eq!((metrics.active_total, metrics.fired_total), (0, N));
}
