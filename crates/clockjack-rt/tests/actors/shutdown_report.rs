//! The report of a shutdown names everything that was left behind.

use core::{fmt, time::Duration};
use std::sync::{Arc, Mutex, mpsc};

use clockjack_rt::{
    BLOCKING_DISPATCHER, BlockingConfig, Runtime, RuntimeConfig, RuntimeReport,
    actor::{ActorSystem, Next, Props},
    sched::{CloseReport, DispatcherId, TaskRunPriority},
};
use clockjack_testing::InTime;

use crate::in_time::ShutdownInTime as _;
use crate::{LONG, start};

const SHORT: Duration = Duration::from_millis(20);

/// A closure that blocks until the sender is dropped, and a receiver that says when it has begun.
fn blocker() -> (mpsc::Sender<()>, impl FnMut() + Send + 'static, mpsc::Receiver<()>) {
    let (hold, held) = mpsc::channel::<()>();
    let (begin, begun) = mpsc::channel();
    let block = move || {
        begin.send(()).unwrap();
        _ = held.recv();
    };
    (hold, block, begun)
}

/// Whether the actors are clean; their report says nothing about the other parts.
#[track_caller]
fn check_only_actors_are_clean(report: &RuntimeReport) {
    assert!(report.is_final && report.termination.is_clean(), "{report}");
    assert!(!report.is_clean(), "{report:?}");
}

#[test]
fn blocking_work_that_does_not_return_is_reported() {
    let runtime = start(1);
    let (_hold, block, begun) = blocker();
    drop(runtime.spawn_blocking(block));
    begun.recv_timeout(LONG).unwrap();
    let report = runtime.shutdown_in_time(SHORT);
    check_only_actors_are_clean(&report);
    assert_eq!((report.blocking.abandoned, report.blocking.dropped), (1, 0));
    let text = report.to_string();
    assert!(text.contains("blocking work: 1 closure still running"), "{text}");
}

#[test]
fn blocking_work_that_was_never_started_is_reported() {
    let blocking = BlockingConfig { threads_max: 1, ..BlockingConfig::DEFAULT };
    let config = RuntimeConfig { workers: Some(1), blocking, ..RuntimeConfig::DEFAULT };
    let runtime = InTime::new(
        Runtime::start_with(ActorSystem::builder("t"), config).unwrap(),
        RuntimeConfig::DEFAULT.drop_timeout,
    );
    let (_hold, block, begun) = blocker();
    drop(runtime.spawn_blocking(block));
    begun.recv_timeout(LONG).unwrap();
    drop(runtime.spawn_blocking(|| ()));
    let report = runtime.shutdown_in_time(SHORT);
    check_only_actors_are_clean(&report);
    assert_eq!((report.blocking.abandoned, report.blocking.dropped), (1, 1));
    let text = report.to_string();
    assert!(text.contains("1 dropped before they started"), "{text}");
}

#[test]
fn a_worker_that_does_not_return_is_reported() {
    let runtime = start(1);
    let (_hold, mut block, begun) = blocker();
    drop(runtime.spawn_future(async move { block() }));
    begun.recv_timeout(LONG).unwrap();
    // The system needs a worker to terminate, so its actors are stragglers, too.
    let report = runtime.shutdown_in_time(SHORT);
    assert!(report.is_final && !report.is_clean(), "{report}");
    assert_eq!(report.executors.len(), 1);
    let pool = &report.executors[0];
    assert_eq!((&*pool.name, pool.threads_left), ("cj-worker", 1));
    assert!(!pool.stragglers.is_empty(), "{report:?}");
    let text = report.to_string();
    assert!(text.contains("cj-worker: 1 thread did not return"), "{text}");
}

#[test]
fn a_thread_of_another_dispatcher_that_does_not_return_is_reported() {
    let runtime = start(1);
    let other = runtime.system().create_dispatcher("other", 1).unwrap();
    let (_hold, block, begun) = blocker();
    let block = Arc::new(Mutex::new(block));
    let props = Props::from_fn(move |_, (): ()| {
        block.lock().unwrap()();
        Ok(Next::Stay)
    });
    runtime.spawn("stuck", props.dispatcher(other)).unwrap().tell(()).unwrap();
    begun.recv_timeout(LONG).unwrap();
    let report = runtime.shutdown_in_time(SHORT);
    let left: Vec<_> = report.executors.iter().map(|it| (&*it.name, it.threads_left)).collect();
    assert_eq!(left, [("cj-worker", 0), ("other", 1)], "{report}");
}

#[test]
fn a_job_that_is_still_running_is_reported() {
    let runtime = start(2);
    let (_hold, mut block, begun) = blocker();
    let run = move |_: &_| block();
    runtime.pool().scheduler().schedule_once_fn(SHORT / 20, BLOCKING_DISPATCHER, run).unwrap();
    begun.recv_timeout(LONG).unwrap();
    let report = runtime.shutdown_in_time(SHORT);
    check_only_actors_are_clean(&report);
    let jobs = report.jobs.unwrap();
    assert_eq!((jobs.executed, jobs.still_running), (1, 1), "{jobs}");
    let text = report.to_string();
    assert!(text.contains("1 still running"), "{text}");
}

#[test]
fn a_job_that_finishes_during_the_shutdown_is_not_reported_as_running() {
    for dispatcher in [DispatcherId::DEFAULT, BLOCKING_DISPATCHER] {
        let runtime = start(2);
        let (begin, begun) = mpsc::channel();
        let run = move |_: &_| {
            begin.send(()).unwrap();
            std::thread::sleep(SHORT);
        };
        runtime.pool().scheduler().schedule_once_fn(SHORT / 20, dispatcher, run).unwrap();
        let scheduler = runtime.pool().scheduler().clone();
        scheduler.schedule_once_fn(LONG, DispatcherId::DEFAULT, |_| ()).unwrap();
        begun.recv_timeout(LONG).unwrap();
        let report = runtime.shutdown_in_time(LONG);
        assert!(report.is_clean(), "{report}");
        let jobs = report.jobs.unwrap();
        // The system has jobs of its own, which are cancelled.
        assert_eq!((jobs.executed, jobs.still_running), (1, 0), "{jobs}");
        assert_eq!(jobs.accepted, jobs.executed + jobs.cancelled, "{jobs}");
        let again = scheduler.shutdown();
        let counts = |it: CloseReport| (it.accepted, it.executed, it.cancelled, it.still_running);
        assert_eq!(counts(again), counts(jobs), "a second call of the scheduler only reports");
    }
}

#[test]
fn a_close_task_that_fails_is_reported() {
    let runtime = start(1);
    let task = || Err(fmt::Error.into());
    runtime.pool().scheduler().register_on_close(task, TaskRunPriority::User).unwrap();
    let report = runtime.shutdown_in_time(LONG);
    check_only_actors_are_clean(&report);
    assert_eq!(report.jobs.unwrap().close_tasks.failed, 1);
    assert!(report.to_string().contains("1 failed"), "{report}");
}

#[test]
fn a_clean_report_covers_every_executor_and_is_one_line() {
    let runtime = start(1);
    runtime.system().create_dispatcher("other", 1).unwrap();
    runtime.system().create_pinned("pinned").unwrap();
    let report = runtime.shutdown_in_time(LONG);
    assert!(report.is_clean(), "{report}");
    let names: Vec<_> = report.executors.iter().map(|executor| &*executor.name).collect();
    assert_eq!(names, ["cj-worker", "other", "pinned"]);
    assert_eq!(report.to_string(), "runtime shut down (actor system terminate): clean");
}
