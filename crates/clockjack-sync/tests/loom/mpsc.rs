//! Producers against the consumer of an intrusive queue.

use clockjack_sync::mpsc::{self, BoxConsumer, Pop};
use loom::thread;

use crate::{
    model_within,
    tracked::{Live, Tracked},
};

/// Takes what is there within `n` tries, without waiting.
fn take(consumer: &mut BoxConsumer<Tracked>, tries: usize, into: &mut Vec<u32>) {
    for _ in 0..tries {
        if let Pop::Item(item) = consumer.pop_value() {
            into.push(item.id());
        }
    }
}

/// Takes everything until the queue is empty; retries while the queue is in the middle of an
/// operation.
fn take_all(consumer: &mut BoxConsumer<Tracked>, into: &mut Vec<u32>) {
    loop {
        match consumer.pop_value() {
            Pop::Item(item) => into.push(item.id()),
            Pop::Empty => break,
            Pop::Retry => thread::yield_now(),
        }
    }
}

#[test]
fn two_producers_and_a_consumer_keep_every_item_and_each_producers_order() {
    model_within(2, || {
        let live = Live::default();
        let (producer, mut consumer) = mpsc::unbounded();
        let (other, items) = (producer.clone(), [live.item(10), live.item(11)]);
        let first = thread::spawn(move || {
            for item in items {
                assert!(other.push_value(item).is_ok());
            }
        });
        let item = live.item(20);
        let second = thread::spawn(move || assert!(producer.push_value(item).is_ok()));
        let taker = thread::spawn(move || {
            let mut seen = Vec::new();
            take(&mut consumer, 2, &mut seen);
            (consumer, seen)
        });
        first.join().unwrap();
        second.join().unwrap();
        let (mut consumer, mut seen) = taker.join().unwrap();
        take_all(&mut consumer, &mut seen);

        let of_first: Vec<_> = seen.iter().copied().filter(|id| *id < 20).collect();
        assert_eq!(of_first, [10, 11]);
        assert_eq!(seen.len(), 3);
        assert_eq!(live.count(), 0);
    });
}

/// The place where the classic queue re-inserts its stub: the last node is popped while others
/// push.
#[test]
fn emptying_the_queue_while_others_push_loses_nothing() {
    model_within(2, || {
        let live = Live::default();
        let (producer, mut consumer) = mpsc::unbounded();
        assert!(producer.push_value(live.item(1)).is_ok());
        let (other, item) = (producer.clone(), live.item(2));
        let first = thread::spawn(move || assert!(other.push_value(item).is_ok()));
        let item = live.item(3);
        let second = thread::spawn(move || assert!(producer.push_value(item).is_ok()));
        let taker = thread::spawn(move || {
            let mut seen = Vec::new();
            take(&mut consumer, 3, &mut seen);
            (consumer, seen)
        });
        first.join().unwrap();
        second.join().unwrap();
        let (mut consumer, mut seen) = taker.join().unwrap();
        take_all(&mut consumer, &mut seen);
        assert_eq!(seen[0], 1);
        seen.sort_unstable();
        assert_eq!(seen, [1, 2, 3]);
    });
}

#[test]
fn the_queue_is_emptied_and_filled_again_by_one_producer() {
    loom::model(|| {
        let live = Live::default();
        let (producer, mut consumer) = mpsc::unbounded();
        let items = [live.item(1), live.item(2), live.item(3)];
        let filler = thread::spawn(move || {
            for item in items {
                assert!(producer.push_value(item).is_ok());
            }
        });
        let taker = thread::spawn(move || {
            let mut seen = Vec::new();
            take(&mut consumer, 3, &mut seen);
            (consumer, seen)
        });
        filler.join().unwrap();
        let (mut consumer, mut seen) = taker.join().unwrap();
        take_all(&mut consumer, &mut seen);
        assert_eq!(seen, [1, 2, 3]);
    });
}

#[test]
fn what_is_accepted_before_close_is_seen_and_what_is_not_comes_back() {
    for bound in [None, Some(2)] {
        model_within(2, move || {
            let live = Live::default();
            let (producer, mut consumer) =
                bound.map_or_else(mpsc::unbounded, mpsc::bounded::<Tracked>);
            let push = |id| {
                let (producer, item) = (producer.clone(), live.item(id));
                thread::spawn(move || match producer.push_value(item) {
                    Ok(()) => Some(id),
                    Err(refused) => {
                        assert!(refused.is_closed());
                        assert_eq!(refused.into_inner().id(), id);
                        None
                    }
                })
            };
            let (first, second) = (push(1), push(2));
            let taker = thread::spawn(move || {
                assert!(consumer.close());
                let mut seen = Vec::new();
                take_all(&mut consumer, &mut seen);
                // The first Empty after the close is final.
                assert!(matches!(consumer.pop_value(), Pop::Empty | Pop::Retry));
                seen
            });
            let mut accepted: Vec<_> =
                [first, second].into_iter().filter_map(|p| p.join().unwrap()).collect();
            let mut seen = taker.join().unwrap();
            seen.sort_unstable();
            accepted.sort_unstable();
            assert_eq!(seen, accepted);
        });
    }
}

#[test]
fn a_bounded_queue_never_admits_more_than_its_bound() {
    loom::model(|| {
        let live = Live::default();
        let (producer, mut consumer) = mpsc::bounded(1);
        let push = |id| {
            let (producer, item) = (producer.clone(), live.item(id));
            thread::spawn(move || producer.push_value(item).is_ok())
        };
        let (first, second) = (push(1), push(2));
        let accepted = [first, second].map(|p| p.join().unwrap());
        let accepted = accepted.into_iter().filter(|ok| *ok).count();
        assert_eq!(accepted, 1);
        let mut seen = Vec::new();
        take_all(&mut consumer, &mut seen);
        assert_eq!(seen.len(), 1);
    });
}

#[test]
fn room_is_given_back_by_a_pop_and_full_is_never_said_with_room_left() {
    loom::model(|| {
        let live = Live::default();
        let (producer, mut consumer) = mpsc::bounded(2);
        assert!(producer.push_value(live.item(1)).is_ok());
        // One inside, one pushed, one popped meanwhile: there is room at every moment.
        let item = live.item(2);
        let pusher = thread::spawn(move || assert!(producer.push_value(item).is_ok()));
        let taker = thread::spawn(move || {
            let mut seen = Vec::new();
            take(&mut consumer, 2, &mut seen);
            (consumer, seen)
        });
        pusher.join().unwrap();
        let (mut consumer, mut seen) = taker.join().unwrap();
        take_all(&mut consumer, &mut seen);
        assert_eq!(seen, [1, 2]);
    });
}

#[test]
fn dropping_the_handles_drops_what_is_inside_once() {
    loom::model(|| {
        let live = Live::default();
        let (producer, mut consumer) = mpsc::unbounded();
        let (other, item) = (producer.clone(), live.item(1));
        let first = thread::spawn(move || drop(other.push_value(item)));
        let item = live.item(2);
        let second = thread::spawn(move || drop(producer.push_value(item)));
        let taker = thread::spawn(move || drop(consumer.pop_value()));
        first.join().unwrap();
        second.join().unwrap();
        taker.join().unwrap();
        assert_eq!(live.count(), 0);
    });
}
