//! Threads that send, open, drop, cancel and close. The law: each job that was accepted has ended,
//! completed or cancelled; the close has counted it so; what was cancelled was not opened; and
//! nothing is left.

use alloc::sync::Arc;
use core::{
    cell::Cell,
    sync::atomic::{AtomicBool, AtomicU32, Ordering::SeqCst},
};
use std::{sync::Barrier, thread};

use clockjack_sched::{
    Cancellable, CloseReport, DeliverySink, DeliveryTask, JobSpec, PendingDelivery, Scheduler,
    model::held,
};

use crate::support::{Mailbox, advance, folded, ms, scheduler};

const JOBS: usize = 24;

/// What became of one job.
#[derive(Default)]
struct Fate {
    opened: AtomicU32,
    is_cancelled: AtomicBool,
    /// How many were opened when a cancel had said true.
    opened_by_cancel: AtomicU32,
    told: AtomicU32,
}

struct Letter {
    to: Mailbox,
    fate: Arc<Fate>,
}

struct ToMailbox(Mailbox);

impl DeliverySink for ToMailbox {
    fn deliver(self, delivery: PendingDelivery) {
        self.0.deliver(delivery);
    }
}

impl DeliveryTask for Letter {
    type Sink = ToMailbox;

    fn sink(&self) -> ToMailbox {
        ToMailbox(self.to.clone())
    }

    fn cancelled(&mut self) {
        self.fate.told.fetch_add(1, SeqCst);
    }
}

fn spec(n: usize) -> JobSpec {
    let delay = ms(n as u64 % 5 + 1);
    match n % 6 {
        0 => folded(n as u64 % 5 + 1, 1),
        1 => JobSpec::fixed_rate(delay, ms(1)),
        2 => JobSpec::fixed_delay(delay, ms(1)),
        3 => JobSpec { run_on_close: true, ..JobSpec::once(delay) },
        _ => JobSpec::once(delay),
    }
}

/// A sequence of its own for each seed.
fn random(seed: u64) -> impl Fn(u64) -> u64 {
    let state = Cell::new(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    move |below| {
        let mut x = state.get();
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        state.set(x);
        (x >> 33) % below
    }
}

/// Takes what comes, until all others are through and nothing does any more.
fn receive(mailbox: &Mailbox, seed: u64, is_over: &AtomicBool) {
    let random = random(seed);
    loop {
        let ends = is_over.load(SeqCst);
        let Some(delivery) = mailbox.take() else {
            if ends {
                return;
            }
            thread::yield_now();
            continue;
        };
        match random(8) {
            0 => drop(delivery),
            1 => delivery.complete_job(),
            2 => receive_one(delivery, thread::yield_now),
            _ => receive_one(delivery, || ()),
        }
    }
}

fn receive_one(delivery: PendingDelivery, work: impl FnOnce()) {
    let Some(mut delivery) = delivery.accept() else { return };
    let letter = delivery.task_mut::<Letter>().expect("it was made of one");
    letter.fate.opened.fetch_add(1, SeqCst);
    work();
}

fn round(seed: u64, shards: u32) {
    let (scheduler, host) = scheduler(shards);
    let mailbox = Mailbox::default();
    let fates: Vec<_> = (0..JOBS).map(|_| Arc::new(Fate::default())).collect();
    let letter = |n: usize| Letter { to: mailbox.clone(), fate: Arc::clone(&fates[n]) };
    let jobs: Vec<_> = (0..JOBS)
        .map(|n| scheduler.schedule_delivery(spec(n), letter(n)).map_err(|refused| refused.kind()))
        .map(|job| job.expect("open"))
        .collect();
    let (start, is_over) = (Barrier::new(4), AtomicBool::new(false));
    let report = thread::scope(|scope| {
        let receiver = scope.spawn(|| {
            start.wait();
            receive(&mailbox, seed, &is_over);
        });
        let runner = scope.spawn(|| {
            start.wait();
            while !scheduler.is_closed() {
                advance(&host, 1);
                for shard in 0..shards as usize {
                    scheduler.poll_shard(shard, 1, 16);
                }
            }
        });
        let canceller = scope.spawn(|| {
            start.wait();
            cancel_some(&jobs, &fates, seed + 1);
        });
        start.wait();
        for _ in 0..random(seed + 2)(30) {
            thread::yield_now();
        }
        let report = scheduler.shutdown();
        runner.join().expect("no panic");
        canceller.join().expect("no panic");
        is_over.store(true, SeqCst);
        receiver.join().expect("no panic");
        report
    });
    judge(&scheduler, &report, &jobs, &fates);
    drop((jobs, letter));
    let left = held(&scheduler);
    assert_eq!((left.slots, left.due, left.remote_ops), (0, 0, 0), "something is left");
    assert!(fates.iter().all(|fate| Arc::strong_count(fate) == 1), "a letter was not dropped");
}

fn cancel_some(jobs: &[Cancellable], fates: &[Arc<Fate>], seed: u64) {
    let random = random(seed);
    for _ in 0..JOBS {
        let n = usize::try_from(random(JOBS as u64)).expect("it is small");
        if jobs[n].cancel() {
            fates[n].opened_by_cancel.store(fates[n].opened.load(SeqCst), SeqCst);
            assert!(!fates[n].is_cancelled.swap(true, SeqCst), "it said true twice");
        }
    }
}

fn judge(scheduler: &Scheduler, report: &CloseReport, jobs: &[Cancellable], fates: &[Arc<Fate>]) {
    let count = |of: fn(&Cancellable) -> bool| jobs.iter().filter(|job| of(job)).count() as u64;
    let (completed, cancelled) =
        (count(Cancellable::is_completed), count(Cancellable::is_cancelled));
    assert_eq!(report.accepted, jobs.len() as u64);
    assert_eq!((report.executed, report.cancelled), (completed, cancelled), "{report}");
    let metrics = scheduler.metrics();
    assert_eq!((metrics.executed_total, metrics.cancelled_total), (completed, cancelled));
    let opened: u32 = fates.iter().map(|fate| fate.opened.load(SeqCst)).sum();
    assert_eq!(metrics.fired_total, metrics.discarded_total + u64::from(opened));
    for (n, (job, fate)) in jobs.iter().zip(fates).enumerate() {
        let opened = fate.opened.load(SeqCst);
        let is_once = n % 6 >= 3;
        assert!(!is_once || opened <= u32::from(job.is_completed()), "job {n} arrived {opened}x");
        assert_eq!(fate.told.load(SeqCst), u32::from(job.is_cancelled()), "job {n}");
        if fate.is_cancelled.load(SeqCst) {
            // One of a job that repeats may have been open, and be counted only then.
            let after = opened - fate.opened_by_cancel.load(SeqCst);
            assert!(after <= u32::from(!is_once), "job {n} arrived after its cancel");
        }
    }
}

#[test]
fn each_of_a_thousand_closes_under_deliveries_counts_exactly() {
    for seed in 0..1_000 {
        round(seed, if seed % 4 == 0 { 2 } else { 1 });
    }
}
