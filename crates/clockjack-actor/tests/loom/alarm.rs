//! An ask meets the timer that an ask before it has left.

use alloc::{sync::Arc as StdArc, task::Wake};
use core::{
    sync::atomic::{AtomicBool as StdBool, Ordering::SeqCst},
    task::{Poll, Waker},
};

use clockjack_actor::ask::slot::{Asker, ReplySlot, SlotOwner, pair};
use clockjack_time::Tick;
use loom::thread;

use crate::clockwork::Clockwork;

/// Whether the asker was woken.
#[derive(Default)]
struct Woken(StdBool);

impl Wake for Woken {
    fn wake(self: StdArc<Self>) {
        self.0.store(true, SeqCst);
    }
}

/// Frees the slots that are returned.
struct Nowhere;

impl SlotOwner for Nowhere {
    type Timers = Clockwork;

    fn reclaim(self, slot: Box<ReplySlot<Self>>) {
        drop(slot);
    }
}

type Waits = Asker<u32, Nowhere>;

fn poll(asker: &Waits, woken: &StdArc<Woken>, until: u64) -> Poll<()> {
    assert!(!asker.poll(&Waker::from(StdArc::clone(woken))), "nobody answers");
    asker.poll_until(Tick::new(until)).map(|over| over.expect("it is open"))
}

/// A slot whose timer was armed for the deadlines `before`, in that order. Then an asker wants
/// another while time comes to `now`. In the end it is woken at its deadline.
fn meets(before: &'static [u64], wanted: u64, now: u64) {
    loom::model(move || {
        let clockwork = Clockwork::new();
        let (asker, replier) = pair(ReplySlot::new(0, clockwork.clone()), Nowhere);
        let woken = StdArc::new(Woken::default());
        for until in before {
            assert!(poll(&asker, &woken, *until).is_pending());
        }
        let fires = thread::spawn({
            let clockwork = clockwork.clone();
            move || clockwork.advance(now)
        });
        let asks = thread::spawn({
            let woken = StdArc::clone(&woken);
            move || {
                let polled = poll(&asker, &woken, wanted);
                assert!(polled.is_pending() || now >= wanted, "too early");
                (asker, polled.is_ready())
            }
        });
        fires.join().unwrap();
        let (asker, is_over) = asks.join().unwrap();
        // A task that was woken polls again, for one reason or another.
        let is_over = is_over || woken.0.swap(false, SeqCst) && again(&asker, &woken, wanted);
        if !is_over {
            clockwork.advance(wanted);
            assert!(woken.0.load(SeqCst), "nobody wakes the asker: {:?}", clockwork.due());
            assert!(poll(&asker, &woken, wanted).is_ready());
        }
        drop((asker, replier));
        assert_eq!(clockwork.due(), [], "the slot is gone, and so is its timer");
    });
}

fn again(asker: &Waits, woken: &StdArc<Woken>, wanted: u64) -> bool {
    poll(asker, woken, wanted).is_ready()
}

#[test]
fn a_timer_that_fires_for_an_ask_before_is_armed_for_the_next() {
    meets(&[5], 10, 5);
}

#[test]
fn a_timer_that_fires_while_it_is_armed_is_not_missed() {
    meets(&[], 3, 3);
}

#[test]
fn a_timer_is_not_armed_for_later_than_the_new_ask_wants() {
    meets(&[5, 10], 7, 5);
}

#[test]
fn a_timer_that_fires_while_it_is_put_forward_is_not_missed() {
    meets(&[10], 7, 10);
}
