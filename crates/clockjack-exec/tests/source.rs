//! Workers that poll a source of timed work next to their timers, in virtual time.
#![cfg(not(loom))]
#![expect(unsafe_code, reason = "a host for tests promises which worker a thread is")]

extern crate alloc;

#[path = "support/model.rs"]
#[expect(dead_code, reason = "the tests of timers need more of it")]
mod model;

use alloc::sync::Arc;
use core::{
    future::poll_fn,
    task::{Poll, Waker},
    time::Duration,
};
use std::sync::Mutex;

use clockjack_exec::{
    SourcePoll, TimerSource,
    worker::manual::{ManualStep, ManualWorker},
};
use clockjack_time::Tick;
use model::{Model, STUCK_AFTER, TICK, TOLERANCE};

/// Work of shard 0: each is run once, at the tick at which it is due or later.
#[derive(Default)]
struct Jobs {
    waiting: Vec<Job>,
    /// The tick and the worker of each run.
    runs: Vec<(u64, usize)>,
}

struct Job {
    due: u64,
    run: Box<dyn FnOnce() + Send>,
}

struct World {
    model: Arc<Model>,
    jobs: Arc<Mutex<Jobs>>,
}

struct Source {
    model: alloc::sync::Weak<Model>,
    jobs: Arc<Mutex<Jobs>>,
}

impl TimerSource for Source {
    fn poll(&self, shard: u32, worker: usize) -> SourcePoll {
        assert_eq!(shard, 0);
        let model = self.model.upgrade().expect("the test has it");
        loop {
            let tick = model.now() / TICK;
            let mut jobs = self.jobs.lock().unwrap();
            let Some(at) = jobs.waiting.iter().position(|job| job.due <= tick) else {
                let next = jobs.waiting.iter().map(|job| Tick::new(job.due)).min();
                return SourcePoll { is_more: false, next_wake: next };
            };
            let job = jobs.waiting.remove(at);
            jobs.runs.push((tick, worker));
            drop(jobs);
            (job.run)();
        }
    }
}

impl World {
    /// A worker has come and gone, so that there is a shard.
    fn new(workers: usize) -> Self {
        let (model, jobs) = (Model::new(workers), Arc::default());
        model.set_source(Source { model: Arc::downgrade(&model), jobs: Arc::clone(&jobs) });
        model.work(0);
        Self { model, jobs }
    }

    fn add(&self, due: u64, run: impl FnOnce() + Send + 'static) {
        self.jobs.lock().unwrap().waiting.push(Job { due, run: Box::new(run) });
        self.model.handle().executor().request_source_poll(0, Tick::new(due));
    }

    fn runs(&self) -> Vec<(u64, usize)> {
        self.jobs.lock().unwrap().runs.clone()
    }
}

#[test]
fn a_worker_sleeps_until_the_source_is_due_and_polls_it() {
    let world = World::new(1);
    for due in [30, 10, 20] {
        world.add(due, || ());
    }
    let before = world.model.parks();
    world.model.work_until(0, 25 * TICK);
    assert_eq!(world.runs(), [(10, 0), (20, 0)]);
    let parks = world.model.parks() - before;
    assert!(parks <= 4, "{parks} times: until 10, until 20, for too long, and for an old token");
    world.model.finish();
}

#[test]
fn a_request_calls_the_watchdog_which_sleeps_until_the_source_is_overdue() {
    let world = World::new(1);
    while let (Some(until), _) = world.model.look() {
        world.model.advance(until * TICK - world.model.now());
    }
    let before = world.model.watchdog_unparks();
    let due = world.model.now() / TICK + 3_600_000;
    world.add(due, || ());
    assert_eq!(world.model.watchdog_unparks(), before + 1, "it slept for longer");
    world.model.advance(world.model.look().0.unwrap() * TICK - world.model.now());
    assert_eq!(world.model.look().0, Some(due + TOLERANCE));
    world.model.finish();
}

#[test]
fn a_poll_that_takes_long_is_taken_over_and_a_short_one_is_not() {
    let world = World::new(2);
    let (model, jobs) = (Arc::clone(&world.model), Arc::clone(&world.jobs));
    let n_runs = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&n_runs);
    world.add(1, move || {
        // The other worker has nothing else to do; at first nobody is in a hurry.
        for ticks in [0, 4] {
            model.advance(ticks * TICK);
            model.work(1);
            seen.lock().unwrap().push(jobs.lock().unwrap().runs.len());
        }
    });
    world.add(1, || ());
    world.model.work_until(0, 20 * TICK);
    assert_eq!(*n_runs.lock().unwrap(), [1, 2]);
    assert_eq!(world.runs(), [(1, 0), (5, 1)]);
    assert_eq!(world.model.handle().stats().source_takeovers, 1);
    world.model.finish();
}

#[test]
fn what_a_handler_leaves_that_was_taken_over_from_is_run_in_time() {
    let world = Arc::new(World::new(2));
    let weak = Arc::downgrade(&world);
    world.add(1, move || {
        let world = weak.upgrade().unwrap();
        world.model.advance(4 * TICK);
        // The other worker finds nothing, and the shard is due never.
        world.model.work(1);
        // Not requested: this poll has the duty to say so.
        world.jobs.lock().unwrap().waiting.push(Job { due: 8, run: Box::new(|| ()) });
    });
    world.model.work_until(0, 20 * TICK);
    assert_eq!(world.runs(), [(1, 0), (8, 0)]);
    world.model.finish();
}

#[test]
fn a_worker_that_stays_in_the_source_is_reported_without_a_task() {
    let world = World::new(1);
    let model = Arc::clone(&world.model);
    let stuck = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&stuck);
    world.add(1, move || {
        for _ in 0..3 {
            seen.lock().unwrap().extend(model.look().1);
            model.advance(STUCK_AFTER);
        }
    });
    world.model.work_until(0, 20 * TICK);
    let stuck = stuck.lock().unwrap();
    assert_eq!(stuck.len(), 1, "{stuck:?}");
    assert_eq!((stuck[0].worker, stuck[0].pid), (0, None));
    world.model.finish();
}

#[test]
fn a_poll_that_panics_is_repeated() {
    let world = World::new(1);
    world.add(1, || panic!("on purpose"));
    world.add(2, || ());
    world.model.work_until(0, 20 * TICK);
    assert_eq!(world.runs(), [(1, 0), (2, 0)]);
    assert_eq!(world.model.handle().stats().source_panics, 1);
    world.model.finish();
}

#[test]
fn the_source_of_a_worker_that_has_left_is_polled_by_another() {
    let world = World::new(3);
    let model = Arc::clone(&world.model);
    // Worker 1 has a shard of its own, while worker 0 leaves.
    let leaves = Arc::clone(&model);
    world.add(1, move || leaves.work(1));
    model.work_until(0, 2 * TICK);
    world.add(5, || ());
    model.advance(10 * TICK);
    model.work(2);
    assert_eq!(world.runs().last(), Some(&(model.now() / TICK, 2)));
    world.model.finish();
}

/// A source whose shard 0 wakes a task once.
struct WakesOnce(Arc<Mutex<Option<Waker>>>);

impl TimerSource for WakesOnce {
    fn poll(&self, shard: u32, _: usize) -> SourcePoll {
        let waker = if shard == 0 { self.0.lock().unwrap().take() } else { None };
        waker.into_iter().for_each(Waker::wake);
        SourcePoll { is_more: false, next_wake: None }
    }
}

#[test]
fn a_timer_behind_a_task_of_the_source_of_another_shard_wakes_a_worker() {
    const DUE: u64 = 50;
    let model = Model::new(3);
    let waker = Arc::new(Mutex::new(None::<Waker>));
    model.set_source(WakesOnce(Arc::clone(&waker)));
    let executor = model.handle().executor();
    let until_parked =
        |worker: &mut ManualWorker| while !matches!(worker.step(), ManualStep::Parked(_)) {};
    let mut workers = [0, 1, 2].map(|index| ManualWorker::new(executor, index));
    workers.iter_mut().for_each(until_parked);
    // A task that sleeps by a timer of worker 1, whose shard worker 0 has then.
    let handle = model.handle().clone();
    let sleep = Duration::from_nanos(DUE * TICK - model.now());
    let fired = model.handle().spawn_future(async move { handle.sleep(sleep).await });
    let [mut first, mut leaving, mut other] = workers;
    until_parked(&mut leaving);
    drop(leaving);
    // The watchdog gives the shard to the first of two workers with the same load.
    model.look();
    until_parked(&mut first);
    // A task that the source wakes on worker 0; says whether worker 2 was woken before.
    let (place, theirs) = (Arc::clone(&waker), Arc::clone(&model));
    let mut is_woken = false;
    let task = model.handle().spawn_future(poll_fn(move |cx| {
        if core::mem::replace(&mut is_woken, true) {
            return Poll::Ready(theirs.take_unparked(2));
        }
        *place.lock().unwrap() = Some(cx.waker().clone());
        Poll::Pending
    }));
    until_parked(&mut first);
    until_parked(&mut other);
    assert!(waker.lock().unwrap().is_some(), "the task waits");
    executor.request_source_poll(0, Tick::new(DUE));
    until_parked(&mut first);
    model.take_unparked(2);
    model.advance(DUE * TICK - model.now());
    until_parked(&mut first);
    assert!(model::ended(task), "no worker was woken for the task of the timer");
    until_parked(&mut other);
    model::ended(fired).unwrap();
    drop((first, other));
    model.finish();
}
