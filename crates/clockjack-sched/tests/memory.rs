//! Memory comes back: bytes are counted by the allocator.
//!
//! The allocator counts what all threads do, the test harness included, so this is the only test
//! of its binary.
#![cfg(not(loom))]
#![expect(unsafe_code, reason = "an allocator that counts is an unsafe impl")]

extern crate alloc;

use alloc::sync::Arc;
use core::{
    alloc::{GlobalAlloc, Layout},
    sync::atomic::{AtomicU64, AtomicUsize, Ordering::SeqCst},
    time::Duration,
};
use std::{
    alloc::System,
    thread::{self, ScopedJoinHandle},
};

use clockjack_sched::{Cancellable, DispatcherId, Scheduler, SchedulerConfig, SchedulerHost};
use clockjack_time::{ClockKind, Resolution, Tick, TimerInstant};

/// The system's allocator, and a count of the bytes that are out.
struct Counting;

static BYTES: AtomicUsize = AtomicUsize::new(0);

// SAFETY: each call goes to the system's allocator with what it was given; the count touches none
// of it.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        BYTES.fetch_add(layout.size(), SeqCst);
        // SAFETY: the caller keeps to the contract of `GlobalAlloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        BYTES.fetch_sub(layout.size(), SeqCst);
        // SAFETY: the caller keeps to the contract of `GlobalAlloc`.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

const TIMERS: usize = 1_000_000;
const THREADS: usize = 4;
/// What a scheduler that has had a million jobs may have kept more than one that has had few.
const KEPT_MAX: usize = 256 * 1024;
/// What the test harness may take beside the test.
const HARNESS_MAX: usize = 16 * 1024;

#[derive(Clone, Default)]
struct Host {
    now: Arc<AtomicU64>,
}

impl SchedulerHost for Host {
    fn now(&self) -> TimerInstant {
        TimerInstant::new(Tick::new(self.now.load(SeqCst)), Resolution::MILLI)
    }

    fn clock_kind(&self) -> ClockKind {
        ClockKind::RealtimeHost
    }

    fn name(&self) -> &'static str {
        "memory"
    }

    fn call_runner(&self, _shard: usize) {}

    fn relax(&self) {
        thread::yield_now();
    }
}

/// Arms so many timers from several threads, cancels every second of them from several threads
/// while a runner turns, and lets the others run.
fn load(scheduler: &Scheduler, host: &Host, timers: usize) {
    let arm = |n: usize| {
        // Some of them beyond what the wheel has slots for.
        let far = if n.is_multiple_of(10) { 1 << 21 } else { 0 };
        let delay = Duration::from_millis(far + n as u64 % 5_000);
        let job = scheduler.schedule_once_fn(delay, DispatcherId::DEFAULT, |_| ());
        job.expect("there is room")
    };
    let parts: Vec<Vec<Cancellable>> = thread::scope(|scope| {
        let arm_all = |part| (0..timers).skip(part).step_by(THREADS).map(arm).collect();
        let arming: Vec<_> = (0..THREADS).map(|part| scope.spawn(move || arm_all(part))).collect();
        arming.into_iter().map(|one| one.join().expect("no panic")).collect()
    });
    thread::scope(|scope| {
        let cancel_half = |part: Vec<Cancellable>| {
            for job in part.iter().step_by(2) {
                job.cancel();
            }
        };
        let cancelling: Vec<_> =
            parts.into_iter().map(|part| scope.spawn(move || cancel_half(part))).collect();
        while !cancelling.iter().all(ScopedJoinHandle::is_finished) {
            host.now.fetch_add(1, SeqCst);
            scheduler.turn(0, 0, usize::MAX);
        }
    });
    // The second time, because memory is kept for a while in case that it is needed again.
    for _ in 0..2 {
        host.now.fetch_add(1 << 22, SeqCst);
        while scheduler.turn(0, 0, usize::MAX).is_more {}
    }
    assert_eq!(scheduler.metrics().active_total, 0);
}

#[test]
fn memory_of_a_million_timers_returns() {
    let at_first = BYTES.load(SeqCst);
    let host = Host::default();
    let config = SchedulerConfig {
        resolution: Resolution::MILLI,
        quota: TIMERS,
        capacity: TIMERS,
        overflow_capacity: TIMERS,
        ..SchedulerConfig::DEFAULT
    };
    let scheduler = Scheduler::new(config, host.clone()).expect("a sound configuration");
    load(&scheduler, &host, 64);
    let before = BYTES.load(SeqCst);
    load(&scheduler, &host, TIMERS);
    let after = BYTES.load(SeqCst);
    assert!(after <= before + KEPT_MAX, "{before} bytes before, {after} after");
    // And once more: what is kept does not add up.
    load(&scheduler, &host, TIMERS / 4);
    let again = BYTES.load(SeqCst);
    assert!(again <= before + KEPT_MAX, "{before} bytes before, {again} after");
    drop((scheduler, host));
    let in_the_end = BYTES.load(SeqCst);
    assert!(
        in_the_end <= at_first + HARNESS_MAX,
        "{at_first} bytes at first, {in_the_end} in the end"
    );
}
