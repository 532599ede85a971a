//! The watchdog's sleep against arms, and its polling against requests.

use alloc::sync::Arc;

use clockjack_exec::watchdog::shared::{NEVER, WatchdogShared, plan};
use clockjack_sync::primitive::atomic::{
    AtomicBool, AtomicU64, AtomicUsize,
    Ordering::{AcqRel, Acquire, Relaxed, Release, SeqCst},
    fence,
};
use loom::thread;

const NOW: u64 = 100;
const TOLERANCE: u64 = 10;
const SOONEST: u64 = NOW + TOLERANCE;

/// A watchdog with one shard and one slot.
struct Parts {
    watchdog: WatchdogShared,
    next_wake: AtomicU64,
    slot: AtomicUsize,
    token: AtomicBool,
}

impl Parts {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            watchdog: WatchdogShared::new(TOLERANCE, 1),
            next_wake: AtomicU64::new(NEVER),
            slot: AtomicUsize::new(0),
            token: AtomicBool::new(false),
        })
    }

    fn next_wake(&self) -> Option<u64> {
        let wake = self.next_wake.load(Relaxed);
        (wake != NEVER).then_some(wake)
    }

    fn unpark_if(&self, is_claimed: bool) {
        if is_claimed {
            let before = self.token.swap(true, Release);
            assert!(!before, "two unparks for one sleep");
        }
    }

    fn arm(&self, deadline: u64) {
        self.next_wake.fetch_min(deadline, Relaxed);
        self.unpark_if(self.watchdog.notify_armed(deadline));
    }

    /// A requester that makes its work visible by a read-modify-write.
    fn request(&self) {
        self.slot.fetch_add(1, AcqRel);
        self.unpark_if(self.watchdog.request_polling());
    }

    /// A requester that makes it visible by a store, and fences.
    fn request_by_fence(&self) {
        self.slot.store(1, Relaxed);
        fence(SeqCst);
        self.unpark_if(self.watchdog.request_polling());
    }

    /// One plan and the sleep after it; gives the time until which it sleeps.
    fn sleep(&self) -> u64 {
        let planned = plan(NOW, TOLERANCE, [self.next_wake()]);
        self.watchdog.prepare_sleep(planned.sleep_until, SOONEST, || self.next_wake())
    }

    fn spawn<R: Send + 'static>(
        self: &Arc<Self>,
        f: impl FnOnce(&Self) -> R + Send + 'static,
    ) -> thread::JoinHandle<R> {
        let parts = Arc::clone(self);
        thread::spawn(move || f(&parts))
    }
}

#[test]
fn a_watchdog_that_falls_asleep_misses_no_arm() {
    loom::model(|| {
        let parts = Parts::new();
        let armer = parts.spawn(|parts| parts.arm(200));
        let watchdog = parts.spawn(Parts::sleep);
        armer.join().expect("no panic");
        let until = watchdog.join().expect("no panic");
        let is_woken = parts.token.load(Acquire);
        assert!(is_woken || until == 210, "it sleeps until {until}");
    });
}

#[test]
fn a_watchdog_that_falls_asleep_misses_no_worker_that_becomes_awake() {
    const AWAKE_MAX: u64 = 50;
    loom::model(|| {
        let parts = Parts::new();
        let worker = parts.spawn(|parts| {
            parts.slot.fetch_add(1, Relaxed);
            parts.unpark_if(parts.watchdog.notify_awake(NOW));
        });
        let watchdog = parts.spawn(|parts| {
            parts.watchdog.set_awake_max(AWAKE_MAX);
            parts.watchdog.prepare_sleep(NEVER, SOONEST, || {
                (parts.slot.load(Relaxed) != 0).then_some(NOW + AWAKE_MAX - TOLERANCE)
            })
        });
        worker.join().expect("no panic");
        let until = watchdog.join().expect("no panic");
        let is_woken = parts.token.load(Acquire);
        assert!(is_woken || until == NOW + AWAKE_MAX, "it sleeps until {until}");
    });
}

#[test]
fn of_two_arms_that_meet_a_sleep_the_earlier_counts_and_one_unparks() {
    loom::model(|| {
        let parts = Parts::new();
        let late = parts.spawn(|parts| parts.arm(300));
        let early = parts.spawn(|parts| parts.arm(200));
        let watchdog = parts.spawn(Parts::sleep);
        late.join().expect("no panic");
        early.join().expect("no panic");
        let until = watchdog.join().expect("no panic");
        if parts.token.load(Acquire) {
            parts.watchdog.mark_awake();
            assert_eq!(parts.sleep(), 210, "all is visible now");
        } else {
            assert_eq!(until, 210, "it sleeps past a deadline");
        }
    });
}

#[test]
fn a_watchdog_that_wakes_and_sleeps_again_misses_no_arm() {
    loom::model(|| {
        let parts = Parts::new();
        assert_eq!(parts.sleep(), NEVER);
        let armer = parts.spawn(|parts| parts.arm(200));
        // It was unparked for nothing.
        let watchdog = parts.spawn(|parts| {
            parts.watchdog.mark_awake();
            parts.sleep()
        });
        armer.join().expect("no panic");
        let until = watchdog.join().expect("no panic");
        let is_woken = parts.token.load(Acquire);
        assert!(is_woken || until == 210, "it sleeps until {until}");
    });
}

#[test]
fn a_watchdog_that_falls_asleep_misses_no_request() {
    loom::model(|| {
        let parts = Parts::new();
        let requester = parts.spawn(Parts::request);
        let watchdog = parts.spawn(Parts::sleep);
        requester.join().expect("no panic");
        let until = watchdog.join().expect("no panic");
        let is_woken = parts.token.load(Acquire);
        assert!(is_woken || until == SOONEST, "it sleeps until {until}");
        assert!(parts.watchdog.is_polling());
    });
}

/// A watchdog that watches takes two looks, of which the second may be quiet, drops out if it can,
/// and sleeps; meanwhile there is a request. Was there one before the first look too, then the
/// request may read that and change nothing.
fn drop_out_meets(request: fn(&Parts), last_look: fn(&Parts) -> bool) {
    loom::model(move || {
        let parts = Parts::new();
        assert!(!parts.watchdog.request_polling(), "it is awake");
        let requester = parts.spawn(request);
        let watchdog = parts.spawn(move |parts| {
            let mut quiet = 0;
            for _ in 0..2 {
                quiet = parts.watchdog.begin_poll(quiet);
                if parts.watchdog.stop_polling_if_quiet(quiet, || last_look(parts)) {
                    break;
                }
            }
            parts.sleep()
        });
        requester.join().expect("no panic");
        let until = watchdog.join().expect("no panic");
        let is_woken = parts.token.load(Acquire);
        assert!(is_woken || until == SOONEST, "it sleeps until {until}, and work waits");
        assert!(parts.watchdog.is_polling(), "the polling is off, and work waits");
    });
}

#[test]
fn a_request_is_not_lost_to_a_drop_out_that_looks_by_read_modify_write() {
    drop_out_meets(Parts::request, |parts| parts.slot.fetch_add(0, AcqRel) > 0);
}

#[test]
fn a_request_behind_a_fence_is_not_lost_to_a_drop_out_that_looks_by_load() {
    drop_out_meets(Parts::request_by_fence, |parts| parts.slot.load(Relaxed) > 0);
}
