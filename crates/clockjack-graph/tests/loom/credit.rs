//! A producer and a reader of a blocking edge between two domains.

/// The code under test, which does not depend on graphs.
#[path = "../../src/run/flow/credit/edge.rs"]
mod edge;

use std::sync::Arc;

use loom::{
    sync::{
        Notify,
        atomic::{AtomicU32, Ordering},
    },
    thread,
};

use self::edge::Credit;

/// Messages on their way, and the flag that wakes a producer.
struct Wire {
    credit: Credit,
    sent: AtomicU32,
    flag: Notify,
}

impl Wire {
    /// An edge with as many messages on their way as it has capacity.
    fn full(capacity: u32) -> Arc<Self> {
        let wire = Self {
            credit: Credit::new(capacity),
            sent: AtomicU32::new(capacity),
            flag: Notify::new(),
        };
        (0..capacity).for_each(|_| wire.credit.send());
        Arc::new(wire)
    }

    /// Receives everything that is on its way; `n_inside` messages stay in the channel.
    fn read(&self, n_inside: u32) {
        for _ in 0..self.sent.swap(0, Ordering::AcqRel) {
            self.credit.receive();
        }
        self.wake_if(self.credit.report_depth(n_inside));
    }

    fn wake_if(&self, is_waiting: bool) {
        if is_waiting {
            self.flag.notify();
        }
    }

    /// Waits until there is room.
    fn wait_for_room(&self) {
        while !self.credit.await_room(1) {
            self.flag.wait();
        }
    }
}

#[test]
fn a_producer_that_waits_for_room_is_called_when_there_is_some() {
    loom::model(|| {
        let wire = Wire::full(2);
        let reader = thread::spawn({
            let wire = wire.clone();
            move || {
                wire.read(2);
                wire.read(1);
            }
        });
        wire.wait_for_room();
        assert_eq!(wire.credit.room(), 1);
        reader.join().expect("it reads");
    });
}

#[test]
fn a_producer_does_not_wait_for_a_reader_that_ends() {
    loom::model(|| {
        let wire = Wire::full(1);
        let reader = thread::spawn({
            let wire = wire.clone();
            move || {
                wire.read(1);
                wire.wake_if(wire.credit.close());
            }
        });
        wire.wait_for_room();
        assert_eq!(wire.credit.room(), 1);
        reader.join().expect("it reads");
    });
}
