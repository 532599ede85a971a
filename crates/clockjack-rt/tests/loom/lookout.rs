//! The lookout: which steps of a pinned thread it finds, and what it finds beside them.

use alloc::sync::Arc;

use clockjack_sync::prim::atomic::{AtomicU32, Ordering::Relaxed};
use loom::thread;

use crate::post::{Bell, Post};

fn post() -> (Arc<Bell>, Arc<Post>) {
    let bell = Arc::new(Bell::new());
    (Arc::clone(&bell), Arc::new(Post::new(bell)))
}

/// The lookout: looks until it has found a step, and sleeps when nobody is awake.
fn look_for_step(bell: &Bell, post: &Post) {
    loop {
        bell.looks();
        if !post.step().is_multiple_of(2) {
            return;
        }
        if bell.rests(|| post.is_awake()) {
            bell.parker().park(None);
        } else {
            // Instead of the time until the next look.
            thread::yield_now();
        }
    }
}

/// A lookout that sleeps for ever is a deadlock, which loom reports.
#[test]
fn a_step_after_a_sleep_is_not_overlooked() {
    loom::model(|| {
        let (bell, post) = post();
        let pinned = thread::spawn({
            let post = Arc::clone(&post);
            move || {
                post.asleep_in(|| {});
                // It does not return from this step.
                post.count();
            }
        });
        let lookout = thread::spawn(move || look_for_step(&bell, &post));
        pinned.join().unwrap();
        lookout.join().unwrap();
    });
}

#[test]
fn what_is_found_in_a_step_belongs_to_that_step() {
    loom::model(|| {
        let (_, post) = post();
        // Who has its turn: as it is known from outside, by a hint without order.
        let in_turn = Arc::new(AtomicU32::new(0));
        let pinned = thread::spawn({
            let (post, in_turn) = (Arc::clone(&post), Arc::clone(&in_turn));
            move || {
                for n in 1..=2 {
                    post.count();
                    in_turn.store(n, Relaxed);
                    in_turn.store(0, Relaxed);
                    post.count();
                }
            }
        });
        let lookout = thread::spawn(move || {
            let step = post.step();
            if step.is_multiple_of(2) {
                return;
            }
            let found = post.find(step, || in_turn.load(Relaxed));
            let of_step = step.div_ceil(2);
            assert!(found.is_none_or(|n| n == 0 || n == of_step), "{found:?} in step {step}");
        });
        pinned.join().unwrap();
        lookout.join().unwrap();
    });
}

#[test]
fn a_lookout_that_is_told_to_end_does_not_sleep_on() {
    loom::model(|| {
        let (bell, post) = post();
        let lookout = thread::spawn({
            let bell = Arc::clone(&bell);
            move || {
                while !bell.is_over() {
                    bell.looks();
                    if bell.rests(|| post.is_awake()) {
                        bell.parker().park(None);
                    } else {
                        thread::yield_now();
                    }
                }
            }
        });
        bell.end();
        lookout.join().unwrap();
    });
}

/// A lookout that never rests exceeds the steps that loom allows a model.
#[test]
fn a_thread_that_has_left_keeps_no_lookout_awake() {
    loom::model(|| {
        let (bell, post) = post();
        let pinned = thread::spawn({
            let post = Arc::clone(&post);
            move || {
                post.count();
                post.count();
                post.leave();
            }
        });
        let lookout = thread::spawn(move || {
            bell.looks();
            while !bell.rests(|| post.is_awake()) {
                thread::yield_now();
                bell.looks();
            }
        });
        pinned.join().unwrap();
        lookout.join().unwrap();
    });
}
