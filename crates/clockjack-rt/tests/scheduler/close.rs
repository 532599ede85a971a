//! The end of a pool with a scheduler: accepted = executed + cancelled.

use core::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::{
    sync::{Arc, mpsc},
    time::Instant,
};

use clockjack_rt::{
    BLOCKING_DISPATCHER, PoolConfig, Runtime, RuntimeConfig, WorkerPool,
    actor::ActorSystem,
    exec::Commands,
    sched::{ScheduleErrorKind, Scheduler, TaskRunPriority},
};
use clockjack_testing::{InTime, keeps_deadline};

use crate::in_time::ShutdownInTime as _;
use crate::{ANY, LONG, ms, pool_of};

/// Rounds of the tests that race; the whole takes about a second.
const ROUNDS: usize = 50;

#[test]
fn r3_3_what_is_accepted_while_the_pool_shuts_down_runs_or_is_cancelled() {
    for _ in 0..ROUNDS {
        let pool = pool_of(2);
        let scheduler = pool.scheduler().clone();
        let ran = Arc::new(AtomicU64::new(0));
        let (is_on, on) = mpsc::channel();
        let (accepted, report) = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..2)
                .map(|_| {
                    let (scheduler, ran, is_on) = (&scheduler, &ran, is_on.clone());
                    scope.spawn(move || {
                        for i in 0_u64.. {
                            let ran = Arc::clone(ran);
                            let run = move |_: &_| _ = ran.fetch_add(1, SeqCst);
                            if let Err(refused) = scheduler.schedule_once_fn(ms(i % 3), ANY, run) {
                                assert_eq!(refused.kind(), ScheduleErrorKind::Closed);
                                return i;
                            }
                            if i == 100 {
                                is_on.send(()).unwrap();
                            }
                        }
                        unreachable!("it is refused before");
                    })
                })
                .collect();
            on.recv().unwrap();
            let report = pool.shutdown_in_time(LONG);
            let accepted: u64 = threads.into_iter().map(|thread| thread.join().unwrap()).sum();
            (accepted, report)
        });
        assert!(report.is_clean(), "{report:?}");
        let report = report.scheduler.unwrap();
        assert_eq!(report.accepted, accepted);
        assert_eq!(report.executed, ran.load(SeqCst));
        assert_eq!(report.executed + report.cancelled, accepted);
    }
}

#[test]
fn r3_3_a_shutdown_waits_for_handlers_wherever_they_run() {
    for dispatcher in [ANY, BLOCKING_DISPATCHER] {
        let pool = pool_of(2);
        let (begin, begun) = mpsc::channel();
        let ended = Arc::new(AtomicU64::new(0));
        let end = Arc::clone(&ended);
        let job = pool.scheduler().schedule_once_fn(ms(1), dispatcher, move |_| {
            begin.send(()).unwrap();
            std::thread::sleep(ms(40));
            end.fetch_add(1, SeqCst);
        });
        begun.recv().unwrap();
        let report = pool.shutdown_in_time(LONG);
        assert_eq!(ended.load(SeqCst), 1, "{dispatcher}");
        assert!(report.is_clean() && job.unwrap().is_completed());
        let report = report.scheduler.unwrap();
        assert_eq!((report.executed, report.still_running), (1, 0));
    }
}

/// Eight jobs of 1 ms whose handlers take 10 ms owe eighty times the time that passes: after this
/// call more than half a minute, on one worker.
fn fall_behind(scheduler: &Scheduler) {
    for _ in 0..8 {
        let slow = |_: &_| std::thread::sleep(ms(10));
        scheduler.schedule_at_fixed_rate_fn(ms(1), ms(1), ANY, slow).unwrap();
    }
    std::thread::sleep(ms(500));
}

/// The close runs what it can in its time, cancels the rest and reports how much that was.
#[test]
fn r3_3_a_shutdown_keeps_its_deadline_although_jobs_are_behind() {
    let pool = pool_of(1);
    let scheduler = pool.scheduler().clone();
    let closed = Arc::new(AtomicU64::new(0));
    let at_close = Arc::clone(&closed);
    let task = move || {
        at_close.fetch_add(1, SeqCst);
        Ok(())
    };
    scheduler.register_on_close(task, TaskRunPriority::User).unwrap();
    fall_behind(&scheduler);
    let begun = Instant::now();
    let report = pool.shutdown_in_time(ms(3_000));
    let took = begun.elapsed();
    assert!(took < ms(20_000), "more than 30 s are owed, and the shutdown took {took:?}");
    assert!(!report.is_clean(), "{report:?}");
    let jobs = report.scheduler.unwrap();
    assert_eq!((jobs.accepted, jobs.executed, jobs.cancelled), (8, 0, 8));
    assert!(jobs.runs_left > 1_000, "{jobs}");
    assert_eq!((closed.load(SeqCst), jobs.close_tasks.succeeded), (1, 1), "it has its half");
}

/// A drop reports to nobody, but its time is limited, too.
#[test]
fn r3_3_a_drop_keeps_its_deadline_although_jobs_are_behind() {
    let (workers, drop_timeout) = (Some(1), ms(1_000));
    let config = PoolConfig { workers, drop_timeout, ..PoolConfig::DEFAULT };
    let pool = WorkerPool::new(config, Commands::new()).unwrap();
    fall_behind(pool.scheduler());
    keeps_deadline(drop_timeout, || drop(pool));

    let config = RuntimeConfig { workers, drop_timeout, ..RuntimeConfig::DEFAULT };
    let rt = Runtime::start_with(ActorSystem::builder("behind"), config).unwrap();
    fall_behind(rt.system().scheduler().jobs());
    keeps_deadline(drop_timeout, || drop(rt));
}

#[test]
fn r3_6_close_tasks_run_before_the_workers_go() {
    let pool = pool_of(2);
    let handle = pool.handle();
    let task = move || {
        let (told, heard) = mpsc::channel();
        drop(handle.spawn_future(async move { told.send(()).unwrap() }));
        heard.recv_timeout(LONG).map_err(Into::into)
    };
    pool.scheduler().register_on_close(task, TaskRunPriority::User).unwrap();
    let marked = pool.scheduler().schedule_once_fn(LONG, ANY, |_| ()).unwrap();
    assert!(marked.run_on_close());
    let report = pool.shutdown_in_time(LONG).scheduler.unwrap();
    assert_eq!((report.close_tasks.succeeded, report.run_on_close), (1, 1));
    assert!(marked.is_completed());
}

#[test]
fn a_pool_whose_scheduler_was_never_asked_for_reports_none() {
    assert!(pool_of(1).shutdown_in_time(LONG).scheduler.is_none());
}

#[test]
fn a_scheduler_that_outlives_its_pool_refuses_and_cancels_nothing_twice() {
    let pool = pool_of(2);
    let scheduler = pool.scheduler().clone();
    let job = scheduler.schedule_at_fixed_rate_fn(ms(1), ms(1), ANY, |_| ()).unwrap();
    keeps_deadline(PoolConfig::DEFAULT.drop_timeout, || drop(pool));
    assert!(job.is_cancelled() && !job.cancel());
    assert!(scheduler.is_closed());
    assert_eq!(scheduler.metrics().active_total, 0);
}

#[test]
fn a_handler_that_shuts_its_pool_down_does_not_wait_for_itself() {
    for dispatcher in [ANY, BLOCKING_DISPATCHER] {
        let pool = pool_of(2);
        let scheduler = pool.scheduler().clone();
        let ((give, given), (tell, told)) =
            (mpsc::channel::<InTime<WorkerPool>>(), mpsc::channel());
        let shut_down = move |_: &_| {
            let pool = given.recv().unwrap();
            tell.send(pool.shutdown_in_time(LONG * 60)).unwrap();
        };
        scheduler.schedule_once_fn(ms(1), dispatcher, shut_down).unwrap();
        give.send(pool).unwrap();
        let report = told.recv_timeout(LONG).expect("it does not take the whole time");
        assert_eq!(report.scheduler.unwrap().still_running, 1, "{dispatcher}");
    }
}
