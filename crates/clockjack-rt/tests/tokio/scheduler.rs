//! A scheduler that a task of tokio's drives.

use core::time::Duration;
use std::{sync::mpsc, time::Instant};

use clockjack_rt::{
    BLOCKING_DISPATCHER, TokioScheduler,
    sched::{
        DiagnosticEvent, DispatcherId, EventKinds, FireContext, ScheduleErrorKind, SchedulerConfig,
        Warning,
    },
};
use clockjack_time::Resolution;
use tokio::runtime::{Builder, Runtime};

use crate::{LONG, dues::assert_four_jobs_run_when_they_are_due, one_thread, two_threads};

const ANY: DispatcherId = DispatcherId::DEFAULT;

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn start(runtime: &Runtime) -> TokioScheduler {
    let config = SchedulerConfig {
        resolution: Resolution::MILLI,
        driver_timeout: ms(50),
        ..SchedulerConfig::DEFAULT
    };
    TokioScheduler::spawn(config, runtime.handle()).unwrap()
}

#[test]
fn jobs_of_a_task_run_when_they_are_due_and_not_before() {
    let runtime = two_threads();
    let driver = start(&runtime);
    assert_eq!(driver.scheduler().metadata().driver, "tokio");
    assert_four_jobs_run_when_they_are_due(driver.scheduler());
    assert_eq!(driver.shutdown().executed, 4);
}

#[test]
fn a_task_reports_how_late_it_wakes_up() {
    let runtime = two_threads();
    let driver = start(&runtime);
    let scheduler = driver.scheduler();
    let (run, runs) = mpsc::channel();
    let job = move |_: &FireContext| _ = run.send(());
    scheduler.schedule_at_fixed_rate_fn(ms(1), ms(2), ANY, job).unwrap();
    // No timer of an operating system wakes a thread at the nanosecond.
    let is_reported = |()| !scheduler.diagnostics().driver_jitter().is_zero();
    assert!(runs.iter().take(200).any(is_reported), "each of 200 sleeps was exact");
}

#[test]
fn ticks_come_from_the_clock_and_not_from_the_polls() {
    // Held up for many periods, the grid and the number of runs stay.
    let runtime = one_thread();
    let driver = start(&runtime);
    let (sender, receiver) = mpsc::channel();
    let beat = move |fire: &FireContext| sender.send(fire.due().get());
    let job = driver.scheduler().schedule_at_fixed_rate_fn(ms(5), ms(5), ANY, beat).unwrap();
    runtime.block_on(async {
        tokio::time::sleep(ms(20)).await;
        std::thread::sleep(ms(100));
        tokio::time::sleep(ms(20)).await;
    });
    assert!(job.cancel());
    drop(runtime);
    let dues: Vec<_> = receiver.iter().collect();
    assert!(dues.len() >= 24, "{dues:?}");
    assert!(dues.windows(2).all(|pair| pair[1] - pair[0] == 5), "{dues:?}");
}

#[test]
fn a_runtime_that_ends_closes_the_scheduler() {
    let runtime = two_threads();
    let driver = start(&runtime);
    let job = driver.scheduler().schedule_at_fixed_rate_fn(ms(1), ms(1), ANY, |_| ()).unwrap();
    drop(runtime);
    assert!(job.is_cancelled() && driver.scheduler().is_closed());
    let refused = driver.scheduler().schedule_once_fn(ms(1), ANY, |_| ()).unwrap_err();
    assert_eq!(refused.kind(), ScheduleErrorKind::Closed);
}

#[test]
fn a_runtime_without_a_timer_is_refused_at_the_start() {
    let runtime = Builder::new_current_thread().build().unwrap();
    assert!(
        TokioScheduler::spawn(SchedulerConfig::DEFAULT, runtime.handle()).unwrap_err().is_thread()
    );
}

#[test]
fn a_blocking_dispatcher_runs_closures_off_the_task() {
    let runtime = one_thread();
    let driver = start(&runtime);
    let (sender, receiver) = tokio::sync::oneshot::channel();
    let (hold, held) = mpsc::channel::<()>();
    let wait = move |_: &_| _ = held.recv_timeout(LONG);
    let job = driver.scheduler().schedule_once_fn(ms(1), BLOCKING_DISPATCHER, wait).unwrap();
    let tell = move |_: &_| sender.send(()).unwrap();
    driver.scheduler().schedule_once_fn(ms(5), ANY, tell).unwrap();
    runtime.block_on(receiver).expect("it runs beside the one that blocks");
    assert!(!job.is_completed());
    drop(hold);
    drop(runtime);
    assert!(job.is_completed());
}

#[test]
fn a_task_that_is_not_polled_is_told_of_as_silent() {
    // Nobody drives this runtime.
    let runtime = one_thread();
    let driver = start(&runtime);
    let scheduler = driver.scheduler();
    let mut warnings = scheduler.diagnostics().subscribe(EventKinds::WARNING, 8).unwrap();
    scheduler.schedule_once_fn(ms(1), ANY, |_| ()).unwrap();
    let start = Instant::now();
    let event = loop {
        if let Some(event) = warnings.try_next() {
            break event;
        }
        assert!(start.elapsed() < LONG, "nobody tells");
        // A reader without a pause holds the lock so often that the event may be counted as missed.
        std::thread::sleep(ms(1));
    };
    let DiagnosticEvent::Warned(Warning::DriverSilent { silent_for }) = event else {
        panic!("{event}")
    };
    assert!(silent_for >= ms(50));
}
