//! What a scheduler on a pool promises, where real time is the subject.

use core::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::{
    sync::{Arc, Mutex, mpsc},
    time::Instant,
};

use clockjack_rt::{
    PoolConfig, PoolSchedulerConfig, RuntimeConfig, TimerTopology, WorkerPool,
    exec::Commands,
    sched::{JobState, RunnerMode, ScheduleErrorKind},
};
use clockjack_testing::InTime;
use clockjack_time::{ClockKind, Resolution};

use crate::in_time::ShutdownInTime as _;
use crate::{ANY, LONG, eventually::eventually, ms, pool_of};

#[test]
fn r1_1_a_one_shot_runs_once_and_not_before_its_delay_has_passed() {
    let pool = pool_of(2);
    let (sender, receiver) = mpsc::channel();
    let n_jobs = 200_u64;
    for i in 0..n_jobs {
        let (sender, delay) = (sender.clone(), ms(i % 40));
        let begun = Instant::now();
        let run = move |_: &_| sender.send((begun.elapsed(), delay));
        pool.scheduler().schedule_once_fn(delay, ANY, run).unwrap();
    }
    drop(sender);
    // Ends when all closures are gone: so none runs again.
    let runs: Vec<_> = receiver.iter().collect();
    assert_eq!(runs.len() as u64, n_jobs);
    for (took, delay) in runs {
        assert!(took >= delay, "{took:?} is early for {delay:?}");
        assert!(took < delay + LONG, "{took:?} is late for {delay:?}");
    }
}

#[test]
fn r1_1_a_run_that_nobody_delays_starts_in_the_tick_of_its_deadline() {
    let pool = pool_of(2);
    let late = || {
        let (sender, receiver) = mpsc::channel();
        let run = move |fire: &clockjack_rt::sched::FireContext| sender.send(fire.late());
        pool.scheduler().schedule_once_fn(ms(5), ANY, run).unwrap();
        receiver.recv().unwrap()
    };
    // A loaded machine delays any of them, but not all of them for a minute.
    eventually("a run starts in the tick of its deadline", || late() < ms(1));
}

#[test]
fn r1_2_jobs_of_one_thread_run_in_the_order_of_their_registration() {
    let pool = pool_of(4);
    let (sender, receiver) = mpsc::channel();
    for i in 0..1_000 {
        let sender = sender.clone();
        pool.scheduler().schedule_once_fn(ms(20), ANY, move |_| sender.send(i)).unwrap();
    }
    drop(sender);
    assert!(receiver.iter().eq(0..1_000));
}

#[test]
fn r1_6_the_frequency_is_that_of_the_ticks() {
    let pool = pool_of(1);
    assert_eq!((pool.scheduler().max_frequency(), pool.scheduler().shards()), (1_000, 1));
    let topology = TimerTopology::Single;
    let config = PoolConfig {
        workers: Some(3),
        resolution: Resolution::TEN_MILLIS,
        scheduler: PoolSchedulerConfig { topology, ..PoolSchedulerConfig::DEFAULT },
        ..PoolConfig::DEFAULT
    };
    let pool = InTime::new(
        WorkerPool::new(config, Commands::new()).unwrap(),
        PoolConfig::DEFAULT.drop_timeout,
    );
    assert_eq!((pool.scheduler().max_frequency(), pool.scheduler().shards()), (100, 1));
    let metadata = pool.scheduler().metadata();
    assert_eq!((metadata.mode, metadata.clock), (RunnerMode::AsyncHost, ClockKind::RealtimeHost));
    assert_eq!(metadata.driver, "pool");
    assert_eq!(pool_of(3).scheduler().shards(), 3);
}

#[test]
fn r2_1_a_fixed_rate_keeps_to_its_grid_however_late_runs_start() {
    let pool = pool_of(2);
    let (sender, receiver) = mpsc::channel();
    let job = pool
        .scheduler()
        .schedule_at_fixed_rate_fn(ms(3), ms(5), ANY, move |fire| sender.send(fire.due().get()));
    let dues: Vec<_> = receiver.iter().take(40).collect();
    assert!(job.unwrap().cancel());
    assert!(dues.windows(2).all(|pair| pair[1] - pair[0] == 5), "{dues:?}");
}

#[test]
fn r2_4_a_fixed_delay_counts_from_the_end_of_the_run() {
    let pool = pool_of(2);
    let (sender, receiver) = mpsc::channel();
    let job = pool.scheduler().schedule_with_fixed_delay_fn(ms(1), ms(10), ANY, move |_| {
        let begun = Instant::now();
        std::thread::sleep(ms(15));
        sender.send((begun, Instant::now()))
    });
    let runs: Vec<_> = receiver.iter().take(8).collect();
    job.unwrap().cancel();
    for pair in runs.windows(2) {
        let gap = pair[1].0 - pair[0].1;
        assert!(gap >= ms(10), "only {gap:?} after the end of a run");
    }
}

#[test]
fn r3_7_after_the_shutdown_everything_is_refused() {
    let pool = pool_of(2);
    let scheduler = pool.scheduler().clone();
    let kept = scheduler.schedule_once_fn(LONG, ANY, |_| ()).unwrap();
    let report = pool.shutdown_in_time(LONG).scheduler.unwrap();
    assert_eq!((report.accepted, report.executed, report.cancelled), (1, 0, 1));
    assert_eq!(kept.state(), JobState::Cancelled);
    for delay in [ms(0), ms(1)] {
        let refused = scheduler.schedule_once_fn(delay, ANY, |_| ()).unwrap_err();
        assert_eq!(refused.kind(), ScheduleErrorKind::Closed);
    }
}

#[test]
fn r4_1_threads_schedule_and_cancel_while_workers_run_jobs() {
    let pool = pool_of(2);
    let (ran, cancelled) = (Arc::new(AtomicUsize::new(0)), AtomicUsize::new(0));
    let (n_threads, n_jobs) = (4, 2_000_u64);
    std::thread::scope(|scope| {
        for _ in 0..n_threads {
            scope.spawn(|| {
                for i in 0..n_jobs {
                    let ran = Arc::clone(&ran);
                    let run = move |_: &_| _ = ran.fetch_add(1, SeqCst);
                    let job = pool.scheduler().schedule_once_fn(ms(i % 7), ANY, run).unwrap();
                    if i % 3 == 0 && job.cancel() {
                        cancelled.fetch_add(1, SeqCst);
                    }
                }
            });
        }
    });
    let all = n_threads * usize::try_from(n_jobs).unwrap();
    eventually("all have run or were cancelled", || {
        ran.load(SeqCst) + cancelled.load(SeqCst) == all
    });
    let report = pool.shutdown_in_time(LONG).scheduler.unwrap();
    assert_eq!(report.accepted, all as u64);
    assert_eq!(report.executed, ran.load(SeqCst) as u64);
    assert_eq!(report.cancelled, cancelled.load(SeqCst) as u64);
}

#[test]
fn r4_1_jobs_are_neither_lost_nor_early_while_workers_come_and_go() {
    let pool = pool_of(4);
    let (sender, receiver) = mpsc::channel();
    let n_jobs = 2_000_u64;
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for workers in [1, 4, 2, 6, 1, 3].into_iter().cycle().take(60) {
                pool.resize(workers).unwrap();
                std::thread::yield_now();
            }
        });
        for i in 0..n_jobs {
            let (sender, delay) = (sender.clone(), ms(i % 23));
            let begun = Instant::now();
            let run = move |_: &_| sender.send(begun.elapsed() >= delay);
            pool.scheduler().schedule_once_fn(delay, ANY, run).unwrap();
        }
    });
    drop(sender);
    let runs: Vec<_> = receiver.iter().collect();
    assert_eq!(runs.len() as u64, n_jobs);
    assert!(runs.into_iter().all(|is_not_early| is_not_early));
}

/// Mailboxes that are really full: the pressure is not switched on by the test.
#[test]
fn r4_5_while_mailboxes_are_full_jobs_beyond_the_smaller_quota_are_refused() {
    use clockjack_rt::{
        Runtime,
        actor::{ActorSystem, Mailbox, Props},
        sched::{DiagnosticEvent, EventKinds, PressureReason, SchedulerConfig, Warning},
    };
    let settings = SchedulerConfig { quota: 400, ..SchedulerConfig::DEFAULT };
    let rt = InTime::new(
        Runtime::start(ActorSystem::builder("t").scheduler(settings)).unwrap(),
        RuntimeConfig::DEFAULT.drop_timeout,
    );
    let jobs = rt.system().scheduler().jobs().clone();
    let mut stream = jobs.diagnostics().subscribe(EventKinds::WARNING, 100).unwrap();
    let (begin, begun) = mpsc::channel();
    let (next, take) = mpsc::channel::<()>();
    let take = Arc::new(Mutex::new(take));
    let slow = Props::from_fn(move |_, _: u8| {
        begin.send(())?;
        take.lock().unwrap().recv()?;
        Ok(())
    });
    let slow = rt.spawn("slow", slow.mailbox(Mailbox::bounded(8))).unwrap();
    slow.tell(0).unwrap();
    begun.recv().unwrap();
    while slow.tell(0).is_ok() {}
    next.send(()).unwrap();
    begun.recv().unwrap();
    let mut accepted = Vec::new();
    let hour = LONG * 120;
    let refused = loop {
        match jobs.schedule_once_fn(hour, ANY, |_| ()) {
            Ok(job) => accepted.push(job),
            Err(refused) => break refused.kind(),
        }
    };
    assert_eq!((accepted.len(), refused), (200, ScheduleErrorKind::Backpressured));
    for _ in 0..8 {
        next.send(()).unwrap();
    }
    eventually("the pressure ends", || jobs.metrics().quota_limit == 400);
    jobs.schedule_once_fn(hour, ANY, |_| ()).unwrap();
    let mut changes = Vec::new();
    while let Some(event) = stream.try_next() {
        if let DiagnosticEvent::Warned(Warning::BackpressureState { engaged, reason }) = event {
            changes.push((engaged, reason));
        }
    }
    let mailboxes = PressureReason::Mailboxes;
    assert_eq!(changes, [(true, mailboxes), (false, mailboxes)]);
}
