//! Producers against the consumer of a mailbox. Blocks have two slots and the first directory two
//! entries, so three values span all of it.
#![expect(unsafe_code, reason = "each model has one consumer at a time")]

use alloc::sync::Arc;

use clockjack_sync::mail::{Mailbox, Pop, Popped, WaiterReservation};
use loom::{
    cell::UnsafeCell,
    sync::atomic::Ordering::Relaxed,
    thread::{self, JoinHandle},
};

use crate::{
    model_within,
    tracked::{Live, Tracked},
};

type Shared = Arc<Mailbox<Tracked>>;

/// A producer that pushes some items; returns the ids that were accepted and how often it had to
/// wake the consumer.
fn push(mailbox: &Shared, live: &Live, ids: &'static [u32]) -> JoinHandle<(Vec<u32>, u32)> {
    let mailbox = Arc::clone(mailbox);
    let items: Vec<_> = ids.iter().map(|id| live.item(*id)).collect();
    thread::spawn(move || {
        let (mut accepted, mut wakes) = (Vec::new(), 0);
        for item in items {
            let id = item.id();
            if let Ok(pushed) = mailbox.push(item) {
                accepted.push(id);
                wakes += u32::from(pushed.wake);
            }
        }
        (accepted, wakes)
    })
}

/// Pushes from the main thread, where there is room.
fn fill(mailbox: &Shared, live: &Live, ids: impl IntoIterator<Item = u32>) {
    for id in ids {
        assert!(mailbox.push(live.item(id)).is_ok());
    }
}

/// Takes what is inside within `tries`, without waiting.
fn take(mailbox: &Shared, tries: usize) -> Vec<u32> {
    let mut seen = Vec::new();
    for _ in 0..tries {
        // SAFETY: the model's only consumer at this time.
        if let Pop::Item(item) = unsafe { mailbox.pop() } {
            seen.push(item.id());
        }
    }
    seen
}

/// A consumer that takes what is inside within `tries`.
fn taker(mailbox: &Shared, tries: usize) -> JoinHandle<Vec<u32>> {
    let mailbox = Arc::clone(mailbox);
    thread::spawn(move || take(&mailbox, tries))
}

/// Takes the rest, when all threads are done and no operation is in progress.
fn take_rest(mailbox: &Shared, seen: &mut Vec<u32>) {
    loop {
        // SAFETY: all other threads are done.
        match unsafe { mailbox.pop() } {
            Pop::Item(item) => seen.push(item.id()),
            Pop::Empty => return,
            Pop::Retry => panic!("no other thread is in the middle of an operation, seen {seen:?}"),
        }
        assert!(seen.len() < 20, "more than was ever pushed: {seen:?}");
    }
}

#[test]
fn two_producers_and_the_consumer_of_a_mailbox_keep_every_item_in_order() {
    model_within(2, || {
        let live = Live::default();
        let mailbox = Arc::new(Mailbox::new(3));
        let first = push(&mailbox, &live, &[10, 11]);
        let second = push(&mailbox, &live, &[20]);
        let taker = taker(&mailbox, 2);
        assert_eq!(first.join().unwrap().0, [10, 11]);
        assert_eq!(second.join().unwrap().0, [20]);
        let mut seen = taker.join().unwrap();
        take_rest(&mailbox, &mut seen);
        let of_first: Vec<_> = seen.iter().copied().filter(|id| *id < 20).collect();
        assert_eq!(of_first, [10, 11]);
        assert_eq!(seen.len(), 3);
        drop(mailbox);
        assert_eq!(live.count(), 0);
    });
}

#[test]
fn a_mailbox_never_accepts_more_than_its_capacity() {
    loom::model(|| {
        let live = Live::default();
        let mailbox = Arc::new(Mailbox::new(1));
        let (first, second) = (push(&mailbox, &live, &[1]), push(&mailbox, &live, &[2]));
        let mut accepted = first.join().unwrap().0;
        accepted.extend(second.join().unwrap().0);
        assert_eq!(accepted.len(), 1);
        let mut seen = Vec::new();
        take_rest(&mailbox, &mut seen);
        assert_eq!(seen, accepted);
    });
}

#[test]
fn a_consumer_that_goes_idle_is_woken_by_exactly_one_or_has_seen_the_item() {
    model_within(3, || {
        let live = Live::default();
        let mailbox = Arc::new(Mailbox::new(4));
        let (first, second) = (push(&mailbox, &live, &[1]), push(&mailbox, &live, &[2]));
        let consumer = Arc::clone(&mailbox);
        let taker = thread::spawn(move || {
            let seen = take(&consumer, 1);
            // SAFETY: the model's only consumer.
            (seen, unsafe { consumer.try_idle() })
        });
        let wakes = first.join().unwrap().1 + second.join().unwrap().1;
        let (mut seen, idle) = taker.join().unwrap();
        take_rest(&mailbox, &mut seen);
        assert_eq!(seen.len(), 2);
        if idle {
            // Either the consumer saw everything before, or one of the later producers wakes it.
            assert_eq!(wakes, u32::from(!mailbox.is_idle()));
        } else {
            assert_eq!(wakes, 0);
        }
    });
}

/// The consumer sleeps if it is idle and no thread wakes it; then nothing may be inside.
#[test]
fn an_idle_consumer_that_nobody_wakes_misses_nothing() {
    loom::model(|| {
        let live = Live::default();
        let mailbox = Arc::new(Mailbox::new(4));
        let pusher = push(&mailbox, &live, &[1]);
        let consumer = Arc::clone(&mailbox);
        let taker = thread::spawn(move || {
            // SAFETY: the model's only consumer.
            let idle = unsafe { consumer.try_idle() };
            (idle, if idle { Vec::new() } else { take(&consumer, 1) })
        });
        let wakes = pusher.join().unwrap().1;
        let (idle, mut seen) = taker.join().unwrap();
        assert_eq!(wakes, u32::from(idle));
        take_rest(&mailbox, &mut seen);
        assert_eq!(seen, [1]);
    });
}

/// Work is left outside of the mailbox and the consumer is notified: a sleeping consumer is woken,
/// and a consumer that does not sleep has seen the work.
#[test]
fn a_notification_is_seen_before_the_sleep_or_wakes_the_sleeper() {
    for is_parking in [false, true] {
        loom::model(move || {
            let mailbox = Arc::new(Mailbox::<u32>::new(4));
            let left = Arc::new(loom::sync::atomic::AtomicU32::new(0));
            let (caller, leaving) = (Arc::clone(&mailbox), Arc::clone(&left));
            let caller = thread::spawn(move || {
                leaving.store(7, Relaxed);
                caller.notify()
            });
            let (consumer, looking) = (Arc::clone(&mailbox), Arc::clone(&left));
            let sleeper = thread::spawn(move || {
                // SAFETY: the model's only consumer.
                unsafe { consumer.ack() };
                let seen = looking.load(Relaxed);
                let slept = if is_parking {
                    // SAFETY: as above.
                    unsafe { consumer.park() }
                } else {
                    // SAFETY: as above.
                    unsafe { consumer.try_idle() }
                };
                // A consumer that was notified meanwhile checks again, and sees the work.
                if slept { (seen, true) } else { (looking.load(Relaxed), false) }
            });
            let wakes = caller.join().unwrap();
            let (seen, slept) = sleeper.join().unwrap();
            // Work that the consumer saw before its sleep need not wake it; other work must.
            assert!(seen == 7 || (slept && wakes), "seen {seen}, slept {slept}, woken {wakes}");
            assert_eq!(mailbox.is_asleep(), slept && !wakes);
        });
    }
}

/// The thread that has to wake the consumer passes its work on: the next thread sees what it did.
#[test]
fn who_has_to_wake_a_consumer_sees_what_it_has_done() {
    for is_parking in [false, true] {
        loom::model(move || {
            let mailbox = Arc::new(Mailbox::<u32>::new(4));
            let work = loom::sync::Arc::new(UnsafeCell::new(0));
            let (sleeper, of_sleeper) = (Arc::clone(&mailbox), work.clone());
            let sleeper = thread::spawn(move || {
                // SAFETY: the consumer has not slept yet.
                of_sleeper.with_mut(|work| unsafe { *work += 1 });
                if is_parking {
                    // SAFETY: the model's only consumer.
                    unsafe { sleeper.park() }
                } else {
                    // SAFETY: as above.
                    unsafe { sleeper.try_idle() }
                }
            });
            let (waker, of_waker) = (Arc::clone(&mailbox), work.clone());
            let waker = thread::spawn(move || {
                let wakes = if is_parking { waker.notify() } else { waker.push(1).unwrap().wake };
                if wakes {
                    // SAFETY: who wakes the consumer has its work, or whom it gives it to.
                    of_waker.with_mut(|work| unsafe { *work += 1 });
                }
                wakes
            });
            assert_eq!(sleeper.join().unwrap(), waker.join().unwrap());
        });
    }
}

/// Moves a value out.
fn read(value: *const u32) -> u32 {
    // SAFETY: a mailbox calls it once for each value.
    unsafe { value.read() }
}

/// An abandoned claim leaves room, but no push that would wake the consumer.
#[test]
fn a_consumer_does_not_sleep_while_somebody_waits_for_room() {
    loom::model(|| {
        let mailbox = Arc::new(Mailbox::<u32>::new(1));
        let quitter = Arc::clone(&mailbox);
        let quitter = thread::spawn(move || {
            let permit = quitter.claim().unwrap();
            assert_eq!(quitter.reserve_for_waiters(), WaiterReservation::Reserved);
            permit.cancel().wake
        });
        let consumer = Arc::clone(&mailbox);
        let sleeper = thread::spawn(move || {
            // SAFETY: the model's only consumer.
            let popped = unsafe { consumer.pop_with(read) };
            let Popped::Empty(seen) = popped else { return false };
            // SAFETY: as above, and the model keeps the box.
            unsafe { Mailbox::try_idle_with(&raw const *consumer, seen) }
        });
        let is_woken = quitter.join().unwrap();
        let has_slept = sleeper.join().unwrap();
        assert_eq!(has_slept, is_woken, "it sleeps, and who waits is not let in");
        // SAFETY: the consumer is done.
        assert!(matches!(unsafe { mailbox.pop_with(read) }, Popped::Empty(_)));
        // SAFETY: as above.
        assert!(!unsafe { mailbox.try_idle() });
        mailbox.release_reservation();
        // SAFETY: as above.
        assert!(unsafe { mailbox.try_idle() });
    });
}

/// A push and a notification meet an idle consumer: one of the two wakes it.
#[test]
fn of_a_push_and_a_notification_one_wakes_an_idle_consumer() {
    loom::model(|| {
        let live = Live::default();
        let mailbox = Arc::new(Mailbox::new(4));
        // SAFETY: the model's only consumer.
        assert!(unsafe { mailbox.try_idle() });
        let pusher = push(&mailbox, &live, &[1]);
        let caller = Arc::clone(&mailbox);
        let caller = thread::spawn(move || u32::from(caller.notify()));
        assert_eq!(pusher.join().unwrap().1 + caller.join().unwrap(), 1);
        let mut seen = Vec::new();
        take_rest(&mailbox, &mut seen);
        assert_eq!(seen, [1]);
    });
}

#[test]
fn what_a_mailbox_accepts_before_its_close_is_delivered_and_empty_is_final() {
    model_within(2, || {
        let live = Live::default();
        let mailbox = Arc::new(Mailbox::new(4));
        let (first, second) = (push(&mailbox, &live, &[1]), push(&mailbox, &live, &[2]));
        let closer = Arc::clone(&mailbox);
        let taker = thread::spawn(move || {
            assert!(closer.close());
            let mut seen = Vec::new();
            loop {
                // SAFETY: the model's only consumer.
                match unsafe { closer.pop() } {
                    Pop::Item(item) => seen.push(item.id()),
                    Pop::Retry => thread::yield_now(),
                    Pop::Empty => return seen,
                }
            }
        });
        let mut accepted = first.join().unwrap().0;
        accepted.extend(second.join().unwrap().0);
        let mut seen = taker.join().unwrap();
        // SAFETY: the consumer is done.
        assert!(matches!(unsafe { mailbox.pop() }, Pop::Empty));
        seen.sort_unstable();
        accepted.sort_unstable();
        assert_eq!(seen, accepted);
    });
}

/// The first block is full when the model begins; the consumer takes it out and offers it while a
/// producer needs the next one, and then the first one's entry.
#[test]
fn a_block_that_goes_round_is_written_only_after_it_was_emptied() {
    for inside in [2, 3] {
        model_within(3, move || {
            let live = Live::default();
            let mailbox = Arc::new(Mailbox::new(3));
            fill(&mailbox, &live, 0..inside);
            let pusher = push(&mailbox, &live, &[10, 11, 12]);
            let taker = taker(&mailbox, 3);
            let accepted = pusher.join().unwrap().0;
            let mut seen = taker.join().unwrap();
            take_rest(&mailbox, &mut seen);
            let expected: Vec<_> = (0..inside).chain(accepted).collect();
            assert_eq!(seen, expected);
            drop(mailbox);
            assert_eq!(live.count(), 0);
        });
    }
}

#[test]
fn two_producers_that_meet_at_a_new_block_agree_on_it() {
    model_within(2, || {
        let live = Live::default();
        let mailbox = Arc::new(Mailbox::new(3));
        fill(&mailbox, &live, 0..2);
        let (first, second) = (push(&mailbox, &live, &[10]), push(&mailbox, &live, &[20]));
        let taker = taker(&mailbox, 2);
        let mut accepted = first.join().unwrap().0;
        accepted.extend(second.join().unwrap().0);
        let mut seen = taker.join().unwrap();
        take_rest(&mailbox, &mut seen);
        assert_eq!(seen[..2], [0, 1]);
        seen.drain(..2);
        seen.sort_unstable();
        accepted.sort_unstable();
        assert_eq!(seen, accepted);
    });
}

/// Four values fill the first directory: the next raises the level, unless the consumer has freed a
/// block before.
#[test]
fn a_directory_that_grows_under_two_producers_loses_nothing() {
    model_within(2, || {
        let live = Live::default();
        let mailbox = Arc::new(Mailbox::new(7));
        fill(&mailbox, &live, 0..4);
        let (first, second) = (push(&mailbox, &live, &[10]), push(&mailbox, &live, &[20]));
        let taker = taker(&mailbox, 2);
        assert_eq!(first.join().unwrap().0, [10]);
        assert_eq!(second.join().unwrap().0, [20]);
        let mut seen = taker.join().unwrap();
        take_rest(&mailbox, &mut seen);
        assert_eq!(seen[..4], [0, 1, 2, 3]);
        seen.sort_unstable();
        assert_eq!(seen, [0, 1, 2, 3, 10, 20]);
        drop(mailbox);
        assert_eq!(live.count(), 0);
    });
}

/// The level is raised while the consumer is in the last block of the level before.
#[test]
fn a_consumer_finds_where_a_level_starts() {
    model_within(3, || {
        let live = Live::default();
        let mailbox = Arc::new(Mailbox::new(8));
        fill(&mailbox, &live, 0..4);
        let pusher = push(&mailbox, &live, &[10]);
        let taker = taker(&mailbox, 6);
        assert_eq!(pusher.join().unwrap().0, [10]);
        let mut seen = taker.join().unwrap();
        fill(&mailbox, &live, [11, 12, 13]);
        take_rest(&mailbox, &mut seen);
        assert_eq!(seen, [0, 1, 2, 3, 10, 11, 12, 13]);
    });
}

#[test]
fn an_evicting_producer_and_the_consumer_take_each_item_once() {
    model_within(3, || {
        let live = Live::default();
        let mailbox = Arc::new(Mailbox::evicting(2));
        fill(&mailbox, &live, 0..2);
        let (producer, item) = (Arc::clone(&mailbox), live.item(10));
        let pusher = thread::spawn(move || {
            let mut seen = Vec::new();
            match producer.push_or_evict(item, |oldest| seen.push(oldest.id())) {
                Ok(_) => {}
                Err(refused) => {
                    assert!(refused.is_full());
                    seen.push(refused.into_inner().id());
                }
            }
            seen
        });
        let taker = taker(&mailbox, 2);
        let mut seen = pusher.join().unwrap();
        seen.extend(taker.join().unwrap());
        take_rest(&mailbox, &mut seen);
        seen.sort_unstable();
        assert_eq!(seen, [0, 1, 10]);
        drop(mailbox);
        assert_eq!(live.count(), 0);
    });
}

#[test]
fn a_permit_that_is_dropped_delays_what_is_behind_it_and_loses_nothing() {
    model_within(2, || {
        let live = Live::default();
        let mailbox = Arc::new(Mailbox::<Tracked>::new(2));
        let producer = Arc::clone(&mailbox);
        let quitter = thread::spawn(move || producer.claim().is_ok());
        let pusher = push(&mailbox, &live, &[1]);
        let taker = taker(&mailbox, 2);
        assert!(quitter.join().unwrap());
        assert_eq!(pusher.join().unwrap().0, [1]);
        let mut seen = taker.join().unwrap();
        take_rest(&mailbox, &mut seen);
        assert_eq!(seen, [1]);
        assert!(mailbox.is_empty());
    });
}

#[test]
fn memory_given_back_against_pushers_loses_nothing() {
    for release in [false, true] {
        model_within(2, move || {
            let live = Live::default();
            let mailbox = Arc::new(Mailbox::new(3));
            // There are two blocks, and the position is inside the second.
            fill(&mailbox, &live, 0..3);
            assert_eq!(take(&mailbox, 3), [0, 1, 2]);
            let (first, second) = (push(&mailbox, &live, &[10]), push(&mailbox, &live, &[20]));
            let consumer = Arc::clone(&mailbox);
            let taker = thread::spawn(move || {
                for _ in 0..2 {
                    if release {
                        // SAFETY: the model's only consumer.
                        unsafe { consumer.release() };
                    } else {
                        // SAFETY: as above.
                        unsafe { consumer.shrink() };
                    }
                }
                take(&consumer, 1)
            });
            assert_eq!(first.join().unwrap().0, [10]);
            assert_eq!(second.join().unwrap().0, [20]);
            let mut seen = taker.join().unwrap();
            take_rest(&mailbox, &mut seen);
            seen.sort_unstable();
            assert_eq!(seen, [10, 20]);
            drop(mailbox);
            assert_eq!(live.count(), 0);
        });
    }
}

/// The first of two that find the consumer idle gets the inline slot, the other a slot of a block;
/// the consumer takes both in the order of their claims, goes idle, and the inline slot is free for
/// a third.
#[test]
fn two_pushes_to_an_idle_mailbox_use_its_inline_slot_once() {
    model_within(3, || {
        let live = Live::default();
        let mailbox = Arc::new(Mailbox::new(4));
        // SAFETY: the model's only consumer at this time.
        assert!(unsafe { mailbox.try_idle() });
        let (first, second) = (push(&mailbox, &live, &[1]), push(&mailbox, &live, &[2]));
        let taker = taker(&mailbox, 2);
        let wakes = first.join().unwrap().1 + second.join().unwrap().1;
        let mut seen = taker.join().unwrap();
        take_rest(&mailbox, &mut seen);
        seen.sort_unstable();
        assert_eq!((seen, wakes), (vec![1, 2], 1));
        drop(mailbox);
        assert_eq!(live.count(), 0);
    });
}

/// The consumer takes from the inline slot, goes idle again, and the inline slot is used once more:
/// at the last position of a block, in which another producer may have a slot.
#[test]
fn an_inline_slot_that_is_used_again_keeps_values_apart() {
    model_within(3, || {
        let live = Live::default();
        let mailbox = Arc::new(Mailbox::new(4));
        let pushers = [push(&mailbox, &live, &[1, 2]), push(&mailbox, &live, &[10])];
        let consumer = Arc::clone(&mailbox);
        let taker = thread::spawn(move || {
            let mut seen = take(&consumer, 1);
            // SAFETY: the model's only consumer.
            if unsafe { consumer.try_idle() } {
                seen.extend(take(&consumer, 1));
            }
            seen
        });
        for pusher in pushers {
            pusher.join().unwrap();
        }
        let mut seen = taker.join().unwrap();
        take_rest(&mailbox, &mut seen);
        let of_first: Vec<_> = seen.iter().copied().filter(|id| *id < 10).collect();
        assert_eq!((of_first, seen.len()), (vec![1, 2], 3));
        drop(mailbox);
        assert_eq!(live.count(), 0);
    });
}
