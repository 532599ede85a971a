//! The spin lock on real threads.
#![cfg(not(any(loom, shuttle)))]

use core::panic::AssertUnwindSafe;
use std::{panic::catch_unwind, thread};

use clockjack_sync::spin_lock::SpinLock;

#[test]
fn threads_that_count_under_a_lock_lose_no_step() {
    const N_EACH: u64 = if cfg!(miri) { 100 } else { 50_000 };
    let count = SpinLock::new((0_u64, 0_u64));
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..N_EACH {
                    count.with(|(a, b)| {
                        *a += 1;
                        assert_eq!(*a, *b + 1);
                        *b = *a;
                    });
                }
            });
        }
    });
    assert_eq!(count.into_inner(), (4 * N_EACH, 4 * N_EACH));
}

#[test]
fn a_lock_that_is_held_refuses_a_try() {
    let lock = SpinLock::new(1);
    lock.with(|_| assert_eq!(lock.try_with(|value| *value), None));
    assert_eq!(lock.try_with(|value| *value), Some(1));
}

#[test]
fn a_panic_inside_opens_the_lock() {
    let mut lock = SpinLock::new(1);
    let result = catch_unwind(AssertUnwindSafe(|| lock.with(|_| panic!("inside"))));
    assert!(result.is_err());
    assert_eq!(lock.with(|value| *value), 1);
    *lock.get_mut() = 2;
    assert_eq!(lock.with(|value| *value), 2);
}

#[test]
fn a_lock_is_one_byte_more_than_its_value() {
    assert_eq!(size_of::<SpinLock<[u8; 3]>>(), 4);
}
