//! The loop, with a thread for the interrupt, and others that schedule.

use alloc::{sync::Arc, task::Wake};
use core::{
    sync::atomic::{AtomicBool, AtomicU32, Ordering::SeqCst},
    task::Waker,
};
use std::{
    sync::Mutex,
    thread::{self, Thread},
};

use clockjack_sched::{RunnerLoop, Scheduler};
use clockjack_time::{InterruptDriver, Resolution};

use crate::support::{DEFAULT, MILLIS, leak, ms};

/// Wakes a parked thread; its token is the mark.
struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

#[test]
fn a_parked_loop_takes_each_tick_of_an_interrupt_in_another_thread() {
    const TICKS: u32 = 20_000;
    let driver = leak(InterruptDriver::new(Resolution::MILLI));
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut runner = RunnerLoop::start(MILLIS, driver, driver, waker).expect("a fresh driver");
    let dues = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&dues);
    let beat = runner.scheduler().schedule_at_fixed_rate_fn(ms(1), ms(1), DEFAULT, move |fire| {
        seen.lock().expect("no panic").push(fire.due().get());
    });
    beat.expect("there is room");
    thread::scope(|scope| {
        scope.spawn(|| {
            for tick in 0..TICKS {
                driver.notify_tick();
                if tick % 7 == 0 {
                    thread::yield_now();
                }
            }
        });
        let mut ticks = 0;
        loop {
            let turn = runner.poll();
            ticks += turn.ticks;
            if turn.is_more {
                continue;
            }
            if ticks == u64::from(TICKS) {
                break;
            }
            // Hangs if a wake-up is lost.
            thread::park();
        }
    });
    let expected: Vec<u64> = (1..=u64::from(TICKS)).collect();
    assert_eq!(*dues.lock().expect("no panic"), expected);
}

/// Schedules many jobs, and cancels each third.
fn call(scheduler: &Scheduler, n_jobs: u32, ran: &Arc<AtomicU32>, cancelled: &AtomicU32) {
    for n in 0..n_jobs {
        let ran = Arc::clone(ran);
        let job = scheduler.schedule_once_fn(ms(u64::from(n) % 5), DEFAULT, move |_| {
            ran.fetch_add(1, SeqCst);
        });
        if n % 3 == 0 && job.expect("there is room").cancel() {
            cancelled.fetch_add(1, SeqCst);
        }
    }
}

#[test]
fn threads_that_schedule_and_cancel_beside_the_loop_lose_nothing() {
    const JOBS: u32 = 5_000;
    let driver = leak(InterruptDriver::new(Resolution::MILLI));
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut runner = RunnerLoop::start(MILLIS, driver, driver, waker).expect("a fresh driver");
    let scheduler = runner.scheduler().clone();
    let (ran, cancelled) = (Arc::new(AtomicU32::new(0)), AtomicU32::new(0));
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| call(&scheduler, JOBS, &ran, &cancelled));
        scope.spawn(|| call(&scheduler, JOBS, &ran, &cancelled));
        scope.spawn(|| {
            while !is_over.load(SeqCst) {
                driver.notify_tick();
                thread::yield_now();
            }
        });
        // The source ticks until all is done, so that this parks for a tick at the most.
        while ran.load(SeqCst) + cancelled.load(SeqCst) < 2 * JOBS {
            if !runner.poll().is_more {
                thread::park();
            }
        }
        is_over.store(true, SeqCst);
    });
    let report = runner.stop();
    assert_eq!(report.accepted, u64::from(2 * JOBS));
    assert_eq!(report.executed, u64::from(ran.load(SeqCst)));
    assert_eq!(report.cancelled, u64::from(cancelled.load(SeqCst)));
}
