//! Periodic jobs, of both kinds: lines 11 to 15, and 17.

use clockjack_sched::{HandlerError, JobState, ScheduleErrorKind, Warning};

use crate::support::{Bench, Mode, Notified, Runs, ms, secs, warned};

/// Fails at the run with this number, with this error.
fn check_stops(mode: Mode, at_run: usize, error: fn() -> HandlerError) {
    let bench = Bench::new();
    let mut warnings = bench.warnings();
    let (runs, runner) = (Runs::default(), bench.runner());
    let noted = runs.clone();
    let job = mode.schedule(&bench, ms(20), ms(20), move |_| {
        noted.note(&runner);
        if noted.n() == at_run {
            let error = error();
            assert!(!error.is_panic(), "of its own accord");
            return Err(error);
        }
        Ok(())
    });
    bench.advance(ms(20 * at_run as u64));
    let expected: Vec<_> = (1..=at_run as u64).map(|run| 20 * run).collect();
    assert_eq!(runs.times(), expected);
    bench.advance(ms(200));
    assert_eq!(runs.n(), at_run, "nothing for 200 ms");
    let told = warned(&mut warnings);
    let [Warning::HandlerFailed { error: told, batch, .. }] = told.as_slice() else {
        panic!("told exactly once: {told:?}");
    };
    assert_eq!((told.text(), batch.runs.get()), (error().text(), 1));
    assert_eq!(job.state(), JobState::Completed);
    assert!(!job.is_cancelled() && !job.cancel());
    assert_eq!(bench.scheduler().metrics().active_total, 0);
}

fn check_stops_at_panic(mode: Mode) {
    let bench = Bench::new();
    let mut warnings = bench.warnings();
    let (runs, runner) = (Runs::default(), bench.runner());
    let noted = runs.clone();
    mode.schedule(&bench, ms(20), ms(20), move |_| {
        noted.note(&runner);
        assert!(noted.n() < 3, "the third is one too many");
    });
    let other = bench.every(mode, ms(20), ms(20), ms(0));
    bench.advance(ms(260));
    assert_eq!(runs.times(), [20, 40, 60]);
    assert_eq!(other.runs.n(), 13, "another job is not affected");
    let told = warned(&mut warnings);
    assert!(
        matches!(&told[..], [Warning::HandlerFailed { error, .. }] if error.is_panic()),
        "{told:?}"
    );
}

fn broken() -> HandlerError {
    HandlerError::new("the handler is broken")
}

#[test]
fn line_11_fixed_rate_stops_when_the_body_fails() {
    check_stops(Mode::FixedRate, 3, broken);
    check_stops_at_panic(Mode::FixedRate);
}

#[test]
fn line_11_fixed_delay_stops_when_the_body_fails() {
    check_stops(Mode::FixedDelay, 3, broken);
    check_stops_at_panic(Mode::FixedDelay);
}

/// The error that the scheduler itself gives where Pekko throws an `IllegalStateException`.
fn closed() -> HandlerError {
    HandlerError::from_display(&ScheduleErrorKind::Closed)
}

#[test]
fn line_12_fixed_rate_stops_at_the_schedulers_own_error() {
    check_stops(Mode::FixedRate, 1, closed);
    check_stops(Mode::FixedRate, 3, closed);
}

#[test]
fn line_12_fixed_delay_stops_at_the_schedulers_own_error() {
    check_stops(Mode::FixedDelay, 1, closed);
    check_stops(Mode::FixedDelay, 3, closed);
}

fn check_cancel_during_initial_delay(mode: Mode) {
    let bench = Bench::new();
    let job = bench.every(mode, ms(200), ms(10), ms(0));
    bench.advance(ms(10));
    assert!(job.handle.cancel());
    bench.advance(secs(1));
    assert_eq!(job.runs.n(), 0);
    assert!(job.handle.is_cancelled() && !job.handle.cancel());
}

#[test]
fn line_13_fixed_rate_is_cancelled_during_the_initial_delay() {
    check_cancel_during_initial_delay(Mode::FixedRate);
}

#[test]
fn line_13_fixed_delay_is_cancelled_during_the_initial_delay() {
    check_cancel_during_initial_delay(Mode::FixedDelay);
}

fn check_cancel_after_first_run(mode: Mode) {
    let bench = Bench::new();
    let job = bench.every(mode, ms(90), ms(500), ms(0));
    bench.advance(ms(290));
    assert!(job.handle.cancel());
    bench.advance(secs(2));
    assert_eq!(job.runs.times(), [90]);
    assert!(job.handle.is_cancelled() && !job.handle.cancel());
}

#[test]
fn line_14_fixed_rate_is_cancelled_after_the_first_run() {
    check_cancel_after_first_run(Mode::FixedRate);
}

#[test]
fn line_14_fixed_delay_is_cancelled_after_the_first_run() {
    check_cancel_after_first_run(Mode::FixedDelay);
}

fn check_cancel_tells(mode: Mode) {
    let bench = Bench::new();
    let (task, runs, cancels) = Notified::new(&bench);
    let job = mode.schedule_task(&bench, ms(90), ms(500), task);
    bench.advance(ms(290));
    assert_eq!((runs.n(), cancels.n()), (1, 0));
    assert!(job.cancel());
    bench.advance(ms(100));
    assert_eq!(cancels.n(), 1, "within 100 ms");
    bench.advance(secs(2));
    assert_eq!((runs.n(), cancels.n()), (1, 1));
}

#[test]
fn line_15_fixed_rate_is_told_of_a_cancel_after_the_first_run() {
    check_cancel_tells(Mode::FixedRate);
}

#[test]
fn line_15_fixed_delay_is_told_of_a_cancel_after_the_first_run() {
    check_cancel_tells(Mode::FixedDelay);
}

/// Pekko allows 1,750 ms ± 250 ms for the third; in virtual time each run is exact.
fn check_initial_delay_and_period(mode: Mode) {
    let bench = Bench::new();
    let job = bench.every(mode, secs(1), ms(300), ms(0));
    bench.advance(secs(2));
    assert_eq!(job.runs.times(), [1000, 1300, 1600, 1900]);
}

#[test]
fn line_17_fixed_rate_has_another_initial_delay_than_its_period() {
    check_initial_delay_and_period(Mode::FixedRate);
}

#[test]
fn line_17_fixed_delay_has_another_initial_delay_than_its_period() {
    check_initial_delay_and_period(Mode::FixedDelay);
}
