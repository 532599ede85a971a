//! Periodic jobs.

use core::time::Duration;
use std::{
    sync::mpsc::{self, RecvTimeoutError},
    time::Instant,
};

use clockjack_rt::sched::{
    Cancellable, DiagnosticEvent, EventKinds, FireContext, Scheduler, Warning,
};

use crate::{ANY, LONG, calm_pool, ms};

/// What a body that fails in its third run does to its job.
fn ends_with_its_third_run(scheduler: &Scheduler, is_fixed_rate: bool) {
    let mut warnings = scheduler.diagnostics().subscribe(EventKinds::WARNING, 64).unwrap();
    let (sender, receiver) = mpsc::channel();
    let mut runs = 0;
    let body = move |_: &FireContext| {
        runs += 1;
        sender.send(runs).unwrap();
        assert!(runs < 3, "the third");
    };
    let job: Cancellable = if is_fixed_rate {
        scheduler.schedule_at_fixed_rate_fn(ms(20), ms(20), ANY, body).unwrap()
    } else {
        scheduler.schedule_with_fixed_delay_fn(ms(20), ms(20), ANY, body).unwrap()
    };
    for run in 1..=3 {
        assert_eq!(receiver.recv_timeout(LONG), Ok(run));
    }
    // The body is dropped with its job, so nothing can come any more.
    assert_eq!(receiver.recv_timeout(LONG), Err(RecvTimeoutError::Disconnected));
    assert!(job.is_completed() && !job.is_cancelled());
    let failures = core::iter::from_fn(|| warnings.try_next()).filter(|event| {
        matches!(event, DiagnosticEvent::Warned(Warning::HandlerFailed { error, .. })
            if error.is_panic() && error.text() == "the third")
    });
    assert_eq!(failures.count(), 1);
}

#[test]
fn line_11_a_body_that_throws_ends_its_fixed_rate() {
    let (pool, _calm) = calm_pool();
    ends_with_its_third_run(pool.scheduler(), true);
}

#[test]
fn line_11_a_body_that_throws_ends_its_fixed_delay() {
    let (pool, _calm) = calm_pool();
    ends_with_its_third_run(pool.scheduler(), false);
}

/// How often a rate is measured, until it is right once: a machine may stand still for a while, but
/// a scheduler that keeps another rate keeps it each time.
const TRIALS: usize = 4;

/// Whether so many runs come at `rate` a second, by less than `off` beside it, and within the time.
fn check_rate(
    n_runs: u32,
    schedule: impl Fn(mpsc::Sender<()>) -> Cancellable,
    at_most: Duration,
    (rate, off): (f64, f64),
) {
    let measure = || {
        let (sender, receiver) = mpsc::channel();
        let begun = Instant::now();
        let job = schedule(sender);
        for _ in 0..n_runs {
            receiver.recv_timeout(LONG).unwrap();
        }
        let took = begun.elapsed();
        assert!(job.cancel());
        took
    };
    let is_right = |took: &Duration| {
        let measured = f64::from(n_runs) / took.as_secs_f64();
        *took < at_most && (measured - rate).abs() < off
    };
    let mut times = Vec::new();
    while !times.last().is_some_and(is_right) {
        assert!(times.len() < TRIALS, "{n_runs} runs at {rate} a second took {times:?}");
        times.push(measure());
    }
}

#[test]
fn line_18_a_fixed_rate_makes_up_for_late_runs() {
    let (pool, _calm) = calm_pool();
    let schedule = |sender: mpsc::Sender<()>| {
        let beat = move |_: &FireContext| sender.send(());
        pool.scheduler().schedule_at_fixed_rate_fn(ms(25), ms(25), ANY, beat).unwrap()
    };
    check_rate(200, schedule, ms(6_000), (40.0, 4.0));
}

fn long_body(
    sender: mpsc::Sender<()>,
) -> impl FnMut(&FireContext) -> Result<(), mpsc::SendError<()>> {
    move |_| {
        std::thread::sleep(ms(100));
        sender.send(())
    }
}

#[test]
fn line_19_a_fixed_rate_is_not_slowed_by_a_long_body() {
    let (pool, _calm) = calm_pool();
    let schedule = |sender| {
        let scheduler = pool.scheduler();
        scheduler.schedule_at_fixed_rate_fn(ms(225), ms(225), ANY, long_body(sender)).unwrap()
    };
    check_rate(22, schedule, ms(6_000), (4.4, 0.5));
}

#[test]
fn line_20_a_fixed_delay_counts_from_completion() {
    let (pool, _calm) = calm_pool();
    let (sender, receiver) = mpsc::channel();
    let body = move |_: &FireContext| {
        sender.send(Instant::now()).unwrap();
        std::thread::sleep(ms(100));
    };
    let job = pool.scheduler().schedule_with_fixed_delay_fn(ms(125), ms(125), ANY, body).unwrap();
    let starts: Vec<_> = (0..12).map(|_| receiver.recv_timeout(LONG).unwrap()).collect();
    assert!(job.cancel());
    // What delays a run is not made up for; so the rate is that of the runs that nothing delayed.
    let shortest = starts.windows(2).map(|pair| pair[1] - pair[0]).min().unwrap();
    assert!(shortest >= ms(225), "only {shortest:?} from a run to the next");
    let rate = 1.0 / shortest.as_secs_f64();
    assert!((rate - 4.4).abs() < 0.5, "{rate} a second");
}
