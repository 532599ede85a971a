//! Pushers against a drainer, with a payload that only the head publishes.
#![expect(unsafe_code, reason = "cells that loom watches stand for the elements")]

use clockjack_sync::{
    IndexStack,
    index_stack::{Links, NIL},
    primitive::{
        UnsafeCell,
        atomic::{AtomicU32, Ordering::Relaxed},
    },
};
use loom::{sync::Arc, thread};

const N: usize = 3;

struct Slots {
    stack: IndexStack,
    links: [AtomicU32; N],
    payload: [UnsafeCell<u32>; N],
}

// SAFETY: loom itself reports two accesses to a cell that are not ordered.
unsafe impl Sync for Slots {}

impl Links for Slots {
    fn set_next(&self, index: u32, next: u32) {
        self.links[index as usize].store(next, Relaxed);
    }

    fn next(&self, index: u32) -> u32 {
        self.links[index as usize].load(Relaxed)
    }
}

impl Slots {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            stack: IndexStack::new(),
            links: core::array::from_fn(|_| AtomicU32::new(NIL)),
            payload: core::array::from_fn(|_| UnsafeCell::new(0)),
        })
    }

    fn give_back(&self, index: u32) {
        self.payload[index as usize].with_mut(|value| {
            // SAFETY: the element is out, so this thread alone may write it; loom checks that.
            unsafe { *value += 1 }
        });
        self.stack.push(index, self);
    }

    fn drain_into(&self, seen: &mut [u32; N]) {
        for index in self.stack.drain(self) {
            self.payload[index as usize].with(|value| {
                // SAFETY: the drain gave the element to this thread; loom checks that.
                assert_eq!(unsafe { *value }, seen[index as usize] + 1, "the write was not seen");
            });
            seen[index as usize] += 1;
        }
    }
}

#[test]
fn two_pushers_and_a_drainer_lose_nothing_and_see_every_write() {
    loom::model(|| {
        let slots = Slots::new();
        let other = Arc::clone(&slots);
        let first = thread::spawn(move || {
            other.give_back(0);
            other.give_back(1);
        });
        let other = Arc::clone(&slots);
        let second = thread::spawn(move || other.give_back(2));

        let other = Arc::clone(&slots);
        let drainer = thread::spawn(move || {
            let mut seen = [0; N];
            other.drain_into(&mut seen);
            seen
        });
        first.join().unwrap();
        second.join().unwrap();
        let mut seen = drainer.join().unwrap();
        slots.drain_into(&mut seen);
        assert_eq!(seen, [1; N]);
        assert!(slots.stack.is_empty());
    });
}

#[test]
fn a_drained_element_may_be_pushed_again_while_others_push() {
    loom::model(|| {
        let slots = Slots::new();
        slots.give_back(0);
        let other = Arc::clone(&slots);
        let pusher = thread::spawn(move || other.give_back(1));
        let other = Arc::clone(&slots);
        let drainer = thread::spawn(move || {
            let mut seen = [0; N];
            other.drain_into(&mut seen);
            // The head may be 0, 1, NIL, 0: a pusher that has loaded the first 0 must still be
            // correct.
            assert_eq!(seen[0], 1);
            other.give_back(0);
            other.drain_into(&mut seen);
            seen
        });
        pusher.join().unwrap();
        let mut seen = drainer.join().unwrap();
        slots.drain_into(&mut seen);
        assert_eq!(seen, [2, 1, 0]);
    });
}

#[test]
fn between_drains_no_two_pushes_get_the_same_depth() {
    loom::model(|| {
        let slots = Slots::new();
        let other = Arc::clone(&slots);
        let pusher = thread::spawn(move || other.stack.push(0, &*other));
        let mine = slots.stack.push(1, &*slots);
        let theirs = pusher.join().unwrap();
        assert_eq!((mine.min(theirs), mine.max(theirs)), (1, 2));
        assert_eq!(slots.stack.depth(), 2);
        assert_eq!(slots.stack.drain(&*slots).count(), 2);
        assert_eq!(slots.stack.depth(), 0);
    });
}
