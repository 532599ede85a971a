//! The idle protocol with a small pool: work, tokens, and workers that take one item and are busy
//! with it from then on.
//!
//! No thread of a model blocks. A worker that would sleep ends its thread and leaves its bit set;
//! when all threads have ended, [`Pool::settle`] wakes those that have a token, one after the
//! other, as their parkers would. What must not be left: work, with somebody asleep and no token.

use alloc::sync::Arc;

use clockjack_exec::idle::{Counts, Idle, Unparked};
use clockjack_sync::{
    Injector,
    link::{Boxed, Node},
    mpsc::Pop,
    primitive::atomic::{
        AtomicBool, AtomicU64, AtomicUsize,
        Ordering::{Acquire, Relaxed, Release},
    },
};
use loom::thread;

const NEVER: u64 = u64::MAX;

/// A queue of work that has no order with the counts of its own accord.
trait Work: Default + Send + Sync + 'static {
    fn push(&self);
    fn is_empty(&self) -> bool;
    fn take(&self) -> bool;
}

/// A number of items.
#[derive(Default)]
struct Items(AtomicUsize);

impl Work for Items {
    fn push(&self) {
        self.0.fetch_add(1, Release);
    }

    fn is_empty(&self) -> bool {
        self.0.load(Acquire) == 0
    }

    fn take(&self) -> bool {
        let mut items = self.0.load(Acquire);
        while items > 0 {
            match self.0.compare_exchange(items, items - 1, Acquire, Acquire) {
                Ok(_) => return true,
                Err(now) => items = now,
            }
        }
        false
    }
}

/// The injector as it ships.
#[derive(Default)]
struct Injected(Injector<Boxed<u32>>);

impl Work for Injected {
    fn push(&self) {
        self.0.push(Node::new(7)).expect("open");
    }

    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn take(&self) -> bool {
        loop {
            match self.0.pop() {
                Pop::Item(_) => return true,
                Pop::Empty => return false,
                Pop::Retry => thread::yield_now(),
            }
        }
    }
}

/// What has become of a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Busy,
    /// Asleep until its token comes, or until this time.
    Asleep(u64),
}

struct Pool<W = Items> {
    idle: Idle,
    work: W,
    tokens: Vec<AtomicBool>,
    next_wake: AtomicU64,
}

impl<W: Work> Pool<W> {
    fn new(workers: usize) -> Arc<Self> {
        let idle = Idle::new(workers);
        (0..workers).for_each(|worker| idle.activate(worker));
        let tokens = (0..workers).map(|_| AtomicBool::new(false)).collect();
        Arc::new(Self { idle, work: W::default(), tokens, next_wake: AtomicU64::new(NEVER) })
    }

    fn unpark(&self, worker: usize) {
        self.tokens[worker].swap(true, Release);
    }

    fn submit(&self) {
        self.work.push();
        if self.idle.should_wake() {
            self.wake_one();
        }
    }

    fn wake_one(&self) {
        if let Some(worker) = self.idle.wake_one() {
            self.unpark(worker);
        }
    }

    fn arm(&self, deadline: u64) {
        self.next_wake.fetch_min(deadline, Release);
        if self.idle.wake_worker(0) {
            self.unpark(0);
        }
    }

    /// One round of a worker that runs and has nothing of its own.
    fn run(&self, worker: usize) -> Fate {
        let is_searching = self.idle.start_search();
        self.search(worker, is_searching)
    }

    fn search(&self, worker: usize, mut is_searching: bool) -> Fate {
        loop {
            if is_searching && self.work.take() {
                if self.idle.end_search() && !self.work.is_empty() {
                    self.wake_one();
                }
                return Fate::Busy;
            }
            let mut until = NEVER;
            let sleeps = self.idle.park_unless(worker, is_searching, || {
                until = self.next_wake.load(Acquire);
                !self.work.is_empty()
            });
            if sleeps {
                return Fate::Asleep(until);
            }
            is_searching = true;
        }
    }

    /// Wakes the workers that have a token until none has; then checks that no work is left alone
    /// and that the counts are right.
    fn settle(&self, fates: &mut [Fate]) {
        while let Some(worker) = (0..fates.len()).find(|&worker| {
            matches!(fates[worker], Fate::Asleep(_)) && self.tokens[worker].swap(false, Acquire)
        }) {
            self.idle.cancel_park(worker);
            fates[worker] = self.search(worker, true);
        }
        let n_asleep = fates.iter().filter(|fate| **fate != Fate::Busy).count();
        assert!(self.work.is_empty() || n_asleep == 0, "work is left, and somebody sleeps on");
        let n_bits = (0..fates.len()).filter(|&worker| self.idle.is_parked(worker)).count();
        assert_eq!(n_bits, n_asleep, "the set is not the sleepers");
        let quiet = Counts { parked: n_asleep as u64, searching: 0 };
        assert_eq!(self.idle.counts(), quiet, "the counts have drifted");
    }

    fn spawn<R: Send + 'static>(
        self: &Arc<Self>,
        f: impl FnOnce(&Self) -> R + Send + 'static,
    ) -> thread::JoinHandle<R> {
        let pool = Arc::clone(self);
        thread::spawn(move || f(&pool))
    }
}

/// Explores a model of many threads with fewer preemptions than the others have.
fn model_within(preemptions: usize, f: impl Fn() + Send + Sync + 'static) {
    let mut model = loom::model::Builder::new();
    let bound = model.preemption_bound.unwrap_or(preemptions);
    model.preemption_bound = Some(bound.min(preemptions));
    model.check(f);
}

fn submit_meets_park<W: Work>() {
    loom::model(|| {
        let pool = Pool::<W>::new(1);
        let submitter = pool.spawn(Pool::submit);
        let worker = pool.spawn(|pool| pool.run(0));
        submitter.join().expect("no panic");
        let fate = worker.join().expect("no panic");
        pool.settle(&mut [fate]);
        assert!(pool.work.is_empty(), "the only worker has taken it");
    });
}

#[test]
fn a_submission_is_not_lost_to_the_last_searcher_that_parks() {
    submit_meets_park::<Items>();
}

#[test]
fn a_push_into_the_injector_is_not_lost_to_the_last_searcher_that_parks() {
    submit_meets_park::<Injected>();
}

#[test]
fn two_submissions_are_not_lost_to_two_workers_that_park() {
    model_within(1, || {
        let pool = Pool::<Items>::new(2);
        let submitters = [pool.spawn(Pool::submit), pool.spawn(Pool::submit)];
        let workers = [pool.spawn(|pool| pool.run(0)), pool.spawn(|pool| pool.run(1))];
        submitters.into_iter().for_each(|submitter| submitter.join().expect("no panic"));
        let mut fates = workers.map(|worker| worker.join().expect("no panic"));
        pool.settle(&mut fates);
        assert!(pool.work.is_empty(), "two workers have taken two items");
    });
}

#[test]
fn the_last_searcher_that_finds_work_wakes_one_for_what_came_meanwhile() {
    loom::model(|| {
        let pool = Pool::<Items>::new(2);
        let parked = pool.run(1);
        pool.work.push();
        let submitter = pool.spawn(Pool::submit);
        let worker = pool.spawn(|pool| pool.run(0));
        submitter.join().expect("no panic");
        let fate = worker.join().expect("no panic");
        pool.settle(&mut [fate, parked]);
        assert!(pool.work.is_empty(), "two workers have taken two items");
    });
}

#[test]
fn a_worker_that_wakes_by_itself_while_it_is_claimed_hides_no_submission() {
    model_within(2, || {
        let pool = Pool::<Items>::new(2);
        let mut fates = [pool.run(0), pool.run(1)];
        let submitters = [pool.spawn(Pool::submit), pool.spawn(Pool::submit)];
        // Its sleep is over, whether it has a token or not.
        let worker = pool.spawn(|pool| {
            pool.idle.cancel_park(0);
            pool.search(0, true)
        });
        submitters.into_iter().for_each(|submitter| submitter.join().expect("no panic"));
        fates[0] = worker.join().expect("no panic");
        pool.settle(&mut fates);
        assert!(pool.work.is_empty(), "two workers have taken two items");
    });
}

#[test]
fn a_remote_arm_shortens_the_sleep_of_a_worker_that_parks() {
    loom::model(|| {
        let pool = Pool::<Items>::new(1);
        let armer = pool.spawn(|pool| pool.arm(5));
        let worker = pool.spawn(|pool| pool.run(0));
        armer.join().expect("no panic");
        let mut fate = [worker.join().expect("no panic")];
        pool.settle(&mut fate);
        assert_eq!(fate, [Fate::Asleep(5)], "the worker sleeps past a deadline");
    });
}

#[test]
fn neither_a_submission_nor_an_arm_is_lost_when_both_meet_a_park() {
    loom::model(|| {
        let pool = Pool::<Items>::new(2);
        let busy = Fate::Busy;
        let submitter = pool.spawn(Pool::submit);
        let armer = pool.spawn(|pool| pool.arm(5));
        let worker = pool.spawn(|pool| pool.run(0));
        submitter.join().expect("no panic");
        armer.join().expect("no panic");
        let mut fates = [worker.join().expect("no panic"), busy];
        pool.settle(&mut fates);
        assert_eq!(fates, [busy, busy], "the worker has not taken the work");
        // It is done with it, and parks.
        let mut fates = [pool.run(0), busy];
        pool.settle(&mut fates);
        assert_eq!(fates[0], Fate::Asleep(5), "the worker sleeps past a deadline");
    });
}

#[test]
fn two_wakers_and_a_time_out_claim_a_worker_once() {
    loom::model(|| {
        let pool = Pool::<Items>::new(1);
        pool.run(0);
        let one = pool.spawn(|pool| pool.idle.wake_one().is_some());
        let two = pool.spawn(|pool| pool.idle.wake_worker(0));
        let own = pool.spawn(|pool| pool.idle.cancel_park(0));
        let claims = [
            one.join().expect("no panic"),
            two.join().expect("no panic"),
            own.join().expect("no panic") == Unparked::Own,
        ];
        assert_eq!(claims.iter().filter(|claim| **claim).count(), 1, "claims: {claims:?}");
        assert_eq!(pool.idle.counts(), Counts { parked: 0, searching: 1 });
        assert!(pool.idle.end_search(), "it was the only one");
    });
}

#[test]
fn what_a_waker_wrote_is_seen_by_the_worker_it_claimed() {
    loom::model(|| {
        let pool = Pool::<Items>::new(1);
        pool.run(0);
        let waker = pool.spawn(|pool| {
            // Relaxed: only the claim orders it.
            pool.next_wake.fetch_min(3, Relaxed);
            pool.idle.wake_worker(0)
        });
        let worker = pool.spawn(|pool| match pool.idle.cancel_park(0) {
            Unparked::Claimed => pool.next_wake.load(Relaxed),
            Unparked::Own => 3,
        });
        waker.join().expect("no panic");
        assert_eq!(worker.join().expect("no panic"), 3, "a claimed worker missed the reason");
    });
}

#[test]
fn at_most_half_of_the_workers_start_to_search() {
    loom::model(|| {
        let pool = Pool::<Items>::new(3);
        let one = pool.spawn(|pool| pool.idle.start_search());
        let two = pool.spawn(|pool| pool.idle.start_search());
        let started = [one.join().expect("no panic"), two.join().expect("no panic")];
        assert_eq!(started.iter().filter(|started| **started).count(), 1, "{started:?}");
        assert_eq!(pool.idle.counts().searching, 1);
    });
}
