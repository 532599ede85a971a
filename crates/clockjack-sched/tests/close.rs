//! Tasks for the close: their order, their end, and the report.

extern crate alloc;

use alloc::sync::Arc;
use core::{
    hint,
    sync::atomic::{AtomicUsize, Ordering::SeqCst},
    time::Duration,
};
use std::thread;

use clockjack_sched::{
    CloseReport, CloseTasks, HandlerError, ScheduleErrorKind,
    TaskRunPriority::{self, Runtime, SystemCritical, User},
    TaskRunReport,
};
use clockjack_time::DriverStatus;

fn fine() -> Result<(), HandlerError> {
    Ok(())
}

#[test]
fn tasks_come_by_priority_and_then_in_the_order_of_registration() {
    let tasks = CloseTasks::new();
    let priorities = [User, Runtime, SystemCritical, User, SystemCritical, Runtime, User];
    for priority in priorities {
        tasks.register(fine, priority).unwrap();
    }
    assert_eq!(tasks.len(), 7);
    let order: Vec<_> = tasks.close().iter().map(|task| (task.priority(), task.number())).collect();
    assert_eq!(
        order,
        [
            (SystemCritical, 3),
            (SystemCritical, 5),
            (Runtime, 2),
            (Runtime, 6),
            (User, 1),
            (User, 4),
            (User, 7),
        ]
    );
    assert!(tasks.is_empty());
}

#[test]
fn the_order_of_registration_holds_after_a_cancel() {
    let tasks = CloseTasks::new();
    let first = tasks.register(fine, User).unwrap();
    tasks.register(fine, User).unwrap();
    assert!(tasks.cancel(first));
    tasks.register(fine, User).unwrap();
    let numbers: Vec<_> = tasks.close().iter().map(|task| task.number()).collect();
    assert_eq!(numbers, [2, 3]);
}

#[test]
fn a_taken_task_runs_and_says_how_it_went() {
    let tasks = CloseTasks::new();
    tasks.register(fine, SystemCritical).unwrap();
    tasks.register(|| Err(HandlerError::new("no disk")), User).unwrap();
    let results: Vec<_> = tasks.close().into_iter().map(|task| task.run()).collect();
    assert_eq!(results, [Ok(()), Err(HandlerError::new("no disk"))]);
}

#[test]
fn a_cancelled_task_is_dropped_at_once_and_cancelled_once() {
    let tasks = CloseTasks::new();
    let alive = Arc::new(());
    let kept = Arc::clone(&alive);
    let handle = tasks
        .register(
            move || {
                drop(kept);
                Ok(())
            },
            Runtime,
        )
        .unwrap();
    assert_eq!((handle.number(), tasks.len()), (1, 1));
    assert!(tasks.cancel(handle));
    assert_eq!((Arc::strong_count(&alive), tasks.len()), (1, 0));
    assert!(!tasks.cancel(handle));
    assert!(tasks.close().is_empty());
}

#[test]
fn an_old_handle_does_not_cancel_a_later_task() {
    let tasks = CloseTasks::new();
    let old = tasks.register(fine, User).unwrap();
    assert!(tasks.cancel(old));
    let new = tasks.register(fine, User).unwrap();
    assert!(!tasks.cancel(old));
    assert_eq!(tasks.len(), 1);
    assert!(tasks.cancel(new));
}

#[test]
fn a_task_that_the_close_has_taken_cannot_be_cancelled() {
    let tasks = CloseTasks::new();
    let handle = tasks.register(fine, User).unwrap();
    let taken = tasks.close();
    assert!(!tasks.cancel(handle));
    assert_eq!(taken.len(), 1);
    assert!(tasks.close().is_empty());
}

#[test]
fn after_the_close_a_task_comes_back() {
    let tasks = CloseTasks::new();
    assert!(!tasks.is_closed());
    tasks.close();
    assert!(tasks.is_closed());
    let refused = tasks.register(|| Err(HandlerError::new("mine")), User).unwrap_err();
    assert_eq!(refused.kind(), ScheduleErrorKind::Closed);
    assert_eq!(refused.into_inner()(), Err(HandlerError::new("mine")));
}

#[test]
fn one_task_too_many_comes_back_and_fits_once_another_is_gone() {
    assert_eq!(CloseTasks::LEN_MAX, 4096);
    let tasks = CloseTasks::new();
    let handles: Vec<_> =
        (0..4096).map(|_| tasks.register(fine, User).expect("there is room")).collect();
    let refused = tasks.register(fine, User).unwrap_err();
    assert_eq!(refused.kind(), ScheduleErrorKind::CapacityExceeded);
    assert!(tasks.cancel(handles[4095]));
    assert!(tasks.cancel(handles[70]));
    tasks.register(fine, User).unwrap();
    tasks.register(fine, User).unwrap();
    assert!(tasks.register(fine, User).is_err());
    assert_eq!((tasks.len(), tasks.close().len()), (4096, 4096));
}

#[test]
fn tasks_that_are_never_closed_are_dropped_with_the_whole() {
    let tasks = CloseTasks::new();
    let alive = Arc::new(());
    for _ in 0..100 {
        let kept = Arc::clone(&alive);
        let task = move || {
            drop(kept);
            Ok(())
        };
        tasks.register(task, User).unwrap();
    }
    assert_eq!(Arc::strong_count(&alive), 101);
    drop(tasks);
    assert_eq!(Arc::strong_count(&alive), 1);
}

#[test]
fn of_each_task_threads_make_exactly_one_of_run_cancelled_and_refused() {
    const THREADS: usize = 4;
    const EACH: usize = 2000;
    let tasks = CloseTasks::new();
    let alive = Arc::new(());
    let ran = AtomicUsize::new(0);
    let [registered, cancelled, refused] = [const { AtomicUsize::new(0) }; 3];
    thread::scope(|scope| {
        for thread in 0..THREADS {
            let (tasks, alive) = (&tasks, &alive);
            let (registered, cancelled, refused) = (&registered, &cancelled, &refused);
            scope.spawn(move || {
                for round in 0..EACH {
                    let kept = Arc::clone(alive);
                    let task = move || {
                        drop(kept);
                        Ok(())
                    };
                    match tasks.register(task, User) {
                        Ok(handle) => {
                            registered.fetch_add(1, SeqCst);
                            if (round + thread) % 3 != 0 && tasks.cancel(handle) {
                                cancelled.fetch_add(1, SeqCst);
                            }
                        }
                        Err(_) => _ = refused.fetch_add(1, SeqCst),
                    }
                }
            });
        }
        let (tasks, registered, ran) = (&tasks, &registered, &ran);
        scope.spawn(move || {
            while registered.load(SeqCst) < THREADS * EACH / 4 {
                hint::spin_loop();
            }
            for task in tasks.close() {
                task.run().unwrap();
                ran.fetch_add(1, SeqCst);
            }
        });
    });
    let [registered, cancelled, refused] =
        [registered, cancelled, refused].map(AtomicUsize::into_inner);
    assert_eq!(registered + refused, THREADS * EACH);
    assert_eq!(registered, cancelled + ran.into_inner());
    assert_eq!(Arc::strong_count(&alive), 1);
}

#[test]
fn a_report_is_one_line_that_says_it_all() {
    fn check(report: CloseReport, expected: &str) {
        assert_eq!(report.to_string(), expected);
    }
    check(
        CloseReport::default(),
        "closed: 0 jobs accepted, 0 executed (0 by the close), 0 cancelled; \
         close tasks: 0 succeeded, 0 failed in 0ns; no driver",
    );
    let close_tasks =
        TaskRunReport { succeeded: 3, failed: 1, left: 2, duration: Duration::from_micros(1500) };
    check(
        CloseReport {
            accepted: 10,
            executed: 6,
            cancelled: 3,
            close_tasks,
            run_on_close: 2,
            still_running: 1,
            runs_left: 5,
            driver: Some(DriverStatus::Flushed { drained: 4, pending_ticks: 0 }),
        },
        "closed: 10 jobs accepted, 6 executed (2 by the close), 3 cancelled, 1 still running, \
         5 due runs left; close tasks: 3 succeeded, 1 failed in 1.5ms, 2 left; \
         driver flushed: 4 ticks drained, 0 since",
    );
}

#[test]
fn priorities_have_names() {
    let names = [SystemCritical, Runtime, User].map(|priority| priority.to_string());
    assert_eq!(names, ["system-critical", "runtime", "user"]);
    assert_eq!(TaskRunPriority::default(), User);
}
