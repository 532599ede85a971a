//! The judges of a log find what is wrong with it.

use clockjack_sched::{
    JobNumber, LogKind, LogRecord,
    properties::{FixedRate, PropertyError, cancelled_never_ran, fixed_rate_grid, monotonic},
};
use clockjack_time::{Resolution, Tick};

fn record(kind: LogKind, number: u64, deadline: u64, at: u64) -> LogRecord {
    let (deadline, at) = (Tick::new(deadline), Tick::new(at));
    let job = JobNumber { shard: 0, number };
    LogRecord { kind, job, scheduled_at: Tick::ZERO, deadline, at, runs: 1, executor: 0 }
}

fn schedule(number: u64, deadline: u64, at: u64) -> LogRecord {
    record(LogKind::Schedule, number, deadline, at)
}

fn fire(number: u64, deadline: u64, at: u64) -> LogRecord {
    record(LogKind::Fire, number, deadline, at)
}

fn cancel(number: u64, deadline: u64, at: u64) -> LogRecord {
    record(LogKind::Cancel, number, deadline, at)
}

#[test]
fn a_log_in_order_is_accepted() {
    let log = [schedule(1, 5, 0), schedule(2, 5, 0), fire(1, 5, 5), fire(2, 5, 5), fire(1, 6, 6)];
    assert_eq!(monotonic(&log, None), Ok(()));
}

#[test]
fn time_that_goes_back_is_found() {
    let log = [schedule(1, 9, 3), schedule(2, 9, 2)];
    let [before, after] = log;
    assert_eq!(monotonic(&log, None), Err(PropertyError::TimeWentBack { before, after }));
    // In another shard it is another time.
    let mut elsewhere = log;
    elsewhere[1].job.shard = 1;
    assert_eq!(monotonic(&elsewhere, None), Ok(()));
}

#[test]
fn an_early_run_is_found_unless_it_ran_at_the_close() {
    let log = [schedule(1, 9, 3), fire(1, 9, 8)];
    assert_eq!(monotonic(&log, None), Err(PropertyError::FiredEarly { fire: log[1] }));
    assert_eq!(monotonic(&log, Some(Tick::new(8))), Ok(()));
    assert_eq!(
        monotonic(&log, Some(Tick::new(9))),
        Err(PropertyError::FiredEarly { fire: log[1] })
    );
}

#[test]
fn runs_out_of_order_are_found() {
    for (before, after) in [(fire(1, 6, 9), fire(2, 5, 9)), (fire(2, 5, 9), fire(1, 5, 9))] {
        let found = Err(PropertyError::OutOfOrder { before, after });
        assert_eq!(monotonic(&[before, after], None), found);
    }
}

#[test]
fn runs_of_a_job_that_is_behind_may_come_between_others() {
    let log = [fire(1, 2, 9), fire(2, 5, 9), fire(1, 4, 9), fire(1, 6, 9), fire(3, 7, 9)];
    assert_eq!(monotonic(&log, None), Ok(()));
}

#[test]
fn a_run_behind_a_cancel_is_found() {
    let log = [schedule(1, 5, 0), cancel(1, 5, 2), schedule(2, 5, 2), fire(1, 5, 5)];
    let found = PropertyError::RanAfterCancel { cancel: log[1], fire: log[3] };
    assert_eq!(cancelled_never_ran(&log), Err(found));
    assert!(found.to_string().contains("ran after its cancel"), "{found}");
    assert_eq!(cancelled_never_ran(&log[..3]), Ok(()));
}

#[test]
fn a_second_cancel_is_found() {
    let log = [fire(1, 5, 5), cancel(1, 7, 6), cancel(1, 7, 6)];
    let [_, first, second] = log;
    assert_eq!(cancelled_never_ran(&log), Err(PropertyError::CancelledTwice { first, second }));
}

/// A period of two ticks and a half: due at 5, 8, 10 and 13.
const RATE: FixedRate = FixedRate {
    job: JobNumber { shard: 0, number: 1 },
    period: core::time::Duration::from_millis(25),
    resolution: Resolution::TEN_MILLIS,
};

#[test]
fn a_rate_on_its_grid_is_accepted() {
    let mut log =
        [schedule(1, 5, 0), fire(1, 5, 5), fire(2, 6, 6), fire(1, 8, 14), fire(1, 13, 14)];
    log[3].runs = 2;
    assert_eq!(fixed_rate_grid(&log, &RATE, Some(Tick::new(14))), Ok(4));
}

#[test]
fn a_run_off_the_grid_is_found() {
    let log = [schedule(1, 5, 0), fire(1, 5, 5), fire(1, 7, 8)];
    let found = PropertyError::OffGrid { fire: log[2], expected: Tick::new(8) };
    assert_eq!(fixed_rate_grid(&log, &RATE, None), Err(found));
}

#[test]
fn runs_that_are_missing_are_found() {
    let log = [schedule(1, 5, 0), fire(1, 5, 5), fire(1, 8, 9)];
    for (by, due) in [(10, 3), (12, 3), (13, 4)] {
        let by = Tick::new(by);
        let found = PropertyError::RunsMissed { job: RATE.job, ran: 2, due, by };
        assert_eq!(fixed_rate_grid(&log, &RATE, Some(by)), Err(found));
    }
    assert_eq!(fixed_rate_grid(&log, &RATE, Some(Tick::new(9))), Ok(2));
    assert_eq!(fixed_rate_grid(&log, &RATE, None), Ok(2), "nobody says by when");
}
