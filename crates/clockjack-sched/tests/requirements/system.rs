//! R3: the scheduler in its system, from its start to its close.

use alloc::{sync::Arc, vec::Vec};
use core::{
    sync::atomic::{AtomicUsize, Ordering::SeqCst},
    time::Duration,
};
use std::sync::Mutex;

use clockjack_sched::{
    Cancellable, CloseReport, DispatcherId, EventKinds, FireContext, HandlerError, ManualRunner,
    ScheduleError, ScheduleErrorKind, Scheduler, SchedulerConfig, SchedulerHost, TaskRunPriority,
};
use clockjack_time::{
    ClockKind, DriverStatus, ManualClock, MonotonicClock as _, Resolution, Tick, TimerInstant,
};

use crate::bench::{Diary, HERE, Host, listen_to, manual, ms, plain, secs};

#[test]
fn r3_1_time_and_turns_come_from_the_host_alone() {
    let host = Host::new(ClockKind::RealtimeHardware, Resolution::TEN_MILLIS);
    let scheduler = host.scheduler(SchedulerConfig::SMALL);
    let diary = Diary::default();
    scheduler.schedule_once_fn(ms(20), HERE, diary.writer("job")).unwrap();
    assert_eq!(host.take_calls(), 1, "the runner is to know when to wake");
    host.clock.advance(ms(10));
    let turn = scheduler.poll_shard(0, 0, usize::MAX);
    assert_eq!((turn.ran, turn.next_wake.map(Tick::get)), (0, Some(2)));
    host.clock.advance(ms(10));
    assert_eq!(diary.len(), 0, "nothing runs but in a turn");
    let turn = scheduler.poll_shard(0, 0, usize::MAX);
    assert_eq!((turn.ran, turn.next_wake, turn.is_over), (1, None, false));
    assert_eq!(diary.ticks(), [2]);
}

#[test]
fn r3_1_the_library_has_no_std() {
    let lib = include_str!("../../src/lib.rs");
    assert!(lib.contains("\n#![no_std]\n"));
    let (before, _) = lib.split_once("extern crate std;").expect("for tests and models");
    assert!(before.trim_end().ends_with("#[cfg(any(test, loom))]"));
    assert_eq!(lib.matches("extern crate std;").count(), 1);
}

/// The same scene, looked at or not, guarded or not.
fn scene(manual: &ManualRunner) -> (Vec<crate::bench::Entry>, CloseReport) {
    let scheduler = manual.scheduler();
    let diary = Diary::default();
    let write = |name| diary.writer(name);
    scheduler.schedule_at_fixed_rate_fn(ms(10), ms(30), HERE, write("rate")).unwrap();
    scheduler.schedule_with_fixed_delay_fn(ms(0), ms(20), HERE, write("delay")).unwrap();
    let cancelled = scheduler.schedule_once_fn(ms(40), HERE, write("never")).unwrap();
    scheduler.schedule_once_fn(ms(90), HERE, write("once")).unwrap();
    manual.advance(ms(30));
    assert!(cancelled.cancel());
    manual.clock().advance(secs(70));
    manual.run_due();
    (diary.entries(), scheduler.shutdown())
}

#[test]
fn r3_2_observation_changes_nothing() {
    let plain = ManualRunner::new(SchedulerConfig::DEFAULT).unwrap();
    let watched = manual(SchedulerConfig { log_capacity: 100, ..SchedulerConfig::DEFAULT });
    let stream = listen_to(watched.scheduler(), EventKinds::ALL);
    let full = watched.scheduler().diagnostics().subscribe(EventKinds::ALL, 1).unwrap();
    assert_eq!(scene(&watched), scene(&plain));
    drop((stream, full));
}

/// Writes down in which order it was asked to stop and was let go.
struct Toolbox {
    clock: Arc<ManualClock>,
    steps: Arc<Mutex<Vec<&'static str>>>,
}

impl SchedulerHost for Toolbox {
    fn now(&self) -> TimerInstant {
        self.clock.now()
    }

    fn clock_kind(&self) -> ClockKind {
        ClockKind::RealtimeHost
    }

    fn name(&self) -> &'static str {
        "toolbox"
    }

    fn wake_poller(&self, _shard: usize, _at: Tick) {}

    fn stop_driver(&self) -> Option<DriverStatus> {
        self.steps.lock().unwrap().push("driver stopped");
        Some(DriverStatus::Flushed { drained: 3, pending_ticks: 0 })
    }
}

impl Drop for Toolbox {
    fn drop(&mut self) {
        self.steps.lock().unwrap().push("toolbox dropped");
    }
}

#[test]
fn r3_3_jobs_are_flushed_and_cancelled_before_the_toolbox_goes() {
    let steps = Arc::new(Mutex::new(Vec::new()));
    let clock = Arc::new(ManualClock::new(Resolution::TEN_MILLIS));
    let toolbox = Toolbox { clock: Arc::clone(&clock), steps: Arc::clone(&steps) };
    let scheduler = Scheduler::new(SchedulerConfig::DEFAULT, toolbox).unwrap();
    let step = |what| {
        let steps = Arc::clone(&steps);
        move |_: &FireContext| steps.lock().unwrap().push(what)
    };
    scheduler.schedule_once_fn(ms(10), HERE, step("due job ran")).unwrap();
    let waits = scheduler.schedule_once_fn(ms(20), HERE, step("early")).unwrap();
    let beats = scheduler.schedule_at_fixed_rate_fn(ms(20), ms(10), HERE, step("early")).unwrap();
    clock.advance(ms(10));
    let report = scheduler.shutdown();
    assert!(waits.is_cancelled() && beats.is_cancelled());
    assert_eq!(report.driver, Some(DriverStatus::Flushed { drained: 3, pending_ticks: 0 }));
    assert_eq!((report.accepted, report.executed, report.cancelled), (3, 1, 2));
    assert!(scheduler.poll_shard(0, 0, usize::MAX).is_over);
    drop((scheduler, waits, beats));
    assert_eq!(*steps.lock().unwrap(), ["driver stopped", "due job ran", "toolbox dropped"]);
}

type Handler = fn(&FireContext);
type Refused = Result<Cancellable, ScheduleError<Handler>>;

/// That this compiles is the test: delays come first, then who runs it, as in Pekko.
#[test]
fn r3_5_the_calls_have_the_shape_of_pekkos() {
    let once: fn(&Scheduler, Duration, DispatcherId, Handler) -> Refused =
        Scheduler::schedule_once_fn;
    let rate: fn(&Scheduler, Duration, Duration, DispatcherId, Handler) -> Refused =
        Scheduler::schedule_at_fixed_rate_fn;
    let delay: fn(&Scheduler, Duration, Duration, DispatcherId, Handler) -> Refused =
        Scheduler::schedule_with_fixed_delay_fn;
    let manual = plain();
    let scheduler = manual.scheduler();
    once(scheduler, ms(10), HERE, |_| ()).unwrap();
    rate(scheduler, ms(20), ms(50), HERE, |_| ()).unwrap();
    delay(scheduler, ms(20), ms(40), HERE, |_| ()).unwrap();
    // Initial delay first: once at 10; rate at 20 and 70; delay at 20 and 60.
    assert_eq!(manual.advance(ms(90)), 5);
}

#[test]
fn r3_6_tasks_for_the_close_run_as_part_of_it() {
    let manual = plain();
    let scheduler = manual.scheduler();
    let ran = Arc::new(AtomicUsize::new(0));
    for priority in [TaskRunPriority::User, TaskRunPriority::SystemCritical] {
        let ran = Arc::clone(&ran);
        let task = move || {
            ran.fetch_add(1, SeqCst);
            Ok::<_, HandlerError>(())
        };
        scheduler.register_on_close(task, priority).unwrap();
    }
    let diary = Diary::default();
    let marked = scheduler.schedule_once_fn(secs(3600), HERE, diary.writer("marked")).unwrap();
    assert!(marked.run_on_close());
    manual.advance(secs(10));
    assert_eq!(ran.load(SeqCst), 0);
    let report = scheduler.shutdown();
    assert_eq!(ran.load(SeqCst), 2);
    assert_eq!(report.close_tasks.succeeded, 2);
    assert_eq!((diary.names(), report.run_on_close), (alloc::vec!["marked"], 1));
    assert!(marked.is_completed() && !marked.is_cancelled());
}

#[test]
fn r3_7_a_scheduler_that_was_shut_down_refuses_everything() {
    let manual = plain();
    let scheduler = manual.scheduler();
    scheduler.shutdown();
    let token = Arc::new(());
    let hold = || {
        let token = Arc::clone(&token);
        move |_: &FireContext| drop(Arc::clone(&token))
    };
    let closed = ScheduleErrorKind::Closed;
    for delay in [ms(0), ms(10), secs(3600)] {
        let refused = scheduler.schedule_once_fn(delay, HERE, hold()).unwrap_err();
        assert_eq!(refused.kind(), closed);
        assert_eq!(Arc::strong_count(&token), 2, "it comes back");
        drop(refused);
        let refused = scheduler.schedule_at_fixed_rate_fn(delay, ms(10), HERE, hold()).unwrap_err();
        assert_eq!(refused.kind(), closed);
        let refused = scheduler.schedule_with_fixed_delay_fn(delay, ms(10), HERE, hold());
        assert_eq!(refused.unwrap_err().kind(), closed);
    }
    let refused = scheduler.register_on_close(|| Ok(()), TaskRunPriority::User).unwrap_err();
    assert_eq!(refused.kind(), closed);
    assert_eq!(Arc::strong_count(&token), 1);
    assert_eq!(manual.advance(secs(3600)), 0);
    assert_eq!(scheduler.metrics().accepted_total, 0);
}
