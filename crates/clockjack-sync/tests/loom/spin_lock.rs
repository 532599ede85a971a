//! Threads that take the spin lock.

use alloc::sync::Arc;

use clockjack_sync::spin_lock::SpinLock;
use loom::thread;

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
