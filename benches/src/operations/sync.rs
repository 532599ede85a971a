//! Operations of `clockjack-sync`.
#![expect(unsafe_code, reason = "the bare queue asks for the promise of the only consumer")]

use core::hint::black_box;

use clockjack_sync::{
    IndexStack, Injector,
    counter::StripedCounter,
    index_stack::{Links, NIL},
    link::{Boxed, Node},
    mpsc::IntrusiveQueue,
    pad::Padded,
    primitive::atomic::{AtomicU32, AtomicUsize, Ordering},
    ring::Owner,
};

use crate::operation::{Operation, operation};

/// Every operation of the crate.
pub(crate) fn all() -> Vec<Operation> {
    let mut all = words();
    all.extend(queues());
    all
}

/// How many indices one drain of the index stack takes.
const RETURNS: u32 = 64;

struct Slots([AtomicU32; RETURNS as usize]);

// Relaxed: the head of the stack publishes the links.
impl Links for Slots {
    fn set_next(&self, index: u32, next: u32) {
        self.0[index as usize].store(next, Ordering::Relaxed);
    }

    fn next(&self, index: u32) -> u32 {
        self.0[index as usize].load(Ordering::Relaxed)
    }
}

/// One push and one pop per iteration; the nodes are reused, so that nothing is allocated.
fn queues() -> Vec<Operation> {
    vec![
        operation("sync/ring/push_pop", 1000, || {
            let mut ring = Owner::<u32>::new();
            (0..64).for_each(|item| ring.try_push(item).expect("room for 256"));
            move |n| {
                (0..n).for_each(|item| {
                    ring.try_push(item).expect("room for 256");
                    black_box(ring.pop());
                });
            }
        }),
        operation("sync/mpsc/push_pop", 1000, || {
            let queue = IntrusiveQueue::<Boxed<u32>>::new();
            queue.push(Node::new(0_u32));
            let mut free = Some(Node::new(1_u32));
            move |n| {
                (0..n).for_each(|_| {
                    queue.push(free.take().expect("each iteration pushes one node and pops one"));
                    // SAFETY: the operation is the only consumer.
                    free = unsafe { queue.pop() }.item();
                });
            }
        }),
        operation("sync/injector/push_pop", 1000, || {
            let injector = Injector::<Boxed<u32>>::new();
            injector.push(Node::new(0)).expect("open");
            let mut free = Some(Node::new(1));
            move |n| {
                (0..n).for_each(|_| {
                    let node = free.take().expect("each iteration pushes one node and pops one");
                    injector.push(node).expect("open");
                    free = injector.pop().item();
                });
            }
        }),
        operation("sync/return_stack/push_drain", 1024, || {
            let slots = Slots(core::array::from_fn(|_| AtomicU32::new(NIL)));
            let returned = IndexStack::new();
            move |n| {
                (0..n / RETURNS).for_each(|_| {
                    (0..RETURNS).for_each(|index| {
                        black_box(returned.push(index, &slots));
                    });
                    returned.drain(&slots).for_each(|index| {
                        black_box(index);
                    });
                });
            }
        }),
    ]
}

/// Single atomic words.
fn words() -> Vec<Operation> {
    vec![
        operation("sync/counter/add", 1000, || {
            let counter = StripedCounter::new();
            move |n| (0..n).for_each(|_| counter.add(black_box(3), 1))
        }),
        operation("sync/pad/add", 1000, || {
            let mut counter = Padded(0_u64);
            move |n| (0..n).for_each(|_| *counter = black_box(*counter + 1))
        }),
        // Relaxed: only one thread counts, nothing is published.
        operation("sync/prim/fetch_add", 1000, || {
            let counter = Padded(AtomicUsize::new(0));
            move |n| {
                (0..n).for_each(|_| {
                    black_box(counter.fetch_add(1, Ordering::Relaxed));
                });
            }
        }),
        // Relaxed: only one thread counts, nothing is published.
        operation("sync/prim/compare_exchange", 1000, || {
            let word = Padded(AtomicUsize::new(0));
            // A constant, because the ordering in a closure's capture would be read in each
            // iteration.
            const ORDER: Ordering = Ordering::Relaxed;
            let mut value = 0;
            move |n| {
                (0..n).for_each(|_| {
                    value =
                        word.compare_exchange(value, value + 1, ORDER, ORDER).map_or(0, |v| v + 1);
                });
            }
        }),
    ]
}
