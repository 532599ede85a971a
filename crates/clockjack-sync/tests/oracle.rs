//! The steal ring against `crossbeam-deque` in its first-in-first-out form.
//!
//! One thread: the same operations give the same items. Many threads: both conserve under one
//! harness.
#![cfg(not(loom))]
#![cfg(feature = "alloc")]

use core::sync::atomic::{
    AtomicUsize,
    Ordering::{Acquire, Relaxed, Release},
};
use std::{sync::Mutex, thread};

use clockjack_sync::ring::{Owner, Thief};
use crossbeam_deque::{Steal, Stealer, Worker};
use proptest::prelude::*;

const N: usize = 16;

#[derive(Clone, Copy, Debug)]
enum Step {
    Push,
    Pop,
    StealOne,
    StealHalf,
    PopStolen,
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn one_thread_gets_the_same_items_from_both(
        steps in prop::collection::vec(
            prop_oneof![
                8 => Just(Step::Push),
                3 => Just(Step::Pop),
                2 => Just(Step::StealOne),
                2 => Just(Step::StealHalf),
                4 => Just(Step::PopStolen),
            ],
            0..200,
        ),
    ) {
        let (mut ring, mut own) = (Owner::<u32, N>::new(), Owner::<u32, N>::new());
        let thief = ring.thief();
        let (worker, peer_own) = (Worker::new_fifo(), Worker::new_fifo());
        let stealer = worker.stealer();
        for (item, step) in (0_u32..).zip(steps) {
            match step {
                Step::Push => {
                    let mut spilled = Vec::new();
                    ring.push(item, |items| spilled.extend(items));
                    worker.push(item);
                    // The other deque has no bound: it releases the items that our ring has spilled
                    // by stealing, but the new item is at its other end, so items are spilled in
                    // order of age.
                    if !spilled.is_empty() {
                        prop_assert_eq!(spilled.len(), N / 2 + 1);
                        let (oldest, newest) = spilled.split_at(N / 2);
                        prop_assert_eq!(newest, [item]);
                        for spilled in oldest {
                            prop_assert_eq!(worker.pop(), Some(*spilled));
                        }
                        let rest: Vec<_> = core::iter::from_fn(|| worker.pop()).collect();
                        for kept in rest.into_iter().filter(|kept| *kept != item) {
                            worker.push(kept);
                        }
                    }
                }
                Step::Pop => prop_assert_eq!(ring.pop(), worker.pop()),
                Step::StealOne => {
                    prop_assert_eq!(thief.steal_one().item(), stealer.steal().success());
                }
                Step::StealHalf => {
                    let ours = thief.steal_into(&mut own).item();
                    let room = N - peer_own.len();
                    let theirs = stealer.steal_batch_with_limit_and_pop(&peer_own, room + 1);
                    prop_assert_eq!(ours, theirs.success());
                }
                Step::PopStolen => prop_assert_eq!(own.pop(), peer_own.pop()),
            }
            prop_assert_eq!(ring.len(), worker.len());
            prop_assert_eq!(own.len(), peer_own.len());
        }
    }
}

/// The operations that the harness needs of an owner and of a thief.
trait Queue: Send {
    type Thief: Sync;
    fn thief(&self) -> Self::Thief;
    fn push(&mut self, item: usize, spilled: &Mutex<Vec<usize>>);
    fn pop(&mut self) -> Option<usize>;
    fn steal(thief: &Self::Thief, own: &mut Self) -> Option<usize>;
}

impl Queue for Owner<usize, N> {
    type Thief = Thief<usize, N>;

    fn thief(&self) -> Self::Thief {
        self.thief()
    }

    fn push(&mut self, item: usize, spilled: &Mutex<Vec<usize>>) {
        self.push(item, |items| spilled.lock().unwrap().extend(items));
    }

    fn pop(&mut self) -> Option<usize> {
        self.pop()
    }

    fn steal(thief: &Self::Thief, own: &mut Self) -> Option<usize> {
        thief.steal_into(own).item()
    }
}

impl Queue for Worker<usize> {
    type Thief = Stealer<usize>;

    fn thief(&self) -> Self::Thief {
        self.stealer()
    }

    fn push(&mut self, item: usize, _: &Mutex<Vec<usize>>) {
        Self::push(self, item);
    }

    fn pop(&mut self) -> Option<usize> {
        Self::pop(self)
    }

    fn steal(thief: &Self::Thief, own: &mut Self) -> Option<usize> {
        match thief.steal_batch_and_pop(own) {
            Steal::Success(item) => Some(item),
            Steal::Empty | Steal::Retry => None,
        }
    }
}

/// Three workers, of which the first creates all items; returns how often each item was seen.
fn run<Q: Queue>(n_items: usize, make: impl Fn() -> Q) -> Vec<usize> {
    let queues: Vec<_> = (0..3).map(|_| make()).collect();
    let thieves: Vec<_> = queues.iter().map(Queue::thief).collect();
    let seen: Vec<_> = (0..n_items).map(|_| AtomicUsize::new(0)).collect();
    let total = AtomicUsize::new(0);
    let spilled = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for (worker, mut own) in queues.into_iter().enumerate() {
            let (thieves, seen, total, spilled) = (&thieves, &seen, &total, &spilled);
            scope.spawn(move || {
                let mut items = if worker == 0 { 0..n_items } else { 0..0 };
                let mut idle = 0_u32;
                while total.load(Acquire) < n_items {
                    items.by_ref().take(3).for_each(|item| own.push(item, spilled));
                    let taken = own
                        .pop()
                        .or_else(|| spilled.lock().unwrap().pop())
                        .or_else(|| thieves.iter().find_map(|thief| Q::steal(thief, &mut own)));
                    match taken {
                        Some(item) => {
                            seen[item].fetch_add(1, Relaxed);
                            total.fetch_add(1, Release);
                            idle = 0;
                        }
                        None => {
                            idle += 1;
                            assert!(idle < 5_000_000, "something is lost");
                            thread::yield_now();
                        }
                    }
                }
            });
        }
    });
    seen.into_iter().map(AtomicUsize::into_inner).collect()
}

#[test]
fn many_threads_get_each_item_once_from_both() {
    const N_ITEMS: usize = 40_000;
    assert_eq!(run(N_ITEMS, Owner::<usize, N>::new), vec![1; N_ITEMS]);
    assert_eq!(run(N_ITEMS, Worker::new_fifo), vec![1; N_ITEMS]);
}
