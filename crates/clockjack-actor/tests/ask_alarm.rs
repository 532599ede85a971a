//! The timer that asks leave to each other.
#![cfg(not(loom))]

extern crate alloc;

use alloc::{sync::Arc, task::Wake};
use core::{
    sync::atomic::{AtomicU32, Ordering::SeqCst},
    task::{Poll, Waker},
};
use std::sync::Mutex;

use clockjack_actor::ask::slot::{Asker, Replier, ReplySlot, SlotOwner, pair};
use clockjack_time::Tick;

use self::clockwork::{Clockwork, Closed};

#[path = "support/clockwork.rs"]
mod clockwork;

/// Counts wakes.
#[derive(Default)]
struct Woken(AtomicU32);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, SeqCst);
    }
}

/// Leaks slots that are returned, unless a test wants to use them again.
#[derive(Clone, Default)]
#[expect(clippy::vec_box, reason = "slots are handed over in their boxes")]
struct Shelf(Arc<Mutex<Vec<Box<ReplySlot<Self>>>>>);

impl SlotOwner for Shelf {
    type Timers = Clockwork;

    fn reclaim(self, slot: Box<ReplySlot<Self>>) {
        self.0.lock().unwrap().push(slot);
    }
}

/// One slot that is used by one ask after the other.
struct Bench {
    clockwork: Clockwork,
    shelf: Shelf,
    woken: Arc<Woken>,
}

type Pair = (Asker<u32, Shelf>, Replier<u32, Shelf>);

impl Bench {
    fn new() -> Self {
        let (clockwork, shelf) = (Clockwork::new(), Shelf::default());
        shelf.0.lock().unwrap().push(ReplySlot::new(0, clockwork.clone()));
        Self { clockwork, shelf, woken: Arc::default() }
    }

    fn ask(&self) -> Pair {
        let slot = self.shelf.0.lock().unwrap().pop().unwrap();
        pair(slot, self.shelf.clone())
    }

    fn poll(&self, asker: &Asker<u32, Shelf>, until: u64) -> Poll<Result<(), Closed>> {
        assert!(!asker.poll(&Waker::from(Arc::clone(&self.woken))), "nobody answers");
        asker.poll_until(Tick::new(until))
    }

    /// An ask that is answered in time.
    fn answered(&self, until: u64) {
        let (asker, replier) = self.ask();
        assert_eq!(self.poll(&asker, until), Poll::Pending);
        replier.reply(7).unwrap();
        drop(asker.take());
    }

    /// How often the asker was woken since the last check.
    fn n_woken(&self) -> u32 {
        self.woken.0.swap(0, SeqCst)
    }
}

#[test]
fn asks_that_are_answered_in_time_share_a_timer() {
    let bench = Bench::new();
    for now in 0..100 {
        bench.clockwork.advance(now);
        bench.answered(now + 1_000);
        bench.answered(now + 2_000);
    }
    assert_eq!(bench.clockwork.due(), [1_000]);
    assert_eq!(bench.clockwork.n_armed(), 1);
}

#[test]
fn a_time_out_comes_at_its_own_deadline_though_the_timer_was_armed_for_another() {
    let bench = Bench::new();
    bench.answered(10);
    bench.clockwork.advance(4);
    let (asker, _replier) = bench.ask();
    bench.n_woken();
    assert_eq!(bench.poll(&asker, 14), Poll::Pending);
    bench.clockwork.advance(13);
    assert_eq!((bench.n_woken(), bench.clockwork.due()), (0, vec![14]));
    assert_eq!(bench.poll(&asker, 14), Poll::Pending);
    bench.clockwork.advance(14);
    assert_eq!(bench.n_woken(), 1);
    assert_eq!(bench.poll(&asker, 14), Poll::Ready(Ok(())));
}

#[test]
fn a_shorter_time_out_does_not_wait_for_a_longer_one_before_it() {
    let bench = Bench::new();
    bench.answered(1_000);
    let (asker, _replier) = bench.ask();
    bench.n_woken();
    assert_eq!(bench.poll(&asker, 5), Poll::Pending);
    assert_eq!(bench.clockwork.due(), [5]);
    bench.clockwork.advance(5);
    assert_eq!(bench.n_woken(), 1);
    assert_eq!(bench.poll(&asker, 5), Poll::Ready(Ok(())));
    assert_eq!(bench.clockwork.due(), []);
}

#[test]
fn a_timer_that_nobody_needs_any_more_goes_away() {
    let bench = Bench::new();
    bench.answered(10);
    bench.clockwork.advance(5);
    bench.answered(15);
    bench.n_woken();
    bench.clockwork.advance(100);
    assert_eq!((bench.n_woken(), bench.clockwork.due()), (0, vec![]));
    bench.answered(200);
    assert_eq!(bench.clockwork.due(), [200]);
}

#[test]
fn a_slot_that_is_freed_leaves_no_timer() {
    let bench = Bench::new();
    bench.answered(1_000);
    let slot = bench.shelf.0.lock().unwrap().pop();
    assert_eq!(bench.clockwork.due(), [1_000]);
    drop(slot);
    assert_eq!(bench.clockwork.due(), []);
}

#[test]
fn who_waits_is_told_when_the_timers_are_closed() {
    let bench = Bench::new();
    bench.answered(10);
    let (asker, _replier) = bench.ask();
    bench.n_woken();
    assert_eq!(bench.poll(&asker, 20), Poll::Pending);
    bench.clockwork.close();
    assert_eq!(bench.n_woken(), 1);
    assert_eq!(bench.poll(&asker, 20), Poll::Ready(Err(Closed)));
}

#[test]
fn a_deadline_without_end_is_never() {
    let bench = Bench::new();
    let (asker, _replier) = bench.ask();
    assert_eq!(bench.poll(&asker, u64::MAX), Poll::Pending);
    assert_eq!(bench.poll(&asker, u64::MAX), Poll::Pending);
    bench.clockwork.advance(u64::MAX >> 4);
    assert_eq!(bench.n_woken(), 0);
    bench.clockwork.advance(u64::MAX);
    assert_eq!(bench.n_woken(), 1);
    assert_eq!(bench.poll(&asker, u64::MAX), Poll::Ready(Ok(())));
}
