//! Publishers against subscribers that come, wait and go. A lost wake-up is a deadlock, which loom
//! reports. In a model, a lock is tried once: so every lock that is found taken is explored.

use core::task::Waker;
use std::{sync::Arc as StdArc, task::Wake};

use clockjack_observe::bus::{Bus, Cursor, Item, Overflow, Pushed, Queue};
use clockjack_sync::Arc;
use loom::{
    sync::atomic::{AtomicUsize, Ordering::SeqCst},
    thread::{self, Thread},
};

fn model_within(preemptions: usize, f: impl Fn() + Sync + Send + 'static) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(model.preemption_bound.unwrap_or(usize::MAX).min(preemptions));
    model.check(f);
}

type Numbers = Bus<Queue<u32>>;

/// Publishes a number, until a subscriber was reached, and wakes the readers.
fn publish(bus: &Numbers, number: u32) {
    loop {
        let mut is_reached = false;
        bus.visit(1, &mut Cursor::default(), |queue| {
            is_reached |= queue.push(number) != Pushed::Closed;
            true
        });
        if is_reached {
            bus.mark_for_wake();
        }
        bus.wake_readers();
        if is_reached {
            return;
        }
        thread::yield_now();
    }
}

fn subscribed(capacity: usize) -> (Arc<Numbers>, Arc<Queue<u32>>) {
    let bus = Arc::new(Bus::new());
    let queue = Arc::new(Queue::new(capacity, Overflow::DropNewest));
    bus.subscribe(1, 2, queue.clone()).expect("there is room");
    (bus, queue)
}

/// Wakes a thread of the model.
struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: StdArc<Self>) {
        self.0.unpark();
    }
}

/// Waits for what is next.
fn wait(queue: &Queue<u32>) -> Item<u32> {
    let waker = Waker::from(StdArc::new(Unpark(thread::current())));
    loop {
        if let (Some(item), _) = queue.pop() {
            return item;
        }
        queue.register(&waker);
        if let (Some(item), _) = queue.pop() {
            return item;
        }
        thread::park();
        thread::yield_now();
    }
}

#[test]
fn a_reader_that_waits_is_woken_whoever_wakes() {
    model_within(2, || {
        let (bus, queue) = subscribed(1);
        let waking = bus.clone();
        let waker = thread::spawn(move || waking.wake_readers());
        let publisher = thread::spawn(move || publish(&bus, 1));
        let reader = thread::spawn(move || {
            // Lost, if the reader held the lock of the queue.
            assert!(matches!(wait(&queue), Item::Event(1) | Item::Lost(1)));
        });
        publisher.join().unwrap();
        reader.join().unwrap();
        waker.join().unwrap();
    });
}

/// Counts how often it is woken.
struct Count(AtomicUsize);

impl Wake for Count {
    fn wake(self: StdArc<Self>) {
        self.0.fetch_add(1, SeqCst);
    }
}

#[test]
fn a_wake_up_that_meets_a_taken_lock_is_done_by_the_holder() {
    model_within(3, || {
        let (bus, queue) = subscribed(1);
        let count = StdArc::new(Count(AtomicUsize::new(0)));
        queue.register(&Waker::from(count.clone()));
        let holding = bus.clone();
        let holder = thread::spawn(move || {
            holding.remove(|_| false);
            holding.wake_readers();
        });
        queue.push(1);
        bus.mark_for_wake();
        bus.wake_readers();
        holder.join().unwrap();
        assert_eq!(count.0.load(SeqCst), 1);
    });
}

#[test]
fn what_is_read_and_what_is_lost_is_what_was_published() {
    model_within(2, || {
        let (bus, queue) = subscribed(1);
        let publishers = [1, 2].map(|number| {
            let bus = bus.clone();
            thread::spawn(move || {
                bus.visit(1, &mut Cursor::default(), |queue| {
                    queue.push(number);
                    true
                });
            })
        });
        let count = |item: Item<u32>| match item {
            Item::Event(_) => 1,
            Item::Lost(n) => n,
        };
        let mut n_read = queue.pop().0.map_or(0, count);
        publishers.into_iter().for_each(|publisher| publisher.join().unwrap());
        while let (Some(item), _) = queue.pop() {
            n_read += count(item);
        }
        assert_eq!(n_read + bus.missed(), 2);
    });
}

loom::thread_local! {
    static IS_PUBLISHER: core::cell::Cell<bool> = core::cell::Cell::new(false);
}

/// A subscriber that must not be freed by a publisher.
struct Subscriber(Arc<AtomicUsize>);

impl Drop for Subscriber {
    fn drop(&mut self) {
        IS_PUBLISHER.with(|is| assert!(!is.get(), "freed by a publisher"));
        self.0.fetch_add(1, SeqCst);
    }
}

#[test]
fn a_publisher_frees_no_subscriber() {
    model_within(3, || {
        let bus = Arc::new(Bus::new());
        let n_freed = Arc::new(AtomicUsize::new(0));
        let id = bus.subscribe(1, 1, Arc::new(Subscriber(n_freed.clone()))).ok().unwrap();
        let publishing = bus.clone();
        let publisher = thread::spawn(move || {
            IS_PUBLISHER.with(|is| is.set(true));
            let mut visited = None;
            publishing.visit(1, &mut Cursor::default(), |subscriber| {
                visited = Some(subscriber.clone());
                true
            });
            drop(visited);
            // The bus goes with the other thread.
            publishing
        });
        assert!(bus.unsubscribe(id));
        drop(publisher.join().unwrap());
        bus.sweep();
        assert_eq!(n_freed.load(SeqCst), 1);
    });
}

#[test]
fn a_subscriber_that_comes_under_a_close_is_closed_or_refused() {
    model_within(3, || {
        let bus = Arc::new(Numbers::new());
        let closing = bus.clone();
        let closer = thread::spawn(move || closing.close(Queue::close));
        let queue = Arc::new(Queue::new(1, Overflow::DropOldest));
        let is_refused = bus.subscribe(1, 1, queue.clone()).is_err();
        closer.join().unwrap();
        assert!(is_refused || queue.pop() == (None, true));
        assert!(bus.subscribe(1, 2, queue).is_err_and(|refused| refused.is_closed));
    });
}
