//! Modes: by what time moves follows from the clock, is recorded, and cannot be mixed.
#![cfg(not(loom))]

extern crate alloc;

use alloc::sync::Arc;
use core::{
    sync::atomic::{AtomicU32, Ordering::SeqCst},
    task::Waker,
    time::Duration,
};

use clockjack_sched::{
    DispatcherId, DriverMetadata, HardwareHost, ManualRunner, RunnerLoop, RunnerMode, Scheduler,
    SchedulerConfig, SchedulerHost,
};
use clockjack_time::{
    ClockKind, InterruptDriver, ManualClock, ManualDriver, MonotonicClock as _, Resolution, Tick,
    TickDriver as _, TickSpan, TimerInstant,
};

const PRODUCTION: SchedulerConfig = {
    let mut config = SchedulerConfig::DEFAULT;
    config.is_production = true;
    config
};

/// A host with any kind of clock, which counts how often its poller is woken.
struct Host {
    kind: ClockKind,
    clock: Arc<ManualClock>,
    calls: Arc<AtomicU32>,
}

impl Host {
    fn new(kind: ClockKind) -> Self {
        let clock = Arc::new(ManualClock::new(Resolution::TEN_MILLIS));
        Self { kind, clock, calls: Arc::default() }
    }
}

impl SchedulerHost for Host {
    fn now(&self) -> TimerInstant {
        self.clock.now()
    }

    fn clock_kind(&self) -> ClockKind {
        self.kind
    }

    fn name(&self) -> &'static str {
        "test-host"
    }

    fn wake_poller(&self, _shard: usize, _at: Tick) {
        self.calls.fetch_add(1, SeqCst);
    }
}

const KINDS: [(ClockKind, RunnerMode, &str); 3] = [
    (ClockKind::Deterministic, RunnerMode::Manual, "manual"),
    (ClockKind::RealtimeHost, RunnerMode::AsyncHost, "async-host"),
    (ClockKind::RealtimeHardware, RunnerMode::Hardware, "hardware"),
];

#[test]
fn the_mode_follows_from_the_clock_and_is_recorded() {
    for (clock, mode, name) in KINDS {
        assert_eq!(RunnerMode::of(clock), mode);
        assert_eq!((mode.name(), mode.to_string().as_str()), (name, name));
        let scheduler = Scheduler::new(SchedulerConfig::DEFAULT, Host::new(clock)).expect("made");
        let expected = DriverMetadata { mode, clock, driver: "test-host" };
        assert_eq!(scheduler.metadata(), expected);
        let dump = scheduler.diagnostics().dump();
        assert_eq!((dump.mode, dump.clock), (name, clock));
    }
}

#[test]
fn the_hosts_of_this_crate_record_what_they_are() {
    let manual = ManualRunner::new(SchedulerConfig::DEFAULT).expect("not in production");
    let expected = DriverMetadata {
        mode: RunnerMode::Manual,
        clock: ClockKind::Deterministic,
        driver: "manual",
    };
    assert_eq!(manual.scheduler().metadata(), expected);
    static TICKS: InterruptDriver = InterruptDriver::new(Resolution::TEN_MILLIS);
    let runner = RunnerLoop::start(PRODUCTION, &TICKS, &TICKS, Waker::noop().clone());
    let runner = runner.expect("allowed in production");
    let expected = DriverMetadata {
        mode: RunnerMode::Hardware,
        clock: ClockKind::RealtimeHardware,
        driver: "runner-loop",
    };
    assert_eq!(runner.scheduler().metadata(), expected);
    assert_eq!(runner.scheduler().diagnostics().dump().mode, "hardware");
}

#[test]
fn a_clock_that_is_moved_by_hand_is_refused_in_production() {
    let refused = ManualRunner::new(PRODUCTION).err();
    assert!(refused.is_some_and(|error| error.is_manual_in_production()));
    for (clock, mode, _) in KINDS {
        let refused = Scheduler::new(PRODUCTION, Host::new(clock)).err();
        let is_manual = mode == RunnerMode::Manual;
        assert_eq!(refused.is_some_and(|error| error.is_manual_in_production()), is_manual);
    }
    static MANUAL: ManualDriver = ManualDriver::new(Resolution::TEN_MILLIS);
    let started = RunnerLoop::start(PRODUCTION, &MANUAL, &MANUAL, Waker::noop().clone());
    let error = started.expect_err("its clock is moved by hand");
    assert!(error.is_manual_in_production());
    assert!(error.to_string().contains("production"), "{error}");
}

#[test]
fn a_number_of_shards_that_cannot_be_is_refused() {
    for (shards, is_possible) in [(0, false), (1, true), (1_024, true), (1_025, false)] {
        let config = SchedulerConfig { shards, ..SchedulerConfig::DEFAULT };
        let made = Scheduler::new(config, Host::new(ClockKind::RealtimeHost));
        let is_refused = made.err().is_some_and(|error| error.is_shards());
        assert_eq!(is_refused, !is_possible, "{shards}");
    }
}

#[test]
fn ticks_are_injected_in_manual_mode_only() {
    let clock = ManualClock::new(Resolution::TEN_MILLIS);
    for (kind, mode, _) in KINDS {
        let host = Host::new(kind);
        let own = Arc::clone(&host.clock);
        let scheduler = Scheduler::new(SchedulerConfig::DEFAULT, host).expect("made");
        let job = scheduler.schedule_once_fn(Duration::from_millis(50), DispatcherId(0), |_| ());
        let job = job.expect("there is room");
        if mode == RunnerMode::Manual {
            assert_eq!(scheduler.diagnostics().inject_tick(&own, Tick::new(4)), Ok(0));
            assert_eq!(scheduler.diagnostics().inject_tick(&own, Tick::new(5)), Ok(1));
            assert!(job.is_completed());
        } else {
            let refused = scheduler.diagnostics().inject_tick(&clock, Tick::new(5));
            let error = refused.expect_err("another clock");
            assert!(error.is_not_manual() && error.to_string().contains("no manual clock"));
            assert!(!job.is_completed());
        }
    }
    assert_eq!(clock.now().ticks, 0, "a refused injection moves nothing");
}

#[test]
fn in_manual_mode_what_is_due_at_once_runs_at_once_and_elsewhere_the_runner_is_called() {
    for (kind, mode, _) in KINDS {
        let host = Host::new(kind);
        let calls = Arc::clone(&host.calls);
        let scheduler = Scheduler::new(SchedulerConfig::DEFAULT, host).expect("made");
        let job = scheduler.schedule_once_fn(Duration::ZERO, DispatcherId(0), |_| ());
        let job = job.expect("there is room");
        assert_eq!(job.is_completed(), mode == RunnerMode::Manual);
        assert!(calls.load(SeqCst) > 0);
        scheduler.poll_shard(0, 0, 10);
        assert!(job.is_completed());
    }
}

#[test]
fn in_manual_mode_there_is_no_other_source_of_ticks() {
    static MANUAL: ManualDriver = ManualDriver::new(Resolution::TEN_MILLIS);
    static TICKS: InterruptDriver = InterruptDriver::new(Resolution::TEN_MILLIS);
    // Neither to a manual runner.
    let manual = ManualRunner::new(SchedulerConfig::DEFAULT).expect("not in production");
    let scheduler = manual.scheduler().clone();
    let error = RunnerLoop::new(scheduler, &TICKS, Waker::noop().clone()).expect_err("refused");
    assert!(error.is_manual_loop() && error.to_string().contains("manual clock"), "{error}");
    TICKS.register(Waker::noop().clone()).expect("it was not even registered");
    // Nor to a host over a clock of that kind.
    let host = HardwareHost::new(&MANUAL, &MANUAL, Waker::noop().clone());
    let scheduler = Scheduler::new(SchedulerConfig::DEFAULT, host).expect("not in production");
    assert_eq!(scheduler.metadata().mode, RunnerMode::Manual);
    let error = RunnerLoop::new(scheduler, &MANUAL, Waker::noop().clone()).expect_err("refused");
    assert!(error.is_manual_loop());
    // Time moves by a call, whatever else happens.
    let job = manual.scheduler().schedule_once_fn(
        Duration::from_millis(10),
        DispatcherId::DEFAULT,
        |_| (),
    );
    let job = job.expect("there is room");
    TICKS.notify_tick();
    MANUAL.inject(TickSpan::new(100));
    assert_eq!(manual.run_due(), 0);
    assert!(!job.is_completed());
    assert_eq!(manual.advance(Duration::from_millis(10)), 1);
}
