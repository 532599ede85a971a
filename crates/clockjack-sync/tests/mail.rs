//! Mailboxes on one thread against a deque, on real threads with a conservation check, and their
//! memory use.
#![cfg(not(any(loom, shuttle)))]
#![cfg(feature = "alloc")]
#![expect(unsafe_code, reason = "the tests are the only consumer")]

extern crate alloc;

#[path = "mail/pair.rs"]
mod pair;

use core::{
    cell::Cell,
    panic::AssertUnwindSafe,
    sync::atomic::{AtomicUsize, Ordering::Relaxed},
};
use std::{
    panic::{catch_unwind, resume_unwind},
    thread,
};

use clockjack_sync::mail::{
    CAPACITY_MAX, Mailbox, NextPosition, Pop, Popped, RESERVE_MAX, WaiterReservation,
};
use clockjack_testing::{Patience, allocation::Counting};
use pair::{Consumer, Pair, Step};
use proptest::prelude::*;

/// Divides the amount of work under an interpreter (Miri).
const SHARE: usize = if cfg!(miri) { 500 } else { 1 };
/// How often a box is filled and drained: enough for positions to pass several blocks.
const ROUNDS: usize = if cfg!(miri) { 20 } else { 100 };

#[global_allocator]
static COUNTING: Counting = Counting::new();

/// The allocations of `f` on this thread: how many, and by how many bytes the live memory grows.
fn allocated(f: impl FnOnce()) -> (u64, isize) {
    let ((), counts) = COUNTING.during(f);
    (counts.allocations, counts.live_bytes)
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (1_usize..40).prop_map(Step::Push),
        5 => (1_usize..40).prop_map(Step::Pop),
        2 => (1_usize..20).prop_map(Step::Hold),
        2 => Just(Step::Free),
        2 => Just(Step::Claim),
        2 => Just(Step::Abandon),
        2 => Just(Step::Idle),
        1 => Just(Step::Shrink),
        1 => Just(Step::Release),
    ]
}

/// A mailbox against a deque, with positions that begin at `start`.
fn agrees(capacity: usize, start: isize, steps: &[Step]) {
    let mut pair = Pair::new(capacity, start);
    steps.iter().for_each(|step| pair.step(*step));
    for step in [Step::Free, Step::Close, Step::Push(1), Step::Pop(3)] {
        pair.step(step);
    }
    pair.finish();
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: if cfg!(miri) { 2 } else { 400 },
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn a_mailbox_agrees_with_a_deque_also_where_positions_wrap_around(
        capacity in prop_oneof![1_usize..5, 10_usize..20, 100_usize..130, 500_usize..3000],
        start in prop_oneof![Just(0_isize), -300_isize..1, Just(isize::MAX)],
        steps in prop::collection::vec(step(), 1..200),
    ) {
        agrees(capacity, start, &steps);
    }
}

#[test]
fn a_box_is_eight_words_and_a_value_and_no_heap() {
    assert!(size_of::<Mailbox<[u64; 10]>>() <= 8 * 8 + size_of::<[u64; 10]>());
    let fresh = allocated(|| {
        let mailbox = Mailbox::<[u64; 10]>::new(CAPACITY_MAX);
        assert_eq!(Consumer(&mailbox).pop(), Pop::Empty);
        assert!(Consumer(&mailbox).try_idle());
    });
    assert_eq!(fresh, (0, 0));
}

#[test]
fn values_that_come_one_at_a_time_need_no_heap() {
    let mailbox = Mailbox::<[usize; 4]>::new(1000);
    let alone = allocated(|| {
        for n in 0..1000 {
            assert_eq!(mailbox.push([n; 4]).unwrap().wake, n > 0);
            assert_eq!(Consumer(&mailbox).pop(), Pop::Item([n; 4]));
            assert!(Consumer(&mailbox).try_idle());
        }
    });
    assert_eq!(alone, (0, 0));
    // An abandoned claim leaves its room to the next one.
    drop(mailbox.claim().unwrap());
    assert_eq!(Consumer(&mailbox).pop(), Pop::Empty);
    assert!(Consumer(&mailbox).try_idle());
    let alone = allocated(|| _ = mailbox.push([7; 4]).unwrap());
    assert_eq!((alone, Consumer(&mailbox).pop()), ((0, 0), Pop::Item([7; 4])));
}

/// A block whose last position is in the inline slot is taken out of its entry like any other.
#[test]
fn values_in_the_inline_slot_and_in_blocks_alternate_in_order() {
    for burst in 1..40 {
        let mailbox = Mailbox::new(1000);
        let mut next = 0..;
        let mut expected = 0..;
        for round in 0..200 {
            let n = if round % 2 == 0 { burst } else { 1 };
            for value in next.by_ref().take(n) {
                let _ = mailbox.push(value).unwrap();
            }
            for value in expected.by_ref().take(n) {
                assert_eq!(Consumer(&mailbox).pop(), Pop::Item(value), "in bursts of {burst}");
            }
            assert!(Consumer(&mailbox).try_idle());
        }
    }
}

#[test]
fn values_of_a_great_alignment_stand_where_they_may() {
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    #[repr(align(64))]
    struct Wide(u8);
    assert_eq!(align_of::<Mailbox<Wide>>(), align_of::<u64>());
    let mailbox = Mailbox::new(1000);
    for n in 0..100 {
        assert!(Consumer(&mailbox).try_idle());
        let _ = mailbox.push(Wide(n)).unwrap();
        let read = |value: *const Wide| {
            assert!(value.is_aligned());
            // SAFETY: the mailbox hands out a valid value.
            unsafe { value.read() }
        };
        // SAFETY: this is the only consumer, and what is read needs no drop.
        let popped = unsafe { mailbox.pop_with(read) };
        assert_eq!(popped, Popped::Item(Wide(n)));
    }
}

fn fill_and_drain(mailbox: &Mailbox<usize>, n: usize) {
    for value in 0..n {
        let _ = mailbox.push(value).unwrap();
    }
    for value in 0..n {
        assert_eq!(Consumer(mailbox).pop(), Pop::Item(value));
    }
    assert_eq!(Consumer(mailbox).pop(), Pop::Empty);
}

#[test]
fn filling_and_draining_allocates_only_in_the_first_round() {
    for n in if cfg!(miri) { &[17, 100][..] } else { &[1, 15, 16, 17, 100, 999, 1000] } {
        let n = *n;
        let mailbox = Mailbox::new(1000);
        fill_and_drain(&mailbox, n);
        // The first rounds of a mailbox that is seldom deep allocate its second block.
        (0..ROUNDS).for_each(|_| fill_and_drain(&mailbox, n));
        let (count, bytes) = allocated(|| {
            (0..ROUNDS).for_each(|_| fill_and_drain(&mailbox, n));
        });
        assert_eq!((count, bytes), (0, 0), "rounds of {n}");
    }
    let mailbox = Mailbox::new(1000);
    fill_and_drain(&mailbox, 1000);
    let (count, _) = allocated(|| fill_and_drain(&mailbox, 1000));
    assert_eq!(count, 0, "the second round");
}

#[test]
fn a_shallow_box_goes_round_in_two_blocks() {
    let mailbox = Mailbox::<usize>::new(1000);
    let (_, bytes) = allocated(|| (0..ROUNDS).for_each(|_| fill_and_drain(&mailbox, 3)));
    let block = 16 * (size_of::<usize>() + 1);
    assert!(bytes <= (2 * block + 300).cast_signed(), "{bytes} bytes");
}

#[test]
fn a_box_whose_memory_was_reserved_allocates_nothing_more_at_any_depth() {
    for capacity in [1, 2, 15, 16, 17, 33, 100, RESERVE_MAX] {
        // From each position in a block, and across the wrap-around of positions.
        for start in -20..20 {
            let mailbox = Mailbox::with_start(capacity, start);
            // SAFETY: this thread is the only consumer.
            assert!(unsafe { mailbox.reserve() });
            let (n, _) = allocated(|| {
                for depth in (1..=capacity).chain([capacity; 20]) {
                    fill_and_drain(&mailbox, depth);
                }
                // Never empty, and across every edge of a block.
                (1..capacity).for_each(|n| _ = mailbox.push(n).unwrap());
                for n in 0..5 * capacity {
                    mailbox.push(n).map(|_| ()).unwrap();
                    // SAFETY: as above.
                    assert!(matches!(unsafe { mailbox.pop() }, Pop::Item(_)));
                }
            });
            assert_eq!(n, 0, "capacity {capacity}, from {start} on");
        }
    }
    let mailbox = Mailbox::<u8>::new(RESERVE_MAX + 1);
    // SAFETY: this thread is the only consumer.
    let (n, _) = allocated(|| assert!(!unsafe { mailbox.reserve() }));
    assert_eq!(n, 0);
}

#[test]
fn memory_is_reserved_around_what_is_inside() {
    let mailbox = Mailbox::new(40);
    (0..20).for_each(|n| _ = mailbox.push(n).unwrap());
    // SAFETY: this thread is the only consumer.
    assert!(unsafe { mailbox.reserve() });
    let (n, _) = allocated(|| {
        (20..40).for_each(|n| _ = mailbox.push(n).unwrap());
        for expected in 0..40 {
            // SAFETY: as above.
            assert_eq!(unsafe { mailbox.pop() }, Pop::Item(expected));
        }
    });
    assert_eq!(n, 0);
}

#[test]
fn a_box_that_shrinks_while_many_are_held_goes_on_in_the_middle_of_a_block() {
    // More than the first directory has room for, and no multiple of a block.
    const N_HELD: usize = 200;
    let mailbox = Mailbox::new(1_000);
    let mut consumer = Consumer(&mailbox);
    for n in 0..N_HELD {
        let _ = mailbox.push(n).unwrap();
    }
    for n in 0..N_HELD {
        assert_eq!(consumer.pop_held(), Pop::Item(n));
    }
    assert!(consumer.shrink());
    for n in N_HELD..1_000 {
        let _ = mailbox.push(n).unwrap();
    }
    assert!(mailbox.push(1_000).unwrap_err().is_full(), "what is held takes room");
    consumer.free(N_HELD);
    for n in N_HELD..1_000 {
        assert_eq!(consumer.pop(), Pop::Item(n));
    }
    assert_eq!(consumer.pop(), Pop::Empty);
}

#[test]
fn shrinking_leaves_one_block_and_releasing_none() {
    let mailbox = Mailbox::new(100_000);
    let (_, full) = allocated(|| fill_and_drain(&mailbox, 100_000 / SHARE));
    let (count, less) = allocated(|| assert!(Consumer(&mailbox).shrink()));
    assert_eq!(count, 0);
    let block = (16 * (size_of::<usize>() + 1)).cast_signed();
    assert!(full + less <= block + 300, "{} bytes left", full + less);
    // There is one block: sixteen pushes need no more, whatever the position.
    let (count, _) = allocated(|| fill_and_drain(&mailbox, 1));
    assert_eq!(count, 0);
    let (_, rest) = allocated(|| assert!(Consumer(&mailbox).release()));
    assert_eq!(full + less + rest, 0);
    fill_and_drain(&mailbox, 2000 / SHARE);
}

#[test]
fn the_memory_of_a_deep_box_is_in_proportion_to_what_is_inside() {
    let mailbox = Mailbox::new(CAPACITY_MAX);
    let n = 300_000 / SHARE;
    let (_, bytes) = allocated(|| {
        for value in 0..n {
            let _ = mailbox.push(value).unwrap();
        }
    });
    assert!(bytes < (n * 4 * size_of::<usize>() + 50_000).cast_signed(), "{bytes} bytes for {n}");
    for value in 0..n {
        assert_eq!(Consumer(&mailbox).pop(), Pop::Item(value));
    }
}

#[test]
fn nothing_is_freed_while_something_is_inside() {
    let mailbox = Mailbox::new(4);
    let _ = mailbox.push(1).unwrap();
    assert!(!Consumer(&mailbox).shrink());
    assert!(!Consumer(&mailbox).release());
    let permit = mailbox.claim().unwrap();
    assert_eq!(Consumer(&mailbox).pop(), Pop::Item(1));
    assert_eq!(Consumer(&mailbox).pop(), Pop::Retry);
    assert!(!Consumer(&mailbox).release());
    assert!(!Consumer(&mailbox).try_idle());
    let _ = permit.write(2);
    assert_eq!(Consumer(&mailbox).pop(), Pop::Item(2));
    assert!(Consumer(&mailbox).release());
}

#[test]
fn room_is_reserved_before_the_value_is_made_and_comes_back_after_a_panic() {
    let mailbox = Mailbox::new(1);
    assert!(Consumer(&mailbox).try_idle());
    let result = catch_unwind(AssertUnwindSafe(|| {
        let permit = mailbox.claim().unwrap();
        assert!(permit.wakes());
        assert!(mailbox.push(0).unwrap_err().is_full());
        let value = if mailbox.is_empty() { 1 } else { panic!("no value") };
        permit.write(value)
    }));
    assert!(result.is_err());
    assert_eq!(mailbox.len(), 1);
    assert_eq!(Consumer(&mailbox).pop(), Pop::Empty);
    assert!(mailbox.is_empty());
    let _ = mailbox.push(2).unwrap();
    assert_eq!(Consumer(&mailbox).pop(), Pop::Item(2));
}

#[test]
fn an_evicting_box_gives_the_oldest_for_the_newest() {
    let mailbox = Mailbox::evicting(3);
    let mut evicted = Vec::new();
    for value in 0..100 {
        let _ = mailbox.push_or_evict(value, |oldest| evicted.push(oldest)).unwrap();
        assert_eq!(
            mailbox.len(),
            3.min(evicted.len() + 3).min(usize::try_from(value).unwrap() + 1)
        );
    }
    assert_eq!(evicted, (0..97).collect::<Vec<_>>());
    assert!(mailbox.push(100).unwrap_err().is_full());
    let mut consumer = Consumer(&mailbox);
    for value in 97..100 {
        assert_eq!(consumer.pop(), Pop::Item(value));
    }
    assert!(consumer.release());
    assert!(consumer.try_idle());
    // A value that is not yet written cannot be evicted.
    let permits = [(); 3].map(|()| mailbox.claim().unwrap());
    assert!(mailbox.push_or_evict(1, |_| unreachable!()).unwrap_err().is_full());
    drop(permits);
    // Abandoned claims make room, and are not reported.
    assert!(mailbox.push_or_evict(1, |_| unreachable!()).is_ok());
    mailbox.close();
    assert!(mailbox.push_or_evict(1, |_| unreachable!()).unwrap_err().is_closed());
}

#[test]
fn a_value_that_panics_in_its_drop_takes_no_other_along() {
    struct Bomb<'a>(&'a Cell<u32>, bool);
    impl Drop for Bomb<'_> {
        fn drop(&mut self) {
            self.0.set(self.0.get() + 1);
            if self.1 {
                // Without a message, because creating one allocates.
                resume_unwind(Box::new(()));
            }
        }
    }
    let drops = Cell::new(0);
    let mut panicked = false;
    let (_, bytes) = allocated(|| {
        let mailbox = Mailbox::new(50);
        for n in 0..50 {
            assert!(mailbox.push(Bomb(&drops, n == 20)).is_ok());
        }
        panicked = catch_unwind(AssertUnwindSafe(|| drop(mailbox))).is_err();
    });
    assert!(panicked);
    assert_eq!(drops.get(), 50);
    assert_eq!(bytes, 0);
}

/// Four threads push numbers, and the consumer checks the order of each; it sleeps by the idle
/// protocol and counts how often a producer has to wake it.
fn stress(mailbox: &Mailbox<(usize, usize)>, n_each: usize, mut now_and_then: impl FnMut()) {
    const N_PRODUCERS: usize = 4;
    let woken = AtomicUsize::new(0);
    thread::scope(|scope| {
        for id in 0..N_PRODUCERS {
            let woken = &woken;
            scope.spawn(move || {
                let mut patience = Patience::default();
                for n in 0..n_each {
                    let mut value = (id, n);
                    loop {
                        match mailbox.push(value) {
                            Ok(pushed) => {
                                woken.fetch_add(usize::from(pushed.wake), Relaxed);
                                break;
                            }
                            Err(refused) => {
                                assert!(refused.is_full());
                                value = refused.into_inner();
                                patience.wait();
                            }
                        }
                    }
                    patience.renew();
                }
            });
        }
        let mut consumer = Consumer(mailbox);
        let mut expected = [0; N_PRODUCERS];
        let (mut patience, mut naps) = (Patience::default(), 0);
        while expected != [n_each; N_PRODUCERS] {
            match consumer.pop() {
                Pop::Item((id, n)) => {
                    assert_eq!(n, expected[id]);
                    expected[id] += 1;
                    patience.renew();
                }
                Pop::Retry => patience.wait(),
                Pop::Empty => {
                    now_and_then();
                    if consumer.try_idle() {
                        naps += 1;
                        while woken.load(Relaxed) < naps {
                            patience.wait();
                        }
                    }
                }
            }
            assert!(mailbox.len() <= mailbox.capacity());
        }
        assert!(woken.load(Relaxed) <= naps);
        assert_eq!(consumer.pop(), Pop::Empty);
    });
}

#[test]
fn a_million_messages_of_four_threads_keep_each_senders_order() {
    for capacity in [1000, CAPACITY_MAX] {
        stress(&Mailbox::new(capacity), 250_000 / SHARE, || ());
    }
    stress(&Mailbox::with_start(3, -1000), 20_000 / SHARE, || ());
}

#[test]
fn memory_given_back_under_four_threads_loses_nothing() {
    for capacity in [1, 40, 5000] {
        let mailbox = Mailbox::with_start(capacity, -10_000);
        let mut round = 0;
        stress(&mailbox, 50_000 / SHARE, || {
            round += 1;
            // The eviction runs between the consumer's own calls.
            let mut consumer = Consumer(&mailbox);
            if round % 2 == 0 {
                consumer.shrink()
            } else {
                consumer.release()
            };
        });
    }
}

#[test]
fn evicting_threads_and_a_consumer_see_each_value_once() {
    const N_EACH: usize = 100_000 / SHARE;
    let mailbox = Mailbox::evicting(20);
    let done = AtomicUsize::new(0);
    let mut seen = thread::scope(|scope| {
        let producers: Vec<_> = (0..3)
            .map(|id| {
                let (mailbox, done) = (&mailbox, &done);
                scope.spawn(move || {
                    let mut seen = Vec::new();
                    for n in 0..N_EACH {
                        let value = id * N_EACH + n;
                        match mailbox.push_or_evict(value, |oldest| seen.push(oldest)) {
                            Ok(_) => {}
                            Err(refused) => {
                                assert!(refused.is_full());
                                seen.push(refused.into_inner());
                            }
                        }
                    }
                    done.fetch_add(1, Relaxed);
                    seen
                })
            })
            .collect();
        let mut seen = Vec::new();
        let mut consumer = Consumer(&mailbox);
        while done.load(Relaxed) < 3 {
            match consumer.pop() {
                Pop::Item(value) => seen.push(value),
                Pop::Empty | Pop::Retry => thread::yield_now(),
            }
        }
        for producer in producers {
            seen.extend(producer.join().unwrap());
        }
        while let Pop::Item(value) = consumer.pop() {
            seen.push(value);
        }
        seen
    });
    seen.sort_unstable();
    assert!(seen.iter().copied().eq(0..3 * N_EACH));
}

#[test]
fn a_reserved_mailbox_is_full_for_all_but_waiters() {
    let mailbox = Mailbox::new(2);
    assert_eq!(mailbox.reserve_for_waiters(), WaiterReservation::HasRoom);
    let _ = mailbox.push(1).unwrap();
    let _ = mailbox.push(2).unwrap();
    assert_eq!(mailbox.reserve_for_waiters(), WaiterReservation::Reserved);
    assert!(mailbox.claim_for_waiter().unwrap_err().is_full(), "waiting makes no room");
    // SAFETY: this thread is the only consumer.
    assert_eq!(unsafe { mailbox.pop() }, Pop::Item(1));
    assert!(mailbox.push(4).unwrap_err().is_full(), "the room is for who waits");
    let _ = mailbox.claim_for_waiter().unwrap().write(3);
    assert_eq!(mailbox.len(), 2);
    mailbox.release_reservation();
    for n in [2, 3] {
        // SAFETY: as above.
        assert_eq!(unsafe { mailbox.pop() }, Pop::Item(n));
    }
    let _ = mailbox.push(4).unwrap();
    let _ = mailbox.push(5).unwrap();
    assert_eq!(mailbox.reserve_for_waiters(), WaiterReservation::Reserved);
    mailbox.close();
    assert_eq!(mailbox.reserve_for_waiters(), WaiterReservation::Closed);
    assert!(mailbox.claim_for_waiter().unwrap_err().is_closed());
    assert!(mailbox.push(6).unwrap_err().is_closed());
}

#[test]
fn a_late_push_goes_beyond_the_capacity_up_to_a_bound() {
    let mailbox = Mailbox::new(2);
    mailbox.check_room().unwrap();
    let _ = mailbox.push(0).unwrap();
    let _ = mailbox.push(1).unwrap();
    assert!(mailbox.check_room().unwrap_err().is_full());
    assert!(mailbox.push(2).unwrap_err().is_full());
    let n_late = (2..).take_while(|n| mailbox.push_late(*n).is_ok()).count();
    assert_eq!(n_late, 64, "more than any number of senders at once");
    assert_eq!(mailbox.len(), 2, "what is beyond the capacity is not counted");
    for n in 0..66 {
        assert_eq!(mailbox.check_room().is_ok(), n > 64);
        // SAFETY: this thread is the only consumer.
        assert_eq!(unsafe { mailbox.pop() }, Pop::Item(n));
    }
    mailbox.check_room().unwrap();
    mailbox.close();
    assert!(mailbox.check_room().unwrap_err().is_closed());
    assert!(mailbox.push_late(3).unwrap_err().is_closed());
}

#[test]
fn a_late_push_is_accepted_while_others_wait_and_wakes_an_idle_consumer() {
    let mailbox = Mailbox::new(1);
    // SAFETY: this thread is the only consumer.
    assert!(unsafe { mailbox.try_idle() });
    mailbox.check_room().unwrap();
    assert!(mailbox.push_late(0).unwrap().wake);
    assert_eq!(mailbox.reserve_for_waiters(), WaiterReservation::Reserved);
    assert!(mailbox.check_room().unwrap_err().is_full());
    assert!(!mailbox.push_late(1).unwrap().wake);
    for n in [0, 1] {
        // SAFETY: as above.
        assert_eq!(unsafe { mailbox.pop() }, Pop::Item(n));
    }
    assert!(mailbox.check_room().unwrap_err().is_full(), "room is for those who wait");
}

#[test]
fn a_place_between_values_is_reached_when_those_before_it_were_taken() {
    // Also where positions wrap around.
    for start in [0, -3] {
        let mailbox = Mailbox::with_start(8, start);
        let _ = mailbox.push(1).unwrap();
        let _ = mailbox.push(2).unwrap();
        let place = mailbox.next_position();
        let _ = mailbox.push(3).unwrap();
        assert!(mailbox.next_position().is_behind(place) && !place.is_behind(place));
        // SAFETY: this thread is the only consumer, here and below.
        let pop = |limit| unsafe { mailbox.pop_before(limit) };
        assert_eq!([pop(place), pop(place)], [Pop::Item(1), Pop::Item(2)]);
        assert_eq!([pop(place), pop(place)], [Pop::Empty, Pop::Empty]);
        assert_eq!(pop(mailbox.next_position()), Pop::Item(3));
        assert_eq!(pop(place), Pop::Empty, "it is behind the consumer");
        assert_eq!(pop(mailbox.next_position()), Pop::Empty);
    }
}

#[test]
fn a_place_is_reached_over_a_claim_that_was_abandoned() {
    let mailbox = Mailbox::new(8);
    let _ = mailbox.push(1).unwrap();
    let permit = mailbox.claim().unwrap();
    let place = mailbox.next_position();
    let _ = mailbox.push(2).unwrap();
    // SAFETY: this thread is the only consumer, here and below.
    let pop = || unsafe { mailbox.pop_before(place) };
    assert_eq!([pop(), pop()], [Pop::Item(1), Pop::Retry]);
    let _ = permit.cancel();
    assert_eq!([pop(), pop()], [Pop::Empty, Pop::Empty]);
    // SAFETY: as above.
    assert_eq!(unsafe { mailbox.pop() }, Pop::Item(2));
}

#[test]
fn a_place_stops_a_consumer_that_holds_room() {
    let mailbox = Mailbox::new(2);
    let _ = mailbox.push(1).unwrap();
    let place = mailbox.next_position();
    let _ = mailbox.push(2).unwrap();
    // SAFETY: this thread is the only consumer, here and below.
    let pop = |limit| unsafe { mailbox.pop_held_before(limit) };
    assert_eq!([pop(place), pop(place)], [Pop::Item(1), Pop::Empty]);
    assert!(mailbox.push(3).unwrap_err().is_full(), "the room is held");
    assert_eq!(pop(mailbox.next_position()), Pop::Item(2));
    // SAFETY: as above.
    unsafe { mailbox.free(2) };
    let _ = mailbox.push(3).unwrap();
}

#[test]
fn an_eviction_carries_the_consumer_over_a_place() {
    let mailbox = Mailbox::evicting(2);
    let _ = mailbox.push(1).unwrap();
    let place = mailbox.next_position();
    for n in 2..5 {
        let _ = mailbox.push_or_evict(n, drop).unwrap();
    }
    // SAFETY: this thread is the only consumer, here and below.
    assert_eq!(unsafe { mailbox.pop_before(place) }, Pop::Empty);
    // SAFETY: as above.
    assert_eq!(unsafe { mailbox.pop_before(mailbox.next_position()) }, Pop::Item(3));
}

#[test]
fn the_next_position_is_the_first_field_of_every_box() {
    fn check<T>(mailbox: &Mailbox<T>) {
        let first = core::ptr::from_ref(mailbox).cast::<NextPosition>();
        // SAFETY: every mailbox begins with its next position.
        assert_eq!(unsafe { &*first }.get(), mailbox.next_position());
    }
    let mailbox = Mailbox::new(4);
    let _ = mailbox.push([7_u64; 9]).unwrap();
    check(&mailbox);
    check(&Mailbox::<u8>::with_start(4, 5));
}

#[test]
fn positions_count_what_was_accepted_and_what_has_left() {
    let mailbox = Mailbox::new(4);
    let view = core::ptr::from_ref(&mailbox).cast::<NextPosition>();
    // SAFETY: every mailbox begins with its next position.
    let view = unsafe { &*view };
    assert_eq!((mailbox.positions(), view.claimed(), view.is_idle()), ((0, 0), 0, false));
    for round in 0..ROUNDS {
        for n in 0..4 {
            let _ = mailbox.push(n).unwrap();
        }
        assert!(mailbox.push(4).is_err(), "a refused value has no position");
        assert_eq!(mailbox.positions(), (4 * round + 4, 4 * round));
        for n in 0..4 {
            // SAFETY: this thread is the only consumer.
            assert_eq!(unsafe { mailbox.pop() }, Pop::Item(n));
        }
        assert_eq!(mailbox.positions(), (4 * round + 4, 4 * round + 4));
        assert_eq!(view.claimed(), 4 * round + 4);
    }
}
