//! The idle protocol from outside: who is woken, the counts, and a pool of real threads.
#![cfg(not(loom))]

use core::sync::atomic::{
    AtomicUsize,
    Ordering::{Acquire, Relaxed, Release},
};
use std::thread::{self, Thread};

use clockjack_exec::idle::{Counts, Idle, Unparked, WORKERS_MAX};
use proptest::prelude::*;

/// A pool whose workers are all active, and those of `parked` parked.
fn pool(workers: usize, parked: impl IntoIterator<Item = usize>) -> Idle {
    let idle = Idle::new(workers);
    (0..workers).for_each(|worker| idle.activate(worker));
    for worker in parked {
        assert!(idle.park_unless(worker, false, || false));
    }
    idle
}

fn wake_and_end(idle: &Idle) -> Option<usize> {
    let worker = idle.wake_one()?;
    assert_eq!(idle.cancel_park(worker), Unparked::Claimed);
    assert!(idle.end_search());
    Some(worker)
}

#[test]
fn nobody_is_woken_while_one_searches_or_none_is_parked() {
    let idle = pool(4, []);
    assert!(!idle.should_wake(), "all are awake");
    idle.begin_park(2, false);
    assert!(idle.should_wake());
    assert!(idle.start_search());
    assert!(!idle.should_wake(), "one searches");
    assert!(idle.end_search());
    assert!(idle.should_wake());
    assert_eq!(idle.wake_one(), Some(2));
    assert!(!idle.should_wake(), "one is on its way");
    assert_eq!(idle.wake_one(), None);
}

#[test]
fn each_parked_worker_has_its_turn_to_be_woken() {
    for workers in [1, 5, 64, 65, 130, WORKERS_MAX] {
        // With gaps, so that a scan that starts anywhere would prefer those behind a gap.
        let parked: Vec<usize> = (0..workers).filter(|worker| worker % 7 < 3).collect();
        let idle = pool(workers, parked.iter().copied());
        for _round in 0..3 {
            let mut woken = Vec::new();
            for _ in &parked {
                let worker = wake_and_end(&idle).expect("one is parked");
                woken.push(worker);
                idle.begin_park(worker, false);
            }
            assert_eq!(woken, parked, "{workers} workers");
        }
    }
}

#[test]
fn a_certain_worker_is_woken_once_and_only_while_it_is_parked() {
    let idle = pool(70, [3, 68]);
    assert!(!idle.wake_worker(4));
    assert!(idle.wake_worker(68));
    assert!(!idle.wake_worker(68), "it is awake");
    assert_eq!(idle.counts(), Counts { parked: 1, searching: 1 });
    assert_eq!(idle.cancel_park(68), Unparked::Claimed);
    assert!(idle.begin_park(68, true), "it was the last who searched");
    assert_eq!(idle.cancel_park(68), Unparked::Own);
    assert_eq!(idle.counts(), Counts { parked: 1, searching: 1 });
}

#[test]
fn half_of_the_workers_search_and_at_least_one() {
    for (active, limit) in [(1, 1), (2, 1), (3, 1), (4, 2), (7, 3), (8, 4)] {
        let idle = Idle::new(8);
        (0..active).for_each(|worker| idle.activate(worker));
        let started = (0..active).filter(|_| idle.start_search()).count();
        assert_eq!(started, limit, "of {active} workers");
        let last: Vec<bool> = (0..limit).map(|_| idle.end_search()).collect();
        assert_eq!(last.iter().position(|last| *last), Some(limit - 1), "of {active} workers");
    }
    let idle = pool(4, []);
    idle.deactivate(3);
    idle.deactivate(2);
    assert!(idle.start_search());
    assert!(!idle.start_search(), "two are left");
}

#[test]
fn a_second_look_that_finds_something_leaves_the_worker_searching() {
    let idle = pool(2, []);
    assert!(!idle.park_unless(0, false, || {
        assert!(idle.is_parked(0), "it looks after it has announced itself");
        true
    }));
    assert_eq!(idle.counts(), Counts { parked: 0, searching: 1 });
    assert!(idle.end_search());
}

#[test]
#[should_panic(expected = "1025 workers are more than 1024")]
fn more_workers_than_the_limit_are_refused() {
    let _idle = Idle::new(WORKERS_MAX + 1);
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Running,
    Searching,
    Parked,
}

proptest! {
    #[test]
    fn the_counts_are_those_of_a_simple_model(
        workers in 1_usize..=130,
        steps in prop::collection::vec((any::<prop::sample::Index>(), 0..4_u8), 0..200),
    ) {
        let idle = pool(workers, []);
        let mut states = vec![State::Running; workers];
        for (index, action) in steps {
            let worker = index.index(workers);
            let searching = states.iter().filter(|state| **state == State::Searching).count();
            match (states[worker], action) {
                (State::Running, 0 | 1) => {
                    let may = searching < (workers / 2).max(1);
                    prop_assert_eq!(idle.start_search(), may);
                    if may {
                        states[worker] = State::Searching;
                    }
                }
                (State::Searching, 0 | 1) => {
                    prop_assert_eq!(idle.end_search(), searching == 1);
                    states[worker] = State::Running;
                }
                (State::Running | State::Searching, _) => {
                    let searched = states[worker] == State::Searching;
                    let is_last = searched && searching == 1;
                    prop_assert_eq!(idle.begin_park(worker, searched), is_last);
                    states[worker] = State::Parked;
                }
                (State::Parked, 0) => {
                    let woken = idle.wake_one().expect("one is parked");
                    prop_assert_eq!(states[woken], State::Parked);
                    prop_assert_eq!(idle.cancel_park(woken), Unparked::Claimed);
                    states[woken] = State::Searching;
                }
                (State::Parked, 1) => {
                    prop_assert!(idle.wake_worker(worker));
                    prop_assert_eq!(idle.cancel_park(worker), Unparked::Claimed);
                    states[worker] = State::Searching;
                }
                (State::Parked, _) => {
                    prop_assert_eq!(idle.cancel_park(worker), Unparked::Own);
                    states[worker] = State::Searching;
                }
            }
            let count = |wanted| states.iter().filter(|state| **state == wanted).count();
            let (parked, searching) = (count(State::Parked), count(State::Searching));
            let counts = Counts { parked: parked as u64, searching: searching as i64 };
            prop_assert_eq!(idle.counts(), counts);
            prop_assert_eq!(idle.should_wake(), parked > 0 && searching == 0);
            for (worker, state) in states.iter().enumerate() {
                prop_assert_eq!(idle.is_parked(worker), *state == State::Parked);
            }
        }
    }
}

/// A pool of threads that take items off a number, and sleep while it is zero.
struct Threads {
    idle: Idle,
    items: AtomicUsize,
    done: AtomicUsize,
    goal: usize,
}

impl Threads {
    fn take(&self) -> bool {
        let one_less = |items: usize| items.checked_sub(1);
        self.items.fetch_update(Acquire, Relaxed, one_less).is_ok()
    }

    fn is_over(&self) -> bool {
        self.done.load(Acquire) == self.goal
    }

    fn wake_one(&self, threads: &[Thread]) {
        if let Some(worker) = self.idle.wake_one() {
            threads[worker].unpark();
        }
    }

    /// Takes what there is; says that all is done to everybody if it was the last.
    fn run(&self, threads: &[Thread]) {
        while self.take() {
            if self.done.fetch_add(1, Release) + 1 == self.goal {
                for (worker, thread) in threads.iter().enumerate() {
                    if self.idle.wake_worker(worker) {
                        thread.unpark();
                    }
                }
            }
        }
    }

    fn work(&self, worker: usize, threads: &[Thread]) {
        while !self.is_over() {
            let mut is_searching = self.idle.start_search();
            while !(is_searching && self.items.load(Acquire) > 0 || self.is_over()) {
                let find = || self.items.load(Acquire) > 0 || self.is_over();
                if self.idle.park_unless(worker, is_searching, find) {
                    thread::park();
                    self.idle.cancel_park(worker);
                }
                is_searching = true;
            }
            if is_searching && self.idle.end_search() && self.items.load(Acquire) > 0 {
                self.wake_one(threads);
            }
            self.run(threads);
        }
    }
}

#[test]
fn threads_that_sleep_whenever_they_can_leave_no_item_and_end_with_counts_of_zero() {
    const WORKERS: usize = 3;
    const SUBMITTERS: usize = 2;
    const ITEMS: usize = if cfg!(miri) { 50 } else { 20_000 };
    let shared = Threads {
        idle: pool(WORKERS, []),
        items: AtomicUsize::new(0),
        done: AtomicUsize::new(0),
        goal: SUBMITTERS * ITEMS,
    };
    thread::scope(|scope| {
        // A worker gets to know the others' threads before it starts.
        let mut starters = Vec::new();
        let mut threads = Vec::new();
        for worker in 0..WORKERS {
            let (start, started) = std::sync::mpsc::channel::<Vec<Thread>>();
            let shared = &shared;
            let worker = scope.spawn(move || {
                let threads = started.recv().expect("the test sends it");
                shared.work(worker, &threads);
            });
            threads.push(worker.thread().clone());
            starters.push(start);
        }
        starters.iter().for_each(|start| start.send(threads.clone()).expect("it waits"));
        for _ in 0..SUBMITTERS {
            let (shared, threads) = (&shared, threads.clone());
            scope.spawn(move || {
                for item in 0..ITEMS {
                    // After bursts of one to three it waits for them to be taken, so that the
                    // workers find nothing and park, over and over.
                    while item % 6 < 3 && shared.items.load(Acquire) > 0 {
                        thread::yield_now();
                    }
                    shared.items.fetch_add(1, Release);
                    if shared.idle.should_wake() {
                        shared.wake_one(&threads);
                    }
                }
            });
        }
    });
    assert_eq!(shared.items.load(Relaxed), 0);
    assert_eq!(shared.idle.counts(), Counts { parked: 0, searching: 0 });
}
