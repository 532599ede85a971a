//! Pushers against takers.

use clockjack_sync::{
    injector::Injector,
    link::{Batch, Boxed, Node},
    mpsc::Pop,
    ring::Owner,
};
use loom::{sync::Arc, thread};

use crate::{
    model_within,
    tracked::{Live, Tracked},
};

type Shared = Arc<Injector<Boxed<Tracked>>>;

/// Takes an item and a batch of one, as often as `tries` says, without waiting.
fn take_some(injector: &Shared, tries: usize) -> Vec<u32> {
    let mut ring = Owner::<_, 4>::new();
    let mut seen = Vec::new();
    for _ in 0..tries {
        if let Pop::Item((first, moved)) = injector.take_into(1, &mut ring) {
            seen.push(first.into_value().id());
            assert_eq!(ring.len(), moved);
        }
        seen.extend(core::iter::from_fn(|| ring.pop()).map(|node| node.into_value().id()));
    }
    seen
}

/// Takes everything; retries while the injector is in the middle of an operation.
fn take_all(injector: &Shared, into: &mut Vec<u32>) {
    loop {
        match injector.pop() {
            Pop::Item(node) => into.push(node.into_value().id()),
            Pop::Empty => break,
            Pop::Retry => thread::yield_now(),
        }
    }
}

#[test]
fn a_pusher_and_two_takers_conserve_items() {
    model_within(2, || {
        let live = Live::default();
        let injector = Shared::default();
        assert!(injector.push(Node::new(live.item(0))).is_ok());
        assert!(injector.push(Node::new(live.item(1))).is_ok());
        let (other, item) = (Arc::clone(&injector), live.item(2));
        let pusher = thread::spawn(move || assert!(other.push(Node::new(item)).is_ok()));
        let take = |tries| {
            let other = Arc::clone(&injector);
            thread::spawn(move || take_some(&other, tries))
        };
        let (one, two) = (take(1), take(1));
        pusher.join().unwrap();
        let mut seen = one.join().unwrap();
        seen.append(&mut two.join().unwrap());
        take_all(&injector, &mut seen);
        seen.sort_unstable();
        assert_eq!(seen, [0, 1, 2]);
        assert_eq!(live.count(), 0);
    });
}

#[test]
fn a_batch_stays_together_and_in_order() {
    model_within(2, || {
        let live = Live::default();
        let injector = Shared::default();
        let batch: Batch<_> = [1, 2].map(|id| Node::new(live.item(id))).into_iter().collect();
        let other = Arc::clone(&injector);
        let batcher = thread::spawn(move || assert!(other.push_batch(batch).is_ok()));
        let (other, item) = (Arc::clone(&injector), live.item(3));
        let pusher = thread::spawn(move || assert!(other.push(Node::new(item)).is_ok()));
        let other = Arc::clone(&injector);
        let taker = thread::spawn(move || take_some(&other, 2));
        batcher.join().unwrap();
        pusher.join().unwrap();
        let mut seen = taker.join().unwrap();
        take_all(&injector, &mut seen);
        assert!(seen == [1, 2, 3] || seen == [3, 1, 2], "{seen:?}");
    });
}

#[test]
fn what_the_injector_admits_before_close_is_taken_and_the_rest_comes_back() {
    model_within(2, || {
        let live = Live::default();
        let injector = Shared::default();
        let push = |id| {
            let (other, item) = (Arc::clone(&injector), live.item(id));
            thread::spawn(move || match other.push(Node::new(item)) {
                Ok(()) => Some(id),
                Err(refused) => {
                    assert_eq!(refused.into_inner().into_value().id(), id);
                    None
                }
            })
        };
        let (one, two) = (push(1), push(2));
        let other = Arc::clone(&injector);
        let closer = thread::spawn(move || {
            assert!(other.close());
            let mut seen = Vec::new();
            take_all(&other, &mut seen);
            seen
        });
        let mut admitted: Vec<_> =
            [one, two].into_iter().filter_map(|p| p.join().unwrap()).collect();
        let mut seen = closer.join().unwrap();
        admitted.sort_unstable();
        seen.sort_unstable();
        assert_eq!(seen, admitted);
    });
}

/// The steps that the documentation requires of a parking worker, and of a pusher that checks for
/// one.
#[test]
fn a_worker_that_parks_by_the_rules_does_not_sleep_on_an_item() {
    use clockjack_sync::primitive::atomic::{AtomicBool, Ordering::Relaxed, fence};
    use loom::sync::atomic::Ordering::SeqCst;

    model_within(3, || {
        let live = Live::default();
        let injector = Shared::default();
        let sleeping = Arc::new(AtomicBool::new(false));
        let (other, flag, item) = (Arc::clone(&injector), Arc::clone(&sleeping), live.item(1));
        let pusher = thread::spawn(move || {
            assert!(other.push(Node::new(item)).is_ok());
            fence(SeqCst);
            flag.load(Relaxed)
        });
        let (other, flag) = (Arc::clone(&injector), Arc::clone(&sleeping));
        let worker = thread::spawn(move || {
            flag.store(true, Relaxed);
            fence(SeqCst);
            !other.is_empty()
        });
        let pusher_wakes = pusher.join().unwrap();
        let worker_stays = worker.join().unwrap();
        assert!(pusher_wakes || worker_stays, "the worker sleeps and is not woken");
    });
}
