//! All operations, one file per crate.

mod actor;
mod exec;
mod graph;
mod observe;
mod sched;
mod sync;
mod time;

use core::hint::black_box;

use crate::operation::{Operation, operation};

/// Every operation, in the order of the table.
pub(crate) fn all() -> Vec<Operation> {
    let mut all = vec![instrument()];
    all.extend(sync::all());
    all.extend(time::all());
    all.extend(observe::all());
    all.extend(exec::all());
    all.extend(sched::all());
    all.extend(actor::all());
    all.extend(graph::all());
    all
}

/// An operation of known cost: `cargo xtask counts` uses it to check that it detects a regression.
fn instrument() -> Operation {
    operation("instrument", 1000, || {
        |n| {
            (0..n).for_each(|i| {
                black_box(i.wrapping_mul(black_box(7)));
            });
        }
    })
}

/// [`instrument`] with a planted regression: one more allocation per iteration.
pub(crate) fn planted() -> Operation {
    operation("instrument", 1000, || {
        |n| (0..n).for_each(|i| drop(black_box(Box::new(i.wrapping_mul(black_box(7))))))
    })
}
