//! A scheduler with a thread of its own.

use std::sync::{Arc, Mutex, mpsc};

use clockjack_rt::{
    BLOCKING_DISPATCHER, ThreadScheduler,
    sched::{FireContext, ScheduleErrorKind, SchedulerConfig},
};
use clockjack_time::{Resolution, Tick};

use crate::{ANY, LONG, dues::assert_four_jobs_run_when_they_are_due, ms};

fn start() -> ThreadScheduler {
    let resolution = Resolution::MILLI;
    ThreadScheduler::start(SchedulerConfig { resolution, ..SchedulerConfig::DEFAULT }).unwrap()
}

#[test]
fn jobs_of_a_thread_run_when_they_are_due_and_not_before() {
    let driver = start();
    assert_eq!(driver.scheduler().metadata().driver, "thread");
    assert_four_jobs_run_when_they_are_due(driver.scheduler());
    let report = driver.shutdown();
    assert_eq!((report.accepted, report.executed), (4, 4));
    let refused = driver.scheduler().schedule_once_fn(ms(1), ANY, |_| ()).unwrap_err();
    assert_eq!(refused.kind(), ScheduleErrorKind::Closed);
}

#[test]
fn a_thread_has_the_shards_and_the_start_of_its_configuration() {
    let config = SchedulerConfig { start: Tick::new(5_000), shards: 4, ..SchedulerConfig::DEFAULT };
    let driver = ThreadScheduler::start(config).unwrap();
    let (sender, receiver) = mpsc::channel();
    std::thread::scope(|scope| {
        for _ in 0..8 {
            let sender = sender.clone();
            let run = move |fire: &FireContext| sender.send(fire.due());
            scope.spawn(|| driver.scheduler().schedule_once_fn(ms(1), ANY, run).unwrap());
        }
    });
    drop(sender);
    let dues: Vec<_> = receiver.iter().collect();
    assert_eq!(dues.len(), 8);
    assert!(dues.iter().all(|due| (5_001..50_000).contains(&due.get())), "{dues:?}");
}

#[test]
fn what_cannot_be_is_refused_at_the_start() {
    let config = SchedulerConfig { shards: 0, ..SchedulerConfig::DEFAULT };
    let refused = ThreadScheduler::start(config).unwrap_err();
    assert!(refused.to_string().contains("from 1 to 1024 shards"), "{refused}");
    let refused = start().scheduler().schedule_once_fn(ms(1), BLOCKING_DISPATCHER, |_| ());
    assert_eq!(refused.unwrap_err().kind(), ScheduleErrorKind::ReceiverGone);
}

#[test]
fn a_handler_drops_its_own_thread() {
    let driver = start();
    let scheduler = driver.scheduler().clone();
    let place = Arc::new(Mutex::new(Some(driver)));
    let taken = Arc::clone(&place);
    let (sender, receiver) = mpsc::channel();
    let end = move |_: &_| {
        drop(taken.lock().unwrap().take());
        sender.send(())
    };
    scheduler.schedule_once_fn(ms(1), ANY, end).unwrap();
    receiver.recv_timeout(LONG).expect("it does not wait for itself");
    assert!(scheduler.is_closed());
}

#[test]
fn a_dropped_thread_cancels_what_waits() {
    let driver = start();
    let job = driver.scheduler().schedule_at_fixed_rate_fn(LONG, LONG, ANY, |_| ()).unwrap();
    drop(driver);
    assert!(job.is_cancelled());
}
