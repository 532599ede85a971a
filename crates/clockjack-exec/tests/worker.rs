//! Where a worker finds its next task, and how often it looks beyond its own queues.
#![cfg(not(loom))]
#![expect(unsafe_code, reason = "a host for tests promises which worker a thread is")]

extern crate alloc;

#[path = "support/model.rs"]
#[expect(dead_code, reason = "the tests of timers need more of it")]
mod model;

use alloc::sync::Arc;
use core::{
    future::poll_fn,
    sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst},
    task::{Poll, Waker},
    time::Duration,
};
use std::sync::Mutex;

use clockjack_exec::{
    Timer,
    worker::manual::{ManualStep, ManualWorker},
};
use clockjack_time::Tick;
use model::{Model, TICK, counter};

fn workers(model: &Model, n: usize) -> Vec<ManualWorker> {
    (0..n).map(|worker| ManualWorker::new(model.handle().executor(), worker)).collect()
}

fn until_parked(worker: &mut ManualWorker) {
    while !matches!(worker.step(), ManualStep::Parked(_)) {}
}

/// Makes a worker start a task, which is in the ring of that worker then, and says its number.
fn start_on(model: &Model, worker: &mut ManualWorker, number: usize, ran: &Arc<Mutex<Vec<usize>>>) {
    let (handle, ran) = (model.handle().clone(), Arc::clone(ran));
    let root = model.handle().spawn_future(async move {
        drop(handle.spawn_future(async move { ran.lock().unwrap().push(number) }));
    });
    while !root.is_finished() {
        worker.step();
    }
}

#[test]
fn a_thief_begins_at_a_random_victim_and_tries_every_one() {
    const VICTIMS: usize = 4;
    const ROUNDS: usize = 200;
    let model = Model::new(VICTIMS + 1);
    let mut workers = workers(&model, VICTIMS + 1);
    let ran = Arc::new(Mutex::new(Vec::new()));
    let mut firsts = [0; VICTIMS];
    for _ in 0..ROUNDS {
        for (victim, worker) in workers[..VICTIMS].iter_mut().enumerate() {
            start_on(&model, worker, victim, &ran);
        }
        // Everything of everybody, and no victim twice before another.
        until_parked(&mut workers[VICTIMS]);
        let mut order = core::mem::take(&mut *ran.lock().unwrap());
        firsts[order[0]] += 1;
        order.sort_unstable();
        assert_eq!(order, [0, 1, 2, 3]);
        workers.iter_mut().for_each(until_parked);
    }
    // A quarter each, which is fifty; less than twenty would not happen to a fair choice.
    assert!(firsts.iter().all(|n| *n >= 20), "{firsts:?}");
    assert_eq!(model.handle().stats().stolen, (ROUNDS * VICTIMS) as u64);
    drop(workers);
    model.finish();
}

/// One search of a thief asks every victim, wherever it begins: the only task is found by the first
/// step, and not by one of several searches.
#[test]
fn a_search_finds_the_only_task_with_whichever_victim_it_is() {
    const VICTIMS: usize = 15;
    let model = Model::new(VICTIMS + 1);
    let mut workers = workers(&model, VICTIMS + 1);
    let ran = Arc::new(Mutex::new(Vec::new()));
    workers.iter_mut().for_each(until_parked);
    for round in 0..20 * VICTIMS {
        let victim = round % VICTIMS;
        start_on(&model, &mut workers[victim], victim, &ran);
        assert_eq!(workers[VICTIMS].step(), ManualStep::Awake);
        assert_eq!(core::mem::take(&mut *ran.lock().unwrap()), [victim], "round {round}");
        workers.iter_mut().for_each(until_parked);
    }
    drop(workers);
    model.finish();
}

/// Timers of others are the last resort: a worker that finds a task in a ring leaves them to the
/// worker that they are assigned to, and takes them over when there is nothing else.
#[test]
fn a_thief_takes_tasks_of_others_before_it_takes_over_their_timers() {
    for _ in 0..20 {
        let model = Model::new(3);
        // None of them sleeps, so nobody else will be in time for the timer.
        let mut workers = workers(&model, 3);
        let (woken, ran) = (Arc::new(AtomicUsize::new(0)), Arc::new(Mutex::new(Vec::new())));
        let timers = timers(&model, &[900, 5, 900], &counter(&woken));
        start_on(&model, &mut workers[0], 7, &ran);
        model.advance(10 * TICK);
        assert_eq!(workers[2].step(), ManualStep::Awake);
        assert_eq!(*ran.lock().unwrap(), [7]);
        assert_eq!((woken.load(SeqCst), model.handle().stats().timers_taken_over), (0, 0));
        until_parked(&mut workers[2]);
        assert_eq!((woken.load(SeqCst), model.handle().stats().timers_taken_over), (1, 1));
        drop((workers, timers));
        model.finish();
    }
}

/// Two tasks that wake each other for ever; each poll takes so long.
fn spawn_pair(model: &Arc<Model>, poll_nanos: u64) {
    let wakers = Arc::new(Mutex::new([const { None::<Waker> }; 2]));
    for me in 0..2 {
        let (wakers, theirs) = (Arc::clone(&wakers), Arc::clone(model));
        drop(model.handle().spawn_future(poll_fn(move |cx| {
            theirs.advance(poll_nanos);
            let mut wakers = wakers.lock().unwrap();
            wakers[me] = Some(cx.waker().clone());
            if let Some(other) = wakers[1 - me].take() {
                other.wake();
            }
            Poll::<()>::Pending
        })));
    }
}

/// After how many polls at most a busy worker takes a task from the injector.
fn longest_wait(poll_nanos: u64) -> usize {
    let model = Model::new(1);
    let mut worker = ManualWorker::new(model.handle().executor(), 0);
    spawn_pair(&model, poll_nanos);
    for _ in 0..20_000 {
        assert_eq!(worker.step(), ManualStep::Awake);
    }
    let longest = Arc::new(AtomicUsize::new(0));
    for _ in 0..100 {
        let did_run = Arc::new(AtomicBool::new(false));
        let ran = Arc::clone(&did_run);
        drop(model.handle().spawn_future(async move { ran.store(true, SeqCst) }));
        let mut polls = 0;
        while !did_run.load(SeqCst) {
            assert_eq!(worker.step(), ManualStep::Awake);
            polls += 1;
        }
        longest.fetch_max(polls, SeqCst);
        // So that the next one comes at another moment of the interval.
        (0..7).for_each(|_| assert_eq!(worker.step(), ManualStep::Awake));
    }
    drop(worker);
    model.finish();
    longest.load(SeqCst)
}

#[test]
fn a_worker_looks_around_about_every_200_microseconds() {
    // Polls of this many nanoseconds, and how many of them are 200 µs, from 2 to 127.
    for (poll_nanos, interval) in
        [(100, 127), (1_000, 127), (4_000, 50), (10_000, 20), (50_000, 4), (1_000_000, 2)]
    {
        let longest = longest_wait(poll_nanos);
        let expected = interval - interval / 5 - 1..=interval + interval / 5 + 1;
        assert!(expected.contains(&longest), "{poll_nanos} ns: {longest} polls, {expected:?}");
    }
}

/// The time that a worker publishes is that of its last look at the clock, which is 200 µs or two
/// polls ago at most.
#[test]
fn the_coarse_time_follows_a_busy_worker_within_its_look_interval_and_is_never_ahead() {
    for (poll_nanos, lag_max) in [(1_000, 1), (10_000, 1), (50_000, 1), (1_000_000, 2)] {
        let model = Model::new(1);
        let mut worker = ManualWorker::new(model.handle().executor(), 0);
        spawn_pair(&model, poll_nanos);
        let (mut last, mut worst) = (0, 0);
        for step in 0..40_000 {
            assert_eq!(worker.step(), ManualStep::Awake);
            let (coarse, now) = (model.handle().coarse_now().get(), model.now() / TICK);
            assert!(last <= coarse && coarse <= now, "{last}, then {coarse} at {now}");
            last = coarse;
            // Until then the interval is being tuned.
            if step >= 20_000 {
                worst = worst.max(now - coarse);
            }
        }
        assert!(model.now() >= 20 * TICK, "time has passed");
        assert!(worst <= lag_max, "{worst} ticks behind, with polls of {poll_nanos} ns");
        drop(worker);
        model.finish();
    }
}

/// Each worker publishes its own time, and a reader gets the latest; nobody else moves it.
#[test]
fn the_coarse_time_is_that_of_the_worker_that_has_looked_last() {
    let model = Model::new(3);
    let mut workers = workers(&model, 3);
    workers.iter_mut().for_each(until_parked);
    let coarse = || model.handle().coarse_now().get();
    assert_eq!(coarse(), 0);
    let mut now = 0;
    for (worker, ticks) in [(1, 5), (0, 4), (2, 1), (1, 10)] {
        let before = now;
        model.advance(ticks * TICK);
        now += ticks;
        assert_eq!(coarse(), before, "no worker has looked");
        until_parked(&mut workers[worker]);
        assert_eq!(coarse(), now, "worker {worker}");
    }
    // One that is behind does not set the others back.
    until_parked(&mut workers[0]);
    assert_eq!(coarse(), now);
    drop(workers);
    model.finish();
}

/// A timer of each of several threads outside, so that each is in the shard of another worker.
fn timers(model: &Model, after_ms: &[u64], waker: &Waker) -> Vec<Timer> {
    let arm = |(number, after): (usize, &u64)| {
        model.set_thread_number(number);
        let mut timer = model.handle().timer();
        timer.arm(Duration::from_millis(*after), waker.clone()).unwrap();
        timer
    };
    after_ms.iter().enumerate().map(arm).collect()
}

/// All workers leave, so the watchdog has nobody to assign their shards to. The next worker gets
/// one of the shards when it starts, and has to sleep no longer than the other one allows.
#[test]
fn a_worker_that_starts_after_all_have_left_is_in_time_for_all_timers() {
    for after_ms in [[50, 90], [90, 50]] {
        let model = Model::new(2);
        let gone = workers(&model, 2);
        let timers = timers(&model, &after_ms, Waker::noop());
        drop(gone);
        model.look();
        let unparks = model.watchdog_unparks();
        let mut worker = ManualWorker::new(model.handle().executor(), 0);
        until_parked(&mut worker);
        if model.watchdog_unparks() > unparks {
            model.look();
        }
        let parked = loop {
            match worker.step() {
                ManualStep::Parked(until) => break until,
                step => assert_eq!(step, ManualStep::Awake),
            }
        };
        assert_eq!(parked, Some(Tick::new(50)), "timers after {after_ms:?} ms");
        drop((worker, timers));
        model.finish();
    }
}

/// All shards but one are due for a timer that was cancelled. Wherever the worker begins, it finds
/// the one.
#[test]
fn a_worker_that_takes_over_is_not_stopped_by_a_shard_in_which_nothing_fires() {
    const N: usize = 8;
    for live in 0..N {
        let model = Model::new(N);
        let woken = Arc::new(AtomicUsize::new(0));
        let mut workers = workers(&model, N);
        let mut timers = timers(&model, &[5; N], &counter(&woken));
        for (number, timer) in timers.iter_mut().enumerate() {
            assert!(number == live || timer.cancel(), "timer {number} is armed");
        }
        model.advance(5 * TICK);
        until_parked(&mut workers[0]);
        assert_eq!(woken.load(SeqCst), 1, "timer {live} is overdue");
        drop((workers, timers));
        model.finish();
    }
}
