//! Producers against the consumer of an intrusive queue.
#![expect(unsafe_code, reason = "each model has one consumer at a time")]

use alloc::sync::Arc;

use clockjack_sync::{
    link::{Boxed, Node},
    mpsc::{IntrusiveQueue, Pop},
};
use loom::thread::{self, JoinHandle};

use crate::{
    model_within,
    tracked::{Live, Tracked},
};

type Shared = Arc<IntrusiveQueue<Boxed<Tracked>>>;

/// A producer that pushes some items.
fn push<const N: usize>(queue: &Shared, live: &Live, ids: [u32; N]) -> JoinHandle<()> {
    let (queue, items) = (Arc::clone(queue), ids.map(|id| live.item(id)));
    thread::spawn(move || items.into_iter().for_each(|item| queue.push(Node::new(item))))
}

/// A consumer that takes what is there within `n` tries, without waiting.
fn taker(queue: &Shared, tries: usize) -> JoinHandle<Vec<u32>> {
    let queue = Arc::clone(queue);
    thread::spawn(move || {
        let mut seen = Vec::new();
        for _ in 0..tries {
            // SAFETY: the model's only consumer at this time.
            if let Pop::Item(node) = unsafe { queue.pop() } {
                seen.push(node.into_value().id());
            }
        }
        seen
    })
}

/// Takes the rest, when all threads are done and no operation is in progress.
fn take_rest(queue: &Shared, seen: &mut Vec<u32>) {
    // SAFETY: all other threads are done.
    while let Pop::Item(node) = unsafe { queue.pop() } {
        seen.push(node.into_value().id());
    }
}

#[test]
fn two_producers_and_a_consumer_keep_every_item_and_each_producers_order() {
    model_within(2, || {
        let live = Live::default();
        let queue = Shared::default();
        let (first, second) = (push(&queue, &live, [10, 11]), push(&queue, &live, [20]));
        let taker = taker(&queue, 2);
        first.join().unwrap();
        second.join().unwrap();
        let mut seen = taker.join().unwrap();
        take_rest(&queue, &mut seen);

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
        let queue = Shared::default();
        queue.push(Node::new(live.item(1)));
        let (first, second) = (push(&queue, &live, [2]), push(&queue, &live, [3]));
        let taker = taker(&queue, 3);
        first.join().unwrap();
        second.join().unwrap();
        let mut seen = taker.join().unwrap();
        take_rest(&queue, &mut seen);
        assert_eq!(seen[0], 1);
        seen.sort_unstable();
        assert_eq!(seen, [1, 2, 3]);
    });
}

#[test]
fn the_queue_is_emptied_and_filled_again_by_one_producer() {
    loom::model(|| {
        let live = Live::default();
        let queue = Shared::default();
        let (filler, taker) = (push(&queue, &live, [1, 2, 3]), taker(&queue, 3));
        filler.join().unwrap();
        let mut seen = taker.join().unwrap();
        take_rest(&queue, &mut seen);
        assert_eq!(seen, [1, 2, 3]);
    });
}

#[test]
fn dropping_the_queue_drops_what_is_inside_once() {
    loom::model(|| {
        let live = Live::default();
        let queue = Shared::default();
        let (first, second) = (push(&queue, &live, [1]), push(&queue, &live, [2]));
        let taker = taker(&queue, 1);
        first.join().unwrap();
        second.join().unwrap();
        taker.join().unwrap();
        drop(queue);
        assert_eq!(live.count(), 0);
    });
}
