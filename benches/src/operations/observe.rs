//! Operations of `clockjack-observe`.

use core::hint::black_box;

use clockjack_observe::{
    Counter, Event, Histogram, Shared, SingleWriter,
    event::WorkerId,
    recorder::{Ring, Writer},
};

use crate::operation::{Operation, operation};

/// Every operation of the crate.
pub(crate) fn all() -> Vec<Operation> {
    vec![
        operation("observe/counter/add_shared", 1000, || {
            let counter = Counter::<Shared>::new();
            move |n| (0..n).for_each(|_| counter.add(black_box(1)))
        }),
        operation("observe/counter/add_sole", 1000, || {
            let counter = Counter::<SingleWriter>::new();
            move |n| (0..n).for_each(|_| counter.add(black_box(1)))
        }),
        operation("observe/histogram/record_sole", 1000, || {
            let histogram = Box::new(Histogram::<16, SingleWriter>::new());
            move |n| (0..n).for_each(|i| histogram.record(black_box(u64::from(i) * 37)))
        }),
        operation("observe/histogram/record_shared", 1000, || {
            let histogram = Box::new(Histogram::<16, Shared>::new());
            move |n| (0..n).for_each(|i| histogram.record(black_box(u64::from(i) * 37)))
        }),
        operation("observe/recorder/write", 1000, || {
            let ring: &'static Ring = Box::leak(Box::new(Ring::new(256)));
            let mut writer = Writer::claim(ring).expect("this is the only writer");
            move |n| {
                (0..n).for_each(|i| {
                    let worker = WorkerId(black_box(3));
                    writer.write(u64::from(i), Event::WorkerStarted { worker });
                });
            }
        }),
    ]
}
