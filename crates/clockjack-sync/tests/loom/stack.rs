//! Producers against the consumer of a closable stack, with contents that only the head publishes.
#![expect(unsafe_code, reason = "boxed nodes, as a user of the stack writes them")]

use alloc::{boxed::Box, vec::Vec};
use core::ptr::NonNull;

use clockjack_sync::{
    link::{Link, Linked},
    stack::{ClosableStack, Drained},
};
use loom::{sync::Arc, thread};

use crate::tracked::{Live, Tracked};

#[repr(C)]
struct Node {
    link: Link,
    item: Tracked,
}

impl Node {
    fn new(live: &Live, id: u32) -> Box<Self> {
        Box::new(Self { link: Link::new(), item: live.item(id) })
    }
}

// SAFETY: a box owns its node alone and keeps it in place; the link is the first field.
unsafe impl Linked for Node {
    type Handle = Box<Self>;

    fn into_link(node: Box<Self>) -> NonNull<Link> {
        NonNull::from(Box::leak(node)).cast()
    }

    unsafe fn from_link(link: NonNull<Link>) -> Box<Self> {
        // SAFETY: the link came from `into_link`, once.
        unsafe { Box::from_raw(link.cast().as_ptr()) }
    }
}

// SAFETY: loom itself reports two accesses to an item that are not ordered.
unsafe impl Send for Node {}

type Stack = ClosableStack<Node>;

fn ids(nodes: Drained<Node>) -> Vec<u32> {
    nodes.map(|node| node.item.id()).collect()
}

/// Pushes the ids in this order; the results say whether the stack was empty, or refused the node.
fn push(stack: &Stack, live: &Live, pushed: &[u32]) -> Vec<Result<bool, u32>> {
    let push = |id: &u32| stack.push(Node::new(live, *id)).map_err(|node| node.item.id());
    pushed.iter().map(push).collect()
}

#[test]
fn a_stack_that_is_drained_while_two_push_keeps_every_node_in_order() {
    loom::model(|| {
        let (stack, live) = (Arc::new(Stack::new()), Live::default());
        let producers = [&[1, 2][..], &[11]].map(|pushed| {
            let (stack, live) = (Arc::clone(&stack), live.clone());
            thread::spawn(move || push(&stack, &live, pushed))
        });
        let consumer = {
            let stack = Arc::clone(&stack);
            thread::spawn(move || ids(stack.drain()))
        };
        let pushed: Vec<_> = producers.into_iter().flat_map(|one| one.join().unwrap()).collect();
        let early = consumer.join().unwrap();
        let late = ids(stack.drain());
        let n_found_empty = pushed.iter().filter(|was_empty| **was_empty == Ok(true)).count();
        let n_drains = usize::from(!early.is_empty()) + usize::from(!late.is_empty());
        assert_eq!(n_found_empty, n_drains, "one push per list finds the stack empty");
        let mut all = early;
        all.extend(late);
        let of_first: Vec<u32> = all.iter().copied().filter(|id| *id < 10).collect();
        assert_eq!(of_first, [1, 2], "the nodes of one producer are in its order");
        all.sort_unstable();
        assert_eq!(all, [1, 2, 11]);
        assert_eq!(live.count(), 0);
    });
}

/// The head may be a, then null, then a again: a producer that has loaded the first a must still be
/// correct.
#[test]
fn a_drained_node_may_be_pushed_again_while_another_pushes() {
    loom::model(|| {
        let (stack, live) = (Arc::new(Stack::new()), Live::default());
        push(&stack, &live, &[1]);
        let producer = {
            let (stack, live) = (Arc::clone(&stack), live.clone());
            thread::spawn(move || push(&stack, &live, &[2]))
        };
        let consumer = {
            let stack = Arc::clone(&stack);
            thread::spawn(move || {
                let (again, taken): (Vec<_>, Vec<_>) =
                    stack.drain().partition(|node| node.item.id() == 1);
                for node in again {
                    assert!(stack.push(node).is_ok());
                }
                taken.iter().map(|node| node.item.id()).collect::<Vec<_>>()
            })
        };
        producer.join().unwrap();
        let mut all = consumer.join().unwrap();
        all.extend(ids(stack.drain()));
        all.sort_unstable();
        assert_eq!(all, [1, 2]);
        assert_eq!(live.count(), 0);
    });
}

#[test]
fn what_the_stack_accepts_before_the_close_is_taken_and_the_rest_is_returned() {
    loom::model(|| {
        let (stack, live) = (Arc::new(Stack::new()), Live::default());
        let producers = [&[1, 2][..], &[11]].map(|pushed| {
            let (stack, live) = (Arc::clone(&stack), live.clone());
            thread::spawn(move || push(&stack, &live, pushed))
        });
        let consumer = {
            let stack = Arc::clone(&stack);
            thread::spawn(move || ids(stack.close()))
        };
        let pushed: Vec<_> = producers.into_iter().flat_map(|one| one.join().unwrap()).collect();
        let mut all = consumer.join().unwrap();
        let n_accepted = pushed.iter().filter(|pushed| pushed.is_ok()).count();
        assert_eq!(all.len(), n_accepted, "accepted nodes are taken by the close");
        all.extend(pushed.into_iter().filter_map(Result::err));
        all.sort_unstable();
        assert_eq!(all, [1, 2, 11]);
        assert!(stack.is_closed());
        assert!(stack.close().is_empty(), "a closed stack stays empty");
        assert_eq!(live.count(), 0);
    });
}

/// What the consumer did before the close is visible to a producer that is refused.
#[test]
fn a_refused_producer_sees_what_happened_before_the_close() {
    use clockjack_sync::primitive::atomic::{AtomicBool, Ordering::Relaxed};
    loom::model(|| {
        let (stack, live) = (Arc::new(Stack::new()), Live::default());
        let is_done = Arc::new(AtomicBool::new(false));
        let consumer = {
            let (stack, is_done) = (Arc::clone(&stack), Arc::clone(&is_done));
            thread::spawn(move || {
                // Relaxed: the close publishes it.
                is_done.store(true, Relaxed);
                ids(stack.close()).len()
            })
        };
        let producer = {
            let (stack, live) = (Arc::clone(&stack), live.clone());
            thread::spawn(move || {
                let is_refused = push(&stack, &live, &[1]) == [Err(1)];
                // Relaxed: as above.
                assert!(!is_refused || is_done.load(Relaxed), "the close is not acquired");
                usize::from(is_refused)
            })
        };
        assert_eq!(consumer.join().unwrap() + producer.join().unwrap(), 1);
    });
}

#[test]
fn a_dropped_stack_drops_its_nodes() {
    loom::model(|| {
        let (stack, live) = (Stack::new(), Live::default());
        push(&stack, &live, &[1, 2, 3]);
        let mut drained = stack.drain();
        assert_eq!(drained.next().map(|node| node.item.id()), Some(1));
        push(&stack, &live, &[4]);
        assert_eq!(live.count(), 3);
        drop(drained);
        assert_eq!(live.count(), 1);
        drop(stack);
        assert_eq!(live.count(), 0);
    });
}
