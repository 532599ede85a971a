//! The guarantees of a shard, on one thread: this test plays both the holder of the guard and the
//! other threads. The races are in `loom/shard.rs` and `stress.rs`.
#![cfg(not(loom))]
#![cfg(feature = "alloc")]

extern crate alloc;

use alloc::rc::Rc;
use core::{cell::Cell, panic::AssertUnwindSafe};
use std::panic;

use clockjack_time::{
    Closed, Shard, ShardConfig, ShardOccupancy, ShardStats, Tick, TimerId, TimerPriority,
    shard::RETURNS_MAX,
};

const DEFAULT: ShardConfig = ShardConfig::DEFAULT;

fn tick(ticks: u64) -> Tick {
    Tick::new(ticks)
}

fn shard<T>(capacity: usize) -> Shard<T> {
    Shard::new(ShardConfig { capacity, ..DEFAULT })
}

/// The timers that fire up to a tick, while no other thread uses the shard.
fn poll<T>(shard: &Shard<T>, now: u64) -> Vec<T> {
    let mut fired = Vec::new();
    let mut guard = shard.try_lock().expect("the shard is unlocked");
    let more = guard.poll(tick(now), usize::MAX, |timer| {
        assert!(timer.deadline <= timer.now, "early");
        fired.push(timer.value);
    });
    assert!(!more, "an unlimited budget ended");
    fired
}

fn len<T>(shard: &Shard<T>) -> usize {
    shard.try_lock().expect("the shard is unlocked").len()
}

#[test]
fn a_remote_insert_with_the_shard_unlocked_enters_the_wheel_at_once() {
    let shard = shard(16);
    let id = shard.remote_insert(tick(5), "a").expect("room");
    let mut guard = shard.try_lock().expect("the post has given it back");
    assert_eq!(guard.len(), 1);
    assert_eq!(guard.get(id), Some(&"a"));
    assert_eq!(guard.cancel(id), Some("a"));
}

#[test]
fn the_guard_is_had_by_one_at_a_time_and_never_waited_for() {
    let shard = shard::<()>(16);
    let guard = shard.try_lock().expect("the shard is unlocked");
    assert!(shard.try_lock().is_none());
    drop(guard);
    assert!(shard.try_lock().is_some());
}

#[test]
fn a_remote_insert_with_the_shard_locked_goes_through_the_inbox() {
    let shard = shard(16);
    let mut guard = shard.try_lock().expect("the shard is unlocked");
    let id = shard.remote_insert(tick(5), "inserted").expect("the inbox has room");
    assert!(shard.is_armed(id), "armed as soon as it is inserted");
    assert_eq!(guard.len(), 0, "the wheel has not been touched");
    let mut fired = Vec::new();
    assert!(!guard.poll(tick(5), 10, |timer| fired.push((timer.id, timer.value))));
    assert_eq!(fired, [(id, "inserted")], "a poll empties the inbox first");
    assert!(!shard.is_armed(id));
}

#[test]
fn remote_and_local_timers_of_one_tick_fire_in_the_order_of_their_arming() {
    for deadline in [0, 7, 100, 10_000, 1 << 25] {
        let shard = shard(64);
        shard.remote_insert(tick(deadline), 0).expect("room");
        let mut guard = shard.try_lock().expect("the shard is unlocked");
        guard.insert(tick(deadline), 1).expect("room");
        shard.remote_insert(tick(deadline), 2).expect("room in the inbox");
        shard.remote_insert(tick(deadline), 3).expect("room in the inbox");
        guard.insert(tick(deadline), 4).expect("room");
        shard.remote_insert(tick(deadline), 5).expect("room in the inbox");
        guard.arm(tick(deadline), TimerPriority::High, 6).expect("room");
        drop(guard);
        shard.remote_insert(tick(deadline), 7).expect("room");
        assert_eq!(poll(&shard, deadline), [0, 1, 2, 3, 4, 5, 6, 7], "at {deadline}");
    }
}

#[test]
fn what_the_callback_inserts_is_armed_and_fires_at_the_next_poll() {
    let shard = shard(64);
    shard.remote_insert(tick(5), 0).expect("room");
    let mut fired = Vec::new();
    let mut guard = shard.try_lock().expect("the shard is unlocked");
    guard.poll(tick(5), usize::MAX, |timer| {
        fired.push(timer.value);
        shard.remote_insert(tick(3), timer.value + 1).expect("room in the inbox");
    });
    drop(guard);
    assert_eq!(fired, [0], "not run again in the same poll");
    assert!(shard.is_overdue(tick(5)), "and it is known that it waits");
    assert_eq!(poll(&shard, 5), [1]);
}

#[test]
fn a_full_inbox_gives_the_value_back_and_recovers_with_the_next_guard() {
    let shard = shard(1 << 10);
    let guard = shard.try_lock().expect("the shard is unlocked");
    let mut inserted = 0;
    let refused = loop {
        match shard.remote_insert(tick(5), inserted) {
            Ok(_) => inserted += 1,
            Err(refused) => break refused,
        }
    };
    assert_eq!(inserted, 64, "as many as are kept back for posters");
    assert!(refused.is_busy() && !refused.is_capacity() && !refused.is_overflow());
    assert_eq!(refused.into_inner(), inserted);
    drop(guard);
    drop(shard.try_lock());
    let guard = shard.try_lock().expect("the shard is unlocked");
    shard.remote_insert(tick(5), inserted).expect("the inbox was emptied and stocked again");
    drop(guard);
    assert_eq!(poll(&shard, 5), (0..=inserted).collect::<Vec<_>>());
}

#[test]
fn the_inbox_serves_for_ever() {
    let shard = shard(256);
    let mut expected = Vec::new();
    for round in 0..1_000_u64 {
        let guard = shard.try_lock().expect("the shard is unlocked");
        for nth in 0..=round % 64 {
            expected.push((round, nth));
            shard.remote_insert(tick(round), (round, nth)).expect("room in the inbox");
        }
        drop(guard);
        assert_eq!(poll(&shard, round), expected);
        expected.clear();
    }
}

#[test]
fn a_cancel_from_outside_disarms_at_once_and_the_next_guard_frees() {
    let token = Rc::new(());
    let shard = shard(16);
    let id = shard.remote_insert(tick(5), Rc::clone(&token)).expect("room");
    assert!(shard.cancel(id));
    assert!(!shard.is_armed(id));
    assert!(!shard.cancel(id), "true once");
    let guard = shard.try_lock().expect("the shard is unlocked");
    assert!(guard.is_empty());
    assert_eq!(Rc::strong_count(&token), 2, "nothing of the user's is dropped under the guard");
    drop(guard);
    assert_eq!(Rc::strong_count(&token), 1);
    assert_eq!(poll(&shard, 9), []);
}

#[test]
fn a_cancel_while_the_timer_is_in_the_inbox_frees_it_too() {
    let token = Rc::new(());
    let shard = shard(16);
    let mut guard = shard.try_lock().expect("the shard is unlocked");
    let ids: Vec<_> =
        (0..4).map(|_| shard.remote_insert(tick(5), Rc::clone(&token)).expect("room")).collect();
    assert!(shard.cancel(ids[0]) && shard.cancel(ids[2]));
    let mut fired = 0;
    guard.poll(tick(5), usize::MAX, |_| fired += 1);
    drop(guard);
    assert_eq!(fired, 2);
    assert_eq!(Rc::strong_count(&token), 1);
    assert_eq!(len(&shard), 0);
}

#[test]
fn a_shard_that_keeps_garbage_drops_nothing_by_itself_and_gives_it_out_once() {
    let shard = shard(16).keeping_stale_values();
    let value = Rc::new(());
    let ids =
        [tick(5), tick(500)].map(|at| shard.remote_insert(at, Rc::clone(&value)).expect("room"));
    assert!(shard.cancel(ids[0]) && !shard.has_stale_values(), "the slot is not freed yet");
    // This call frees the slot and keeps it.
    assert_eq!(len(&shard), 1);
    assert!(shard.has_stale_values());
    assert_eq!(Rc::strong_count(&value), 3);

    let guard = shard.try_lock().expect("the shard is unlocked");
    assert!(shard.take_stale_values().is_empty(), "it is for who holds the guard");
    drop(guard);
    assert!(shard.has_stale_values());
    assert_eq!(shard.take_stale_values().len(), 1);
    assert!(!shard.has_stale_values() && shard.take_stale_values().is_empty());
    assert_eq!(Rc::strong_count(&value), 2);

    assert!(shard.cancel(ids[1]));
    drop(shard);
    assert_eq!(Rc::strong_count(&value), 1, "the remaining value is dropped with the shard");
}

#[test]
fn the_holders_cancel_gives_the_value_back_and_loses_against_one_from_outside() {
    let shard = shard(16);
    let (one, two) = (
        shard.remote_insert(tick(5), 1).expect("room"),
        shard.remote_insert(tick(5), 2).expect("room"),
    );
    let mut guard = shard.try_lock().expect("the shard is unlocked");
    assert_eq!(guard.cancel(one), Some(1));
    assert!(!shard.cancel(one), "it is decided");
    assert!(shard.cancel(two));
    assert_eq!(guard.cancel(two), None, "it is decided");
    assert!(!guard.contains(two));
    drop(guard);
    assert_eq!(poll(&shard, 9), []);
}

#[test]
fn a_timer_cancelled_from_outside_does_not_fire_even_if_the_holder_meets_it_first() {
    let shard = shard(16);
    let ids: Vec<_> = (0..3).map(|n| shard.remote_insert(tick(5), n).expect("room")).collect();
    let mut guard = shard.try_lock().expect("the shard is unlocked");
    let mut fired = Vec::new();
    guard.poll(tick(5), usize::MAX, |timer| {
        fired.push(timer.value);
        // The holder is in the middle of this tick and has not seen the stack.
        assert_eq!(shard.cancel(ids[1]), timer.value == 0);
    });
    drop(guard);
    assert_eq!(fired, [0, 2]);
    assert_eq!(len(&shard), 0);
    let room = (0..16).take_while(|n| shard.remote_insert(tick(50), *n).is_ok()).count();
    assert_eq!(room, 12, "its slot is free again");
}

#[test]
fn sixty_four_cancels_in_a_row_free_by_themselves() {
    let token = Rc::new(());
    let shard = shard(1 << 10);
    let ids: Vec<_> = (0..RETURNS_MAX)
        .map(|_| shard.remote_insert(tick(1 << 30), Rc::clone(&token)).expect("room"))
        .collect();
    let (last, others) = ids.split_last().expect("sixty-four");
    for id in others {
        assert!(shard.cancel(*id));
    }
    assert_eq!(Rc::strong_count(&token), 1 + RETURNS_MAX, "a cancel frees nothing by itself");
    assert!(shard.cancel(*last));
    assert_eq!(Rc::strong_count(&token), 1, "the sixty-fourth frees them all");
}

#[test]
fn cancels_beside_a_holder_are_freed_when_it_is_gone() {
    let token = Rc::new(());
    let shard = shard(1 << 12);
    let ids: Vec<_> = (0..2_000)
        .map(|_| shard.remote_insert(tick(1 << 30), Rc::clone(&token)).expect("room"))
        .collect();
    let guard = shard.try_lock().expect("the shard is unlocked");
    for id in &ids {
        assert!(shard.cancel(*id));
    }
    drop(guard);
    // One guard frees a bounded number: several guards free all.
    for _ in 0..10 {
        drop(shard.try_lock());
    }
    assert_eq!(Rc::strong_count(&token), 1);
    assert_eq!(len(&shard), 0);
}

#[test]
fn next_wake_follows_what_is_armed() {
    let shard = shard(16);
    assert_eq!(shard.next_wake(), None);
    assert!(!shard.is_overdue(Tick::MAX));

    assert!(shard.arm(tick(50), 0).expect("room").is_earliest, "the first");
    assert_eq!(shard.next_wake(), Some(tick(50)));
    assert!(!shard.arm(tick(60), 1).expect("room").is_earliest, "later than another");
    assert!(!shard.arm(tick(50), 2).expect("room").is_earliest, "no earlier than another");
    assert!(shard.arm(tick(20), 3).expect("room").is_earliest, "earlier than all");
    assert_eq!(shard.next_wake(), Some(tick(20)));
    assert!(!shard.is_overdue(tick(19)) && shard.is_overdue(tick(20)));

    assert_eq!(poll(&shard, 20), [3]);
    assert_eq!(shard.next_wake(), Some(tick(50)), "a poll publishes what is left");
    assert!(!shard.is_overdue(tick(49)));
    assert_eq!(poll(&shard, 100), [0, 2, 1]);
    assert_eq!(shard.next_wake(), None);
}

#[test]
fn a_remote_insert_next_to_a_holder_tells_whether_a_sleeper_must_be_woken() {
    let shard = shard(16);
    shard.remote_insert(tick(50), 0).expect("room");
    let guard = shard.try_lock().expect("the shard is unlocked");
    assert!(!shard.arm(tick(60), 1).expect("room").is_earliest);
    assert!(shard.arm(tick(20), 2).expect("room").is_earliest);
    assert_eq!(shard.next_wake(), Some(tick(20)), "known before the holder looks");
    drop(guard);
    assert_eq!(shard.next_wake(), Some(tick(20)), "and not forgotten when it leaves");
    assert_eq!(poll(&shard, 20), [2]);
}

#[test]
fn a_poll_that_runs_out_of_budget_leaves_the_shard_overdue() {
    let shard = shard(64);
    for n in 0..10 {
        shard.remote_insert(tick(5), n).expect("room");
    }
    let mut fired = Vec::new();
    let more = {
        let mut guard = shard.try_lock().expect("the shard is unlocked");
        guard.poll(tick(9), 4, |timer| fired.push(timer.value))
    };
    assert!(more);
    assert_eq!(fired, [0, 1, 2, 3]);
    assert!(shard.is_overdue(tick(9)), "somebody should go on");
    assert_eq!(poll(&shard, 9), [4, 5, 6, 7, 8, 9]);
}

#[test]
fn what_is_done_to_the_wheel_itself_is_published_when_the_guard_is_dropped() {
    let shard = shard(16);
    let mut guard = shard.try_lock().expect("the shard is unlocked");
    let wheel = &mut *guard;
    let id = wheel.insert(tick(30), "direct").expect("room");
    drop(guard);
    assert_eq!(shard.next_wake(), Some(tick(30)));
    let mut guard = shard.try_lock().expect("the shard is unlocked");
    let id = (*guard).rearm(id, tick(70)).expect("room").expect("armed");
    drop(guard);
    assert_eq!(shard.next_wake(), Some(tick(70)));
    assert!(shard.cancel(id), "an id of the wheel is one of the shard");
    assert_eq!(poll(&shard, 99), Vec::<&str>::new());
    assert_eq!(shard.next_wake(), None);
}

#[test]
fn the_capacity_counts_what_is_kept_back_for_remote_inserts() {
    // Up to a quarter of the slots is reserved, a power of two, at most 64.
    for (capacity, kept) in [(8, 2), (16, 4), (100, 16), (256, 64), (1_000, 64)] {
        let shard = shard(capacity);
        let mut guard = shard.try_lock().expect("the shard is unlocked");
        let local = (0..).take_while(|n| guard.insert(tick(9), *n).is_ok()).count();
        assert_eq!(local, capacity - kept, "of {capacity}");
        let refused = guard.insert(tick(9), 7_777).expect_err("full");
        assert!(refused.is_capacity());
        assert_eq!(refused.into_inner(), 7_777);
        let inserted = (0..).take_while(|n| shard.remote_insert(tick(9), *n).is_ok()).count();
        assert_eq!(inserted, kept, "of {capacity}");
        drop(guard);
        assert_eq!(len(&shard), capacity);
        let refused = shard.remote_insert(tick(9), 7_777).expect_err("full");
        assert!(refused.is_capacity());
        assert_eq!(poll(&shard, 9).len(), capacity);
        shard.remote_insert(tick(19), 1).expect("room again");
    }
}

#[test]
fn a_full_shard_has_room_again_after_cancels_from_outside() {
    let shard = shard(16);
    let ids: Vec<TimerId> = (0..).map_while(|n| shard.remote_insert(tick(9), n).ok()).collect();
    assert_eq!(ids.len(), 12);
    for id in &ids {
        assert!(shard.cancel(*id));
    }
    let again = (0..100).take_while(|n| shard.remote_insert(tick(9), *n).is_ok()).count();
    assert_eq!(again, 12);
}

#[test]
fn overflow_timers_need_no_room_of_their_own() {
    let shard = shard(16);
    let mut guard = shard.try_lock().expect("the shard is unlocked");
    for n in 0..12 {
        guard.insert(tick((1 << 40) + n), n).expect("room");
    }
    for n in 12..16 {
        shard.remote_insert(tick((1 << 40) + n), n).expect("room in the inbox");
    }
    drop(guard);
    assert_eq!(poll(&shard, (1 << 40) - 1), []);
    assert_eq!(poll(&shard, 1 << 41), (0..16).collect::<Vec<_>>());
}

#[test]
fn an_id_of_another_shard_is_refused() {
    let numbered = |id| Shard::new(ShardConfig { id, ..DEFAULT });
    let (one, two) = (numbered(1), numbered(2));
    let in_one = one.remote_insert(tick(5), 1).expect("room");
    let in_two = two.remote_insert(tick(5), 2).expect("room");
    assert_eq!((one.id(), in_one.shard(), in_two.shard()), (1, 1, 2));
    assert!(!one.cancel(in_two) && !one.is_armed(in_two));
    assert_eq!(one.try_lock().expect("the shard is unlocked").cancel(in_two), None);
    // A slot that the other shard never had.
    let strange =
        (0..5_000).map(|n| two.remote_insert(tick(9), n).expect("room")).last().expect("many");
    assert!(!one.cancel(strange) && !one.is_armed(strange));
    assert!(one.cancel(in_one) && two.cancel(in_two));
}

#[test]
fn a_stale_id_names_nothing_when_its_slot_is_used_again() {
    let shard = shard(8);
    let mut stale = Vec::new();
    for round in 0..50 {
        let fired = shard.remote_insert(tick(round), round).expect("room");
        assert_eq!(poll(&shard, round), [round]);
        let cancelled = shard.remote_insert(tick(round + 9), round).expect("room");
        assert!(shard.cancel(cancelled));
        let guard = shard.try_lock().expect("the shard is unlocked");
        let inserted = shard.remote_insert(tick(round + 9), round).expect("room in the inbox");
        drop(guard);
        assert!(shard.cancel(inserted));
        stale.extend([fired, cancelled, inserted]);
        let live = shard.remote_insert(tick(round + 9), round).expect("room");
        for id in &stale {
            assert!(!shard.is_armed(*id) && !shard.cancel(*id));
        }
        assert!(shard.is_armed(live) && shard.cancel(live));
        stale.push(live);
    }
}

#[test]
fn into_values_hands_out_what_is_armed_and_nothing_else() {
    let shard = shard(64);
    let cancelled = shard.remote_insert(tick(5), 0).expect("room");
    for (n, deadline) in [(1, 5), (2, 500), (3, 50_000), (4, 1 << 40)] {
        shard.remote_insert(tick(deadline), n).expect("room");
    }
    assert_eq!(poll(&shard, 0), []);
    assert!(shard.cancel(cancelled));
    let guard = shard.try_lock().expect("the shard is unlocked");
    shard.remote_insert(tick(5), 5).expect("room in the inbox");
    let cancelled = shard.remote_insert(tick(5), 6).expect("room in the inbox");
    assert!(shard.cancel(cancelled));
    core::mem::forget(guard);
    let mut values = shard.into_values();
    values.sort_unstable();
    assert_eq!(values, [1, 2, 3, 4, 5]);
}

/// Counts its drops.
struct DropCounter(Rc<Cell<u32>>);

impl Drop for DropCounter {
    fn drop(&mut self) {
        self.0.set(self.0.get() + 1);
    }
}

#[test]
fn a_dropped_shard_drops_each_value_once_wherever_it_is() {
    let drops = Rc::new(Cell::new(0));
    let value = || DropCounter(Rc::clone(&drops));
    let shard = shard(64);
    for deadline in [5, 500, 50_000, 1 << 40] {
        assert!(shard.remote_insert(tick(deadline), value()).is_ok());
    }
    let in_wheel = shard.remote_insert(tick(9), value()).map_err(|_| ()).expect("room");
    let guard = shard.try_lock().expect("the shard is unlocked");
    assert!(shard.remote_insert(tick(5), value()).is_ok());
    let in_inbox = shard.remote_insert(tick(5), value()).map_err(|_| ()).expect("room");
    assert!(shard.cancel(in_wheel) && shard.cancel(in_inbox));
    // The guard was forgotten, so that everything stays where it is.
    core::mem::forget(guard);
    assert_eq!(drops.get(), 0);
    drop(shard);
    assert_eq!(drops.get(), 7);
}

#[test]
fn a_panic_in_the_callback_unlocks_the_shard() {
    let shard = shard(64);
    for n in 0..5 {
        shard.remote_insert(tick(5), n).expect("room");
    }
    let outcome = panic::catch_unwind(AssertUnwindSafe(|| {
        let mut guard = shard.try_lock().expect("the shard is unlocked");
        guard.poll(tick(5), usize::MAX, |timer| assert_ne!(timer.value, 2, "the user's fault"));
    }));
    assert!(outcome.is_err());
    assert!(shard.is_overdue(tick(5)), "the rest is known to wait");
    assert_eq!(poll(&shard, 5), [3, 4]);
}

#[test]
fn no_code_of_the_users_runs_while_the_shard_is_locked() {
    /// Locks the shard when it is dropped.
    struct Needy<'s>(Option<&'s Shard<Needy<'s>>>, &'s Cell<u32>);
    impl Drop for Needy<'_> {
        fn drop(&mut self) {
            if let Some(shard) = self.0 {
                assert!(shard.try_lock().is_some(), "dropped under the guard");
                self.1.set(self.1.get() + 1);
            }
        }
    }
    let drops = Cell::new(0);
    let shard = core::mem::ManuallyDrop::new(shard(1 << 10));
    let post = || {
        let value = Needy(Some(&shard), &drops);
        shard.remote_insert(tick(50), value).map_err(|_| ()).expect("room")
    };
    // Freed by a guard, by the sixty-fourth cancel, and from the inbox.
    let id = post();
    assert!(shard.cancel(id));
    drop(shard.try_lock());
    let ids: Vec<_> = (0..RETURNS_MAX).map(|_| post()).collect();
    assert!(ids.into_iter().all(|id| shard.cancel(id)));
    let guard = shard.try_lock().expect("the shard is unlocked");
    let id = post();
    assert!(shard.cancel(id));
    drop(guard);
    drop(shard.try_lock());
    assert_eq!(drops.get() as usize, RETURNS_MAX + 2);
}

#[test]
fn the_smallest_shard_takes_timers_from_both_sides_once_each() {
    let shard = Shard::new(ShardConfig { capacity: 1, ..ShardConfig::DEFAULT });
    let mut guard = shard.try_lock().expect("the shard is unlocked");
    guard.insert(tick(9), 100).expect("room for the holder");
    let inserted = (0..10).take_while(|n| shard.remote_insert(tick(9), *n).is_ok()).count();
    assert_eq!(inserted, 2, "the two cells of the inbox");
    drop(guard);
    assert_eq!(shard.try_lock().expect("open").len(), 3);
}

/// The values that a close returns, sorted, and whether they were all.
fn close<T: Ord>(shard: &Shard<T>) -> (Vec<T>, Closed) {
    let mut values = Vec::new();
    let closed = shard.close(|value| {
        assert!(shard.try_lock().is_some(), "handed out under the guard");
        values.push(value);
    });
    values.sort_unstable();
    (values, closed)
}

#[test]
fn a_close_hands_out_what_is_armed_wherever_it_is_and_nothing_else() {
    let shard = shard(64);
    let cancelled = shard.remote_insert(tick(5), 0).expect("room");
    for (n, deadline) in [(1, 5), (2, 500), (3, 50_000), (4, 1 << 40)] {
        shard.remote_insert(tick(deadline), n).expect("room");
    }
    assert_eq!(poll(&shard, 10), [0, 1]);
    assert!(!shard.cancel(cancelled));
    let cancelled = shard.remote_insert(tick(77), 7).expect("room");
    let guard = shard.try_lock().expect("the shard is unlocked");
    let inserted = shard.remote_insert(tick(5), 5).expect("room in the inbox");
    let other = shard.remote_insert(tick(5), 6).expect("room in the inbox");
    assert!(shard.cancel(cancelled) && shard.cancel(other));
    drop(guard);
    assert!(!shard.is_closed());
    assert_eq!(close(&shard), (vec![2, 3, 4, 5], Closed::Done));
    assert!(shard.is_closed() && !shard.is_armed(inserted) && !shard.cancel(inserted));
    assert_eq!((len(&shard), shard.next_wake()), (0, None));
    assert_eq!(poll(&shard, 1 << 50), []);
    assert_eq!(close(&shard), (vec![], Closed::Done), "once more");
}

#[test]
fn a_closed_shard_refuses_whoever_arms_and_by_whichever_way() {
    for n_before in [0, 1, 20] {
        let shard = shard(64);
        let ids: Vec<_> =
            (0..n_before).map(|n| shard.remote_insert(tick(9), n).expect("room")).collect();
        if let Some(id) = ids.first() {
            assert!(shard.cancel(*id));
        }
        assert_eq!(close(&shard), ((1..n_before).collect(), Closed::Done));
        let refused = shard.remote_insert(tick(5), 100).expect_err("closed");
        assert!(refused.is_closed() && !refused.is_busy() && !refused.is_capacity());
        assert_eq!(refused.into_inner(), 100);
        let mut guard = shard.try_lock().expect("a guard can be had");
        for priority in TimerPriority::ALL {
            assert!(guard.arm(tick(5), priority, 100).expect_err("closed").is_closed());
        }
        assert!(shard.arm(tick(5), 100).expect_err("closed").is_closed(), "by the inbox");
        let wheel = &mut *guard;
        assert!(wheel.insert(tick(5), 100).is_err(), "by the wheel itself");
        assert!(wheel.insert(tick(1 << 40), 100).is_err(), "by the wheel itself, far");
        assert!(wheel.insert_or_evict(tick(5), TimerPriority::High, 100).is_err());
        drop(guard);
        assert_eq!(poll(&shard, 1 << 41), []);
    }
}

#[test]
fn a_close_beside_a_holder_is_busy_and_refuses_all_the_same() {
    let shard = shard(64);
    shard.remote_insert(tick(5), 1).expect("room");
    shard.remote_insert(tick(9), 2).expect("room");
    let mut guard = shard.try_lock().expect("the shard is unlocked");
    shard.remote_insert(tick(9), 3).expect("room in the inbox");
    assert_eq!(shard.close(|_| panic!("returned although the shard is locked")), Closed::Busy);
    assert!(guard.insert(tick(5), 4).expect_err("closed").is_closed());
    assert!(shard.remote_insert(tick(5), 4).expect_err("closed").is_closed());
    let mut fired = Vec::new();
    guard.poll(tick(5), 10, |timer| fired.push(timer.value));
    assert_eq!(fired, [1], "who holds the guard may go on");
    // By the wheel itself, which does not know about the close yet.
    let by_wheel = (*guard).insert(tick(5), 5).is_ok();
    drop(guard);
    let expected = if by_wheel { vec![2, 3, 5] } else { vec![2, 3] };
    assert_eq!(close(&shard), (expected, Closed::Done));
}

#[test]
fn a_panic_in_what_a_close_calls_leaves_the_shard_closed_and_drops_the_rest() {
    let token = Rc::new(());
    let shard = shard(64);
    for _ in 0..5 {
        shard.remote_insert(tick(5), Rc::clone(&token)).expect("room");
    }
    let outcome = panic::catch_unwind(AssertUnwindSafe(|| {
        let _ = shard.close(|_| panic!("the user's fault"));
    }));
    assert!(outcome.is_err());
    assert_eq!(Rc::strong_count(&token), 1);
    assert_eq!(shard.close(|_| panic!("nothing is left")), Closed::Done);
}

/// The statistics of a shard that no other thread uses; their invariant is checked.
fn stats<T>(shard: &Shard<T>) -> ShardStats {
    let stats = shard.stats();
    let ends = stats.pending + stats.fired + stats.cancelled + stats.dropped;
    assert_eq!(stats.armed, ends, "{stats:?}");
    stats
}

#[test]
fn the_statistics_tell_what_became_of_every_timer() {
    let shard = shard(64);
    assert_eq!(stats(&shard), ShardStats::default());
    let ids: Vec<_> =
        (0..10).map(|n| shard.remote_insert(tick(10 + n), n).expect("room")).collect();
    let mut expected = ShardStats { armed: 10, pending: 10, ..ShardStats::default() };
    assert_eq!(stats(&shard), expected);

    assert_eq!(poll(&shard, 11).len(), 2);
    expected = ShardStats { fired: 2, pending: 8, ..expected };
    assert_eq!(stats(&shard), expected);

    let mut guard = shard.try_lock().expect("the shard is unlocked");
    assert!(guard.cancel(ids[2]).is_some() && guard.cancel(ids[2]).is_none());
    let wheel = &mut *guard;
    wheel.rearm(ids[3], tick(90)).expect("room").expect("armed");
    assert!(wheel.shed(100).is_some());
    drop(guard);
    expected = ShardStats { cancelled: 1, dropped: 1, rescheduled: 1, pending: 6, ..expected };
    assert_eq!(stats(&shard), expected);

    assert!(shard.cancel(ids[8]) && shard.cancel(ids[9]) && !shard.cancel(ids[9]));
    expected = ShardStats { cancelled: 3, pending: 4, stale: 2, ..expected };
    assert_eq!(stats(&shard), expected);
    assert_eq!(len(&shard), 4, "a guard frees them");
    expected = ShardStats { stale: 0, max_returns: 2, ..expected };
    assert_eq!(stats(&shard), expected);

    let n_left = close(&shard).0.len();
    expected = ShardStats { dropped: 1 + n_left, pending: 0, ..expected };
    assert_eq!((n_left, stats(&shard)), (4, expected));
}

#[test]
fn what_is_drained_comes_in_order_and_counts_as_dropped() {
    let shard = shard(64);
    let ids = [70, 5, u64::MAX, 5, 1 << 40].map(|due| shard.remote_insert(tick(due), due));
    let ids = ids.map(|id| id.expect("room"));
    assert!(shard.cancel(ids[1]));
    assert_eq!(poll(&shard, 4), []);
    let mut guard = shard.try_lock().expect("the shard is unlocked");
    // By the inbox, which the drain empties too.
    assert!(shard.remote_insert(tick(60), 60).is_ok());
    let mut drained = Vec::new();
    guard.drain(|due| drained.push(due));
    drop(guard);
    assert_eq!(drained, [5, 60, 70, 1 << 40, u64::MAX]);
    let ShardStats { armed, pending, fired, cancelled, dropped, .. } = stats(&shard);
    assert_eq!((armed, pending, fired, cancelled, dropped), (6, 0, 0, 1, 5));
    assert_eq!(shard.next_wake(), None);
}

#[test]
fn the_statistics_count_what_came_by_the_inbox_when_it_is_entered() {
    let shard = shard(64);
    let guard = shard.try_lock().expect("the shard is unlocked");
    let ids: Vec<_> = (0..4).map(|n| shard.remote_insert(tick(10), n).expect("room")).collect();
    assert!(shard.cancel(ids[1]));
    let beside = shard.stats();
    assert_eq!((beside.armed, beside.pending, beside.cancelled, beside.stale), (0, 0, 1, 1));
    drop(guard);
    assert_eq!(len(&shard), 3);
    let expected = ShardStats { armed: 4, pending: 3, cancelled: 1, max_returns: 1, ..beside };
    assert_eq!(stats(&shard), ShardStats { stale: 0, ..expected });
}

#[test]
fn the_statistics_beside_a_holder_are_those_of_the_last_poll() {
    let shard = shard(64);
    shard.remote_insert(tick(5), 0).expect("room");
    assert_eq!(poll(&shard, 4), []);
    let mut guard = shard.try_lock().expect("the shard is unlocked");
    guard.insert(tick(5), 1).expect("room");
    assert_eq!((shard.stats().armed, shard.stats().fired), (1, 0));
    guard.poll(tick(9), 100, |_| {});
    drop(guard);
    let guard = shard.try_lock().expect("the shard is unlocked");
    assert_eq!((shard.stats().armed, shard.stats().fired), (2, 2), "published by the unlock");
    drop(guard);
}

#[test]
fn the_occupancy_names_the_slots_that_hold_timers() {
    let shard = shard(16);
    assert_eq!(shard.occupancy(), Some(ShardOccupancy::default()));
    for due in [7, 9, 9, 64 * 5, 4_096 * 3, 262_144 * 2, 1 << 21] {
        shard.arm(tick(due), due).expect("room");
    }
    let seen = shard.occupancy().expect("the shard is unlocked");
    assert_eq!(seen.levels, [1 << 7 | 1 << 9, 1 << 5, 1 << 3, 1 << 2]);
    assert_eq!((seen.overflow, seen.next), (1, Some(tick(7))));
    assert_eq!(poll(&shard, 10), [7, 9, 9]);
    let seen = shard.occupancy().expect("the shard is unlocked");
    assert_eq!((seen.levels[0], seen.elapsed, seen.next), (0, tick(10), Some(tick(320))));
    let guard = shard.try_lock().expect("the shard is unlocked");
    assert_eq!(shard.occupancy(), None);
    drop(guard);
}
