//! Real threads on real hardware: every item that goes in is taken exactly once.
//!
//! Bounded work, no clock: a test ends when every item is accounted for, or when a thread has
//! waited so often that an item must be lost.
#![cfg(not(loom))]
#![cfg(feature = "alloc")]

use core::sync::atomic::{
    AtomicBool, AtomicU8, AtomicU32, AtomicUsize,
    Ordering::{Acquire, Relaxed, Release},
};
use std::thread;

use clockjack_sync::{
    IndexStack, Injector,
    counter::StripedCounter,
    index_stack::{Links, NIL},
    link::{Batch, Boxed, Node},
    mpsc::Pop,
    ring::{Owner, Steal},
};
use clockjack_testing::Patience;

/// Divides the amount of work under an interpreter (Miri).
const SHARE: usize = if cfg!(miri) { 200 } else { 1 };

/// Counts how often each item was seen, and all together.
struct Ledger {
    seen: Vec<AtomicU8>,
    total: AtomicUsize,
}

impl Ledger {
    fn new(n_items: usize) -> Self {
        Self { seen: (0..n_items).map(|_| AtomicU8::new(0)).collect(), total: AtomicUsize::new(0) }
    }

    fn see(&self, item: usize) {
        // Not asserted here, because the other threads would then wait forever.
        self.seen[item].fetch_add(1, Relaxed);
        self.total.fetch_add(1, Release);
    }

    fn is_full(&self) -> bool {
        self.total.load(Acquire) >= self.seen.len()
    }

    fn assert_each_once(&self) {
        for (item, seen) in self.seen.iter().enumerate() {
            assert_eq!(seen.load(Relaxed), 1, "item {item}");
        }
    }
}

/// One owner with a small ring that overflows into an injector, three workers that steal from it
/// and from each other and take from the injector.
#[test]
fn workers_that_steal_and_overflow_see_each_item_once() {
    const N_ITEMS: usize = 60_000 / SHARE;
    let ledger = Ledger::new(N_ITEMS);
    let injector = Injector::<Boxed<usize>>::new();
    let rings: Vec<_> = (0..4).map(|_| Owner::<_, 16>::new()).collect();
    let thieves: Vec<_> = rings.iter().map(Owner::thief).collect();
    thread::scope(|scope| {
        for (worker, mut ring) in rings.into_iter().enumerate() {
            let (ledger, injector, thieves) = (&ledger, &injector, &thieves);
            scope.spawn(move || {
                let mut next_item = if worker == 0 { 0 } else { N_ITEMS };
                let mut patience = Patience::default();
                while !ledger.is_full() {
                    for _ in 0..7 {
                        if next_item < N_ITEMS {
                            ring.push(Node::new(next_item), |items| {
                                assert!(injector.push_batch(items.collect()).is_ok());
                            });
                            next_item += 1;
                        }
                    }
                    let taken = ring
                        .pop()
                        .or_else(|| injector.take_into(4, &mut ring).item().map(|taken| taken.0))
                        .or_else(|| thieves.iter().find_map(|t| t.steal_into(&mut ring).item()));
                    match taken {
                        Some(node) => {
                            ledger.see(node.into_value());
                            patience.renew();
                        }
                        None => patience.wait(),
                    }
                }
            });
        }
    });
    ledger.assert_each_once();
    assert!(injector.is_empty());
}

#[test]
fn pushes_that_race_with_close_are_seen_or_come_back() {
    for _ in 0..200_usize.div_ceil(SHARE) {
        let injector = Injector::<Boxed<usize>>::new();
        let accepted = AtomicUsize::new(0);
        thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    let mut n = 0;
                    while injector.push(Node::new(n)).is_ok() {
                        n += 1;
                    }
                    accepted.fetch_add(n, Relaxed);
                });
            }
            let mut popped = 0;
            let mut patience = Patience::default();
            while popped < 20 {
                match injector.pop() {
                    Pop::Item(_) => popped += 1,
                    Pop::Empty | Pop::Retry => patience.wait(),
                }
            }
            injector.close();
            loop {
                match injector.pop() {
                    Pop::Item(_) => popped += 1,
                    Pop::Retry => patience.wait(),
                    Pop::Empty => break,
                }
            }
            accepted.fetch_sub(popped, Relaxed);
        });
        assert_eq!(accepted.load(Relaxed), 0, "accepted and popped differ");
    }
}

#[test]
fn an_injector_under_four_threads_conserves_items() {
    const N_ITEMS: usize = 40_000 / SHARE;
    let injector = Injector::<Boxed<usize>>::new();
    let ledger = Ledger::new(2 * N_ITEMS);
    let (injector, ledger) = (&injector, &ledger);
    thread::scope(|scope| {
        for first in [0, N_ITEMS] {
            scope.spawn(move || {
                for n in (first..first + N_ITEMS).step_by(4) {
                    let batch: Batch<_> = (n..n + 3).map(Node::new).collect();
                    assert!(injector.push_batch(batch).is_ok());
                    assert!(injector.push(Node::new(n + 3)).is_ok());
                }
            });
            scope.spawn(move || {
                let mut patience = Patience::default();
                while !ledger.is_full() {
                    match injector.take_batch(5) {
                        Pop::Item(batch) => {
                            batch.for_each(|node| ledger.see(node.into_value()));
                            patience.renew();
                        }
                        Pop::Empty | Pop::Retry => patience.wait(),
                    }
                }
            });
        }
    });
    ledger.assert_each_once();
}

/// The links of an index stack, and for each element whether it is outside.
struct Slots {
    links: Vec<AtomicU32>,
    out: Vec<AtomicBool>,
}

impl Links for Slots {
    fn set_next(&self, index: u32, next: u32) {
        self.links[index as usize].store(next, Relaxed);
    }

    fn next(&self, index: u32) -> u32 {
        self.links[index as usize].load(Relaxed)
    }
}

#[test]
fn elements_go_round_through_an_index_stack_without_loss() {
    const N_THREADS: u32 = 3;
    const N_EACH: u32 = 8;
    const N_ROUNDS: u32 = if cfg!(miri) { 15 } else { 3_000 };
    let n = (N_THREADS * N_EACH) as usize;
    let slots = Slots {
        links: (0..n).map(|_| AtomicU32::new(NIL)).collect(),
        out: (0..n).map(|_| AtomicBool::new(true)).collect(),
    };
    let stack = IndexStack::new();
    let (slots, stack) = (&slots, &stack);
    thread::scope(|scope| {
        for first in (0..N_THREADS).map(|thread| thread * N_EACH) {
            scope.spawn(move || {
                let mut patience = Patience::default();
                for _ in 0..N_ROUNDS {
                    patience.renew();
                    for index in first..first + N_EACH {
                        while !slots.out[index as usize].swap(false, Acquire) {
                            patience.wait();
                        }
                        stack.push(index, slots);
                    }
                }
            });
        }
        let mut drained = 0;
        let mut patience = Patience::default();
        while drained < N_THREADS * N_EACH * N_ROUNDS {
            for index in stack.drain(slots) {
                drained += 1;
                patience.renew();
                assert!(!slots.out[index as usize].swap(true, Release), "drained twice");
            }
            patience.wait();
        }
    });
    assert!(stack.is_empty());
}

#[test]
fn a_counter_is_exact_when_the_writers_are_done() {
    let counter = StripedCounter::new();
    thread::scope(|scope| {
        for hint in 0..4 {
            let counter = &counter;
            scope.spawn(move || {
                for n in 0..20_000 / SHARE {
                    counter.add(hint, 2);
                    counter.sub(hint + n, 1);
                }
            });
        }
    });
    assert_eq!(counter.sum(), 80_000 / SHARE);
}

#[test]
fn a_single_thief_and_an_owner_at_the_wrap_around_see_each_item_once() {
    const N_ITEMS: usize = 60_000 / SHARE;
    let ledger = Ledger::new(N_ITEMS);
    let mut ring = Owner::<usize, 4>::starting_at(u32::MAX - 100);
    let thief = ring.thief();
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut own = Owner::<usize, 4>::new();
            let mut patience = Patience::default();
            while !ledger.is_full() {
                match thief.steal_into(&mut own) {
                    Steal::Item { item, .. } => {
                        ledger.see(item);
                        patience.renew();
                    }
                    Steal::Empty | Steal::Retry => patience.wait(),
                }
                core::iter::from_fn(|| own.pop()).for_each(|item| ledger.see(item));
            }
        });
        for item in 0..N_ITEMS {
            ring.push(item, |items| items.for_each(|item| ledger.see(item)));
            if item % 3 == 0 {
                ring.pop().into_iter().for_each(|item| ledger.see(item));
            }
        }
        core::iter::from_fn(|| ring.pop()).for_each(|item| ledger.see(item));
    });
    ledger.assert_each_once();
}
