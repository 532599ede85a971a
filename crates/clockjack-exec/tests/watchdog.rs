//! What the watchdog sees in a look, and when it may sleep, in virtual time.
#![cfg(not(loom))]
#![expect(unsafe_code, reason = "a host for tests promises which worker a thread is")]

extern crate alloc;

#[path = "support/model.rs"]
#[expect(dead_code, reason = "the tests of timers need more of it")]
mod model;

use alloc::sync::Arc;
use core::{
    sync::atomic::{AtomicUsize, Ordering::SeqCst},
    time::Duration,
};
use std::sync::Mutex;

use clockjack_exec::StuckWorker;
use model::{Model, STUCK_AFTER, TICK, TOLERANCE, Wrapped, counter, ended, worker};

/// Looks as often as the watchdog would, until it is to be woken by others or `limit`.
fn look_until_quiet(model: &Model, limit: u64) -> Vec<StuckWorker> {
    let mut reported = Vec::new();
    while let (Some(until), mut stuck) = model.look() {
        reported.append(&mut stuck);
        let until = until * TICK;
        if until > limit {
            break;
        }
        model.advance(until - model.now());
    }
    reported
}

#[test]
fn a_watchdog_without_timers_and_workers_sleeps_for_ever() {
    let model = Model::new(4);
    look_until_quiet(&model, 1_000 * TICK);
    assert_eq!(model.look().0, None);
    model.work(0);
    assert!(model.watchdog_unparks() > 0, "a worker has come");
    look_until_quiet(&model, 10 * STUCK_AFTER);
    assert_eq!(model.look().0, None, "and gone");
    model.finish();
}

#[test]
fn a_watchdog_sleeps_for_the_earliest_timer_and_the_tolerance() {
    let model = Model::new(1);
    model.work(0);
    look_until_quiet(&model, 10 * STUCK_AFTER);
    let before = model.watchdog_unparks();
    let mut timer = model.handle().timer();
    timer.arm(Duration::from_secs(3_600), counter(&Arc::default())).unwrap();
    assert_eq!(model.watchdog_unparks(), before + 1, "it slept for longer");
    let due = (model.now() / TICK) + 3_600_000;
    // One more short sleep, as it was called.
    model.advance(model.look().0.unwrap() * TICK - model.now());
    assert_eq!(model.look().0, Some(due + TOLERANCE));
    model.finish();
}

#[test]
fn a_step_that_takes_long_is_reported_once_though_nothing_is_armed() {
    let model = Model::new(2);
    model.work(0);
    look_until_quiet(&model, 10 * STUCK_AFTER);
    assert_eq!(model.look().0, None);
    let reports = Arc::new(Mutex::new(Vec::new()));
    let step = model.handle().spawn_future({
        let (model, reports) = (Arc::clone(&model), Arc::clone(&reports));
        async move {
            for _ in 0..2 {
                // The watchdog looks whenever its time has come, for five times as long.
                let begun = model.now();
                let stuck = look_until_quiet(&model, begun + 5 * STUCK_AFTER);
                reports.lock().unwrap().push((begun, stuck));
                clockjack_exec::yield_now().await;
            }
        }
    });
    let pid = step.pid();
    let before = model.watchdog_unparks();
    model.work(1);
    assert!(model.watchdog_unparks() > before, "a worker has begun to work");
    ended(step);
    for (begun, stuck) in reports.lock().unwrap().iter() {
        let [stuck] = &stuck[..] else { panic!("{stuck:?} since {begun}") };
        assert_eq!((stuck.worker, stuck.pid), (1, pid));
        assert!(stuck.for_nanos >= STUCK_AFTER, "{stuck:?}");
        assert!(stuck.for_nanos <= STUCK_AFTER + 2 * TICK, "{stuck:?}");
    }
    model.finish();
}

#[test]
fn steps_that_are_short_are_not_reported() {
    let model = Model::new(1);
    let step = model.handle().spawn_future({
        let model = Arc::clone(&model);
        async move {
            for _ in 0..100 {
                model.advance(STUCK_AFTER / 2);
                assert!(model.look().1.is_empty());
                clockjack_exec::yield_now().await;
            }
        }
    });
    model.work(0);
    ended(step);
    model.finish();
}

#[test]
fn what_a_blocked_worker_has_put_first_runs_elsewhere_after_two_looks() {
    let model = Model::new(2);
    let ran_on: Arc<Mutex<Option<usize>>> = Arc::default();
    let (sender, receiver) = channel();
    drop(model.handle().spawn_future({
        let ran_on = Arc::clone(&ran_on);
        async move {
            receiver.await;
            *ran_on.lock().unwrap() = worker();
        }
    }));
    let blocked = model.handle().spawn_future({
        let (model, ran_on) = (Arc::clone(&model), Arc::clone(&ran_on));
        async move {
            sender.send();
            model.work(1);
            assert_eq!(*ran_on.lock().unwrap(), None, "its own worker has precedence");
            for _ in 0..2 {
                let (until, _) = model.look();
                model.advance(until.expect("it watches") * TICK - model.now());
            }
            model.work(1);
            assert_eq!(*ran_on.lock().unwrap(), Some(1));
            assert!(model.now() <= 3 * TOLERANCE * TICK, "two looks are two tolerances");
        }
    });
    model.work(0);
    ended(blocked);
    model.finish();
}

#[test]
fn what_a_blocked_worker_has_in_its_ring_runs_elsewhere_at_once() {
    let model = Model::new(2);
    let ran = Arc::new(AtomicUsize::new(0));
    let blocked = model.handle().spawn_future({
        let (model, ran) = (Arc::clone(&model), Arc::clone(&ran));
        async move {
            for _ in 0..10 {
                let ran = Arc::clone(&ran);
                drop(model.handle().spawn_future(async move {
                    assert_eq!(worker(), Some(1));
                    ran.fetch_add(1, SeqCst);
                }));
            }
            model.work(1);
            assert_eq!(ran.load(SeqCst), 10);
        }
    });
    model.work(0);
    ended(blocked);
    assert!(model.handle().stats().stolen >= 10);
    model.finish();
}

#[test]
fn a_watch_for_what_was_put_first_ends_when_all_sleep() {
    let model = Model::new(1);
    let woken = model.handle().spawn_future({
        let handle = model.handle().clone();
        async move {
            for _ in 0..1_000 {
                clockjack_exec::yield_now().await;
            }
            Wrapped(handle.sleep(Duration::from_millis(3))).await.unwrap();
        }
    });
    model.work_until(0, 10 * TICK);
    ended(woken);
    let begun = model.now();
    look_until_quiet(&model, u64::MAX);
    assert_eq!(model.look().0, None);
    assert!(model.now() - begun <= 2 * STUCK_AFTER, "it took {} ns", model.now() - begun);
    model.finish();
}

/// Something to wait for, that is there once.
fn channel() -> (Sender, impl Future<Output = ()> + Send) {
    let shared = Arc::new(Mutex::new((false, None::<core::task::Waker>)));
    let receiver = Arc::clone(&shared);
    let receive = core::future::poll_fn(move |cx| {
        let mut shared = receiver.lock().unwrap();
        if shared.0 {
            return core::task::Poll::Ready(());
        }
        shared.1 = Some(cx.waker().clone());
        core::task::Poll::Pending
    });
    (Sender(shared), receive)
}

struct Sender(Arc<Mutex<(bool, Option<core::task::Waker>)>>);

impl Sender {
    fn send(&self) {
        let waker = {
            let mut shared = self.0.lock().unwrap();
            shared.0 = true;
            shared.1.take()
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}
