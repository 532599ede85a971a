//! Publishers against subscriptions that come, read, wait and go. A lost wake is a deadlock, which
//! loom reports.

use alloc::{sync::Arc, task::Wake};
use core::task::{Context, Poll, Waker};

use clockjack_sched::{
    JobNumber, Warning,
    stream::{Bus, DiagnosticEvent, EventKinds, Subscription},
};
use clockjack_sync::Arc as SyncArc;
use clockjack_time::Tick;
use loom::thread::{self, JoinHandle, Thread};

use crate::model_within;

fn bus() -> SyncArc<Bus> {
    SyncArc::new(Bus::new())
}

fn subscribe(bus: &SyncArc<Bus>, capacity: usize) -> Subscription {
    Bus::subscribe(bus, EventKinds::ALL, capacity).unwrap()
}

fn event(n: u64) -> DiagnosticEvent {
    DiagnosticEvent::Cancelled { job: JobNumber { shard: 0, number: n }, at: Tick::new(n) }
}

/// Publishes an event under a guard, and wakes the readers after releasing it.
fn publisher(bus: &SyncArc<Bus>, n: u64) -> JoinHandle<()> {
    let bus = bus.clone();
    thread::spawn(move || {
        bus.publish(event(n));
        bus.wake_readers();
    })
}

/// Wakes a thread of the model.
struct Bell(Thread);

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Wakes nobody: only its counting is of interest.
struct Mute;

impl Wake for Mute {
    fn wake(self: Arc<Self>) {}
}

/// Waits for what is next.
fn wait(reader: &mut Subscription) -> Option<DiagnosticEvent> {
    let waker = Waker::from(Arc::new(Bell(thread::current())));
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

/// How many events this one stands for.
fn count(event: &DiagnosticEvent) -> u64 {
    match event {
        DiagnosticEvent::Warned(Warning::DiagnosticsDropped { dropped }) => *dropped,
        _ => 1,
    }
}

#[test]
fn a_subscription_that_goes_under_a_publisher_leaves_a_slot_that_serves_again() {
    model_within(3, || {
        let bus = bus();
        let mut going = subscribe(&bus, 1);
        let bell = Arc::new(Mute);
        let waker = Waker::from(Arc::clone(&bell));
        assert_eq!(going.poll_next(&mut Context::from_waker(&waker)), Poll::Pending);
        drop(waker);
        let publisher = publisher(&bus, 1);
        let leaver = thread::spawn(move || drop(going));
        publisher.join().unwrap();
        leaver.join().unwrap();
        assert!(!bus.wants(EventKinds::ALL));
        assert_eq!(Arc::strong_count(&bell), 1, "a waker outlives its subscription");
        let (mut one, mut two) = (subscribe(&bus, 1), subscribe(&bus, 1));
        bus.publish(event(2));
        assert_eq!((one.try_next(), one.try_next()), (Some(event(2)), None));
        assert_eq!((two.try_next(), two.try_next()), (Some(event(2)), None));
    });
}

#[test]
fn a_subscription_that_comes_under_a_publisher_sees_the_event_or_not() {
    model_within(3, || {
        let bus = bus();
        // There is another subscriber, so that the publisher reads the slots.
        let mut other = subscribe(&bus, 1);
        let publisher = publisher(&bus, 1);
        let coming = bus.clone();
        let comer = thread::spawn(move || {
            let mut reader = subscribe(&coming, 1);
            let seen = reader.try_next();
            assert!(seen.is_none() || seen == Some(event(1)));
        });
        publisher.join().unwrap();
        comer.join().unwrap();
        assert_eq!(other.try_next(), Some(event(1)));
    });
}

#[test]
fn whoever_takes_a_slot_over_gets_only_what_it_wants_itself() {
    model_within(3, || {
        let bus = bus();
        let going = subscribe(&bus, 1);
        let publisher = publisher(&bus, 1);
        let taking = bus.clone();
        let taker = thread::spawn(move || {
            drop(going);
            Bus::subscribe(&taking, EventKinds::FIRE, 1).unwrap()
        });
        publisher.join().unwrap();
        let mut reader = taker.join().unwrap();
        assert_eq!(reader.try_next(), None, "a cancel was not asked for");
    });
}

#[test]
fn a_reader_that_waits_is_woken_whoever_rings() {
    model_within(2, || {
        let bus = bus();
        let mut reader = subscribe(&bus, 1);
        let publisher = publisher(&bus, 1);
        let ringing = bus.clone();
        let ringer = thread::spawn(move || ringing.wake_readers());
        let waiter = thread::spawn(move || assert_eq!(wait(&mut reader), Some(event(1))));
        publisher.join().unwrap();
        ringer.join().unwrap();
        waiter.join().unwrap();
    });
}

#[test]
fn what_is_read_and_what_is_told_as_lost_is_what_was_published() {
    model_within(2, || {
        let bus = bus();
        let mut reader = subscribe(&bus, 1);
        let publishers = [publisher(&bus, 1), publisher(&bus, 2)];
        let taker = thread::spawn(move || {
            let n_told = reader.try_next().as_ref().map_or(0, count);
            (reader, n_told)
        });
        publishers.into_iter().for_each(|publisher| publisher.join().unwrap());
        let (mut reader, mut n_told) = taker.join().unwrap();
        while let Some(event) = reader.try_next() {
            n_told += count(&event);
        }
        assert_eq!(n_told, 2);
    });
}

#[test]
fn a_subscription_that_comes_under_a_close_ends() {
    model_within(3, || {
        let bus = bus();
        let closing = bus.clone();
        let closer = thread::spawn(move || {
            closing.close();
            closing.wake_readers();
        });
        let waiter = thread::spawn(move || {
            let mut reader = subscribe(&bus, 1);
            assert_eq!(wait(&mut reader), None);
        });
        closer.join().unwrap();
        waiter.join().unwrap();
    });
}
