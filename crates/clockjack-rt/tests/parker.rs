//! Parking on real threads, by this system's parker and by its portable twin.
//!
//! Deadlines are of the system's clock, which is the subject here; nothing waits in order to pass.
#![cfg(not(loom))]

use core::{
    cell::Cell,
    sync::atomic::{
        AtomicU32, AtomicU64,
        Ordering::{Relaxed, SeqCst},
    },
    time::Duration,
};
use std::thread;

use clockjack_rt::{
    OsClock, OsInstant,
    Parked::{self, Notified, TimedOut},
    parker::{RawParker, Sleep, Slept},
};
use clockjack_time::Resolution;

/// Each behaviour is a test of this system's parker and of the portable one.
macro_rules! for_both_twins {
    ($($behaviour:ident),* $(,)?) => {
        mod of_this_system {
            $(#[test] fn $behaviour() { super::$behaviour(clockjack_rt::Parker::new); })*
        }
        mod portable {
            $(#[test] fn $behaviour() {
                super::$behaviour(clockjack_rt::parker_portable::Parker::new);
            })*
        }
    };
}

for_both_twins! {
    a_token_that_was_left_before_is_taken_without_sleeping,
    many_calls_are_one_token,
    a_token_is_taken_also_after_the_deadline,
    a_park_ends_at_its_deadline_and_never_before,
    a_thread_that_sleeps_until_an_edge_finds_its_tick,
    a_call_wakes_a_thread_that_sleeps_for_ever,
    a_call_wakes_a_thread_that_sleeps_until_the_last_instant,
    two_threads_call_each_other_in_turn,
    no_call_is_lost_to_a_deadline_that_passes_meanwhile,
}

fn past() -> Option<OsInstant> {
    Some(OsInstant::from_nanos(0))
}

fn a_token_that_was_left_before_is_taken_without_sleeping<S: Sleep + Sync>(
    new: fn() -> RawParker<S>,
) {
    let parker = new();
    parker.unpark();
    assert_eq!(parker.park(None), Notified);
    assert_eq!(parker.park(past()), TimedOut);
}

fn many_calls_are_one_token<S: Sleep + Sync>(new: fn() -> RawParker<S>) {
    let parker = new();
    for _ in 0..3 {
        parker.unpark();
    }
    let parks: [Parked; 3] = core::array::from_fn(|_| parker.park(past()));
    assert_eq!(parks, [Notified, TimedOut, TimedOut]);
}

fn a_token_is_taken_also_after_the_deadline<S: Sleep + Sync>(new: fn() -> RawParker<S>) {
    let parker = new();
    parker.unpark();
    assert_eq!(parker.park(past()), Notified);
}

fn a_park_ends_at_its_deadline_and_never_before<S: Sleep + Sync>(new: fn() -> RawParker<S>) {
    let parker = new();
    for micros in [0, 1, 10, 100, 1_000, 1_001, 5_000] {
        let until = OsInstant::now().saturating_add(Duration::from_micros(micros));
        assert_eq!(parker.park(Some(until)), TimedOut);
        let woke = OsInstant::now();
        assert!(woke >= until, "early: {woke:?}, not {until:?}");
    }
}

fn a_thread_that_sleeps_until_an_edge_finds_its_tick<S: Sleep + Sync>(new: fn() -> RawParker<S>) {
    let (parker, clock) = (new(), OsClock::new(Resolution::MILLI));
    for _ in 0..5 {
        let due = clock.deadline_after(Duration::from_micros(300));
        assert_eq!(parker.park(Some(clock.instant_of(due))), TimedOut);
        assert!(clock.ticks_now() >= due, "{} is before {due}", clock.ticks_now());
    }
}

fn a_call_wakes_a_thread_that_sleeps_for_ever<S: Sleep + Sync>(new: fn() -> RawParker<S>) {
    check_wakes(&new(), None);
}

fn a_call_wakes_a_thread_that_sleeps_until_the_last_instant<S: Sleep + Sync>(
    new: fn() -> RawParker<S>,
) {
    check_wakes(&new(), Some(OsInstant::MAX));
}

/// Calls when the owner sleeps, as far as one can see that from outside.
fn check_wakes<S: Sleep + Sync>(parker: &RawParker<S>, until: Option<OsInstant>) {
    let parked = thread::scope(|scope| {
        let sleeper = scope.spawn(|| parker.park(until));
        while !format!("{parker:?}").contains("asleep") {
            thread::yield_now();
        }
        parker.unpark();
        sleeper.join().unwrap()
    });
    assert_eq!(parked, Notified);
    assert_eq!(parker.park(past()), TimedOut);
}

fn two_threads_call_each_other_in_turn<S: Sleep + Sync>(new: fn() -> RawParker<S>) {
    const ROUNDS: u32 = 5_000;
    let (ping, pong, turns) = (new(), new(), AtomicU32::new(0));
    thread::scope(|scope| {
        scope.spawn(|| {
            for round in 0..ROUNDS {
                assert_eq!(ping.park(None), Notified);
                // Relaxed: what the token brings along is the subject.
                assert_eq!(turns.load(Relaxed), 2 * round + 1);
                turns.store(2 * round + 2, Relaxed);
                pong.unpark();
            }
        });
        for round in 0..ROUNDS {
            turns.store(2 * round + 1, Relaxed);
            ping.unpark();
            assert_eq!(pong.park(None), Notified);
            assert_eq!(turns.load(Relaxed), 2 * round + 2);
        }
    });
}

/// Short sleeps against calls at odd moments. Whoever has seen everything done parks for ever at
/// last: it hangs if a token was lost.
fn no_call_is_lost_to_a_deadline_that_passes_meanwhile<S: Sleep + Sync>(new: fn() -> RawParker<S>) {
    const CALLS: u64 = 20_000;
    let (parker, heard, called) = (new(), new(), AtomicU64::new(0));
    let mut notified = 0;
    thread::scope(|scope| {
        scope.spawn(|| {
            for call in 1..=CALLS {
                called.store(call, SeqCst);
                parker.unpark();
                if call % 8 == 0 {
                    heard.park(None);
                }
            }
        });
        let mut seen = 0;
        while seen < CALLS {
            let short = Duration::from_nanos(seen * 37 % 3_000);
            let until = OsInstant::now().saturating_add(short);
            // Every other wait is short, and the one after it must not need a second call.
            let parked = match parker.park(Some(until)) {
                TimedOut => parker.park(None),
                Notified => Notified,
            };
            assert_eq!(parked, Notified);
            notified += 1;
            seen = called.load(SeqCst);
            heard.unpark();
        }
    });
    assert!(notified <= CALLS, "{notified} tokens of {CALLS} calls");
}

/// Sleeps that end for no reason, and then do what the test says.
#[derive(Default)]
struct Restless {
    woken_in_vain: Cell<u32>,
}

const IN_VAIN: u32 = 5;

impl Sleep for Restless {
    fn sleep(&self, word: &AtomicU32, expected: u32, until: Option<OsInstant>) -> Slept {
        assert_eq!(word.load(SeqCst), expected);
        if self.woken_in_vain.get() < IN_VAIN {
            self.woken_in_vain.set(self.woken_in_vain.get() + 1);
            return Slept::Awake;
        }
        assert_eq!(until, past(), "the deadline is the one that was given");
        Slept::TimedOut
    }

    fn wake(&self, _word: &AtomicU32) {
        panic!("nobody sleeps");
    }
}

#[test]
fn a_park_does_not_end_for_no_reason() {
    let parker = RawParker::<Restless>::new();
    assert_eq!(parker.park(past()), TimedOut);
    parker.unpark();
    assert_eq!(parker.park(None), Notified);
}

#[test]
fn a_second_owner_is_noticed() {
    let parker = clockjack_rt::Parker::new();
    thread::scope(|scope| {
        scope.spawn(|| parker.park(None));
        while !format!("{parker:?}").contains("asleep") {
            thread::yield_now();
        }
        let second = scope.spawn(|| parker.park(None)).join();
        parker.unpark();
        let message = second.unwrap_err();
        let message = message.downcast_ref::<String>().unwrap();
        assert!(message.contains("two threads park on the same parker"), "{message}");
    });
}
