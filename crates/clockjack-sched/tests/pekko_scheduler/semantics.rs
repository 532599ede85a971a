//! What a scheduler that is triggered explicitly promises besides its lines: one test per clause.

use std::{sync::mpsc, thread};

use clockjack_sched::HandlerError;

use crate::support::{Bench, D, Mode, Runs, ms, secs};

#[test]
fn due_is_a_deadline_not_later_than_the_new_time() {
    let bench = Bench::new();
    let job = bench.once(ms(50));
    assert_eq!(bench.advance(ms(40)), 0);
    assert_eq!(bench.advance(ms(10)), 1, "the deadline itself is included");
    assert_eq!(job.runs.times(), [50]);
}

#[test]
fn jobs_run_in_the_order_of_their_deadlines_on_the_calling_thread() {
    let bench = Bench::new();
    let (tell, told) = mpsc::channel();
    for delay in [300, 100, 200, 100, 20_000_000, 50] {
        let tell = tell.clone();
        let job = bench
            .scheduler()
            .schedule_once_fn(ms(delay), D, move |_| tell.send((delay, thread::current().id())));
        assert!(job.is_ok());
    }
    bench.advance(ms(20_000_000));
    let (order, threads): (Vec<_>, Vec<_>) = told.try_iter().unzip();
    assert_eq!(order, [50, 100, 100, 200, 300, 20_000_000]);
    assert!(threads.iter().all(|id| *id == thread::current().id()));
}

#[test]
fn the_clock_stands_at_each_jobs_own_deadline() {
    let bench = Bench::new();
    let jobs = [70, 10, 40].map(|delay| (delay, bench.once(ms(delay))));
    let rate = bench.every(Mode::FixedRate, ms(30), ms(30), ms(0));
    bench.advance(ms(100));
    for (delay, job) in jobs {
        assert_eq!(job.runs.times(), [delay]);
    }
    assert_eq!(rate.runs.times(), [30, 60, 90]);
    assert_eq!(bench.now(), 100, "and at the end where it was to go");
}

#[test]
fn work_that_a_job_schedules_runs_in_the_same_advance_if_it_is_due() {
    let bench = Bench::new();
    let (runs, runner) = (Runs::default(), bench.runner());
    let noted = runs.clone();
    let job = bench.scheduler().schedule_once_fn(ms(50), D, move |_| {
        for delay in [0, 30, 50, 60] {
            let (noted, at) = (noted.clone(), runner.clone());
            let job = runner.scheduler().schedule_once_fn(ms(delay), D, move |_| noted.note(&at));
            assert!(job.is_ok());
        }
        assert_eq!(noted.n(), 0, "nothing runs inside of a handler");
    });
    assert!(job.is_ok());
    assert_eq!(bench.advance(ms(100)), 4);
    assert_eq!(runs.times(), [50, 80, 100], "and 110 is not due yet");
    bench.advance(ms(10));
    assert_eq!(runs.times(), [50, 80, 100, 110]);
}

#[test]
fn without_initial_delay_a_job_runs_immediately() {
    let bench = Bench::new();
    bench.advance(ms(70));
    let once = bench.once(ms(0));
    assert_eq!(once.runs.times(), [70], "within the call");
    for mode in [Mode::FixedRate, Mode::FixedDelay] {
        let job = bench.every(mode, ms(0), ms(50), ms(0));
        assert_eq!(job.runs.times(), [70], "{mode:?}");
        assert!(job.handle.cancel());
    }
}

/// Also when something else is overdue: the overdue job runs first.
#[test]
fn without_initial_delay_a_job_runs_immediately_behind_what_is_overdue() {
    let bench = Bench::new();
    let overdue = bench.once(ms(20));
    bench.clock().advance(ms(50));
    let at_once = bench.once(ms(0));
    assert_eq!((overdue.runs.times(), at_once.runs.times()), (vec![50], vec![50]));
}

#[test]
fn a_failing_job_is_not_rescheduled() {
    for mode in [Mode::FixedRate, Mode::FixedDelay] {
        let bench = Bench::new();
        let (runs, runner) = (Runs::default(), bench.runner());
        let noted = runs.clone();
        mode.schedule(&bench, secs(1), secs(1), move |_| {
            noted.note(&runner);
            Err::<(), _>(HandlerError::new("no more"))
        });
        let other = bench.every(mode, secs(1), secs(1), ms(0));
        bench.advance(secs(5));
        assert_eq!(runs.n(), 1, "{mode:?}");
        assert_eq!(other.runs.n(), 5, "the others go on");
    }
}

#[test]
fn fixed_rate_periods_advance_from_the_nominal_deadline() {
    let bench = Bench::new();
    let rate = bench.every(Mode::FixedRate, ms(100), ms(100), ms(0));
    // There is no poll until 270 ms, so two runs are late; the third is on time again.
    bench.clock().advance(ms(270));
    assert_eq!(bench.run_due(), 2);
    bench.advance(ms(30));
    assert_eq!(rate.runs.times(), [270, 270, 300]);
}

/// Unlike a fixed rate, a fixed delay counts from where the run ended.
#[test]
fn fixed_delay_periods_advance_from_the_end_of_the_run() {
    let bench = Bench::new();
    let delay = bench.every(Mode::FixedDelay, ms(100), ms(100), ms(20));
    bench.clock().advance(ms(270));
    assert_eq!(bench.run_due(), 1);
    bench.advance(ms(200));
    assert_eq!(delay.runs.times(), [270, 390]);
}
