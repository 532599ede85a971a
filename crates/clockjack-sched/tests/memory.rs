//! Memory comes back: bytes are counted by the allocator.
//!
//! The allocator counts what all threads do, the test harness included, so this is the only test
//! of its binary.
#![cfg(not(loom))]

extern crate alloc;

#[path = "support/host.rs"]
mod host;

use core::{sync::atomic::Ordering::SeqCst, time::Duration};
use std::thread::{self, ScopedJoinHandle};

use clockjack_sched::{Cancellable, DispatcherId, Scheduler, SchedulerConfig};
use clockjack_testing::allocation::Counting;
use clockjack_time::Resolution;
use host::Host;

#[global_allocator]
static COUNTING: Counting = Counting::new();

const TIMERS: usize = 1_000_000;
const THREADS: usize = 4;
/// What a scheduler that has had a million jobs may have kept more than one that has had few.
const KEPT_MAX: usize = 256 * 1024;
/// What the test harness may allocate next to the test.
const HARNESS_MAX: usize = 16 * 1024;

/// Arms so many timers from several threads, cancels every second of them from several threads
/// while a poller polls, and lets the others run.
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
            scheduler.poll_shard(0, 0, usize::MAX);
        }
    });
    // The second time, because memory is kept for a while in case that it is needed again.
    for _ in 0..2 {
        host.now.fetch_add(1 << 22, SeqCst);
        while scheduler.poll_shard(0, 0, usize::MAX).is_more {}
    }
    assert_eq!(scheduler.metrics().active_total, 0);
}

#[test]
fn memory_of_a_million_timers_returns() {
    let at_first = COUNTING.used_bytes();
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
    let before = COUNTING.used_bytes();
    load(&scheduler, &host, TIMERS);
    let after = COUNTING.used_bytes();
    assert!(after <= before + KEPT_MAX, "{before} bytes before, {after} after");
    // And once more: what is kept does not add up.
    load(&scheduler, &host, TIMERS / 4);
    let again = COUNTING.used_bytes();
    assert!(again <= before + KEPT_MAX, "{before} bytes before, {again} after");
    drop((scheduler, host));
    let in_the_end = COUNTING.used_bytes();
    assert!(
        in_the_end <= at_first + HARNESS_MAX,
        "{at_first} bytes at first, {in_the_end} in the end"
    );
}
