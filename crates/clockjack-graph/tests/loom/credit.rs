//! A producer and a reader of a blocking edge between two domains.

/// The part under test, which knows nothing of graphs.
#[path = "../../src/run/credit/edge.rs"]
mod edge;

use alloc::sync::Arc;

use loom::sync::Notify;
use loom::sync::atomic::{AtomicU32, Ordering};
use loom::thread;

use self::edge::Credit;

/// Messages on their way, and the bell that calls a producer.
struct Wire {
    credit: Credit,
    sent: AtomicU32,
    bell: Notify,
}

impl Wire {
    /// An edge whose capacity is on its way.
    fn full(capacity: u32) -> Arc<Self> {
        let wire = Self {
            credit: Credit::new(capacity),
            sent: AtomicU32::new(capacity),
            bell: Notify::new(),
        };
        (0..capacity).for_each(|_| wire.credit.send());
        Arc::new(wire)
    }

    /// All that is on its way comes; so many of it stay in the channel.
    fn read(&self, n_inside: u32) {
        for _ in 0..self.sent.swap(0, Ordering::AcqRel) {
            self.credit.receive();
        }
        self.call_if(self.credit.took(n_inside));
    }

    fn call_if(&self, is_awaited: bool) {
        if is_awaited {
            self.bell.notify();
        }
    }

    /// Looks for room whenever it is called, until there is some.
    fn wait_for_room(&self) {
        while !self.credit.await_room(1) {
            self.bell.wait();
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
                wire.call_if(wire.credit.end());
            }
        });
        wire.wait_for_room();
        assert_eq!(wire.credit.room(), 1);
        reader.join().expect("it reads");
    });
}
