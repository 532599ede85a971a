//! The parker: the protocol of the token and the portable implementation with loom's mutex and
//! condition variable. A futex gives the same guarantee in the kernel: comparing the word and
//! falling asleep are one step.
//!
//! A lost wake is a deadlock here, which loom reports.

use clockjack_rt::{
    OsInstant,
    Parked::{Notified, TimedOut},
    parker::{RawParker, Sleep, Slept},
    parker_portable::Parker,
};
use clockjack_sync::primitive::atomic::{AtomicU32, Ordering::Relaxed};
use loom::{sync::Arc, thread};

/// A parker and what is written before a call. Relaxed throughout: the token must bring it along.
struct Letter {
    parker: Parker,
    text: AtomicU32,
}

impl Letter {
    fn new() -> Arc<Self> {
        Arc::new(Self { parker: Parker::new(), text: AtomicU32::new(0) })
    }

    fn send(&self) {
        self.text.fetch_add(1, Relaxed);
        self.parker.unpark();
    }
}

#[test]
fn a_call_is_never_slept_through_and_brings_along_what_was_written() {
    loom::model(|| {
        let letter = Letter::new();
        let caller = thread::spawn({
            let letter = Arc::clone(&letter);
            move || letter.send()
        });
        let owner = thread::spawn(move || {
            assert_eq!(letter.parker.park(None), Notified);
            assert_eq!(letter.text.load(Relaxed), 1);
        });
        caller.join().unwrap();
        owner.join().unwrap();
    });
}

#[test]
fn two_callers_may_be_one_token_and_both_are_heard() {
    loom::model(|| {
        let letter = Letter::new();
        let callers = [(); 2].map(|()| {
            let letter = Arc::clone(&letter);
            thread::spawn(move || letter.send())
        });
        let owner = thread::spawn(move || {
            // Two tokens at the most, so a third park would sleep for ever.
            while letter.text.load(Relaxed) < 2 {
                assert_eq!(letter.parker.park(None), Notified);
            }
        });
        for caller in callers {
            caller.join().unwrap();
        }
        owner.join().unwrap();
    });
}

#[test]
fn two_threads_call_each_other_twice() {
    loom::model(|| {
        let (ping, pong) = (Letter::new(), Letter::new());
        let caller = thread::spawn({
            let (ping, pong) = (Arc::clone(&ping), Arc::clone(&pong));
            move || {
                for round in 1..=2 {
                    ping.send();
                    assert_eq!(pong.parker.park(None), Notified);
                    assert_eq!(pong.text.load(Relaxed), round);
                }
            }
        });
        let owner = thread::spawn(move || {
            for round in 1..=2 {
                assert_eq!(ping.parker.park(None), Notified);
                assert_eq!(ping.text.load(Relaxed), round);
                pong.send();
            }
        });
        caller.join().unwrap();
        owner.join().unwrap();
    });
}

/// Sleeps whose deadline has always passed.
#[derive(Default)]
struct Impatient;

impl Sleep for Impatient {
    fn sleep(&self, _word: &AtomicU32, _expected: u32, _until: Option<OsInstant>) -> Slept {
        Slept::TimedOut
    }

    fn wake(&self, _word: &AtomicU32) {}
}

#[test]
fn a_call_during_a_time_out_is_neither_lost_nor_doubled() {
    loom::model(|| {
        let parker = Arc::new(RawParker::<Impatient>::new());
        let caller = thread::spawn({
            let parker = Arc::clone(&parker);
            move || parker.unpark()
        });
        let owner = thread::spawn({
            let parker = Arc::clone(&parker);
            move || parker.park(None)
        });
        caller.join().unwrap();
        let during = owner.join().unwrap();
        let after = parker.park(None);
        assert!(
            matches!((during, after), (Notified, TimedOut) | (TimedOut, Notified)),
            "{during:?}, then {after:?}"
        );
    });
}
