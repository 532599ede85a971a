//! Bells of futures: ringers against the runner.

use alloc::{sync::Arc, vec::Vec};

use clockjack_sync::{
    Counted,
    prim::atomic::{
        AtomicBool, AtomicUsize,
        Ordering::{AcqRel, Acquire, Relaxed},
    },
};
use loom::thread;

use crate::wake::{Notify, WakeFlagRef, WokenList};

/// Counts how often it was notified.
struct Count(Arc<AtomicUsize>);

impl Notify for Count {
    fn notify(&self) {
        self.0.fetch_add(1, AcqRel);
    }
}

fn board() -> (Counted<WokenList<Count>>, Arc<AtomicUsize>) {
    let count = Arc::new(AtomicUsize::new(0));
    (Counted::new(WokenList::new(Count(Arc::clone(&count)))), count)
}

fn taken(board: &WokenList<Count>) -> Vec<WakeFlagRef<Count>> {
    let mut all = Vec::new();
    board.take(|bell| all.push(bell));
    all
}

#[test]
fn two_bells_that_are_rung_at_once_are_both_found() {
    loom::model(|| {
        let (board, notified) = board();
        let bells = [0, 1].map(|label| WakeFlagRef::new_queued(board.clone(), label));
        assert!(bells.iter().all(|bell| bell.clear_queued()));
        let ringers = bells.map(|bell| thread::spawn(move || bell.wake()));
        for ringer in ringers {
            ringer.join().unwrap();
        }
        let mut labels: Vec<u32> = taken(&board).iter().map(|bell| bell.label()).collect();
        labels.sort_unstable();
        assert_eq!(labels, [0, 1]);
        assert_eq!(notified.load(Acquire), 2);
        board.close();
    });
}

/// What a ringer did before its ring is seen by a poll after it, also if another was faster.
#[test]
fn what_was_done_before_a_ring_is_seen_by_the_poll_after_it() {
    loom::model(|| {
        let (board, notified) = board();
        let bell = WakeFlagRef::new_queued(board.clone(), 0);
        assert!(bell.clear_queued());
        let done = Arc::new([AtomicBool::new(false), AtomicBool::new(false)]);
        let ringers = [0, 1].map(|i| {
            let (bell, done) = (bell.clone(), Arc::clone(&done));
            thread::spawn(move || {
                // Relaxed: the ring is what publishes it.
                done[i].store(true, Relaxed);
                bell.wake();
            })
        });
        let (mut polls, mut saw_all) = (0, false);
        let mut runner = || {
            for bell in taken(&board) {
                assert!(bell.clear_queued());
                polls += 1;
                // Relaxed: as above.
                saw_all = done.iter().all(|done| done.load(Relaxed));
            }
        };
        runner();
        for ringer in ringers {
            ringer.join().unwrap();
        }
        runner();
        assert!(saw_all, "the last poll missed what was done before a ring");
        assert_eq!(notified.load(Acquire), polls, "each time it hung there was a poll");
        board.close();
    });
}

/// A board that closes lets go of a bell that is being rung, so neither stays for ever.
#[test]
fn a_ring_beside_the_end_leaves_nothing_behind() {
    loom::model(|| {
        let (board, count) = board();
        let bell = WakeFlagRef::new_queued(board.clone(), 0);
        assert!(bell.clear_queued());
        let rung = bell.clone();
        let ringer = thread::spawn(move || rung.wake());
        bell.set_done();
        drop(bell);
        board.close();
        drop(board);
        ringer.join().unwrap();
        assert_eq!(Arc::strong_count(&count), 1, "the owner was let go");
    });
}

/// A bell that a stale waker may still ring serves nobody else.
#[test]
fn a_bell_is_renewed_only_when_nobody_else_has_it() {
    loom::model(|| {
        let (board, notified) = board();
        let bell = WakeFlagRef::new_queued(board.clone(), 0);
        assert!(bell.clear_queued());
        bell.set_done();
        let stale = bell.clone();
        let ringer = thread::spawn(move || stale.wake());
        if let Some(renewed) = bell.reuse(1) {
            assert!(renewed.clear_queued());
            assert_eq!(renewed.label(), 1);
        }
        ringer.join().unwrap();
        assert_eq!(notified.load(Acquire), 0, "a stale ring was heard");
        board.close();
    });
}
