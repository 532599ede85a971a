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

use crate::ready::{BellRef, Board, Notify};

/// Counts how often it was notified.
struct Count(Arc<AtomicUsize>);

impl Notify for Count {
    fn notify(&self) {
        self.0.fetch_add(1, AcqRel);
    }
}

fn board() -> (Counted<Board<Count>>, Arc<AtomicUsize>) {
    let count = Arc::new(AtomicUsize::new(0));
    (Counted::new(Board::new(Count(Arc::clone(&count)))), count)
}

fn taken(board: &Board<Count>) -> Vec<BellRef<Count>> {
    let mut all = Vec::new();
    board.take(|bell| all.push(bell));
    all
}

#[test]
fn two_bells_that_are_rung_at_once_are_both_found() {
    loom::model(|| {
        let (board, notified) = board();
        let bells = [0, 1].map(|label| BellRef::rung(board.clone(), label));
        assert!(bells.iter().all(|bell| bell.take_down()));
        let ringers = bells.map(|bell| thread::spawn(move || bell.ring()));
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
        let bell = BellRef::rung(board.clone(), 0);
        assert!(bell.take_down());
        let done = Arc::new([AtomicBool::new(false), AtomicBool::new(false)]);
        let ringers = [0, 1].map(|i| {
            let (bell, done) = (bell.clone(), Arc::clone(&done));
            thread::spawn(move || {
                // Relaxed: the ring is what publishes it.
                done[i].store(true, Relaxed);
                bell.ring();
            })
        });
        let (mut polls, mut saw_all) = (0, false);
        let mut runner = || {
            for bell in taken(&board) {
                assert!(bell.take_down());
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
        let bell = BellRef::rung(board.clone(), 0);
        assert!(bell.take_down());
        let rung = bell.clone();
        let ringer = thread::spawn(move || rung.ring());
        bell.end();
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
        let bell = BellRef::rung(board.clone(), 0);
        assert!(bell.take_down());
        bell.end();
        let stale = bell.clone();
        let ringer = thread::spawn(move || stale.ring());
        if let Some(renewed) = bell.renewed(1) {
            assert!(renewed.take_down());
            assert_eq!(renewed.label(), 1);
        }
        ringer.join().unwrap();
        assert_eq!(notified.load(Acquire), 0, "a stale ring was heard");
        board.close();
    });
}
