//! A driver that supplies no ticks, and a clock that advances without it.

use alloc::sync::Arc;
use core::{
    sync::atomic::{AtomicU32, Ordering::SeqCst},
    task::Waker,
    time::Duration,
};

use clockjack_sched::{DriverWatch, Failover, FailoverClock, RunnerLoop, SchedulerConfig, Warning};
use clockjack_time::{InterruptDriver, ManualClock, MonotonicClock, Resolution};
use proptest::{collection, prelude::*};

use crate::support::{MILLIS, interrupts, leak, ms, next_warning, once, warnings};

/// A board with a second source of time, and the time that really passes.
struct Board {
    driver: &'static InterruptDriver,
    reference: &'static ManualClock,
    clock: &'static FailoverClock,
    runner: RunnerLoop,
    /// Interrupts that a mask holds back.
    held: u64,
}

#[derive(Clone, Copy, Debug)]
enum Interrupt {
    Comes,
    IsLost,
    IsHeld,
}

use Interrupt::{Comes, IsHeld, IsLost};

impl Board {
    /// Ticks of a millisecond, and silences from 100 ms on.
    fn new(is_used: bool, reference: Resolution) -> Self {
        let driver = leak(InterruptDriver::new(Resolution::MILLI));
        let reference = leak(ManualClock::new(reference));
        let clock = leak(FailoverClock::new(driver, reference));
        let config = SchedulerConfig { driver_timeout: ms(100), ..MILLIS };
        let started = RunnerLoop::start(config, clock, driver, Waker::noop().clone());
        let mut runner = started.expect("a fresh driver");
        let fallback =
            if is_used { Failover::UseReference(clock) } else { Failover::ReportOnly(reference) };
        runner.watch(fallback).expect("the first watch");
        Self { driver, reference, clock, runner, held: 0 }
    }

    fn pass_ms(&mut self, n: u64, interrupt: Interrupt) {
        for _ in 0..n {
            self.reference.advance(ms(1));
            match interrupt {
                Comes => {
                    interrupts(self.driver, self.held + 1);
                    self.held = 0;
                }
                IsLost => {}
                IsHeld => self.held += 1,
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
        self.clock.now().ticks
    }

    fn real(&self) -> u64 {
        u64::try_from(self.reference.now().since(START).as_millis()).expect("not so long")
    }
}

const START: clockjack_time::TimerInstant =
    clockjack_time::TimerInstant::new(clockjack_time::Tick::ZERO, Resolution::MILLI);

#[test]
fn a_silent_driver_is_told_in_bounded_time_and_once_for_each_silence() {
    for is_used in [false, true] {
        let mut board = Board::new(is_used, Resolution::MILLI);
        let mut told = warnings(&board.runner);
        board.run_ms(500, Comes);
        assert_eq!(next_warning(&mut told), None);
        for _ in 0..2 {
            board.run_ms(100, IsLost);
            assert_eq!(next_warning(&mut told), None, "not longer than allowed");
            board.run_ms(10, IsLost);
            let silent = Warning::DriverSilent { silent_for: ms(110) };
            assert_eq!(next_warning(&mut told), Some(silent));
            board.run_ms(1_000, IsLost);
            assert_eq!(next_warning(&mut told), None, "once");
            board.run_ms(1_000, Comes);
            assert_eq!(next_warning(&mut told), None);
        }
    }
}

#[test]
fn a_driver_that_never_began_is_told_too() {
    let mut board = Board::new(false, Resolution::MILLI);
    let mut told = warnings(&board.runner);
    board.run_ms(110, IsLost);
    assert!(matches!(next_warning(&mut told), Some(Warning::DriverSilent { .. })));
}

#[test]
fn a_loop_that_was_away_does_not_take_that_for_a_silence() {
    for is_used in [false, true] {
        let mut board = Board::new(is_used, Resolution::MILLI);
        let mut told = warnings(&board.runner);
        board.pass_ms(90, Comes);
        board.runner.poll();
        board.pass_ms(30_000, Comes);
        board.runner.poll();
        let told: Vec<_> = core::iter::from_fn(|| next_warning(&mut told)).collect();
        assert!(!told.iter().any(|w| matches!(w, Warning::DriverSilent { .. })), "{told:?}");
        assert_eq!(board.now(), board.real());
    }
}

#[test]
fn a_stopped_driver_is_not_called_silent() {
    let mut board = Board::new(false, Resolution::MILLI);
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
    runner.watch(Failover::ReportOnly(reference)).expect("no clock is steered");
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
fn with_a_report_only_time_stands_still_until_ticks_come() {
    let mut board = Board::new(false, Resolution::MILLI);
    let ran = Arc::new(AtomicU32::new(0));
    board.run_ms(50, Comes);
    once(&board.runner, ms(200), &ran);
    board.run_ms(10_000, IsLost);
    assert_eq!((board.now(), ran.load(SeqCst)), (50, 0));
    board.run_ms(200, Comes);
    assert_eq!((board.now(), ran.load(SeqCst)), (250, 1));
}

#[test]
fn with_the_reference_jobs_run_on_while_the_driver_is_silent() {
    let mut board = Board::new(true, Resolution::MILLI);
    let ran = Arc::new(AtomicU32::new(0));
    board.run_ms(50, Comes);
    once(&board.runner, ms(200), &ran);
    board.run_ms(190, IsLost);
    assert_eq!(ran.load(SeqCst), 0);
    board.run_ms(20, IsLost);
    assert_eq!(ran.load(SeqCst), 1);
    assert_eq!(board.now(), board.real() - 1, "one less than may be");
}

#[test]
fn after_a_silence_the_driver_leads_again_and_what_it_has_lost_stays_made_up() {
    let mut board = Board::new(true, Resolution::MILLI);
    board.run_ms(50, Comes);
    board.run_ms(1_000, IsLost);
    board.run_ms(1_000, Comes);
    let behind = board.real() - board.now();
    assert!(behind <= 2, "{behind} ticks were lost for ever");
    // The reference stops now, and it does not matter: the driver leads.
    let before = board.now();
    interrupts(board.driver, 70);
    assert_eq!(board.now(), before + 70);
}

#[test]
fn ticks_that_were_held_back_do_not_make_time_run_ahead() {
    let mut board = Board::new(true, Resolution::MILLI);
    board.run_ms(50, Comes);
    board.run_ms(1_000, IsHeld);
    assert_eq!(board.now(), board.real() - 1);
    board.run_ms(1_000, Comes);
    assert_eq!(board.now(), board.real());
}

#[test]
fn a_clock_that_runs_by_itself_needs_no_reference() {
    // The interrupt is gone, and the counter behind it is not.
    let counter = leak(ManualClock::new(Resolution::MILLI));
    let reference = leak(ManualClock::new(Resolution::MILLI));
    let clock = leak(FailoverClock::new(counter, reference));
    let mut watch = DriverWatch::new(ms(100), Failover::UseReference(clock)).expect("the first");
    for _ in 0..20 {
        counter.advance(ms(9));
        reference.advance(ms(10));
        watch.observe(0);
        assert!(!watch.is_failed_over());
    }
    assert!(watch.has_timed_out());
    assert_eq!((watch.timeouts(), clock.now().ticks), (1, 180));
}

#[test]
fn a_clock_has_one_watch_at_a_time_and_the_next_goes_on_where_it_stood() {
    let mut board = Board::new(true, Resolution::MILLI);
    let second = DriverWatch::new(ms(100), Failover::UseReference(board.clock));
    let error = second.expect_err("there is one");
    assert!(error.is_watched() && error.to_string().contains("already has a watch"), "{error}");
    board.run_ms(500, IsLost);
    let before = board.now();
    drop(board.runner);
    let mut watch = DriverWatch::new(ms(100), Failover::UseReference(board.clock)).expect("free");
    assert!(watch.is_failed_over());
    board.reference.advance(ms(50));
    watch.observe(0);
    assert_eq!(board.clock.now().ticks, before + 50);
}

/// What becomes of the interrupts, for how many milliseconds, and how often the loop is polled
/// meanwhile.
type Phase = (Interrupt, u64, u64);

/// Whatever the interrupts do: time does not go back, is not ahead, and goes on in the end.
fn check_phases(phases: &[Phase], reference_ms: u32) {
    let length = Resolution::from_nanos(reference_ms * 1_000_000).expect("not zero");
    let mut board = Board::new(true, length);
    let mut real = 0;
    let mut last = 0;
    for &(interrupt, duration, each) in phases {
        for step in 1..=duration {
            board.pass_ms(1, interrupt);
            real += 1;
            if step % each == 0 {
                board.runner.poll();
            }
            let now = board.now();
            assert!(now >= last, "back from {last} to {now}");
            assert!(now <= real, "{now} at {real}");
            last = now;
        }
    }
    // However it came here: ticks lead again in the end.
    board.run_ms(1_000, Comes);
    board.run_ms(1_000, Comes);
    let before = board.now();
    interrupts(board.driver, 3);
    assert!(board.now() >= before + 2, "{before} and no further than {}", board.now());
}

#[test]
fn one_tick_in_a_silence_does_not_end_the_fallback() {
    // If it did, the ticks that are held back then would be taken for lost, and come twice.
    check_phases(&[(IsLost, 135, 1), (Comes, 1, 2), (IsHeld, 155, 3), (Comes, 1, 1)], 1);
}

#[test]
fn ticks_that_are_held_back_at_the_return_are_not_lost() {
    check_phases(&[(IsLost, 280, 1), (Comes, 76, 5), (IsHeld, 252, 84), (Comes, 1, 1)], 1);
}

#[test]
fn a_reading_of_a_coarse_reference_may_be_as_late_as_its_next_tick() {
    check_phases(&[(Comes, 561, 1), (IsLost, 59, 1), (IsLost, 100, 25)], 7);
}

fn a_phase() -> impl Strategy<Value = Phase> {
    let interrupt = prop_oneof![3 => Just(Comes), 2 => Just(IsLost), 1 => Just(IsHeld)];
    (interrupt, 1..700_u64, 1..150_u64)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_fallback_clock_never_goes_back_or_ahead_and_always_goes_on(
        phases in collection::vec(a_phase(), 1..30),
        reference in prop_oneof![Just(1_u32), Just(7), Just(40)],
    ) {
        check_phases(&phases, reference);
    }
}
