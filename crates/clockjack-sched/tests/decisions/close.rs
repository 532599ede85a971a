//! A9, A10: what runs at the close, in which order, and what becomes of the rest.

use alloc::{sync::Arc, vec::Vec};
use std::sync::Mutex;

use clockjack_sched::{HandlerError, ScheduleErrorKind, TaskRunPriority};

use crate::bench::{Diary, HERE, ms, plain, secs};

type Told = Arc<Mutex<Vec<ScheduleErrorKind>>>;

#[test]
fn a10_nothing_is_accepted_once_the_close_has_begun() {
    let manual = plain();
    let scheduler = manual.scheduler();
    let told = Told::default();
    let try_it = || {
        let (told, scheduler) = (Arc::clone(&told), scheduler.clone());
        move || {
            for delay in [ms(0), secs(1)] {
                let refused = scheduler.schedule_once_fn(delay, HERE, |_| ()).map(|_| ());
                told.lock().unwrap().extend(refused.map_err(|refused| refused.kind()).err());
            }
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
    assert_eq!(*told.lock().unwrap(), [ScheduleErrorKind::Closed; 4]);
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
