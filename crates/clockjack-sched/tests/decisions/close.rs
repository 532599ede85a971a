//! A9, A10: what runs at the close, in which order, and what becomes of the rest.

use alloc::{boxed::Box, sync::Arc, vec::Vec};
use core::{
    sync::atomic::{AtomicUsize, Ordering::SeqCst},
    time::Duration,
};
use std::sync::Mutex;

use clockjack_sched::{
    EventKinds, FireContext, HandlerError, ManualRunner, ScheduleErrorKind, SchedulerConfig,
    SchedulerTask, TaskRunPriority, Warning,
};
use clockjack_testing::keeps_deadline;
use clockjack_time::Resolution;

use crate::bench::{Diary, HERE, events, listen, listen_to, ms, plain, secs, warnings};

type Refusals = Arc<Mutex<Vec<ScheduleErrorKind>>>;

#[test]
fn a10_nothing_is_accepted_once_the_close_has_begun() {
    let manual = plain();
    let scheduler = manual.scheduler();
    let told = Refusals::default();
    let try_it = || {
        let (told, scheduler) = (Arc::clone(&told), scheduler.clone());
        move || {
            for delay in [ms(0), secs(1)] {
                let refused = scheduler.schedule_once_fn(delay, HERE, |_| ()).map(|_| ());
                told.lock().unwrap().extend(refused.map_err(|refused| refused.kind()).err());
            }
            let refused = scheduler.register_on_close(|| Ok(()), TaskRunPriority::User);
            told.lock().unwrap().extend(refused.map_err(|refused| refused.kind()).err());
        }
    };
    let (from_job, from_task) = (try_it(), try_it());
    scheduler.schedule_once_fn(ms(10), HERE, move |_| from_job()).unwrap();
    let from_task = move || {
        from_task();
        Ok(())
    };
    scheduler.register_on_close(from_task, TaskRunPriority::User).unwrap();
    // The job is due, and so the flush runs it.
    manual.clock().advance(ms(10));
    let report = scheduler.shutdown();
    assert_eq!(*told.lock().unwrap(), [ScheduleErrorKind::Closed; 6]);
    assert_eq!(report.close_tasks.succeeded, 1);
    assert_eq!((report.accepted, report.executed, report.cancelled), (1, 1, 0));
}

#[test]
fn a10_a_second_shutdown_reports_the_same() {
    let manual = plain();
    let scheduler = manual.scheduler();
    let fail = || Err(HandlerError::new("no"));
    scheduler.register_on_close(|| Ok(()), TaskRunPriority::User).unwrap();
    scheduler.register_on_close(fail, TaskRunPriority::User).unwrap();
    scheduler.schedule_once_fn(ms(10), HERE, |_| ()).unwrap();
    let first = scheduler.shutdown();
    assert_eq!((first.close_tasks.succeeded, first.close_tasks.failed), (1, 1));
    assert_eq!((first.accepted, first.executed, first.cancelled), (1, 0, 1));
    assert_eq!(scheduler.shutdown(), first);
}

/// Slots are used again, so the order of slots is neither that of deadlines nor that of
/// registrations.
#[test]
fn a10_marked_one_shots_run_in_the_order_of_their_deadlines() {
    let manual = plain();
    let scheduler = manual.scheduler();
    let diary = Diary::default();
    for _ in 0..4 {
        scheduler.schedule_once_fn(ms(10), HERE, |_| ()).unwrap();
    }
    manual.advance(ms(10));
    for (name, delay) in [("third", 300), ("first", 100), ("second", 200), ("fourth", 300)] {
        let job = scheduler.schedule_once_fn(ms(delay), HERE, diary.writer(name)).unwrap();
        assert!(job.run_on_close());
    }
    let report = scheduler.shutdown();
    assert_eq!(diary.names(), ["first", "second", "third", "fourth"]);
    assert_eq!((report.run_on_close, report.executed, report.cancelled), (4, 8, 0));
}

#[test]
fn a09_tasks_of_the_close_run_by_priority_and_in_order() {
    let manual = plain();
    let scheduler = manual.scheduler();
    let ran = Arc::new(Mutex::new(Vec::new()));
    let register = |name: &'static str, priority| {
        let ran = Arc::clone(&ran);
        let task = move || {
            ran.lock().unwrap().push(name);
            Ok(())
        };
        scheduler.register_on_close(task, priority).unwrap()
    };
    register("user 1", TaskRunPriority::User);
    register("runtime 1", TaskRunPriority::Runtime);
    let never = register("never", TaskRunPriority::Runtime);
    register("critical 1", TaskRunPriority::SystemCritical);
    register("user 2", TaskRunPriority::User);
    register("critical 2", TaskRunPriority::SystemCritical);
    register("runtime 2", TaskRunPriority::Runtime);
    assert!(scheduler.cancel_on_close(never) && !scheduler.cancel_on_close(never));
    let report = scheduler.shutdown();
    let expected = ["critical 1", "critical 2", "runtime 1", "runtime 2", "user 1", "user 2"];
    assert_eq!(*ran.lock().unwrap(), expected);
    assert_eq!((report.close_tasks.succeeded, report.close_tasks.failed), (6, 0));
    assert!(!scheduler.cancel_on_close(never));
}

#[test]
fn a09_only_a_one_shot_that_waits_can_be_marked() {
    let manual = plain();
    let scheduler = manual.scheduler();
    let ran = scheduler.schedule_once_fn(ms(0), HERE, |_| ()).unwrap();
    let cancelled = scheduler.schedule_once_fn(ms(10), HERE, |_| ()).unwrap();
    cancelled.cancel();
    let rate = scheduler.schedule_at_fixed_rate_fn(ms(10), ms(10), HERE, |_| ()).unwrap();
    let delay = scheduler.schedule_with_fixed_delay_fn(ms(10), ms(10), HERE, |_| ()).unwrap();
    for job in [ran, cancelled, rate, delay] {
        assert!(!job.run_on_close());
    }
    let waits = scheduler.schedule_once_fn(ms(10), HERE, |_| ()).unwrap();
    assert!(waits.run_on_close() && waits.run_on_close());
    assert!(waits.cancel(), "a mark keeps nobody from cancelling it");
    assert_eq!(scheduler.shutdown().run_on_close, 0);
}

/// Notes what it is asked to, in order.
fn stepper(
    steps: &Arc<Mutex<Vec<&'static str>>>,
    what: &'static str,
) -> impl FnOnce() + Send + 'static + use<> {
    let steps = Arc::clone(steps);
    move || steps.lock().unwrap().push(what)
}

struct CountingTask(Option<Box<dyn FnOnce() + Send>>);

impl SchedulerTask for CountingTask {
    fn run(&mut self, _fire: &FireContext) -> Result<(), HandlerError> {
        Err(HandlerError::new("it should not run"))
    }

    fn cancelled(&mut self) {
        if let Some(told) = self.0.take() {
            told();
        }
    }
}

#[test]
fn a10_the_close_flushes_runs_tasks_runs_what_is_marked_and_cancels_the_rest() {
    let manual = plain();
    let scheduler = manual.scheduler();
    let mut stream = listen(scheduler);
    let mut cancels = listen_to(scheduler, EventKinds::CANCEL);
    let steps = Arc::default();
    let step = |what| {
        let step = stepper(&steps, what);
        move |_: &FireContext| step()
    };
    let rest = CountingTask(Some(Box::new(stepper(&steps, "rest cancelled"))));
    let rest = scheduler.schedule_at_fixed_rate_task(ms(20), ms(10), HERE, rest).unwrap();
    let marked = scheduler.schedule_once_fn(ms(30), HERE, step("marked ran")).unwrap();
    assert!(marked.run_on_close());
    let fails = scheduler.schedule_once_fn(ms(25), HERE, |_| Err::<(), _>("marked")).unwrap();
    assert!(fails.run_on_close());
    scheduler.schedule_once_fn(ms(10), HERE, step("due ran")).unwrap();
    let (first, last) = (stepper(&steps, "task 1"), stepper(&steps, "task 3"));
    let user = TaskRunPriority::User;
    let first = move || {
        first();
        Ok(())
    };
    scheduler.register_on_close(first, user).unwrap();
    scheduler.register_on_close(|| panic!("task 2"), user).unwrap();
    scheduler.register_on_close(|| Err(HandlerError::new("no")), user).unwrap();
    let last = move || {
        last();
        Ok(())
    };
    scheduler.register_on_close(last, user).unwrap();
    manual.clock().advance(ms(10));
    let report = scheduler.shutdown();
    let expected = ["due ran", "task 1", "task 3", "marked ran", "rest cancelled"];
    assert_eq!(*steps.lock().unwrap(), expected);
    assert!(rest.is_cancelled() && marked.is_completed() && fails.is_completed());
    assert_eq!((report.accepted, report.executed, report.cancelled), (4, 3, 1));
    assert_eq!((report.run_on_close, report.still_running), (2, 0));
    assert_eq!((report.close_tasks.succeeded, report.close_tasks.failed), (2, 2));
    let failed = |warning: &Warning| match warning {
        Warning::TaskRunFailed { task, error } => Some((*task, error.is_panic())),
        _ => None,
    };
    let failed: Vec<_> = warnings(&mut stream).iter().filter_map(failed).collect();
    assert_eq!(failed, [(2, true), (3, false)]);
    assert_eq!(events(&mut cancels).len(), 1, "each cancel is visible");
    let metrics = scheduler.metrics();
    assert_eq!((metrics.task_run_on_close_total, metrics.task_run_on_close_failures), (4, 2));
}

/// Threads keep scheduling while it closes; what was accepted is executed or cancelled.
#[test]
fn a10_accepted_is_executed_and_cancelled_exactly() {
    for round in 0..20 {
        let manual = plain();
        let scheduler = manual.scheduler();
        let accepted = AtomicUsize::new(0);
        let ran = Arc::new(AtomicUsize::new(0));
        let report = std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    for index in 0.. {
                        let ran = Arc::clone(&ran);
                        let f = move |_: &FireContext| {
                            ran.fetch_add(1, SeqCst);
                        };
                        let Ok(job) = scheduler.schedule_once_fn(ms(index % 3 * 10 + 10), HERE, f)
                        else {
                            break;
                        };
                        accepted.fetch_add(1, SeqCst);
                        if index % 5 == 0 {
                            job.run_on_close();
                        }
                    }
                });
            }
            while accepted.load(SeqCst) < 20 + round {
                manual.advance(ms(10));
            }
            scheduler.shutdown()
        });
        assert_eq!(report.accepted, accepted.load(SeqCst) as u64);
        assert_eq!(report.accepted, report.executed + report.cancelled);
        let metrics = scheduler.metrics();
        assert_eq!(metrics.executed_total, ran.load(SeqCst) as u64);
        assert_eq!(metrics.accepted_total, metrics.executed_total + metrics.cancelled_total);
        assert_eq!(metrics.active_total, 0);
    }
}

/// Four jobs of 1 ms whose handlers take 3 ms are far behind: all that they owe would take 6 s.
#[test]
fn a10_a_close_with_a_time_limit_leaves_what_it_cannot_run_and_reports_it() {
    let config = SchedulerConfig { resolution: Resolution::MILLI, ..SchedulerConfig::DEFAULT };
    let manual = ManualRunner::new(config).unwrap();
    let scheduler = manual.scheduler();
    let ran = Arc::new(AtomicUsize::new(0));
    for _ in 0..4 {
        let (time, ran) = (manual.clone(), Arc::clone(&ran));
        let slow = move |_: &FireContext| {
            time.clock().advance(ms(3));
            ran.fetch_add(1, SeqCst);
        };
        scheduler.schedule_at_fixed_rate_fn(ms(1), ms(1), HERE, slow).unwrap();
    }
    let diary = Diary::default();
    let marked = scheduler.schedule_once_fn(secs(9), HERE, diary.writer("marked")).unwrap();
    assert!(marked.run_on_close());
    scheduler.register_on_close(|| Ok(()), TaskRunPriority::User).unwrap();
    manual.clock().advance(ms(500));
    let report = keeps_deadline(ms(300), || scheduler.shutdown_within(ms(300)));
    let took = scheduler.now().tick().get() - 500;
    assert!((150..=165).contains(&took), "half of the time, and each job once more: {took} ms");
    assert_eq!(report.runs_left, 2_000 - ran.load(SeqCst) as u64);
    assert_eq!((report.accepted, report.executed, report.cancelled), (5, 1, 4));
    assert_eq!((report.close_tasks.succeeded, report.run_on_close), (1, 1));
    assert_eq!(diary.names(), ["marked"]);
    assert!(!report.is_clean());
    assert_eq!(scheduler.shutdown().runs_left, report.runs_left, "a second call only reports");
}

#[test]
fn a10_a_close_whose_time_is_over_runs_only_critical_tasks() {
    let manual = plain();
    let scheduler = manual.scheduler();
    let diary = Diary::default();
    let due = scheduler.schedule_once_fn(ms(10), HERE, diary.writer("due")).unwrap();
    let marked = scheduler.schedule_once_fn(secs(9), HERE, diary.writer("marked")).unwrap();
    assert!(marked.run_on_close());
    let steps = Arc::default();
    for (name, priority) in [
        ("user", TaskRunPriority::User),
        ("critical", TaskRunPriority::SystemCritical),
        ("runtime", TaskRunPriority::Runtime),
    ] {
        let step = stepper(&steps, name);
        let task = move || {
            step();
            Ok(())
        };
        scheduler.register_on_close(task, priority).unwrap();
    }
    manual.clock().advance(ms(10));
    let report = keeps_deadline(Duration::ZERO, || scheduler.shutdown_within(Duration::ZERO));
    assert_eq!(*steps.lock().unwrap(), ["critical"]);
    assert!(diary.names().is_empty());
    assert!(due.is_cancelled() && marked.is_cancelled());
    assert_eq!((report.close_tasks.succeeded, report.close_tasks.left), (1, 2));
    assert_eq!((report.accepted, report.executed, report.cancelled), (2, 0, 2));
    assert_eq!((report.runs_left, report.run_on_close), (2, 0));
    assert!(!report.is_clean());
}
