//! Operations of `clockjack-sync`.

use core::hint::black_box;

use clockjack_sync::{
    pad::Padded,
    prim::atomic::{AtomicUsize, Ordering},
};

use crate::operation::{Operation, operation};

/// Every operation of the crate.
pub(crate) fn all() -> Vec<Operation> {
    vec![
        operation("sync/pad/add", 1000, || {
            let mut counter = Padded(0_u64);
            move |n| (0..n).for_each(|_| *counter = black_box(*counter + 1))
        }),
        // Relaxed: one thread counts, nothing is published.
        operation("sync/prim/fetch_add", 1000, || {
            let counter = Padded(AtomicUsize::new(0));
            move |n| {
                (0..n).for_each(|_| {
                    black_box(counter.fetch_add(1, Ordering::Relaxed));
                });
            }
        }),
        // Relaxed: one thread counts, nothing is published.
        operation("sync/prim/compare_exchange", 1000, || {
            let word = Padded(AtomicUsize::new(0));
            let (order, mut value) = (Ordering::Relaxed, 0);
            move |n| {
                (0..n).for_each(|_| {
                    value =
                        word.compare_exchange(value, value + 1, order, order).map_or(0, |v| v + 1);
                });
            }
        }),
    ]
}
