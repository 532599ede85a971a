//! A scheduler that is triggered explicitly: lines 21 to 28.

use crate::support::{Bench, Mode, ms, secs};

const BOTH: [Mode; 2] = [Mode::FixedRate, Mode::FixedDelay];

#[test]
fn line_21_a_periodic_job_without_initial_delay_runs_three_times_in_12_s() {
    for mode in BOTH {
        let bench = Bench::new();
        let job = bench.every(mode, secs(0), secs(5), ms(0));
        bench.advance(secs(12));
        assert_eq!(job.runs.times(), [0, 5000, 10_000], "{mode:?}");
    }
}

#[test]
fn line_22_a_periodic_job_with_an_initial_delay_runs_twice_in_12_s() {
    for mode in BOTH {
        let bench = Bench::new();
        let job = bench.every(mode, secs(5), secs(5), ms(0));
        bench.advance(secs(12));
        assert_eq!(job.runs.times(), [5000, 10_000], "{mode:?}");
    }
}

#[test]
fn line_23_a_one_shot_runs_once_in_100_s() {
    let bench = Bench::new();
    let job = bench.once(secs(5));
    bench.advance(secs(100));
    assert_eq!(job.runs.times(), [5000]);
}

#[test]
fn line_24_three_identical_one_shots_run_three_times() {
    let bench = Bench::new();
    let jobs = [bench.once(secs(1)), bench.once(secs(1)), bench.once(secs(1))];
    assert_eq!(bench.advance(secs(1)), 3);
    assert!(jobs.iter().all(|job| job.runs.times() == [1000]));
}

#[test]
fn line_25_a_cancelled_job_stays_at_one_run() {
    for mode in BOTH {
        let bench = Bench::new();
        let job = bench.every(mode, secs(5), secs(5), ms(0));
        bench.advance(secs(7));
        assert_eq!(job.runs.n(), 1);
        assert!(job.handle.cancel());
        bench.advance(secs(4));
        assert_eq!((bench.now(), job.runs.n()), (11_000, 1), "{mode:?}");
    }
}

#[test]
fn line_26_cancelling_one_of_three_leaves_two() {
    for mode in BOTH {
        let bench = Bench::new();
        let jobs = [(); 3].map(|()| bench.every(mode, secs(5), secs(5), ms(0)));
        let n = || jobs.iter().map(|job| job.runs.n()).sum::<usize>();
        bench.advance(secs(7));
        assert_eq!(n(), 3);
        assert!(jobs[0].handle.cancel());
        bench.advance(secs(4));
        assert_eq!(n(), 5, "{mode:?}");
    }
}

#[test]
fn line_27_a_job_that_is_cancelled_at_once_never_runs() {
    for mode in BOTH {
        let bench = Bench::new();
        let job = bench.every(mode, secs(5), secs(5), ms(0));
        assert!(job.handle.cancel());
        bench.advance(secs(100));
        assert_eq!(job.runs.n(), 0, "{mode:?}");
    }
}

#[test]
fn line_28_time_may_move_many_times() {
    for mode in BOTH {
        let bench = Bench::new();
        let job = bench.every(mode, secs(5), secs(5), ms(0));
        for (by, expected) in [(7, 1), (1, 1), (10, 3)] {
            bench.advance(secs(by));
            assert_eq!(job.runs.n(), expected, "{mode:?} at {} ms", bench.now());
        }
    }
}

/// Steps below a tick add up: ten of 1 ms are one tick.
#[test]
fn line_28_time_may_move_by_less_than_a_tick() {
    let bench = Bench::new();
    let job = bench.once(ms(20));
    for _ in 0..19 {
        assert_eq!(bench.advance(ms(1)), 0, "at {} ms", bench.now());
    }
    assert_eq!(bench.advance(ms(1)), 1);
    assert_eq!(job.runs.times(), [20]);
    bench.advance(ms(25));
    bench.advance(ms(25));
    assert_eq!(bench.now(), 70);
}
