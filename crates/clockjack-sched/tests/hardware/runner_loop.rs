//! The loop, with interrupts at chosen places.

use alloc::sync::Arc;
use core::{
    num::NonZeroU32,
    sync::atomic::{AtomicU32, Ordering::SeqCst},
    task::Waker,
    time::Duration,
};
use std::sync::Mutex;

use clockjack_sched::{
    CatchUp, HardwareHost, JobSpec, PanicPayload, Policy, PolicyRegistry, RunnerLoop,
    ScheduleErrorKind, Scheduler, SchedulerConfig, Task, TimerPriority, Warning,
};
use clockjack_time::{
    DriverError, DriverStatus, InterruptDriver, MonotonicClock, Resolution, Tick, TickDriver,
    TickToken, TimerInstant,
};

use crate::{
    counting_task::CountingTask,
    support::{
        DEFAULT, Interrupted, MILLIS, Mark, board, interrupts, leak, ms, next_warning, once,
        warnings,
    },
};

fn start(driver: &'static InterruptDriver) -> Result<RunnerLoop, DriverError> {
    let started = RunnerLoop::start(MILLIS, driver, driver, Waker::noop().clone());
    started.map_err(|error| error.driver().expect("only the driver refuses"))
}

#[test]
fn a_driver_that_refuses_the_registration_aborts_the_start() {
    let driver = leak(InterruptDriver::new(Resolution::MILLI));
    let first = start(driver).expect("a fresh driver");
    assert!(start(driver).expect_err("it has a loop").is_already_registered());
    drop(first);
    let mut second = start(driver).expect("the first one has let go of it");
    second.stop();
    assert!(start(driver).expect_err("it was stopped").is_stopped());
}

#[test]
fn an_error_of_the_start_says_why() {
    let driver = leak(InterruptDriver::new(Resolution::MILLI));
    let _first = start(driver).expect("a fresh driver");
    let error = RunnerLoop::start(MILLIS, driver, driver, Waker::noop().clone());
    let error = error.expect_err("it has a loop");
    assert!(error.to_string().contains("already registered"), "{error}");
    let config = SchedulerConfig { shards: 0, ..MILLIS };
    let error = RunnerLoop::start(config, driver, driver, Waker::noop().clone());
    let error = error.expect_err("no shards");
    assert!(error.is_shards() && error.to_string().contains("1024"), "{error}");
    assert_eq!((error.driver(), error.is_manual_loop()), (None, false));
}

/// A board that can tell how far a tick has come.
mod fine {
    use super::*;

    pub(super) static TICKS: InterruptDriver = InterruptDriver::new(Resolution::MILLI);
    /// Nanoseconds since the tick has begun.
    pub(super) static PART: AtomicU32 = AtomicU32::new(0);

    pub(super) fn now() -> TimerInstant {
        let nanos = TICKS.now().ticks * 1_000_000 + u64::from(PART.load(SeqCst));
        let nano = Resolution::from_nanos(1).expect("not zero");
        TimerInstant::new(Tick::new(nanos), nano)
    }

    pub(super) fn start() -> RunnerLoop {
        let waker = Waker::noop().clone();
        let host = HardwareHost::new(&TICKS, &TICKS, waker.clone()).with_fine_clock(now);
        let scheduler = Scheduler::new(MILLIS, host).expect("one shard");
        RunnerLoop::new(scheduler, &TICKS, waker).expect("a fresh driver")
    }
}

#[test]
fn a_delay_is_not_short_by_the_finer_clock_of_a_board_that_has_one() {
    let mut runner = fine::start();
    for part in [0, 1, 499_999, 500_000, 999_999] {
        fine::PART.store(part, SeqCst);
        let (begun, ran) = (fine::now().ticks, Arc::new(AtomicU32::new(0)));
        once(&runner, ms(3), &ran);
        while ran.load(SeqCst) == 0 {
            fine::PART.store(999_999, SeqCst);
            runner.poll();
            assert_eq!(ran.load(SeqCst), 0, "at the end of a tick nothing new is due");
            fine::PART.store(0, SeqCst);
            fine::TICKS.notify_tick();
            runner.poll();
        }
        let after = fine::now().ticks - begun;
        assert!((3_000_000..4_000_000).contains(&after), "{part} ns into a tick: {after} ns");
    }

    // What the driver says is in its own ticks, however fine the reading is.
    let mut warnings = warnings(&runner);
    interrupts(&fine::TICKS, 301);
    assert_eq!(runner.poll().catch_up, 300);
    assert!(
        matches!(
            next_warning(&mut warnings),
            Some(Warning::DriverCatchUpExceeded { ticks: 300, limit: 100, .. })
        ),
        "the ticks that were made up for"
    );
    assert_eq!(runner.scheduler().metrics().driver_jitter, ms(301));
}

#[test]
fn a_job_runs_at_its_tick_and_not_before() {
    let (ticks, mut runner, _) = board(MILLIS);
    let ran = Arc::new(AtomicU32::new(0));
    once(&runner, ms(3), &ran);
    for tick in 1..=3 {
        assert_eq!(ran.load(SeqCst), 0, "before tick {tick}");
        ticks.notify_tick();
        let turn = runner.poll();
        assert_eq!((turn.ticks, turn.catch_up, turn.up_to), (1, 0, Some(Tick::new(tick))));
        assert_eq!(turn.ran, usize::from(tick == 3));
    }
    let turn = runner.poll();
    assert_eq!((turn.ran, turn.ticks, turn.up_to, turn.next_wake), (0, 0, None, None));
    assert!(!turn.is_more && !turn.is_over);
}

#[test]
fn a_burst_of_a_thousand_ticks_is_taken_whole_and_runs_in_order() {
    let (ticks, mut runner, _) = board(MILLIS);
    let order = Arc::new(Mutex::new(Vec::new()));
    for delay in (1..=100_u64).rev().map(|n| n * 10) {
        let order = Arc::clone(&order);
        let job = runner.scheduler().schedule_once_fn(ms(delay), DEFAULT, move |fire| {
            order.lock().expect("no panic").push((fire.due().get(), fire.now().ticks));
        });
        job.expect("there is room");
    }
    interrupts(ticks, 1_000);
    let turn = runner.poll();
    assert_eq!((turn.ran, turn.ticks, turn.catch_up), (100, 1_000, 999));
    let expected: Vec<_> = (1..=100).map(|n| (n * 10, 1_000)).collect();
    assert_eq!(*order.lock().expect("no panic"), expected);
    assert_eq!(runner.scheduler().metrics().drift_compensations, 999);
}

/// The main loop of a board, until it would sleep: clear the mark, poll, sleep if there is none.
fn run_until_asleep(runner: &mut RunnerLoop, mark: &Mark) -> (u64, usize) {
    let (mut ticks, mut ran) = (0, 0);
    for _ in 0..100 {
        mark.take();
        let turn = runner.poll();
        ticks += turn.ticks;
        ran += turn.ran;
        if !turn.is_more && !mark.take() {
            return (ticks, ran);
        }
    }
    panic!("it does not come to rest");
}

#[test]
fn an_interrupt_at_any_place_of_a_poll_wakes_the_loop_or_is_taken_by_it() {
    let mut places = 0;
    for place in 0.. {
        let driver = leak(Interrupted::new());
        let mark = Arc::new(Mark::default());
        let waker = Waker::from(Arc::clone(&mark));
        let mut runner = RunnerLoop::start(MILLIS, driver, driver, waker).expect("fresh");
        let ran = Arc::new(AtomicU32::new(0));
        once(&runner, ms(1), &ran);
        // A handler runs at once, so that there are places between it and the rest.
        once(&runner, Duration::ZERO, &Arc::new(AtomicU32::new(0)));
        driver.arm(place);
        let (ticks, n_ran) = run_until_asleep(&mut runner, &mark);
        if !driver.has_come() {
            break;
        }
        assert_eq!((ticks, n_ran, ran.load(SeqCst)), (1, 2, 1), "at place {place}");
        places += 1;
    }
    assert!(places >= 6, "only {places} places");
}

#[test]
fn an_interrupt_between_poll_and_sleep_leaves_its_mark() {
    let (ticks, mut runner, mark) = board(MILLIS);
    let ran = Arc::new(AtomicU32::new(0));
    once(&runner, ms(1), &ran);
    assert_eq!(run_until_asleep(&mut runner, &mark), (0, 0));
    ticks.notify_tick();
    assert!(mark.take(), "so the sleep is not begun");
    assert_eq!(runner.poll().ran, 1);
    // The second of two interrupts need not wake the loop, and its tick is there nevertheless.
    let before = mark.count();
    interrupts(ticks, 2);
    assert_eq!(mark.count(), before + 1);
    assert_eq!(runner.poll().ticks, 2);
}

#[test]
fn an_interrupt_in_a_handler_wakes_the_loop() {
    let (ticks, mut runner, mark) = board(MILLIS);
    let ran = Arc::new(AtomicU32::new(0));
    once(&runner, ms(2), &ran);
    let job = runner.scheduler().schedule_once_fn(ms(1), DEFAULT, |_| ticks.notify_tick());
    job.expect("there is room");
    ticks.notify_tick();
    mark.take();
    runner.poll();
    assert!(mark.take());
    assert_eq!(runner.poll().ticks, 1);
    assert_eq!(ran.load(SeqCst), 1);
}

#[test]
fn who_schedules_something_due_soon_ends_the_sleep() {
    let (_, mut runner, mark) = board(MILLIS);
    let ran = Arc::new(AtomicU32::new(0));
    assert_eq!(run_until_asleep(&mut runner, &mark), (0, 0));
    once(&runner, Duration::ZERO, &ran);
    assert_eq!(ran.load(SeqCst), 0, "no handler runs in a caller");
    assert!(mark.take());
    let turn = runner.poll();
    assert_eq!((turn.ran, turn.ticks), (1, 0), "no tick is needed");
}

#[test]
fn a_job_that_is_given_up_for_room_ends_the_sleep_to_be_told() {
    let (_, mut runner, mark) = board(SchedulerConfig { capacity: 2, ..MILLIS });
    let task = CountingTask::default();
    let schedule = |runner: &RunnerLoop, delay, class| {
        let job = JobSpec::once(delay).policy(Policy::DEFAULT.priority(class));
        runner.scheduler().schedule(job, DEFAULT, Task::new(task.clone())).expect("there is room")
    };
    schedule(&runner, ms(10), TimerPriority::High);
    let low = schedule(&runner, ms(20), TimerPriority::Low);
    run_until_asleep(&mut runner, &mark);
    schedule(&runner, ms(30), TimerPriority::High);
    assert!(low.is_cancelled());
    assert!(mark.take(), "though nothing is due sooner than before");
    runner.poll();
    assert_eq!(task.told.load(SeqCst), 1);
}

/// A loop that was away for 30 s, with a job each second.
fn away_for_30_s(policy: Policy) -> (RunnerLoop, Vec<(u32, u32)>, Vec<Warning>, Duration) {
    let policies = PolicyRegistry::new().set_default(policy);
    let (ticks, mut runner, _) = board(SchedulerConfig { policies, ..MILLIS });
    let mut told = warnings(&runner);
    let runs = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&runs);
    let second = Duration::from_secs(1);
    let job = runner.scheduler().schedule_at_fixed_rate_fn(second, second, DEFAULT, move |fire| {
        let batch = fire.batch();
        seen.lock().expect("no panic").push((batch.runs.get(), batch.missed_runs));
    });
    job.expect("there is room");
    interrupts(ticks, 30_000);
    let turn = runner.poll();
    assert_eq!((turn.ticks, turn.catch_up), (30_000, 29_999));
    let jitter = runner.scheduler().metrics().driver_jitter;
    ticks.notify_tick();
    runner.poll();
    let runs = runs.lock().expect("no panic").clone();
    let told = core::iter::from_fn(|| next_warning(&mut told)).collect();
    (runner, runs, told, jitter)
}

#[test]
fn a_loop_that_was_away_for_30_s_catches_up_run_by_run_and_says_so_once() {
    let (runner, runs, told, jitter) = away_for_30_s(Policy::DEFAULT);
    assert_eq!(runs, [(1, 0); 30]);
    let catch_up = told.iter().filter(|w| matches!(w, Warning::DriverCatchUpExceeded { .. }));
    let expected = Warning::DriverCatchUpExceeded { shard: 0, ticks: 29_999, limit: 100 };
    assert_eq!(catch_up.collect::<Vec<_>>(), [&expected]);
    assert!(told.iter().any(|w| matches!(w, Warning::BurstFire { missed: 29, .. })), "{told:?}");
    let metrics = runner.scheduler().metrics();
    assert_eq!(metrics.drift_compensations, 29_999, "each tick is counted once");
    assert_eq!(jitter, Duration::from_secs(30), "while it was pressed");
    assert_eq!(metrics.driver_jitter, Duration::ZERO, "and when that was over");
}

#[test]
fn a_loop_that_was_away_for_30_s_folds_if_the_policy_says_so() {
    let (_, runs, _, _) = away_for_30_s(Policy::DEFAULT.catch_up(CatchUp::Folded));
    assert_eq!(runs, [(30, 29)]);
}

#[test]
fn a_loop_that_was_away_says_so_even_if_nothing_was_due() {
    let (ticks, mut runner, _) = board(MILLIS);
    let mut told = warnings(&runner);
    interrupts(ticks, 101);
    runner.poll();
    assert_eq!(next_warning(&mut told), None, "a hundred may be made up for");
    interrupts(ticks, 102);
    runner.poll();
    let expected = Warning::DriverCatchUpExceeded { shard: 0, ticks: 101, limit: 100 };
    assert_eq!(next_warning(&mut told), Some(expected));
    assert_eq!(next_warning(&mut told), None);
}

#[test]
fn ticks_of_a_driver_that_is_finer_than_the_scheduler_are_measured_in_the_schedulers() {
    let (ticks, mut runner, _) = board(SchedulerConfig::DEFAULT);
    let mut told = warnings(&runner);
    let ran = Arc::new(AtomicU32::new(0));
    once(&runner, ms(15), &ran);
    interrupts(ticks, 19);
    runner.poll();
    assert_eq!(ran.load(SeqCst), 0, "15 ms end with the second tick of 10");
    ticks.notify_tick();
    runner.poll();
    assert_eq!(ran.load(SeqCst), 1);
    interrupts(ticks, 1_000);
    runner.poll();
    assert_eq!(next_warning(&mut told), None, "999 ms are not more than 100 ticks of 10");
    interrupts(ticks, 1_011);
    runner.poll();
    assert!(matches!(
        next_warning(&mut told),
        Some(Warning::DriverCatchUpExceeded { ticks: 101, .. })
    ));
}

#[test]
fn a_driver_under_pressure_says_how_late_it_is() {
    let ticks = leak(InterruptDriver::with_capacity(
        Resolution::MILLI,
        NonZeroU32::new(8).expect("not zero"),
    ));
    let mut runner = start(ticks).expect("a fresh driver");
    let jitter = |runner: &RunnerLoop| runner.scheduler().diagnostics().driver_jitter();
    interrupts(ticks, 6);
    runner.poll();
    assert_eq!(jitter(&runner), Duration::ZERO, "three quarters are no pressure");
    interrupts(ticks, 7);
    runner.poll();
    assert_eq!(jitter(&runner), ms(7));
    runner.poll();
    assert_eq!(jitter(&runner), ms(7), "a poll without a tick says nothing new");
    ticks.notify_tick();
    runner.poll();
    assert_eq!(jitter(&runner), Duration::ZERO);
}

#[test]
fn a_poll_runs_so_many_handlers_and_says_that_there_are_more() {
    let (ticks, mut runner, mark) = board(MILLIS);
    let ran = Arc::new(AtomicU32::new(0));
    for _ in 0..1_000 {
        drop(once(&runner, ms(1), &ran));
    }
    ticks.notify_tick();
    let turn = runner.poll();
    assert!(turn.is_more && turn.ran < 1_000, "{turn:?}");
    run_until_asleep(&mut runner, &mark);
    assert_eq!(ran.load(SeqCst), 1_000);
}

#[test]
fn a_stop_runs_what_the_last_ticks_made_due_and_cancels_the_rest() {
    let (ticks, mut runner, _) = board(MILLIS);
    let ran = Arc::new(AtomicU32::new(0));
    let due = once(&runner, ms(5), &ran);
    let later = once(&runner, ms(6), &ran);
    interrupts(ticks, 5);
    let report = runner.stop();
    assert_eq!(report.driver, Some(DriverStatus::Flushed { drained: 5, pending_ticks: 0 }));
    assert_eq!((report.accepted, report.executed, report.cancelled), (2, 1, 1));
    assert!(due.is_completed() && later.is_cancelled());
    ticks.notify_tick();
    let turn = runner.poll();
    assert_eq!((turn.ran, turn.ticks, turn.is_over), (0, 0, true));
    assert_eq!(ticks.current_status(), DriverStatus::Suspended);
    let refused = runner.scheduler().schedule_once_fn(ms(1), DEFAULT, |_| ());
    assert_eq!(refused.expect_err("closed").kind(), ScheduleErrorKind::Closed);
}

#[test]
fn a_handler_may_shut_down_and_the_driver_stops_with_it() {
    let (ticks, mut runner, _) = board(MILLIS);
    let scheduler = runner.scheduler().clone();
    let job = runner.scheduler().schedule_once_fn(ms(1), DEFAULT, move |_| {
        let report = scheduler.shutdown();
        assert_eq!(report.driver, Some(DriverStatus::Flushed { drained: 0, pending_ticks: 0 }));
    });
    let job = job.expect("there is room");
    ticks.notify_tick();
    assert_eq!(runner.poll().ran, 1);
    assert!(job.is_completed() && runner.poll().is_over);
    assert_eq!(ticks.current_status(), DriverStatus::Suspended);
}

#[test]
fn a_panic_is_caught_where_the_host_can_and_the_loop_goes_on() {
    fn guard(call: &mut dyn FnMut()) -> Result<(), PanicPayload> {
        std::panic::catch_unwind(core::panic::AssertUnwindSafe(call)).map_err(PanicPayload::new)
    }
    let ticks = leak(InterruptDriver::new(Resolution::MILLI));
    let host = HardwareHost::new(ticks, ticks, Waker::noop().clone()).with_catch_unwind(guard);
    let scheduler = Scheduler::new(MILLIS, host).expect("a mode that can be");
    let mut runner = RunnerLoop::new(scheduler, ticks, Waker::noop().clone()).expect("fresh");
    let mut told = warnings(&runner);
    let bad = runner.scheduler().schedule_once_fn(ms(1), DEFAULT, |_| -> () {
        std::panic::resume_unwind(Box::new("on purpose"));
    });
    let bad = bad.expect("there is room");
    let ran = Arc::new(AtomicU32::new(0));
    once(&runner, ms(1), &ran);
    ticks.notify_tick();
    assert_eq!(runner.poll().ran, 2);
    assert!(bad.is_completed() && ran.load(SeqCst) == 1);
    assert!(matches!(next_warning(&mut told), Some(Warning::HandlerFailed { .. })));
}

#[test]
fn several_shards_are_all_run() {
    let (ticks, mut runner, _) = board(SchedulerConfig { shards: 3, ..MILLIS });
    let ran = Arc::new(AtomicU32::new(0));
    once(&runner, ms(1), &ran);
    once(&runner, ms(4), &ran);
    ticks.notify_tick();
    let turn = runner.poll();
    assert_eq!((turn.ran, turn.next_wake), (1, Some(Tick::new(4))));
    runner.stop();
    assert!(runner.poll().is_over);
}

/// A driver by trait alone: it has a token for each tick, whatever it is asked.
struct TokenEach {
    clock: InterruptDriver,
    given: AtomicU32,
}

impl TickDriver for TokenEach {
    fn register(&self, _wake: Waker) -> Result<(), DriverError> {
        Ok(())
    }

    fn unregister(&self) {}

    fn poll_tick(&self) -> Option<TickToken> {
        let given = self.given.load(SeqCst);
        if u64::from(given) == self.clock.now().ticks {
            return None;
        }
        self.given.store(given + 1, SeqCst);
        Some(TickToken { up_to: Tick::new(u64::from(given) + 1), catch_up: 0 })
    }

    fn current_status(&self) -> DriverStatus {
        DriverStatus::Ok
    }

    fn stop_and_flush(&self) -> DriverStatus {
        DriverStatus::Flushed { drained: 0, pending_ticks: 0 }
    }
}

#[test]
fn any_driver_serves_and_one_with_a_token_each_time_does_not_keep_handlers_from_running() {
    let clock = InterruptDriver::new(Resolution::MILLI);
    let driver = leak(TokenEach { clock, given: AtomicU32::new(0) });
    let started = RunnerLoop::start(MILLIS, &driver.clock, driver, Waker::noop().clone());
    let mut runner = started.expect("it takes any");
    let ran = Arc::new(AtomicU32::new(0));
    once(&runner, ms(10), &ran);
    interrupts(&driver.clock, 1_000);
    let first = runner.poll();
    assert!(first.is_more && first.ticks < 1_000, "{first:?}");
    assert_eq!((first.ran, first.catch_up), (1, 0));
    let mut ticks = first.ticks;
    let mut up_to = first.up_to;
    loop {
        let turn = runner.poll();
        ticks += turn.ticks;
        assert!(turn.up_to > up_to, "in order");
        up_to = turn.up_to;
        if !turn.is_more {
            break;
        }
    }
    assert_eq!((ticks, up_to), (1_000, Some(Tick::new(1_000))));
}
