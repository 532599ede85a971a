//! One thread, random operations: each part against a plain collection.
#![cfg(not(loom))]
#![cfg(feature = "alloc")]

extern crate alloc;

use alloc::{collections::VecDeque, rc::Rc};
use core::{
    cell::Cell,
    panic::AssertUnwindSafe,
    sync::atomic::{AtomicU32, Ordering::Relaxed},
};
use std::panic::catch_unwind;

use clockjack_sync::{
    IndexStack, Injector,
    counter::StripedCounter,
    index_stack::{Links, NIL},
    link::{Batch, Boxed, Node},
    mpsc::IntrusiveQueue,
    ring::{Owner, Steal},
};
use proptest::prelude::*;

/// A step on an injector; the number says how many.
#[derive(Clone, Copy, Debug)]
enum Step {
    Push,
    PushBatch(usize),
    Pop,
    PopBatch(usize),
    Close,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => Just(Step::Push),
        2 => (0_usize..5).prop_map(Step::PushBatch),
        5 => Just(Step::Pop),
        2 => (0_usize..5).prop_map(Step::PopBatch),
        1 => Just(Step::Close),
    ]
}

fn batch(items: Vec<u32>) -> Batch<Boxed<u32>> {
    items.into_iter().map(Node::new).collect()
}

/// A step on two rings and their overflow.
#[derive(Clone, Copy, Debug)]
enum RingStep {
    Push,
    Pop,
    Steal,
    StealOne,
    PopStolen,
}

fn ring_step() -> impl Strategy<Value = RingStep> {
    prop_oneof![
        6 => Just(RingStep::Push),
        3 => Just(RingStep::Pop),
        2 => Just(RingStep::Steal),
        1 => Just(RingStep::StealOne),
        2 => Just(RingStep::PopStolen),
    ]
}

/// A ring of eight and a thief's ring of eight against two deques.
fn rings_agree(start: u32, steps: &[RingStep]) {
    const N: usize = 8;
    let mut ring = Owner::<u32, N>::starting_at(start);
    let mut own = Owner::<u32, N>::starting_at(start.wrapping_add(3));
    let thief = ring.thief();
    let (mut model, mut model_own) = (VecDeque::new(), VecDeque::new());
    let mut item = 0;
    for step in steps {
        match step {
            RingStep::Push => {
                let mut spilled = Vec::new();
                ring.push(item, |items| spilled.extend(items));
                let mut expected = Vec::new();
                if model.len() == N {
                    expected.extend(model.drain(..N / 2));
                    expected.push(item);
                } else {
                    model.push_back(item);
                }
                assert_eq!(spilled, expected);
                item += 1;
            }
            RingStep::Pop => assert_eq!(ring.pop(), model.pop_front()),
            RingStep::Steal => {
                let n = model.len().div_ceil(2).min(N - model_own.len() + 1);
                let expected = model.pop_front().map_or(Steal::Empty, |item| {
                    model_own.extend(model.drain(..n - 1));
                    Steal::Item { item, moved: n - 1 }
                });
                assert_eq!(thief.steal_into(&mut own), expected);
            }
            RingStep::StealOne => assert_eq!(thief.steal_one().item(), model.pop_front()),
            RingStep::PopStolen => assert_eq!(own.pop(), model_own.pop_front()),
        }
        assert_eq!((ring.len(), own.len()), (model.len(), model_own.len()));
        assert_eq!(ring.room(), N - model.len());
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_ring_and_its_thief_agree_with_deques(
        start in prop_oneof![Just(0), Just(u32::MAX - 5), Just(u32::MAX / 2 - 5)],
        steps in prop::collection::vec(ring_step(), 0..120),
    ) {
        rings_agree(start, &steps);
    }

    #[test]
    fn an_injector_agrees_with_a_deque(steps in prop::collection::vec(step(), 0..80)) {
        let injector = Injector::<Boxed<u32>>::new();
        let mut ring = Owner::<_, 4>::new();
        let mut model = VecDeque::new();
        let mut is_closed = false;
        for (item, step) in (0_u32..).zip(&steps) {
            match step {
                Step::Push => match injector.push(Node::new(item)) {
                    Ok(()) => model.push_back(item),
                    Err(refused) => {
                        prop_assert!(is_closed && refused.is_closed());
                        prop_assert_eq!(refused.into_inner().into_value(), item);
                    }
                },
                Step::PushBatch(n) => match injector.push_batch(batch([item].repeat(*n))) {
                    Ok(()) => model.extend([item].repeat(*n)),
                    Err(refused) => {
                        prop_assert!(is_closed && refused.is_closed());
                        prop_assert_eq!(refused.into_inner().len(), *n);
                    }
                },
                Step::Pop => {
                    let popped = injector.pop().item().map(|node| node.into_value());
                    prop_assert_eq!(popped, model.pop_front());
                }
                Step::PopBatch(max) => {
                    let taken = injector.take_into(*max, &mut ring).item();
                    let first = model.pop_front();
                    let moved = model.len().min(*max).min(4);
                    prop_assert_eq!(taken.as_ref().map_or(0, |t| t.1), moved);
                    prop_assert_eq!(taken.map(|t| t.0.into_value()), first);
                    for expected in model.drain(..moved) {
                        prop_assert_eq!(ring.pop().unwrap().into_value(), expected);
                    }
                }
                Step::Close => {
                    prop_assert_eq!(injector.close(), !is_closed);
                    is_closed = true;
                }
            }
            prop_assert_eq!((injector.len(), injector.is_closed()), (model.len(), is_closed));
        }
    }

    #[test]
    fn an_index_stack_agrees_with_a_vector(pushes in prop::collection::vec(0_usize..9, 0..40)) {
        let links = Slots((0..64).map(|_| AtomicU32::new(NIL)).collect());
        let stack = IndexStack::new();
        for n in pushes {
            let n = u32::try_from(n).unwrap();
            for index in 0..n {
                prop_assert_eq!(stack.push(index, &links), index as usize + 1);
            }
            prop_assert_eq!(stack.is_empty(), n == 0);
            prop_assert!(stack.drain(&links).eq((0..n).rev()));
            prop_assert_eq!((stack.depth(), stack.is_empty()), (0, true));
        }
    }

    #[test]
    fn a_counter_agrees_with_a_number(
        changes in prop::collection::vec((any::<usize>(), 0_usize..99), 0..60),
    ) {
        let counter = StripedCounter::new();
        let mut total = 0;
        for (stripe, n) in changes {
            if n % 3 == 0 && n <= total {
                counter.sub(stripe, n);
                total -= n;
            } else {
                counter.add(stripe, n);
                total += n;
            }
            prop_assert_eq!(counter.sum(), total);
        }
    }
}

struct Slots(Vec<AtomicU32>);

impl Links for Slots {
    fn set_next(&self, index: u32, next: u32) {
        self.0[index as usize].store(next, Relaxed);
    }

    fn next(&self, index: u32) -> u32 {
        self.0[index as usize].load(Relaxed)
    }
}

#[test]
fn a_counter_below_zero_is_given_as_zero() {
    let counter = StripedCounter::new();
    counter.sub(5, 1);
    assert_eq!(counter.sum(), 0);
    counter.add(6, 3);
    assert_eq!(counter.sum(), 2);
}

#[test]
#[should_panic(expected = "NIL names no element")]
fn an_index_stack_refuses_the_index_that_names_none() {
    IndexStack::new().push(NIL, &Slots(Vec::new()));
}

#[test]
fn a_ring_does_not_steal_from_itself() {
    let mut ring = Owner::<u32, 4>::new();
    ring.try_push(1).unwrap();
    assert_eq!(ring.thief().steal_into(&mut ring), Steal::Empty);
    assert_eq!(ring.pop(), Some(1));
}

/// Counts drops, and panics in the drop of one.
struct Bomb {
    drops: Rc<Cell<u32>>,
    armed: bool,
}

impl Drop for Bomb {
    fn drop(&mut self) {
        self.drops.set(self.drops.get() + 1);
        assert!(!self.armed, "a drop that panics");
    }
}

/// Puts four items into a collection, of which the second panics when dropped, and drops it.
fn drops_all<C>(collect: impl FnOnce(Vec<Bomb>) -> C) {
    let drops = Rc::new(Cell::new(0));
    let bombs = (0..4).map(|i| Bomb { drops: Rc::clone(&drops), armed: i == 1 }).collect();
    let collection = collect(bombs);
    assert_eq!(drops.get(), 0);
    assert!(catch_unwind(AssertUnwindSafe(|| drop(collection))).is_err());
    assert_eq!(drops.get(), 4);
}

#[test]
fn a_drop_that_panics_does_not_keep_the_others_from_being_dropped() {
    drops_all(|bombs| bombs.into_iter().map(Node::new).collect::<Batch<Boxed<_>>>());
    drops_all(|bombs| {
        let queue = IntrusiveQueue::<Boxed<_>>::new();
        bombs.into_iter().for_each(|bomb| queue.push(Node::new(bomb)));
        queue
    });
    drops_all(|bombs| {
        let mut ring = Owner::<_, 8>::new();
        bombs.into_iter().for_each(|bomb| assert!(ring.try_push(bomb).is_ok()));
        ring
    });
}

#[test]
fn an_overflow_hook_that_panics_or_takes_nothing_drops_each_item_once() {
    let drops = Rc::new(Cell::new(0));
    let bomb = || Bomb { drops: Rc::clone(&drops), armed: false };
    let mut ring = Owner::<_, 4>::new();
    for _ in 0..4 {
        ring.push(bomb(), |_| unreachable!());
    }
    let push = AssertUnwindSafe(|| ring.push(bomb(), |_items| panic!("in the hook")));
    assert!(catch_unwind(push).is_err());
    assert_eq!((drops.get(), ring.len()), (3, 2));
    ring.push(bomb(), |_| unreachable!());
    ring.push(bomb(), |_| unreachable!());
    ring.push(bomb(), |mut items| drop(items.next()));
    assert_eq!((drops.get(), ring.len()), (6, 2));
    drop(ring);
    assert_eq!(drops.get(), 8);
}

#[test]
fn a_refusal_says_why_and_keeps_the_value() {
    let injector = Injector::<Boxed<u32>>::new();
    assert!(injector.close());
    let refused = injector.push(Node::new(2)).unwrap_err();
    assert!(refused.is_closed());
    assert_eq!(refused.to_string(), "push refused: the queue is closed");
    assert_eq!(refused.discard().into_inner(), ());
}
