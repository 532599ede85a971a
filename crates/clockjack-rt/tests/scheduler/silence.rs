//! A driver that falls silent is notified of by somebody else, within a bounded time.

use core::{
    task::{Context, Waker},
    time::Duration,
};
use std::{
    sync::{Arc, mpsc},
    task::Wake,
    time::Instant,
};

use clockjack_rt::{
    PoolSchedulerConfig, ThreadScheduler,
    sched::{DiagnosticEvent, EventKinds, Scheduler, Subscription, Warning},
};

use crate::{ANY, LONG, eventually::eventually, impatient, ms, pool_with};

fn next_silence(warnings: &mut Subscription) -> Option<Duration> {
    core::iter::from_fn(|| warnings.try_next()).find_map(|event| match event {
        DiagnosticEvent::Warned(Warning::DriverSilent { silent_for }) => Some(silent_for),
        _ => None,
    })
}

/// Blocks whatever drives a scheduler with another job due, until that was notified of.
fn a_blocked_driver_is_told_of_once(scheduler: &Scheduler) {
    let mut warnings = scheduler.diagnostics().subscribe(EventKinds::WARNING, 64).unwrap();
    for _ in 0..2 {
        // Whoever watches finds nothing to watch for, and sleeps until it is called.
        std::thread::sleep(ms(200));
        let (hold, held) = mpsc::channel::<()>();
        let (begin, begun) = mpsc::channel();
        let block = move |_: &_| {
            begin.send(()).unwrap();
            _ = held.recv_timeout(LONG);
        };
        scheduler.schedule_once_fn(ms(1), ANY, block).unwrap();
        begun.recv().unwrap();
        let (sender, receiver) = mpsc::channel();
        scheduler.schedule_once_fn(ms(1), ANY, move |_| sender.send(())).unwrap();
        let start = Instant::now();
        let silent_for = loop {
            if let Some(silent_for) = next_silence(&mut warnings) {
                break silent_for;
            }
            assert!(start.elapsed() < LONG / 3, "nobody tells");
            // A reader without a pause holds the lock so often that the event may be counted as
            // missed.
            std::thread::sleep(ms(1));
        };
        assert!(silent_for >= ms(50), "{silent_for:?}");
        // Some looks more.
        std::thread::sleep(ms(200));
        assert_eq!(next_silence(&mut warnings), None, "it is told once");
        drop(hold);
        receiver.recv_timeout(LONG).expect("what was due runs then");
    }
}

#[test]
fn a_pool_whose_workers_all_block_is_told_of_as_silent_once() {
    let config = PoolSchedulerConfig { settings: impatient(), ..PoolSchedulerConfig::DEFAULT };
    let pool = pool_with(1, config);
    a_blocked_driver_is_told_of_once(pool.scheduler());
}

#[test]
fn a_thread_that_blocks_is_told_of_as_silent_once() {
    let driver = ThreadScheduler::start(impatient()).unwrap();
    a_blocked_driver_is_told_of_once(driver.scheduler());
}

#[test]
fn a_driver_that_has_slept_for_long_with_nothing_due_is_not_silent() {
    let config = PoolSchedulerConfig { settings: impatient(), ..PoolSchedulerConfig::DEFAULT };
    let pool = pool_with(1, config);
    let thread = ThreadScheduler::start(impatient()).unwrap();
    for scheduler in [pool.scheduler(), thread.scheduler()] {
        let mut warnings = scheduler.diagnostics().subscribe(EventKinds::WARNING, 64).unwrap();
        let (mut n_prompt, mut was_prompt) = (0, true);
        for _ in 0..100 {
            std::thread::sleep(ms(150));
            if !was_prompt {
                while next_silence(&mut warnings).is_some() {}
            }
            let (sender, receiver) = mpsc::channel();
            let begun = Instant::now();
            scheduler.schedule_once_fn(ms(0), ANY, move |_| sender.send(begun.elapsed())).unwrap();
            let took = receiver.recv_timeout(LONG).unwrap();
            let silence = next_silence(&mut warnings);
            // A machine that stands still for so long makes the driver silent indeed.
            was_prompt = begun.elapsed() < ms(50);
            if was_prompt {
                assert_eq!(silence, None, "it ran after {took:?}");
                n_prompt += 1;
            }
            if n_prompt == 3 {
                break;
            }
        }
        assert_eq!(n_prompt, 3, "the driver is never prompt");
    }
}

struct Panics;
impl Wake for Panics {
    fn wake(self: Arc<Self>) {
        panic!("a waker of a reader's");
    }
}

/// Makes the driver panic outside of all handlers, by the waker of somebody who reads.
fn a_waker_that_panics_ends_no_driver(scheduler: &Scheduler, restarts: &dyn Fn() -> u64) {
    let mut fires = scheduler.diagnostics().subscribe(EventKinds::FIRE, 64).unwrap();
    let waker = Waker::from(Arc::new(Panics));
    for n in 1..=3 {
        while fires.try_next().is_some() {}
        assert!(fires.poll_next(&mut Context::from_waker(&waker)).is_pending());
        let (sender, receiver) = mpsc::channel();
        scheduler.schedule_once_fn(ms(1), ANY, move |_| sender.send(())).unwrap();
        receiver.recv_timeout(LONG).expect("jobs run on");
        eventually("the driver was started again", || restarts() == n);
    }
}

#[test]
fn a_worker_goes_on_after_a_panic_outside_of_handlers() {
    let pool = pool_with(1, PoolSchedulerConfig::DEFAULT);
    a_waker_that_panics_ends_no_driver(pool.scheduler(), &|| pool.stats().source_panics);
}

#[test]
fn a_thread_goes_on_after_a_panic_outside_of_handlers() {
    let driver = ThreadScheduler::start(impatient()).unwrap();
    a_waker_that_panics_ends_no_driver(driver.scheduler(), &|| driver.restarts());
}

/// No timer of an operating system wakes a thread at the nanosecond, so a host that measures
/// reports some lateness within a few sleeps.
fn lateness_is_reported(scheduler: &Scheduler) {
    let (run, runs) = mpsc::channel();
    let job = move |_: &_| _ = run.send(());
    scheduler.schedule_at_fixed_rate_fn(ms(1), ms(2), ANY, job).unwrap();
    let is_reported = |()| !scheduler.diagnostics().driver_jitter().is_zero();
    assert!(runs.iter().take(200).any(is_reported), "each of 200 sleeps was exact");
}

#[test]
fn a_pool_and_a_thread_report_how_late_they_wake_up() {
    let pool = pool_with(1, PoolSchedulerConfig::DEFAULT);
    lateness_is_reported(pool.scheduler());
    let thread = ThreadScheduler::start(impatient()).unwrap();
    lateness_is_reported(thread.scheduler());
}
