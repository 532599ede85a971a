//! The bus: who receives what, what is lost, and that no publisher waits for a taken lock.
#![cfg(all(feature = "alloc", not(loom)))]

use core::{
    cell::Cell,
    sync::atomic::{AtomicUsize, Ordering::SeqCst},
};
use std::thread;

use clockjack_observe::bus::{Bus, CAPACITY_MAX, Cursor, Item, Overflow, Pushed, Queue, Visit};
use clockjack_sync::Arc;

fn read<E>(queue: &Queue<E>) -> Vec<Item<E>> {
    core::iter::from_fn(|| queue.pop().0).collect()
}

fn queue<E>(capacity: usize, overflow: Overflow) -> Arc<Queue<E>> {
    Arc::new(Queue::new(capacity, overflow))
}

/// Publishes to all that want it. Returns whom it has reached.
fn publish(bus: &Bus<u32>, kinds: u32) -> Vec<u32> {
    let mut reached = Vec::new();
    bus.visit(kinds, &mut Cursor::default(), |subscriber| {
        reached.push(**subscriber);
        true
    });
    reached
}

#[test]
fn a_subscriber_gets_the_kinds_that_it_wants_in_the_order_of_subscription() {
    let bus = Bus::new();
    assert!(!bus.wants(u32::MAX >> 1));
    let ids = [(0b01, 1), (0b11, 2), (0b10, 3)]
        .map(|(kinds, number)| bus.subscribe(kinds, 3, Arc::new(number)).unwrap());
    assert_eq!(
        [0b01, 0b10, 0b11, 0b100].map(|kinds| publish(&bus, kinds)),
        [vec![1, 2], vec![2, 3], vec![1, 2, 3], vec![],]
    );
    let refused = bus.subscribe(1, 3, Arc::new(4)).unwrap_err();
    assert_eq!((*refused.subscriber, refused.is_closed), (4, false));
    assert!(bus.unsubscribe(ids[1]) && !bus.unsubscribe(ids[1]), "once");
    assert_eq!(publish(&bus, 0b11), [1, 3]);
    assert!(bus.replace(0b10, 2, Arc::new(5), |number| *number == 3).is_ok(), "makes room");
    assert_eq!(publish(&bus, 0b11), [1, 5]);
    assert!(bus.remove(|number| *number == 1));
    assert!(!bus.wants(0b01) && bus.wants(0b10));
    assert_eq!(bus.n_subscribers(), 1);
    bus.remove_all();
    assert!(!bus.wants(0b11));
    bus.close(|_| ());
    assert!(bus.is_closed() && bus.subscribe(1, 3, Arc::new(5)).unwrap_err().is_closed);
}

#[test]
fn a_publication_continues_where_it_was_interrupted_and_skips_who_came_later() {
    let bus = Bus::new();
    for number in 0..5 {
        bus.subscribe(1, 9, Arc::new(number)).unwrap();
    }
    let (mut cursor, mut reached) = (Cursor::default(), Vec::new());
    let mut step = |n: usize| {
        let mut left = n;
        bus.visit(1, &mut cursor, |subscriber| {
            reached.push(**subscriber);
            left -= 1;
            left > 0
        })
    };
    assert_eq!(step(2), Visit::Stopped);
    bus.remove(|number| *number == 2);
    bus.subscribe(1, 9, Arc::new(9)).unwrap();
    assert_eq!(step(9), Visit::Done);
    assert_eq!(reached, [0, 1, 3, 4]);
}

#[test]
fn a_full_queue_drops_the_newest_or_the_oldest_and_says_where() {
    let newest = queue(2, Overflow::DropNewest);
    assert_eq!([1, 2, 3].map(|n| newest.push(n)), [Pushed::Kept, Pushed::Kept, Pushed::Lost]);
    assert_eq!(newest.pop().0, Some(Item::Event(1)));
    newest.push(4);
    newest.push(5);
    let rest = [Item::Event(2), Item::Lost(1), Item::Event(4), Item::Lost(1)];
    assert_eq!(read(&newest), rest);
    let oldest = queue(2, Overflow::DropOldest);
    assert_eq!([1, 2, 3].map(|n| oldest.push(n)), [Pushed::Kept, Pushed::Kept, Pushed::Lost]);
    oldest.push(4);
    assert_eq!(read(&oldest), [Item::Lost(2), Item::Event(3), Item::Event(4)]);
    assert_eq!((newest.lost_total(), oldest.lost_total()), (2, 2));
    let least = queue(0, Overflow::DropOldest);
    least.push(1);
    least.push(2);
    assert_eq!(read(&least), [Item::Lost(1), Item::Event(2)]);
    let most = queue(usize::MAX, Overflow::DropNewest);
    (0..=CAPACITY_MAX).for_each(|n| _ = most.push(n));
    assert_eq!(most.lost_total(), 1);
}

#[test]
fn a_closed_queue_gives_the_rest_and_then_the_end() {
    let queue = queue(2, Overflow::DropNewest);
    queue.push(1);
    queue.close();
    assert_eq!(queue.push(2), Pushed::Closed);
    assert_eq!(queue.pop(), (Some(Item::Event(1)), false));
    assert_eq!(queue.pop(), (None, true));
    assert_eq!(queue.lost_total(), 0, "what comes after the close is not a loss");
}

/// The code under the lock is interrupted: whatever runs then must not wait for the lock.
#[test]
fn a_publisher_that_interrupts_a_holder_of_the_lock_counts_and_returns() {
    let bus = Bus::new();
    bus.subscribe(1, 9, queue(4, Overflow::DropNewest)).unwrap();
    let n_visits = Cell::new(0);
    bus.visit(1, &mut Cursor::default(), |queue| {
        n_visits.set(n_visits.get() + 1);
        // Here comes the interrupt.
        let visit = bus.visit(1, &mut Cursor::default(), |_| unreachable!("the lock is taken"));
        assert_eq!(visit, Visit::Missed);
        bus.mark_for_wake();
        bus.wake_readers();
        queue.push(1);
        true
    });
    assert_eq!((n_visits.get(), bus.missed()), (1, 1));
    assert!(bus.has_pending_wakes(), "the holder does it afterwards");
    bus.wake_readers();
    assert!(!bus.has_pending_wakes());
}

/// Counts its drops, and publishes meanwhile: under the lock that would be missed.
struct Curious(Arc<Bus<Curious>>, Arc<AtomicUsize>);

impl Drop for Curious {
    fn drop(&mut self) {
        self.0.visit(1, &mut Cursor::default(), |_| true);
        assert_eq!(self.0.missed(), 0, "dropped under the lock");
        self.1.fetch_add(1, SeqCst);
    }
}

#[test]
fn subscribers_are_dropped_outside_of_the_lock_and_not_by_publishers() {
    let (bus, n_dropped) = (Arc::new(Bus::new()), Arc::new(AtomicUsize::new(0)));
    let curious = || Arc::new(Curious(bus.clone(), n_dropped.clone()));
    let id = bus.subscribe(1, 1, curious()).ok().unwrap();
    drop(bus.subscribe(1, 1, curious()));
    assert_eq!(n_dropped.load(SeqCst), 1, "refused");
    let mut visited = None;
    bus.visit(1, &mut Cursor::default(), |subscriber| {
        visited = Some(subscriber.clone());
        true
    });
    assert!(bus.unsubscribe(id) && !bus.wants(1));
    assert_eq!(bus.n_subscribers(), 0);
    drop(visited);
    assert_eq!(n_dropped.load(SeqCst), 1, "retired");
    bus.sweep();
    assert_eq!(n_dropped.load(SeqCst), 2);
}

#[test]
fn what_several_publish_is_read_or_counted() {
    const EACH: usize = 20_000;
    let bus = Bus::new();
    let reader = queue(8, Overflow::DropOldest);
    bus.subscribe(1, 9, reader.clone()).unwrap();
    let mut seen = 0;
    let mut tally = || {
        seen += read(&reader).into_iter().fold(0, |n, item| match item {
            Item::Event(_) => n + 1,
            Item::Lost(lost) => n + lost,
        });
    };
    thread::scope(|scope| {
        let publish = || {
            for n in 0..EACH {
                bus.visit(1, &mut Cursor::default(), |queue| {
                    queue.push(n);
                    true
                });
            }
        };
        let publishers = [scope.spawn(publish), scope.spawn(publish)];
        // Others come and go concurrently.
        for n in 0..1_000 {
            let id = bus.subscribe(1, 9, queue(1 + n % 3, Overflow::DropNewest)).unwrap();
            tally();
            bus.unsubscribe(id);
        }
        publishers.into_iter().for_each(|publisher| publisher.join().unwrap());
    });
    tally();
    assert_eq!(seen + bus.missed(), 2 * EACH);
}
