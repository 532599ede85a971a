//! A driver that supplies no ticks is reported, and the fallback of the board starts.

use alloc::sync::Arc;
use core::{
    cell::Cell,
    sync::atomic::{AtomicU32, Ordering::SeqCst},
    task::Waker,
    time::Duration,
};

use clockjack_sched::{RunnerLoop, SchedulerConfig, Warning};
use clockjack_time::{InterruptDriver, ManualClock, MonotonicClock, Resolution};

use crate::support::{MILLIS, interrupts, leak, ms, next_warning, once, warnings};

/// A board with a second source of time.
struct Board {
    driver: &'static InterruptDriver,
    reference: &'static ManualClock,
    runner: RunnerLoop,
}

#[derive(Clone, Copy, Debug)]
enum Interrupt {
    Comes,
    IsLost,
}

use Interrupt::{Comes, IsLost};

std::thread_local! {
    /// How often the fallback was started by this thread, and for which silence.
    static FALLBACKS: Cell<(u32, Duration)> = const { Cell::new((0, Duration::ZERO)) };
}

fn fallback(silent_for: Duration) {
    FALLBACKS.set((FALLBACKS.get().0 + 1, silent_for));
}

impl Board {
    /// Ticks of a millisecond, and silences from 100 ms on.
    fn new() -> Self {
        let driver = leak(InterruptDriver::new(Resolution::MILLI));
        let reference = leak(ManualClock::new(Resolution::MILLI));
        let config = SchedulerConfig { driver_timeout: ms(100), ..MILLIS };
        let started = RunnerLoop::start(config, driver, driver, Waker::noop().clone());
        let mut runner = started.expect("a fresh driver");
        runner.watch(reference, fallback);
        Self { driver, reference, runner }
    }

    fn pass_ms(&mut self, n: u64, interrupt: Interrupt) {
        for _ in 0..n {
            self.reference.advance(ms(1));
            if matches!(interrupt, Comes) {
                interrupts(self.driver, 1);
            }
        }
    }

    /// Lets time pass, with a poll each 10 ms, by a watchdog.
    fn run_ms(&mut self, n: u64, interrupt: Interrupt) {
        for _ in 0..n / 10 {
            self.pass_ms(10, interrupt);
            self.runner.poll();
        }
    }

    fn now(&self) -> u64 {
        self.driver.now().ticks
    }
}

#[test]
fn a_silent_driver_is_told_in_bounded_time_and_once_for_each_silence() {
    let mut board = Board::new();
    let mut told = warnings(&board.runner);
    board.run_ms(500, Comes);
    assert_eq!(next_warning(&mut told), None);
    for silences in 1..=2 {
        board.run_ms(100, IsLost);
        assert_eq!(next_warning(&mut told), None, "not longer than allowed");
        board.run_ms(10, IsLost);
        let silent = Warning::DriverSilent { silent_for: ms(110) };
        assert_eq!(next_warning(&mut told), Some(silent));
        assert_eq!(FALLBACKS.get(), (silences, ms(110)), "the fallback starts with the report");
        board.run_ms(1_000, IsLost);
        assert_eq!(next_warning(&mut told), None, "once");
        board.run_ms(1_000, Comes);
        assert_eq!(next_warning(&mut told), None);
        assert_eq!(FALLBACKS.get().0, silences);
    }
}

#[test]
fn a_driver_that_never_began_is_told_too() {
    let mut board = Board::new();
    let mut told = warnings(&board.runner);
    board.run_ms(110, IsLost);
    assert!(matches!(next_warning(&mut told), Some(Warning::DriverSilent { .. })));
}

#[test]
fn a_loop_that_was_away_does_not_take_that_for_a_silence() {
    let mut board = Board::new();
    let mut told = warnings(&board.runner);
    board.pass_ms(90, Comes);
    board.runner.poll();
    board.pass_ms(30_000, Comes);
    board.runner.poll();
    let told: Vec<_> = core::iter::from_fn(|| next_warning(&mut told)).collect();
    assert!(!told.iter().any(|w| matches!(w, Warning::DriverSilent { .. })), "{told:?}");
    assert_eq!(FALLBACKS.get().0, 0);
}

#[test]
fn a_stopped_driver_is_not_called_silent() {
    let mut board = Board::new();
    let mut told = warnings(&board.runner);
    board.runner.stop();
    board.run_ms(1_000, IsLost);
    assert_eq!(next_warning(&mut told), None);
}

#[test]
fn a_silence_that_is_shorter_than_two_ticks_is_none() {
    let driver = leak(InterruptDriver::new(Resolution::TEN_MILLIS));
    let reference = leak(ManualClock::new(Resolution::MILLI));
    let config = SchedulerConfig { driver_timeout: Duration::ZERO, ..SchedulerConfig::DEFAULT };
    let started = RunnerLoop::start(config, driver, driver, Waker::noop().clone());
    let mut runner = started.expect("a fresh driver");
    runner.watch(reference, fallback);
    let mut told = warnings(&runner);
    for _ in 0..21 {
        reference.advance(ms(1));
        runner.poll();
    }
    assert_eq!(next_warning(&mut told), None);
    reference.advance(ms(1));
    runner.poll();
    assert_eq!(next_warning(&mut told), Some(Warning::DriverSilent { silent_for: ms(22) }));
}

#[test]
fn time_stands_still_until_ticks_come() {
    let mut board = Board::new();
    let ran = Arc::new(AtomicU32::new(0));
    board.run_ms(50, Comes);
    once(&board.runner, ms(200), &ran);
    board.run_ms(10_000, IsLost);
    assert_eq!((board.now(), ran.load(SeqCst)), (50, 0));
    board.run_ms(200, Comes);
    assert_eq!((board.now(), ran.load(SeqCst)), (250, 1));
}
