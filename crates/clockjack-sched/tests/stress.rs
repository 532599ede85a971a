//! Real threads against one scheduler. The law: each job that was accepted either ran, or its
//! cancel said true, or the close cancelled it; once; and the counts say so exactly.
//!
//! Virtual time: an atomic that the tests move. Nothing here reads a clock or sleeps.
#![cfg(not(loom))]

extern crate alloc;

#[path = "support/host.rs"]
mod host;

use alloc::sync::Arc;
use core::{
    sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::SeqCst},
    time::Duration,
};
use std::{
    sync::Barrier,
    thread::{self, Scope, ScopedJoinHandle},
};

use clockjack_sched::{
    Cancellable, DispatcherId, FireContext, ScheduleErrorKind, Scheduler, SchedulerConfig,
    model::held,
};
use clockjack_time::Resolution;
use host::Host;

const D: DispatcherId = DispatcherId::DEFAULT;

const fn ticks(n: u64) -> Duration {
    Duration::from_millis(n)
}

fn scheduler(capacity: usize) -> (Scheduler, Host) {
    let host = Host::default();
    let config = SchedulerConfig {
        resolution: Resolution::MILLI,
        quota: capacity,
        capacity,
        overflow_capacity: capacity,
        ..SchedulerConfig::DEFAULT
    };
    (Scheduler::new(config, host.clone()).expect("a sound configuration"), host)
}

/// Polls until nothing is due any more.
fn run_out(scheduler: &Scheduler) {
    while scheduler.poll_shard(0, 0, usize::MAX).is_more {}
}

#[test]
fn a_close_cancels_as_many_jobs_as_fill_several_segments() {
    for jobs in [1, 31, 33, 100, 1_000, 5_000] {
        let (scheduler, _host) = scheduler(1 << 16);
        let token = Arc::new(());
        for _ in 0..jobs {
            let token = token.clone();
            let run = move |_: &_| drop(token);
            drop(scheduler.schedule_once_fn(ticks(10), D, run).expect("open"));
        }
        let report = scheduler.shutdown();
        assert_eq!((report.accepted, report.executed, report.cancelled), (jobs, 0, jobs));
        assert_eq!(Arc::strong_count(&token), 1, "what was not delivered is dropped");
    }
}

/// Stops the pollers on drop, also after a panic.
struct Stop<'s>(&'s AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, SeqCst);
    }
}

/// Starts threads that poll and advance time until they are stopped.
fn start_runners<'scope>(
    scope: &'scope Scope<'scope, '_>,
    executors: u16,
    scheduler: &'scope Scheduler,
    host: &'scope Host,
    stop: &'scope AtomicBool,
) -> Vec<ScopedJoinHandle<'scope, ()>> {
    let turn = move |executor| {
        while !stop.load(SeqCst) {
            host.now.fetch_add(1, SeqCst);
            scheduler.poll_shard(0, executor, 64);
            thread::yield_now();
        }
    };
    (1..=executors).map(|executor| scope.spawn(move || turn(executor))).collect()
}

/// What one thread saw.
#[derive(Default)]
struct Tally {
    accepted: u64,
    cancelled: u64,
    refused: u64,
}

/// Schedules all sorts of jobs until it is refused.
fn fire(scheduler: &Scheduler, begun: &AtomicU64, token: &Arc<()>, seed: u64) -> Tally {
    let mut tally = Tally::default();
    let mut kept = Vec::new();
    for i in seed.. {
        let token = token.clone();
        let job = match i % 5 {
            0 => scheduler
                .schedule_at_fixed_rate_fn(ticks(i % 3), ticks(2), D, move |_| {
                    let _ = &token;
                })
                .map_err(|refused| refused.kind()),
            1 => scheduler
                .schedule_with_fixed_delay_fn(ticks(1), ticks(1), D, move |_| {
                    let _ = &token;
                })
                .map_err(|refused| refused.kind()),
            _ => scheduler
                .schedule_once_fn(ticks(i % 7), D, move |_| drop(token))
                .map_err(|refused| refused.kind()),
        };
        let job = match job {
            Ok(job) => job,
            // Faster than the pollers: let them run.
            Err(ScheduleErrorKind::QuotaExceeded) => {
                thread::yield_now();
                continue;
            }
            Err(kind) => {
                assert_eq!(kind, ScheduleErrorKind::Closed);
                tally.refused += 1;
                break;
            }
        };
        tally.accepted += 1;
        begun.fetch_add(1, SeqCst);
        match i % 11 {
            0 | 1 => tally.cancelled += u64::from(job.cancel()),
            2 => drop(job.run_on_close()),
            3 => kept.push(job),
            _ => {}
        }
    }
    for job in kept {
        tally.cancelled += u64::from(job.cancel());
    }
    tally
}

/// One round: threads schedule and cancel until they are refused, and the scheduler closes.
fn close_under_fire(round: u64) {
    let (scheduler, host) = scheduler(1 << 9);
    let (stop, token, begun) = (AtomicBool::new(false), Arc::new(()), AtomicU64::new(0));
    let (report, tallies) = thread::scope(|scope| {
        let stop_runners = Stop(&stop);
        let runners = start_runners(scope, 2, &scheduler, &host, &stop);
        let (scheduler, begun, token) = (&scheduler, &begun, &token);
        let threads: Vec<_> = (0..4)
            .map(|n| scope.spawn(move || fire(scheduler, begun, token, round * 31 + n * 7)))
            .collect();
        // At another moment each round.
        while begun.load(SeqCst) < round % 97 {
            thread::yield_now();
        }
        let report = scheduler.shutdown();
        let tallies: Vec<_> =
            threads.into_iter().map(|one| one.join().expect("no panic")).collect();
        drop(stop_runners);
        for runner in runners {
            runner.join().expect("no panic");
        }
        (report, tallies)
    });
    let sum = |of: fn(&Tally) -> u64| tallies.iter().map(of).sum::<u64>();
    assert_eq!(report.accepted, sum(|one| one.accepted), "round {round}: {report}");
    assert_eq!(report.accepted, report.executed + report.cancelled, "round {round}: {report}");
    assert!(report.cancelled >= sum(|one| one.cancelled), "round {round}: {report}");
    assert_eq!(sum(|one| one.refused), 4, "each was refused in the end");
    run_out(&scheduler);
    let metrics = scheduler.metrics();
    assert_eq!(metrics.accepted_total, report.accepted);
    assert_eq!(metrics.executed_total, report.executed, "as the report had said");
    assert_eq!(metrics.cancelled_total, report.cancelled, "as the report had said");
    assert_eq!(metrics.active_total, 0);
    let left = held(&scheduler);
    assert_eq!((left.slots, left.permits, left.due), (0, 0, 0), "round {round}");
    assert_eq!(Arc::strong_count(&token), 1, "round {round}: a payload was not dropped");
}

#[test]
fn closing_under_fire_accounts_for_every_job() {
    const ROUNDS: u64 = if cfg!(miri) { 2 } else { 1_000 };
    for round in 0..ROUNDS {
        close_under_fire(round);
    }
}

#[test]
fn of_a_million_timers_each_is_delivered_or_cancelled_once() {
    const TIMERS: usize = if cfg!(miri) { 1_000 } else { 1_000_000 };
    const THREADS: usize = 4;
    let (scheduler, host) = scheduler(TIMERS);
    let delivered = Arc::new(AtomicU64::new(0));
    let arm = |n: usize| {
        let delivered = delivered.clone();
        let run = move |_: &_| {
            delivered.fetch_add(1, SeqCst);
        };
        let delay = ticks(1 + n as u64 % 1_000);
        scheduler.schedule_once_fn(delay, D, run).expect("room")
    };
    let parts: Vec<Vec<Cancellable>> = thread::scope(|scope| {
        let arm_all = |part| (0..TIMERS).skip(part).step_by(THREADS).map(arm).collect();
        let arming: Vec<_> = (0..THREADS).map(|part| scope.spawn(move || arm_all(part))).collect();
        arming.into_iter().map(|one| one.join().expect("no panic")).collect()
    });
    assert_eq!(scheduler.metrics().active_total, TIMERS);
    let start = Barrier::new(THREADS + 1);
    let cancelled: u64 = thread::scope(|scope| {
        let cancel = |part: Vec<Cancellable>| {
            start.wait();
            part.into_iter().rev().map(|job| u64::from(job.cancel())).sum::<u64>()
        };
        let cancellers: Vec<_> =
            parts.into_iter().map(|part| scope.spawn(move || cancel(part))).collect();
        start.wait();
        while !cancellers.iter().all(ScopedJoinHandle::is_finished) {
            host.now.fetch_add(1, SeqCst);
            scheduler.poll_shard(0, 0, usize::MAX);
        }
        cancellers.into_iter().map(|one| one.join().expect("no panic")).sum()
    });
    host.now.fetch_add(2_000, SeqCst);
    run_out(&scheduler);
    let delivered = delivered.load(SeqCst);
    assert_eq!(delivered, TIMERS as u64 - cancelled);
    let metrics = scheduler.metrics();
    assert_eq!(metrics.executed_total, delivered);
    assert_eq!(metrics.cancelled_total, cancelled);
    let left = held(&scheduler);
    assert_eq!((left.slots, left.permits, left.due), (0, 0, 0));
    assert!(left.room <= 64 + 128, "room for {} slots is left", left.room);
}

/// One periodic job: two threads cancel it while three poll the shard.
fn cancel_while_it_runs(scheduler: &Scheduler, round: u32, overlaps: &Arc<AtomicU32>) {
    let inside = Arc::new(AtomicU32::new(0));
    let (in_run, overlaps) = (inside.clone(), overlaps.clone());
    let run = move |_: &_| {
        overlaps.fetch_add(in_run.fetch_add(1, SeqCst), SeqCst);
        in_run.fetch_sub(1, SeqCst);
    };
    let job = if round.is_multiple_of(2) {
        scheduler.schedule_at_fixed_rate_fn(ticks(0), ticks(1), D, run).expect("room")
    } else {
        scheduler.schedule_with_fixed_delay_fn(ticks(0), ticks(1), D, run).expect("room")
    };
    for _ in 0..round % 5 {
        thread::yield_now();
    }
    let (first, second) = thread::scope(|scope| {
        let second = scope.spawn(|| job.cancel());
        (job.cancel(), second.join().expect("no panic"))
    });
    assert!(first ^ second, "one of two cancels wins");
    // What it captured is dropped, after the run that may be under way: so none begins later.
    while Arc::strong_count(&inside) > 1 {
        thread::yield_now();
    }
    assert!(job.is_cancelled());
}

#[test]
fn a_cancelled_periodic_job_ends_whoever_takes_turns() {
    const ROUNDS: u32 = if cfg!(miri) { 20 } else { 3_000 };
    let (scheduler, host) = scheduler(1 << 12);
    let (stop, overlaps) = (AtomicBool::new(false), Arc::new(AtomicU32::new(0)));
    thread::scope(|scope| {
        let _stop_runners = Stop(&stop);
        start_runners(scope, 3, &scheduler, &host, &stop);
        (0..ROUNDS).for_each(|round| cancel_while_it_runs(&scheduler, round, &overlaps));
    });
    assert_eq!(overlaps.load(SeqCst), 0, "runs of one job do not overlap");
    run_out(&scheduler);
    assert_eq!(scheduler.metrics().cancelled_total, u64::from(ROUNDS));
    assert_eq!(held(&scheduler).slots, 0);
}

#[test]
fn three_threads_that_turn_one_shard_run_each_job_once() {
    const JOBS: usize = if cfg!(miri) { 200 } else { 60_000 };
    let (scheduler, host) = scheduler(1 << 17);
    let ran: Arc<Vec<AtomicU32>> = Arc::new((0..JOBS).map(|_| AtomicU32::new(0)).collect());
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let _stop_runners = Stop(&stop);
        start_runners(scope, 3, &scheduler, &host, &stop);
        for n in 0..JOBS {
            let (ran, again) = (ran.clone(), scheduler.clone());
            let run = move |_: &FireContext| {
                ran[n].fetch_add(1, SeqCst);
                // Each schedules another, whose run counts too.
                let later = move |_: &FireContext| {
                    ran[n].fetch_add(1, SeqCst);
                };
                drop(again.schedule_once_fn(ticks(n as u64 % 3), D, later).expect("room"));
            };
            drop(scheduler.schedule_once_fn(ticks(n as u64 % 20), D, run).expect("room"));
        }
        while scheduler.metrics().executed_total < 2 * JOBS as u64 {
            thread::yield_now();
        }
    });
    assert!(ran.iter().all(|ran| ran.load(SeqCst) == 2), "each ran once");
    let metrics = scheduler.metrics();
    assert_eq!((metrics.accepted_total, metrics.active_total), (2 * JOBS as u64, 0));
    assert_eq!(held(&scheduler).slots, 0);
}

/// The closer runs what is due when it begins, at most, though each run makes more due. Only its
/// own runs count: the pollers may continue as long as it does not poll.
#[test]
fn a_close_of_a_scheduler_that_cannot_keep_up_comes_to_an_end() {
    const JOBS: u64 = 8;
    let (scheduler, host) = scheduler(1 << 10);
    let (stop, closing) = (AtomicBool::new(false), Arc::new(AtomicBool::new(false)));
    // How many runs the closer has made, and how many were due when it made the first.
    let own = Arc::new([AtomicU64::new(0), AtomicU64::new(0)]);
    let closer = thread::current().id();
    for _ in 0..JOBS {
        let (host, closing, own) = (host.clone(), closing.clone(), own.clone());
        let run = move |_: &FireContext| {
            while host.now.load(SeqCst) >= 500 && !closing.load(SeqCst) {
                thread::yield_now();
            }
            if thread::current().id() == closer && own[0].fetch_add(1, SeqCst) == 0 {
                own[1].store(JOBS * host.now.load(SeqCst), SeqCst);
            }
            // Each run takes longer than its period, until the closer has gone too far.
            if own[0].load(SeqCst) <= own[1].load(SeqCst) || own[1].load(SeqCst) == 0 {
                host.now.fetch_add(5, SeqCst);
            }
        };
        drop(scheduler.schedule_at_fixed_rate_fn(ticks(1), ticks(1), D, run).expect("room"));
    }
    let report = thread::scope(|scope| {
        let _stop_runners = Stop(&stop);
        start_runners(scope, 2, &scheduler, &host, &stop);
        while host.now.load(SeqCst) < 500 {
            thread::yield_now();
        }
        closing.store(true, SeqCst);
        scheduler.shutdown()
    });
    assert_eq!((report.accepted, report.executed, report.cancelled), (8, 0, 8));
    let [ran, due] = [own[0].load(SeqCst), own[1].load(SeqCst)];
    assert!(ran <= due, "it ran what came due meanwhile: {ran} runs, of which {due} were due");
}
