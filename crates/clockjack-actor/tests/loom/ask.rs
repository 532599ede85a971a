//! An answer, a time-out and a drop meet in a slot.

use alloc::{sync::Arc as StdArc, task::Wake};
use core::{
    sync::atomic::{AtomicUsize as StdUsize, Ordering::SeqCst},
    task::Waker,
};

use clockjack_actor::ask::slot::{Asker, Replier, ReplyOutcome, ReplySlot, SlotOwner, pair};
use loom::{
    sync::{Arc, Mutex},
    thread,
};

use crate::clockwork::Clockwork;

/// Keeps the slots that were returned.
#[derive(Clone)]
#[expect(clippy::vec_box, reason = "slots are handed over in their boxes")]
struct Shelf(Arc<Mutex<Vec<Box<ReplySlot<Self>>>>>);

impl SlotOwner for Shelf {
    type Timers = Clockwork;

    fn reclaim(self, slot: Box<ReplySlot<Self>>) {
        let shelf = Arc::clone(&self.0);
        shelf.lock().unwrap().push(slot);
    }
}

impl Shelf {
    fn new() -> Self {
        Self(Arc::new(Mutex::new(Vec::new())))
    }

    fn pair(&self) -> (Asker<Box<u32>, Self>, Replier<Box<u32>, Self>) {
        pair(ReplySlot::new(0, Clockwork::new()), self.clone())
    }

    /// How many slots have come home, which are forgotten.
    fn empty(&self) -> usize {
        self.0.lock().unwrap().drain(..).count()
    }
}

/// Counts wakes: what a task that sleeps would be woken by.
#[derive(Default)]
struct Woken(StdUsize);

impl Wake for Woken {
    fn wake(self: StdArc<Self>) {
        self.0.fetch_add(1, SeqCst);
    }
}

#[test]
fn an_answer_and_a_time_out_agree_on_who_was_first() {
    loom::model(|| {
        let shelf = Shelf::new();
        let (asker, replier) = shelf.pair();
        let replies = thread::spawn(move || match replier.reply(Box::new(7)) {
            Ok(()) => true,
            Err((answer, late)) => {
                assert_eq!(*answer, 7);
                drop(late);
                false
            }
        });
        let gives_up = thread::spawn(move || match asker.cancel() {
            Some(ReplyOutcome::Answered(answer)) => *answer == 7,
            Some(ReplyOutcome::Dropped) => panic!("it was answered"),
            None => false,
        });
        let (was_sent, was_got) = (replies.join().unwrap(), gives_up.join().unwrap());
        assert_eq!(was_sent, was_got);
        assert_eq!(shelf.empty(), 1, "the slot goes home once");
    });
}

#[test]
fn both_sides_dropped_leave_one_slot() {
    loom::model(|| {
        let shelf = Shelf::new();
        let (asker, replier) = shelf.pair();
        let one = thread::spawn(move || drop(replier));
        let other = thread::spawn(move || drop(asker));
        one.join().unwrap();
        other.join().unwrap();
        assert_eq!(shelf.empty(), 1);
    });
}

#[test]
fn an_asker_that_waits_is_woken_by_an_answer_or_a_drop() {
    for answers in [true, false] {
        loom::model(move || {
            let shelf = Shelf::new();
            let (asker, replier) = shelf.pair();
            let replies = thread::spawn(move || {
                if answers {
                    assert!(replier.reply(Box::new(7)).is_ok());
                } else {
                    drop(replier);
                }
            });
            let waits = thread::spawn(move || {
                let woken = StdArc::new(Woken::default());
                let waker = Waker::from(StdArc::clone(&woken));
                let is_settled = asker.poll(&waker);
                (asker, woken, is_settled)
            });
            replies.join().unwrap();
            let (asker, woken, is_settled) = waits.join().unwrap();
            assert!(is_settled || woken.0.load(SeqCst) > 0, "it sleeps for ever");
            match asker.take() {
                ReplyOutcome::Answered(answer) => assert!(answers && *answer == 7),
                ReplyOutcome::Dropped => assert!(!answers),
            }
            assert_eq!(shelf.empty(), 1);
        });
    }
}

#[test]
fn an_asker_that_takes_its_answer_at_once_leaves_the_slot_to_who_still_wakes() {
    loom::model(|| {
        let shelf = Shelf::new();
        let (asker, replier) = shelf.pair();
        assert!(!asker.poll(Waker::noop()));
        let replies = thread::spawn(move || assert!(replier.reply(Box::new(7)).is_ok()));
        let takes = thread::spawn(move || {
            if !asker.poll(Waker::noop()) {
                return Some(asker);
            }
            assert_eq!(asker.take(), ReplyOutcome::Answered(Box::new(7)));
            None
        });
        replies.join().unwrap();
        if let Some(asker) = takes.join().unwrap() {
            assert_eq!(asker.take(), ReplyOutcome::Answered(Box::new(7)));
        }
        assert_eq!(shelf.empty(), 1);
    });
}
