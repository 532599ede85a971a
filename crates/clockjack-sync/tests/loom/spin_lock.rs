//! Threads that take the spin lock.

use alloc::sync::Arc;

use core::sync::atomic::{AtomicUsize, Ordering::SeqCst};

use clockjack_sync::{backoff, spin_lock::SpinLock};
use loom::thread;

/// How many waiters have left their processor to the holder, in this thread's model.
static N_WAITS: AtomicUsize = AtomicUsize::new(0);

#[test]
fn two_entrants_have_the_value_one_after_the_other() {
    loom::model(|| {
        let lock = Arc::new(SpinLock::new(0));
        let other = Arc::clone(&lock);
        let first = thread::spawn(move || other.with(|value| *value += 1));
        let other = Arc::clone(&lock);
        let second = thread::spawn(move || other.try_with(|value| *value += 1).is_some());
        first.join().unwrap();
        let entered = second.join().unwrap();
        assert_eq!(lock.with(|value| *value), 1 + i32::from(entered));
    });
}

#[test]
fn an_entrant_that_has_to_wait_gets_in() {
    loom::model(|| {
        let lock = Arc::new(SpinLock::new(0));
        let threads = [(); 2].map(|()| {
            let lock = Arc::clone(&lock);
            thread::spawn(move || lock.with(|value| *value += 1))
        });
        for thread in threads {
            thread.join().unwrap();
        }
        assert_eq!(lock.with(|value| *value), 2);
    });
}

#[test]
fn a_holder_that_was_preempted_by_a_waiter_runs_again() {
    // The waiter has the higher priority, on the same processor: the holder runs only while the
    // waiter is blocked.
    backoff::set_wait(|_| {
        N_WAITS.fetch_add(1, SeqCst);
        thread::yield_now();
    });
    loom::model(|| {
        N_WAITS.store(0, SeqCst);
        let lock = Arc::new(SpinLock::new(0));
        let is_held = Arc::new(loom::sync::atomic::AtomicBool::new(false));
        let (other, says) = (Arc::clone(&lock), Arc::clone(&is_held));
        let holder = thread::spawn(move || {
            other.with(|value| {
                says.store(true, SeqCst);
                while N_WAITS.load(SeqCst) == 0 {
                    thread::yield_now();
                }
                *value += 1;
            });
        });
        while !is_held.load(SeqCst) {
            thread::yield_now();
        }
        lock.with(|value| *value += 1);
        holder.join().unwrap();
        assert_eq!(lock.with(|value| *value), 2);
    });
}
