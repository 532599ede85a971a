//! The engine in virtual time: one test for each promise about coordinated shutdown.

use alloc::{
    boxed::Box,
    format,
    string::{String, ToString as _},
    sync::Arc,
    vec,
    vec::Vec,
};
use core::{
    future::{pending, poll_fn},
    panic::AssertUnwindSafe,
    task::{Context, Poll, Waker},
};
use std::{
    panic::catch_unwind,
    sync::{Mutex, PoisonError, mpsc},
    thread,
};

use clockjack_exec::Failure;
use proptest::prelude::*;

use super::*;

const A: Phase = Phase::named("a");
const B: Phase = Phase::named("b");
const C: Phase = Phase::named("c");
const SECOND: u64 = 1_000_000_000;

/// What happened, in order.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<String>>>);

impl Log {
    fn note(&self, text: &str) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(text.into());
    }

    fn lines(&self) -> Vec<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// A task that notes its name and succeeds.
    fn task(&self, name: &'static str) -> TaskFuture {
        let log = self.clone();
        Box::pin(async move {
            log.note(name);
            Ok(())
        })
    }
}

/// A task that is done when the sender of its pair has sent or is gone.
fn gate() -> (mpsc::Sender<()>, TaskFuture) {
    let (open, gate) = mpsc::channel();
    let is_open = poll_fn(move |_| match gate.try_recv() {
        Err(mpsc::TryRecvError::Empty) => Poll::Pending,
        _ => Poll::Ready(Ok(())),
    });
    (open, Box::pin(is_open))
}

fn failing(text: &'static str) -> TaskFuture {
    Box::pin(async move { Err(Failure::msg(text)) })
}

/// A host that catches panics.
fn catching(call: &mut dyn FnMut()) -> Result<(), String> {
    catch_unwind(AssertUnwindSafe(call)).map_err(|panic| {
        format!("panicked: {}", panic.downcast_ref::<&str>().copied().unwrap_or("?"))
    })
}

fn config(phases: Vec<PhaseConfig>) -> ShutdownConfig {
    ShutdownConfig { phases, terminate_actor_system: false, run_by_actor_system_terminate: false }
}

/// `a`, then `b`, then `c`.
fn abc() -> ShutdownConfig {
    config(vec![
        PhaseConfig::new(A),
        PhaseConfig::new(B).after(&[A]),
        PhaseConfig::new(C).after(&[B]),
    ])
}

fn shutdown(config: &ShutdownConfig) -> Arc<SharedShutdown> {
    Arc::new(SharedShutdown::new(config).unwrap())
}

fn poll(shutdown: &SharedShutdown, now_nanos: u64) -> Progress {
    shutdown.poll(now_nanos, &mut Context::from_waker(Waker::noop()), &mut catching)
}

#[track_caller]
fn done(shutdown: &SharedShutdown, now_nanos: u64) -> Report {
    match poll(shutdown, now_nanos) {
        Progress::Done(report) => report,
        progress => panic!("not over: {progress:?}"),
    }
}

#[track_caller]
fn running(shutdown: &SharedShutdown, now_nanos: u64) -> Option<u64> {
    match poll(shutdown, now_nanos) {
        Progress::Running { deadline_nanos } => deadline_nanos,
        progress => panic!("not running: {progress:?}"),
    }
}

fn outcomes(report: &Report) -> Vec<(Phase, PhaseOutcome)> {
    report.phases.iter().map(|phase| (phase.phase, phase.outcome)).collect()
}

fn names(config: &ShutdownConfig) -> Vec<&'static str> {
    config.in_order().unwrap().iter().map(|config| config.phase.name()).collect()
}

#[test]
fn there_are_six_phases_with_their_time_outs() {
    let order = ShutdownConfig::default().in_order().unwrap();
    let found: Vec<_> =
        order.iter().map(|config| (config.phase.name(), config.timeout.as_secs())).collect();
    let expected = [
        ("before-service-unbind", 5),
        ("service-unbind", 5),
        ("service-requests-done", 5),
        ("service-stop", 5),
        ("before-actor-system-terminate", 5),
        ("actor-system-terminate", 10),
    ];
    assert_eq!(found, expected);
    assert!(order.iter().all(|config| config.recover && config.enabled));
}

#[test]
fn phases_run_in_topological_order() {
    let phase = |name, on: &[Phase]| PhaseConfig::new(Phase::named(name)).after(on);
    assert!(names(&config(vec![])).is_empty());
    assert_eq!(
        names(&config(vec![phase("c", &[B]), phase("b", &[A]), phase("a", &[])])),
        ["a", "b", "c"]
    );
    // Whatever is free goes by the order of definition.
    assert_eq!(
        names(&config(vec![phase("c", &[]), phase("b", &[A]), phase("a", &[])])),
        ["c", "a", "b"]
    );
    let diamond =
        config(vec![phase("end", &[B, C]), phase("c", &[A]), phase("b", &[A]), phase("a", &[])]);
    assert_eq!(names(&diamond), ["a", "c", "b", "end"]);
}

#[test]
fn nothing_but_what_depends_on_it_comes_after_the_end_of_the_system() {
    let mut config = ShutdownConfig::default();
    config.phases.push(PhaseConfig::new(A).after(&[Phase::SERVICE_UNBIND]));
    config.phases.push(PhaseConfig::new(B).after(&[Phase::ACTOR_SYSTEM_TERMINATE]));
    let names = names(&config);
    assert_eq!(names[names.len() - 3..], ["a", "actor-system-terminate", "b"]);
}

#[test]
fn a_cycle_is_refused_and_named() {
    let mut circle = abc();
    circle.phase_mut(A).unwrap().depends_on.push(C);
    circle.phases.insert(0, PhaseConfig::new(Phase::named("behind")).after(&[B]));
    let error = circle.in_order().unwrap_err();
    assert_eq!(error, InvalidConfig::Cycle(vec![B, A, C]));
    assert_eq!(error.to_string(), "phases depend on each other: `b` after `a` after `c` after `b`");
    assert!(CoordinatedShutdown::new(&circle).is_err());

    let own = config(vec![PhaseConfig::new(A).after(&[A])]);
    assert_eq!(own.in_order().unwrap_err(), InvalidConfig::Cycle(vec![A]));
}

#[test]
fn a_phase_that_is_only_mentioned_counts() {
    let config = config(vec![PhaseConfig::new(B).after(&[A])]);
    assert_eq!(names(&config), ["a", "b"]);
    let (log, shutdown) = (Log::default(), shutdown(&config));
    shutdown.add_task(B, "b", log.task("b")).unwrap();
    shutdown.add_task(A, "a", log.task("a")).unwrap();
    shutdown.run(Reason::UNKNOWN, None).unwrap();
    assert!(done(&shutdown, 0).is_clean());
    assert_eq!(log.lines(), ["a", "b"]);
}

#[test]
fn phases_without_a_name_or_defined_twice_are_refused() {
    let twice = config(vec![PhaseConfig::new(A), PhaseConfig::new(A)]);
    assert_eq!(twice.in_order().unwrap_err().to_string(), "phase `a` is defined twice");
    let unnamed = config(vec![PhaseConfig::new(A).after(&[Phase::named("")])]);
    assert_eq!(unnamed.in_order().unwrap_err().to_string(), "a phase has an empty name");
}

#[test]
fn tasks_of_a_phase_run_together_and_the_next_phase_waits_for_all() {
    let (log, shutdown) = (Log::default(), shutdown(&abc()));
    let ((one, first), (two, second)) = (gate(), gate());
    shutdown.add_task(A, "first", first).unwrap();
    shutdown.add_task(A, "second", second).unwrap();
    shutdown.add_task(A, "beside", log.task("beside")).unwrap();
    shutdown.add_task(B, "next", log.task("next")).unwrap();
    shutdown.run(Reason::UNKNOWN, None).unwrap();

    assert_eq!(running(&shutdown, 7), Some(5 * SECOND + 7));
    assert_eq!(log.lines(), ["beside"]);
    two.send(()).unwrap();
    running(&shutdown, 8);
    assert_eq!(log.lines(), ["beside"]);
    one.send(()).unwrap();
    let report = done(&shutdown, 9);
    assert_eq!(log.lines(), ["beside", "next"]);
    assert!(report.is_clean());
    assert_eq!(report.phase(A).unwrap().took, Duration::from_nanos(2));
}

#[test]
fn each_phase_has_its_own_time() {
    let shutdown = shutdown(&abc());
    let (open, first) = gate();
    shutdown.add_task(A, "first", first).unwrap();
    shutdown.add_task(B, "second", Box::pin(pending())).unwrap();
    shutdown.run(Reason::UNKNOWN, None).unwrap();
    assert_eq!(running(&shutdown, 0), Some(5 * SECOND));
    open.send(()).unwrap();
    assert_eq!(running(&shutdown, 4 * SECOND), Some(9 * SECOND));
    running(&shutdown, 9 * SECOND - 1);
    done(&shutdown, 9 * SECOND);
}

#[test]
fn after_a_failure_a_phase_that_recovers_lets_the_next_one_run() {
    let (log, shutdown) = (Log::default(), shutdown(&abc()));
    shutdown.add_task(A, "bad", failing("no luck")).unwrap();
    shutdown.add_task(A, "good", log.task("good")).unwrap();
    shutdown.add_task(B, "next", log.task("next")).unwrap();
    shutdown.run(Reason::UNKNOWN, None).unwrap();
    let report = done(&shutdown, 0);
    assert_eq!(log.lines(), ["good", "next"]);
    assert_eq!(report.aborted, None);
    let phase = report.phase(A).unwrap();
    assert_eq!(phase.outcome, PhaseOutcome::Failed);
    assert_eq!(phase.tasks[0].outcome, TaskOutcome::Failed("no luck".into()));
    assert_eq!(phase.tasks[1].outcome, TaskOutcome::Completed);
    assert!(!report.is_clean());
    assert_eq!(
        report.to_string(),
        "shutdown (unknown reason) complete; phase `a` failed, \
         task `bad` failed: no luck, task `good` completed"
    );
}

#[test]
fn after_a_time_out_a_phase_that_recovers_lets_the_next_one_run() {
    let (log, shutdown) = (Log::default(), shutdown(&abc()));
    shutdown.add_task(A, "late", Box::pin(pending())).unwrap();
    shutdown.add_task(B, "next", log.task("next")).unwrap();
    shutdown.run(Reason::UNKNOWN, None).unwrap();
    running(&shutdown, 0);
    running(&shutdown, 5 * SECOND - 1);
    assert!(log.lines().is_empty());
    let report = done(&shutdown, 5 * SECOND);
    assert_eq!(log.lines(), ["next"]);
    assert_eq!(report.phase(A).unwrap().outcome, PhaseOutcome::TimedOut);
    assert_eq!(report.phase(A).unwrap().tasks[0].outcome, TaskOutcome::TimedOut);
    assert_eq!(report.phase(A).unwrap().took, Duration::from_secs(5));
}

#[test]
fn a_phase_that_does_not_recover_aborts_on_failure_once_its_other_tasks_are_done() {
    let mut config = abc();
    config.phase_mut(B).unwrap().recover = false;
    let (log, shutdown) = (Log::default(), shutdown(&config));
    let (open, slow) = gate();
    shutdown.add_task(A, "first", log.task("first")).unwrap();
    shutdown.add_task(B, "slow", slow).unwrap();
    shutdown.add_task(B, "bad", failing("no luck")).unwrap();
    shutdown.add_task(C, "never", log.task("never")).unwrap();
    shutdown.run(Reason::UNKNOWN, None).unwrap();
    running(&shutdown, 0);
    open.send(()).unwrap();
    let report = done(&shutdown, 0);
    assert_eq!(log.lines(), ["first"]);
    let abort = report.aborted.clone().unwrap();
    assert_eq!(abort.to_string(), "phase `b`: task `bad` failed: no luck");
    assert_eq!(report.phase(B).unwrap().tasks[0].outcome, TaskOutcome::Completed);
    assert_eq!(outcomes(&report)[2], (C, PhaseOutcome::Skipped(Skip::Aborted)));
    assert_eq!(report.phase(C).unwrap().tasks[0].outcome, TaskOutcome::NotRun);
}

#[test]
fn a_phase_that_does_not_recover_aborts_on_time_out() {
    let mut config = abc();
    config.phase_mut(A).unwrap().recover = false;
    config.phase_mut(A).unwrap().timeout = Duration::from_secs(1);
    let (log, shutdown) = (Log::default(), shutdown(&config));
    shutdown.add_task(A, "late", Box::pin(pending())).unwrap();
    shutdown.add_task(B, "never", log.task("never")).unwrap();
    shutdown.run(Reason::UNKNOWN, None).unwrap();
    running(&shutdown, 0);
    let report = done(&shutdown, SECOND);
    assert_eq!(report.aborted, Some(Abort { phase: A, error: "task `late` timed out".into() }));
    assert!(log.lines().is_empty());
    // The task of the phase that never ran is dropped when the shutdown has finished.
    assert_eq!(Arc::strong_count(&log.0), 1);
}

#[test]
fn a_disabled_phase_is_skipped_and_noted() {
    let mut config = abc();
    config.phase_mut(B).unwrap().enabled = false;
    let (log, shutdown) = (Log::default(), shutdown(&config));
    for (phase, name) in [(A, "a"), (B, "b"), (C, "c")] {
        shutdown.add_task(phase, name, log.task(name)).unwrap();
    }
    shutdown.run(Reason::UNKNOWN, None).unwrap();
    let report = done(&shutdown, 0);
    assert_eq!(log.lines(), ["a", "c"]);
    let expected = [
        (A, PhaseOutcome::Completed),
        (B, PhaseOutcome::Skipped(Skip::Disabled)),
        (C, PhaseOutcome::Completed),
    ];
    assert_eq!(outcomes(&report), expected);
    assert_eq!(report.phase(B).unwrap().tasks[0].outcome, TaskOutcome::NotRun);
}

#[test]
fn it_runs_once_and_the_first_reason_stays() {
    let (log, shutdown) = (Log::default(), shutdown(&abc()));
    assert_eq!(poll(&shutdown, 0), Progress::Idle);
    assert_eq!(shutdown.report_so_far(), None);
    shutdown.add_task(A, "a", log.task("a")).unwrap();
    assert_eq!(shutdown.run(Reason::new("first"), None).unwrap(), Begin::Started);
    assert_eq!(shutdown.run(Reason::new("second"), Some(C)).unwrap(), Begin::Already);
    let report = done(&shutdown, 0);
    assert_eq!(shutdown.run(Reason::new("third"), None).unwrap(), Begin::Already);
    assert_eq!(done(&shutdown, 9), report);
    assert_eq!(report.reason.as_str(), "first");
    assert_eq!(shutdown.report_so_far(), Some(report));
    assert_eq!(log.lines(), ["a"]);
}

#[test]
fn it_may_begin_with_a_given_phase() {
    let (log, shutdown) = (Log::default(), shutdown(&abc()));
    for (phase, name) in [(A, "a"), (B, "b"), (C, "c")] {
        shutdown.add_task(phase, name, log.task(name)).unwrap();
    }
    let unknown = Phase::named("unknown");
    let refused = shutdown.run(Reason::UNKNOWN, Some(unknown)).unwrap_err();
    assert!(refused.is_unknown_phase() && refused.into_inner().is_none());
    assert_eq!(shutdown.run(Reason::UNKNOWN, Some(B)).unwrap(), Begin::Started);
    assert!(shutdown.add_task(A, "late", log.task("late")).unwrap_err().is_late());
    let report = done(&shutdown, 0);
    assert_eq!(log.lines(), ["b", "c"]);
    assert_eq!(outcomes(&report)[0], (A, PhaseOutcome::Skipped(Skip::BeforeStart)));
}

#[test]
fn a_task_may_be_added_to_a_later_phase_only() {
    let (log, shutdown) = (Log::default(), shutdown(&abc()));
    let (open, slow) = gate();
    shutdown.add_task(B, "slow", slow).unwrap();
    shutdown.run(Reason::UNKNOWN, None).unwrap();
    running(&shutdown, 0);
    for phase in [A, B] {
        let error = shutdown.add_task(phase, "late", log.task("late")).unwrap_err();
        assert!(error.is_late(), "{error}");
    }
    shutdown.add_task(C, "in time", log.task("in time")).unwrap();
    open.send(()).unwrap();
    done(&shutdown, 0);
    assert_eq!(log.lines(), ["in time"]);
    assert!(shutdown.add_task(C, "late", log.task("late")).unwrap_err().is_late());
}

#[test]
fn after_an_abort_no_task_is_taken() {
    let mut config = abc();
    config.phase_mut(A).unwrap().recover = false;
    let mut shutdown = CoordinatedShutdown::new(&config).unwrap();
    shutdown.add_task(A, "bad", failing("no luck")).unwrap();
    shutdown.run(Reason::UNKNOWN, None).unwrap();
    let TakeTasks::Tasks(mut tasks) = shutdown.take_tasks(0) else { panic!("there is a task") };
    tasks.poll(0, &mut Context::from_waker(Waker::noop()), &mut catching);
    shutdown.return_tasks(tasks, 0);
    assert!(shutdown.add_task(C, "late", failing("")).unwrap_err().is_late());
}

#[test]
fn a_running_task_and_another_thread_may_add_to_a_later_phase() {
    let log = Log::default();
    let shutdown = shutdown(&abc());
    let (inside, own) = (shutdown.clone(), log.clone());
    let adds = Box::pin(async move {
        let thread = || inside.add_task(B, "thread", own.task("thread")).map(drop);
        thread::scope(|scope| scope.spawn(thread).join().unwrap())?;
        inside.add_task(C, "task", own.task("task"))?;
        let late = inside.add_task(A, "late", own.task("late"));
        assert!(late.unwrap_err().is_late());
        Ok(())
    });
    shutdown.add_task(A, "adds", adds).unwrap();
    shutdown.run(Reason::UNKNOWN, None).unwrap();
    let cx = &mut Context::from_waker(Waker::noop());
    let Progress::Done(report) = shutdown.poll(0, cx, &mut catching) else {
        panic!("nothing has to wait");
    };
    assert!(report.is_clean(), "{report}");
    assert_eq!(log.lines(), ["thread", "task"]);
    assert_eq!(shutdown.report_so_far(), Some(report));
}

/// Calls the shutdown when it is dropped, as any code of the application may.
struct Caller(Arc<SharedShutdown>);

impl Drop for Caller {
    fn drop(&mut self) {
        assert!(self.0.report_so_far().is_some());
    }
}

#[test]
fn no_lock_is_held_while_a_task_is_dropped() {
    let mut config = abc();
    config.phase_mut(B).unwrap().enabled = false;
    let shutdown = shutdown(&config);
    let calls = || {
        let caller = Caller(shutdown.clone());
        let never = poll_fn(move |_| {
            let _held = &caller;
            Poll::Pending
        });
        Box::pin(never) as TaskFuture
    };
    shutdown.add_task(A, "late", calls()).unwrap();
    shutdown.add_task(B, "disabled", calls()).unwrap();
    let cancelled = shutdown.add_task(C, "cancelled", calls()).unwrap();
    shutdown.run(Reason::UNKNOWN, None).unwrap();
    drop(shutdown.add_task(A, "", calls()));
    drop(shutdown.cancel(&cancelled));
    let poll = |now_nanos| {
        shutdown.poll(now_nanos, &mut Context::from_waker(Waker::noop()), &mut catching)
    };
    assert!(matches!(poll(0), Progress::Running { .. }));
    let Progress::Done(report) = poll(5 * SECOND) else { panic!("it is late") };
    let tasks: Vec<_> = report.phases.iter().flat_map(|phase| &phase.tasks).collect();
    assert_eq!(tasks[0].outcome, TaskOutcome::TimedOut);
    assert_eq!(tasks[1].outcome, TaskOutcome::NotRun);
    assert_eq!(tasks.len(), 2);
}

#[test]
fn tasks_on_loan_are_not_lent_twice() {
    let mut shutdown = CoordinatedShutdown::new(&abc()).unwrap();
    shutdown.add_task(A, "a", Box::pin(pending())).unwrap();
    shutdown.run(Reason::UNKNOWN, None).unwrap();
    let TakeTasks::Tasks(tasks) = shutdown.take_tasks(0) else { panic!("there is a task") };
    assert!(matches!(shutdown.take_tasks(0), TakeTasks::Taken));
    shutdown.return_tasks(tasks, 0);
    assert!(matches!(shutdown.take_tasks(0), TakeTasks::Tasks(_)));
}

#[test]
fn a_cancelled_task_does_not_run_and_a_running_one_cannot_be_cancelled() {
    let (log, shutdown) = (Log::default(), shutdown(&abc()));
    let (open, slow) = gate();
    let slow = shutdown.add_task(A, "slow", slow).unwrap();
    let same = shutdown.add_task(A, "same", log.task("first")).unwrap();
    shutdown.add_task(A, "same", log.task("second")).unwrap();
    let later = shutdown.add_task(B, "later", log.task("later")).unwrap();
    assert!(shutdown.cancel(&same).is_some());
    assert!(shutdown.cancel(&same).is_none());
    shutdown.run(Reason::UNKNOWN, None).unwrap();
    running(&shutdown, 0);
    assert!(shutdown.cancel(&slow).is_none());
    assert!(shutdown.cancel(&later).is_some());
    open.send(()).unwrap();
    let report = done(&shutdown, 0);
    assert_eq!(log.lines(), ["second"]);
    assert!(report.phase(B).unwrap().tasks.is_empty());
}

#[test]
fn several_tasks_may_have_one_name() {
    let (log, shutdown) = (Log::default(), shutdown(&abc()));
    shutdown.add_task(A, "same", log.task("one")).unwrap();
    shutdown.add_task(A, "same", log.task("two")).unwrap();
    shutdown.run(Reason::UNKNOWN, None).unwrap();
    assert_eq!(done(&shutdown, 0).phase(A).unwrap().tasks.len(), 2);
    assert_eq!(log.lines(), ["one", "two"]);
}

#[test]
fn a_task_without_name_or_phase_is_refused_and_handed_back() {
    let (log, shutdown) = (Log::default(), shutdown(&abc()));
    let error = shutdown.add_task(A, "", log.task("kept")).unwrap_err();
    assert!(error.is_unnamed() && !error.is_unknown_phase());
    assert_eq!(error.to_string(), "a task of phase `a` has an empty name");
    let task = error.into_inner().unwrap();
    let error = shutdown.add_task(Phase::named("x"), "kept", task).unwrap_err();
    assert!(error.is_unknown_phase());
    assert_eq!(error.to_string(), "task `kept`: there is no phase `x`");
    shutdown.add_task(A, "kept", error.into_inner().unwrap()).unwrap();
    shutdown.run(Reason::UNKNOWN, None).unwrap();
    done(&shutdown, 0);
    assert_eq!(log.lines(), ["kept"]);
}

#[test]
fn the_number_of_tasks_is_bounded_and_room_comes_back() {
    let shutdown = shutdown(&abc());
    let first = shutdown.add_task(A, "n", failing("")).unwrap();
    for _ in 1..TASKS_MAX {
        shutdown.add_task(B, "n", failing("")).unwrap();
    }
    assert!(shutdown.add_task(A, "n", failing("")).unwrap_err().is_full());
    assert!(shutdown.cancel(&first).is_some());
    shutdown.add_task(A, "n", failing("")).unwrap();
}

#[test]
fn an_actor_is_told_to_stop_when_its_phase_begins_and_waited_for() {
    let (log, shutdown) = (Log::default(), shutdown(&abc()));
    let (ended, terminated) = gate();
    let stop = log.clone();
    let task = termination(Some(move || async move { stop.note("stop") }), async {
        drop(terminated.await)
    });
    shutdown.add_task(B, "actor", task).unwrap();
    // Without a stop message, and for an actor that stopped long ago.
    let dead = termination(None::<fn() -> core::future::Ready<()>>, async {});
    shutdown.add_task(B, "dead", dead).unwrap();
    shutdown.add_task(C, "next", log.task("next")).unwrap();
    let (open, before) = gate();
    shutdown.add_task(A, "before", before).unwrap();
    shutdown.run(Reason::UNKNOWN, None).unwrap();
    running(&shutdown, 0);
    assert!(log.lines().is_empty());
    open.send(()).unwrap();
    running(&shutdown, 0);
    assert_eq!(log.lines(), ["stop"]);
    ended.send(()).unwrap();
    assert!(done(&shutdown, 0).is_clean());
    assert_eq!(log.lines(), ["stop", "next"]);
}

#[test]
fn a_shutdown_that_would_never_end_the_system_is_a_configuration_error() {
    let mut config = ShutdownConfig::default();
    assert!(config.terminate_actor_system && config.run_by_actor_system_terminate);
    assert_eq!(Reason::ACTOR_SYSTEM_TERMINATE.to_string(), "actor system terminate");
    config.terminate_actor_system = false;
    assert_eq!(config.in_order(), Err(InvalidConfig::NeverTerminates));
    config.run_by_actor_system_terminate = false;
    config.in_order().unwrap();
    config.terminate_actor_system = true;
    config.in_order().unwrap();
    config.phase_mut(Phase::ACTOR_SYSTEM_TERMINATE).unwrap().enabled = false;
    assert_eq!(config.in_order(), Err(InvalidConfig::NoLastPhase));
}

/// Panics when dropped.
struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        panic!("in drop");
    }
}

#[test]
fn panics_in_a_task_are_its_failure() {
    let (log, shutdown) = (Log::default(), shutdown(&abc()));
    shutdown.add_task(A, "poll", Box::pin(async { panic!("in poll") })).unwrap();
    // Held by the future itself, so it goes with it and not at the end of its body.
    let bomb = Bomb;
    let held = poll_fn(move |_| {
        let _held = &bomb;
        Poll::Ready(Ok(()))
    });
    shutdown.add_task(A, "drop", Box::pin(held)).unwrap();
    shutdown.add_task(B, "next", log.task("next")).unwrap();
    shutdown.run(Reason::UNKNOWN, None).unwrap();
    let report = done(&shutdown, 0);
    let tasks = &report.phase(A).unwrap().tasks;
    assert_eq!(tasks[0].outcome, TaskOutcome::Failed("panicked: in poll".into()));
    assert_eq!(tasks[1].outcome, TaskOutcome::Failed("panicked: in drop".into()));
    assert_eq!(log.lines(), ["next"]);
}

#[test]
fn a_panic_that_nobody_catches_is_a_failure_too_and_the_others_go_on() {
    let mut config = abc();
    config.phase_mut(A).unwrap().recover = false;
    let (log, shutdown) = (Log::default(), shutdown(&config));
    shutdown.add_task(A, "bad", Box::pin(async { panic!("in poll") })).unwrap();
    shutdown.add_task(A, "good", log.task("good")).unwrap();
    shutdown.run(Reason::UNKNOWN, None).unwrap();
    let cx = &mut Context::from_waker(Waker::noop());
    let through = catch_unwind(AssertUnwindSafe(|| {
        shutdown.poll(0, cx, &mut |call| {
            call();
            Ok(())
        })
    }));
    assert!(through.is_err());
    assert!(log.lines().is_empty());
    let report = done(&shutdown, 0);
    assert_eq!(log.lines(), ["good"]);
    assert_eq!(report.aborted.unwrap().error, "task `bad` failed: panicked");
}

#[test]
fn a_task_that_is_done_just_in_time_is_not_late() {
    let shutdown = shutdown(&abc());
    let (open, slow) = gate();
    shutdown.add_task(A, "slow", slow).unwrap();
    shutdown.run(Reason::UNKNOWN, None).unwrap();
    running(&shutdown, 0);
    open.send(()).unwrap();
    assert!(done(&shutdown, 5 * SECOND).is_clean());
}

#[test]
fn a_phase_may_have_for_ever() {
    let mut config = abc();
    config.phase_mut(A).unwrap().timeout = Duration::MAX;
    let shutdown = shutdown(&config);
    let (open, slow) = gate();
    shutdown.add_task(A, "slow", slow).unwrap();
    shutdown.run(Reason::UNKNOWN, None).unwrap();
    assert_eq!(running(&shutdown, 1), None);
    assert_eq!(running(&shutdown, u64::MAX), None);
    open.send(()).unwrap();
    assert!(done(&shutdown, u64::MAX).is_clean());
}

const NAMES: [Phase; 8] = [
    Phase::named("p0"),
    Phase::named("p1"),
    Phase::named("p2"),
    Phase::named("p3"),
    Phase::named("p4"),
    Phase::named("p5"),
    Phase::named("p6"),
    Phase::named("p7"),
];

proptest! {
    #[test]
    fn any_graph_is_either_ordered_or_has_the_cycle_that_is_named(
        arrows in prop::collection::vec((0_usize..8, 0_usize..8), 0..16),
    ) {
        let mut phases: Vec<_> = NAMES.iter().copied().map(PhaseConfig::new).collect();
        for (from, to) in arrows {
            phases[from].depends_on.push(NAMES[to]);
        }
        let graph = config(phases);
        let waits = |phase: Phase, on: Phase| {
            graph.phases.iter().any(|c| c.phase == phase && c.depends_on.contains(&on))
        };
        match graph.in_order() {
            Ok(order) => {
                prop_assert_eq!(order.len(), NAMES.len());
                for (index, config) in order.iter().enumerate() {
                    let before = &order[..index];
                    let is_over = |on: &Phase| before.iter().any(|c| c.phase == *on);
                    prop_assert!(config.depends_on.iter().all(is_over), "{:?}", order);
                }
            }
            Err(error) => {
                let InvalidConfig::Cycle(cycle) = &error else { panic!("{error}") };
                prop_assert!(!cycle.is_empty());
                let nexts = cycle.iter().cycle().skip(1);
                for (&phase, &on) in cycle.iter().zip(nexts) {
                    prop_assert!(waits(phase, on), "{}", error);
                }
            }
        }
    }
}
