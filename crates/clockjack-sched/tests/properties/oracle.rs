//! The oracle finds what is wrong with a run.

use core::time::Duration;

use clockjack_sched::{
    BatchMode, ExecutionBatch, JobState, Repeat,
    properties::{JobOracle, Property, PropertyError, Run},
};
use clockjack_time::{Resolution, Tick};

const ONCE: Repeat = Repeat::Once;
/// A period of two ticks and a half: due at 5, 8, 10 and 13.
const RATE: Repeat = Repeat::FixedRate(Duration::from_millis(25));
const DELAY: Repeat = Repeat::FixedDelay(Duration::from_millis(25));

/// An oracle with these jobs, each with its first run at this tick.
fn oracle(jobs: &[(Repeat, u64)]) -> JobOracle {
    let mut oracle = JobOracle::new(Resolution::TEN_MILLIS);
    for &(repeat, due) in jobs {
        let job = oracle.offer(repeat, Tick::new(due));
        oracle.accept(job);
    }
    oracle
}

fn mode(repeat: Repeat) -> BatchMode {
    match repeat {
        Repeat::Once => BatchMode::OneShot,
        Repeat::FixedRate(_) => BatchMode::FixedRate,
        Repeat::FixedDelay(_) => BatchMode::FixedDelay,
    }
}

fn begin(oracle: &mut JobOracle, job: usize, due: u64, now: u64) -> Result<(), PropertyError> {
    let batch = ExecutionBatch::single(mode(oracle.repeat(job)));
    oracle.begin(job, Run { due: Tick::new(due), now: Tick::new(now), batch })
}

/// A run that takes no time.
fn fire(oracle: &mut JobOracle, job: usize, due: u64, now: u64) -> Result<(), PropertyError> {
    begin(oracle, job, due, now)?;
    oracle.end(job, Tick::new(now), false);
    Ok(())
}

/// Runs take no time; the last one violates this property.
#[track_caller]
fn violates(oracle: &mut JobOracle, runs: &[(usize, u64, u64)], property: Property) {
    let (&(job, due, now), before) = runs.split_last().expect("a run");
    for &(job, due, now) in before {
        fire(oracle, job, due, now).expect("a run that is right");
    }
    let error = fire(oracle, job, due, now).expect_err("a run that is wrong");
    assert_eq!((error.property(), error.job()), (property, job), "{error}");
}

#[test]
fn runs_in_order_are_accepted() {
    let mut oracle = oracle(&[(ONCE, 5), (RATE, 5), (DELAY, 5)]);
    for (job, due, now) in [(0, 5, 5), (1, 5, 5), (2, 5, 6), (1, 8, 8), (2, 9, 9), (1, 10, 10)] {
        fire(&mut oracle, job, due, now).expect("a run that is right");
    }
    assert_eq!(oracle.check_settled(Tick::new(11)), Ok(()));
    assert_eq!(oracle.next_due(), Some(Tick::new(12)));
    assert_eq!([0, 1, 2].map(|job| oracle.runs(job)), [1, 3, 2]);
    assert_eq!(oracle.state(0), JobState::Completed);
    assert_eq!((oracle.n_live(), oracle.n_jobs()), (2, 3));
}

#[test]
fn an_early_fire_is_reported() {
    let error = fire(&mut oracle(&[(ONCE, 9)]), 0, 9, 8).expect_err("it is early");
    assert_eq!(error.property(), Property::NeverEarly);
    assert_eq!(error.to_string(), "job 0 ran at tick 8, before its deadline 9");
    // A run at the close may be early, if the job is marked.
    let mut closing = oracle(&[(ONCE, 9), (ONCE, 9)]);
    closing.mark_run_on_close(0);
    closing.close();
    assert_eq!(fire(&mut closing, 0, 9, 8), Ok(()));
    violates(&mut closing, &[(1, 9, 8)], Property::NeverEarly);
}

#[test]
fn several_runs_in_one_are_early_if_the_last_is() {
    for (now, result) in [(9, Err(Property::NeverEarly)), (10, Ok(()))] {
        let batch = ExecutionBatch::folded(2, BatchMode::FixedRate);
        let run = Run { due: Tick::new(5), now: Tick::new(now), batch };
        let found = oracle(&[(RATE, 5)]).begin(0, run);
        assert_eq!(found.map_err(|error| error.property()), result);
    }
}

#[test]
fn time_that_goes_back_is_found() {
    violates(&mut oracle(&[(ONCE, 5), (ONCE, 5)]), &[(0, 5, 9), (1, 5, 8)], Property::Monotonic);
}

#[test]
fn runs_out_of_order_are_found() {
    let both = &[(0, 6, 9), (1, 5, 9)];
    violates(&mut oracle(&[(ONCE, 6), (ONCE, 5)]), both, Property::InOrder);
    let both = &[(1, 5, 9), (0, 5, 9)];
    violates(&mut oracle(&[(ONCE, 5), (ONCE, 5)]), both, Property::InOrder);
}

#[test]
fn runs_of_a_job_that_is_behind_may_come_between_others() {
    let mut oracle = oracle(&[(RATE, 2), (ONCE, 5), (ONCE, 8)]);
    for (job, due) in [(0, 2), (1, 5), (0, 5), (0, 7), (2, 8)] {
        fire(&mut oracle, job, due, 9).expect("a run that is right");
    }
}

#[test]
fn a_run_off_the_grid_is_found() {
    violates(&mut oracle(&[(RATE, 5)]), &[(0, 5, 5), (0, 7, 8)], Property::OnGrid);
    violates(&mut oracle(&[(DELAY, 5)]), &[(0, 5, 6), (0, 8, 9)], Property::OnGrid);
}

#[test]
fn runs_that_are_missing_are_found() {
    let mut oracle = oracle(&[(RATE, 5)]);
    fire(&mut oracle, 0, 5, 5).expect("a run that is right");
    assert_eq!(oracle.check_settled(Tick::new(7)), Ok(()));
    let error = oracle.check_settled(Tick::new(8)).expect_err("a run is missing");
    assert_eq!(error.property(), Property::NothingLost);
    assert_eq!(error.to_string(), "job 0 was due at tick 8 and has not run by 8");
}

#[test]
fn a_run_too_many_is_found() {
    violates(&mut oracle(&[(ONCE, 5)]), &[(0, 5, 5), (0, 5, 5)], Property::RunsOnce);
    let mut oracle = oracle(&[(RATE, 5)]);
    begin(&mut oracle, 0, 5, 5).expect("a run that is right");
    let error = begin(&mut oracle, 0, 8, 8).expect_err("the first run has not ended");
    assert_eq!(error.property(), Property::NoOverlap);
    oracle.end(0, Tick::new(8), true);
    violates(&mut oracle, &[(0, 8, 9)], Property::RunsOnce);
}

#[test]
fn a_run_after_a_cancel_is_found() {
    let mut oracle = oracle(&[(ONCE, 5)]);
    assert_eq!(oracle.cancel(0, true), Ok(()));
    violates(&mut oracle, &[(0, 5, 5)], Property::CancelIsFinal);
    let refused = oracle.offer(ONCE, Tick::new(6));
    assert_eq!(oracle.refuse(refused), Ok(()));
    violates(&mut oracle, &[(refused, 6, 6)], Property::CancelIsFinal);
}

#[test]
fn a_wrong_answer_of_a_cancel_is_found() {
    let mut oracle = oracle(&[(ONCE, 5), (ONCE, 5), (RATE, 5)]);
    assert_eq!(oracle.cancel(0, true), Ok(()));
    assert!(oracle.cancel(0, true).is_err(), "a second cancel has succeeded");
    begin(&mut oracle, 1, 5, 5).expect("a run that is right");
    assert!(oracle.cancel(1, true).is_err(), "a one-shot that runs is not cancelled");
    oracle.end(1, Tick::new(5), false);
    assert!(oracle.cancel(1, true).is_err(), "it has completed");
    begin(&mut oracle, 2, 5, 5).expect("a run that is right");
    assert!(oracle.cancel(2, false).is_err(), "a periodic job is cancelled while it runs");
    assert_eq!(oracle.cancel(2, true), Ok(()));
    oracle.end(2, Tick::new(5), false);
    assert_eq!(oracle.state(2), JobState::Cancelled);
}

#[test]
fn a_wrong_batch_is_found() {
    for batch in [
        ExecutionBatch::single(BatchMode::OneShot),
        ExecutionBatch { missed_runs: 1, ..ExecutionBatch::single(BatchMode::FixedDelay) },
        ExecutionBatch::folded(1, BatchMode::FixedDelay),
    ] {
        let run = Run { due: Tick::new(5), now: Tick::new(9), batch };
        let found = oracle(&[(DELAY, 5)]).begin(0, run).map_err(|error| error.property());
        assert_eq!(found, Err(Property::Batch), "{batch}");
    }
}
