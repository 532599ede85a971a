//! A reader of the diagnostics stream against a publisher and a thread that wakes readers. A lost
//! wake-up is a deadlock, which loom reports. The bus itself has its models in `clockjack-observe`.

use alloc::{sync::Arc, task::Wake};
use core::task::{Context, Poll, Waker};

use clockjack_sched::{DiagnosticEvent, EventKinds, JobNumber, Subscription, stream::Bus};
use clockjack_sync::Arc as SyncArc;
use clockjack_time::Tick;
use loom::thread::{self, Thread};

use crate::model_within;

/// Wakes a thread of the model.
struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Waits for what is next.
fn wait(reader: &mut Subscription) -> Option<DiagnosticEvent> {
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    loop {
        match reader.poll_next(&mut Context::from_waker(&waker)) {
            Poll::Ready(next) => return next,
            Poll::Pending => {
                thread::park();
                // One that registers while it is being woken has woken itself: let others go on.
                thread::yield_now();
            }
        }
    }
}

#[test]
fn a_reader_that_waits_is_woken_whoever_wakes() {
    model_within(2, || {
        let bus = SyncArc::new(Bus::new());
        let mut reader = Bus::subscribe(&bus, EventKinds::ALL, 1).unwrap();
        let waking = bus.clone();
        let waker = thread::spawn(move || waking.wake_readers());
        let publisher = thread::spawn(move || {
            let job = JobNumber { shard: 0, number: 1 };
            // Until the lock of the bus was free: a model tries it once.
            loop {
                let before = bus.dropped();
                bus.publish(DiagnosticEvent::Cancelled { job, at: Tick::new(1) });
                bus.wake_readers();
                if bus.dropped() == before {
                    return;
                }
                thread::yield_now();
            }
        });
        let waiter = thread::spawn(move || {
            assert!(wait(&mut reader).is_some(), "the event, or that it was lost");
        });
        publisher.join().unwrap();
        waiter.join().unwrap();
        waker.join().unwrap();
    });
}
