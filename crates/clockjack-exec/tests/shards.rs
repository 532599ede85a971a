//! What the table of shards promises, in virtual time. The races are in `loom/shards.rs`.
#![cfg(not(loom))]

extern crate alloc;

use alloc::{collections::BTreeMap, sync::Arc};
use core::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use clockjack_exec::shards::{Cancelled, Closed, Polled, Shards, ShardsConfig};
use clockjack_time::{Tick, TimerId, shard::RETURNS_MAX};

fn tick(ticks: u64) -> Tick {
    Tick::new(ticks)
}

fn shards<T: Send>(workers: usize) -> Shards<T> {
    Shards::new(ShardsConfig { workers, ..ShardsConfig::DEFAULT })
}

/// Numbers without a pattern, the same in every run (xorshift).
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % end
    }

    fn pick(&mut self, len: usize) -> usize {
        usize::try_from(self.below(len as u64)).expect("less than a usize")
    }
}

/// Polls one shard to the end and says what fired.
fn poll<T: Send>(shards: &Shards<T>, shard: u32, now: u64) -> Vec<T> {
    let mut fired = Vec::new();
    let polled = shards.poll(shard, tick(now), usize::MAX, |timer| {
        assert!(timer.deadline <= tick(now), "early");
        fired.push(timer.value);
    });
    assert_eq!(polled, Polled { fired: fired.len(), ..Polled::default() });
    fired
}

fn kept<T: Send>(shards: &Shards<T>, worker: usize) -> Vec<u32> {
    shards.assigned_to(worker).collect()
}

/// Gives every unassigned to one worker.
fn adopt_all<T: Send>(shards: &Shards<T>, worker: usize) -> usize {
    shards.reassign(|| Some(worker), |chosen, _| assert_eq!(chosen, worker))
}

#[test]
fn a_resize_from_eight_to_one_loses_no_timer_and_fires_none_early_or_late() {
    const TIMERS: u64 = 100_000;
    let shards = shards(8);
    let homes: Vec<u32> = (0..8).map(|worker| shards.attach(worker)).collect();
    let mut numbers = Numbers(7);
    let deadlines: Vec<u64> = (0..TIMERS).map(|_| 1 + numbers.below(1 << 22)).collect();
    for (number, deadline) in deadlines.iter().enumerate() {
        shards.arm(homes[number % 8], tick(*deadline), number).expect("room");
    }
    let mut active = 8;
    let mut fired_at = vec![None; deadlines.len()];
    let mut turns = 0_u64;
    // Every worker sleeps until its next wake; from time to time one of them stops.
    while let Some(now) = (0..active).filter_map(|worker| shards.next_wake(worker)).min() {
        for worker in 0..active {
            for shard in kept(&shards, worker) {
                shards.poll(shard, now, 64, |timer| {
                    assert_eq!(timer.deadline, tick(deadlines[timer.value]), "its own deadline");
                    assert_eq!(fired_at[timer.value].replace(now), None, "fired twice");
                });
            }
        }
        turns += 1;
        if active > 1 && turns.is_multiple_of(2_000) {
            active -= 1;
            assert_eq!(shards.detach(active), 1);
            assert_eq!(adopt_all(&shards, 0), 1);
        }
    }
    assert_eq!((active, kept(&shards, 0).len()), (1, 8), "worker 0 keeps what all others had");
    for (fired, deadline) in fired_at.iter().zip(&deadlines) {
        assert_eq!(*fired, Some(tick(*deadline)), "lost, early or late");
    }
}

#[test]
fn an_unassigned_shard_that_falls_due_before_it_is_reassigned_is_taken_over() {
    let shards = shards(2);
    let home = shards.attach(0);
    shards.attach(1);
    shards.arm(home, tick(5), "first").expect("room");
    shards.arm(home, tick(5), "second").expect("room");
    assert_eq!(shards.detach(0), 1);
    assert_eq!(shards.overdue(tick(4), Some(1), 1), None);
    assert_eq!(shards.overdue(tick(5), Some(1), 1), Some(home));
    let mut fired = Vec::new();
    let polled = shards.take_over(home, tick(5), usize::MAX, |timer| fired.push(timer.value));
    assert_eq!((polled.fired, fired), (2, vec!["first", "second"]));
    assert_eq!(shards.overdue(tick(5), Some(1), 1), None);
    assert_eq!((shards.stats().taken_over, shards.stats().unassigned), (2, 1));
}

#[test]
fn the_overdue_timers_of_a_blocked_worker_are_fired_by_another_and_its_own_are_not_looked_at() {
    let shards = shards(2);
    let (blocked, free) = (shards.attach(0), shards.attach(1));
    for number in 0..100 {
        shards.arm(blocked, tick(10 + number / 10), number).expect("room");
    }
    shards.arm(free, tick(1), 999).expect("room");
    assert_eq!(shards.overdue(tick(9), Some(1), 0), None, "its own it polls anyway");
    let mut fired = Vec::new();
    for now in 10..20 {
        // A budget of less than a tick's timers: the rest stays overdue.
        while let Some(shard) = shards.overdue(tick(now), Some(1), 0) {
            let polled = shards.take_over(shard, tick(now), 7, |timer| fired.push(timer.value));
            assert!(!polled.held_by_other);
        }
        assert_eq!(fired.len() as u64, (now - 9) * 10, "exactly those that are due");
    }
    assert_eq!(fired, (0..100).collect::<Vec<_>>(), "in order");
    assert_eq!(poll(&shards, blocked, 100), [], "nothing is left for the owner");
}

#[test]
fn a_worker_that_attaches_takes_an_unassigned_then_an_extra_then_makes_a_shard() {
    let shards = shards::<()>(4);
    assert_eq!((shards.attach(0), shards.attach(1), shards.attach(2)), (0, 1, 2));
    shards.detach(1);
    assert_eq!(adopt_all(&shards, 0), 1);
    assert_eq!(kept(&shards, 0), [0, 1]);
    shards.detach(2);
    assert_eq!(shards.stats().unassigned, 1);
    assert_eq!(shards.attach(3), 2, "an unassigned shard");
    assert_eq!(shards.attach(2), 1, "an extra");
    assert_eq!(kept(&shards, 0), [0]);
    assert_eq!(
        (shards.local_shard(0), shards.local_shard(1), shards.local_shard(2)),
        (Some(0), None, Some(1))
    );
    assert_eq!(shards.attach(1), 3, "a new one");
    let stats = shards.stats();
    assert_eq!((stats.shards, stats.unassigned, stats.reassigned), (4, 0, 2));
}

#[test]
fn there_are_never_more_shards_than_workers_that_were_there_at_a_time() {
    const SEATS: usize = 70;
    let shards = shards::<()>(SEATS);
    let mut numbers = Numbers(11);
    let mut attached = [false; SEATS];
    let mut most = 0;
    for _ in 0..1_000 {
        let worker = numbers.pick(SEATS);
        if attached[worker] {
            let unassigned = shards.detach(worker);
            assert!(unassigned > 0, "every worker keeps a shard");
        } else {
            let home = shards.attach(worker);
            assert_eq!(shards.local_shard(worker), Some(home));
        }
        attached[worker] = !attached[worker];
        let active: Vec<usize> = (0..SEATS).filter(|worker| attached[*worker]).collect();
        most = most.max(active.len());
        if !active.is_empty() && numbers.below(3) == 0 {
            let chosen = active[numbers.pick(active.len())];
            adopt_all(&shards, chosen);
            assert!(!shards.has_unassigned());
        }
        assert_eq!(shards.stats().shards, most, "a shard was made without need");
        // Every shard is unassigned or assigned to one worker, and no worker is without one.
        let mut keepers = vec![0; shards.stats().shards];
        for worker in &active {
            assert!(shards.assigned_to(*worker).next().is_some());
            shards.assigned_to(*worker).for_each(|shard| keepers[shard as usize] += 1);
        }
        let unassigned = keepers.iter().filter(|keepers| **keepers == 0).count();
        assert!(keepers.iter().all(|keepers| *keepers <= 1), "{keepers:?}");
        assert_eq!(unassigned, shards.stats().unassigned);
    }
}

#[test]
fn shards_that_nobody_can_take_stay_in_the_queue() {
    let shards = shards::<()>(3);
    assert_eq!([0, 1, 2].map(|worker| shards.attach(worker)), [0, 1, 2]);
    assert_eq!(shards.detach(0) + shards.detach(1), 2);
    assert_eq!(shards.reassign(|| None, |_, _| panic!("nobody was chosen")), 0);
    assert_eq!(shards.reassign(|| Some(1), |_, _| panic!("worker 1 is empty")), 0);
    assert!(shards.has_unassigned());
    let mut told = Vec::new();
    assert_eq!(shards.reassign(|| Some(2), |worker, shard| told.push((worker, shard))), 2);
    assert_eq!(told, [(2, 0), (2, 1)]);
    assert!(!shards.has_unassigned());
    assert_eq!(shards.detach(2), 3, "extras are left behind as the home is");
}

#[test]
fn an_arm_says_whom_to_wake() {
    let shards = shards(2);
    let home = shards.attach(1);
    let armed = shards.arm(home, tick(50), ()).expect("room");
    assert_eq!((armed.is_earliest, armed.worker), (true, Some(1)));
    let armed = shards.arm(home, tick(60), ()).expect("room");
    assert_eq!((armed.is_earliest, armed.worker), (false, None));
    assert_eq!(shards.next_wake(1), Some(tick(50)));
    shards.detach(1);
    let armed = shards.arm(home, tick(40), ()).expect("an unassigned shard takes timers");
    assert_eq!((armed.is_earliest, armed.worker), (true, None));
    let wakes: Vec<_> = shards.wakes().collect();
    assert_eq!(wakes, [(home, None, Some(tick(40)))]);
    assert_eq!(shards.attach(0), home);
    assert_eq!(shards.next_wake(0), Some(tick(40)), "the new assigned knows");
    let armed = shards.arm(home, tick(30), ()).expect("room");
    assert_eq!(armed.worker, Some(0));
}

#[test]
fn ids_stay_valid_when_the_shard_changes_hands() {
    let shards = shards(2);
    let home = shards.attach(0);
    shards.attach(1);
    let arm = |value: &'static str| shards.arm(home, tick(9), value).expect("room").id;
    let (first, second, third) = (arm("first"), arm("second"), arm("third"));
    shards.detach(0);
    assert!(shards.cancel(first), "of an unassigned shard");
    adopt_all(&shards, 1);
    assert_eq!(
        shards.cancel_take(second),
        Cancelled::Won(Some("second")),
        "of an reassigned shard"
    );
    assert_eq!(shards.cancel_take(second), Cancelled::Lost);
    assert!(!shards.cancel(first));
    assert_eq!(poll(&shards, home, 9), ["third"]);
    assert_eq!(shards.cancel_take(third), Cancelled::Lost);
}

#[test]
fn a_cancel_while_the_shard_is_held_wins_without_the_value() {
    let shards = shards(1);
    let home = shards.attach(0);
    let later = shards.arm(home, tick(9), 2).expect("room").id;
    shards.arm(home, tick(1), 1).expect("room");
    let polled = shards.poll(home, tick(1), 10, |_| {
        assert_eq!(shards.cancel_take(later), Cancelled::Won(None));
        assert!(shards.poll(home, tick(1), 10, |_| ()).held_by_other);
    });
    assert_eq!(polled.fired, 1);
    assert_eq!(poll(&shards, home, 9), []);
}

#[test]
fn what_is_cancelled_while_the_shard_is_held_is_freed_long_before_its_deadline() {
    let shards = Shards::new(ShardsConfig { workers: 1, capacity: 16, start: Tick::ZERO });
    let home = shards.attach(0);
    let value = Arc::new(());
    let later = shards.arm(home, tick(1_000_000), Arc::clone(&value)).expect("room").id;
    shards.arm(home, tick(1), Arc::new(())).expect("room");
    let polled = shards.poll(home, tick(1), 10, |_| {
        assert_eq!(shards.cancel_take(later), Cancelled::Won(None));
        assert!(!shards.free_cancelled(home), "this very thread holds it");
        assert_eq!(shards.request_poll(home, tick(1)), Some(0), "the worker to wake");
    });
    assert_eq!((polled.fired, Arc::strong_count(&value)), (1, 2));
    assert_eq!(shards.next_wake(0), Some(tick(1)), "the holder has left it due");
    assert_eq!(shards.poll(home, tick(1), 10, |_| ()).fired, 0);
    assert_eq!((Arc::strong_count(&value), shards.next_wake(0)), (1, None));
}

#[test]
fn a_million_remote_cancels_of_timers_of_one_hour_leave_bounded_memory() {
    const HOUR: u64 = 3_600_000;
    let shards = Shards::new(ShardsConfig { workers: 2, capacity: 1 << 10, start: Tick::ZERO });
    let home = shards.attach(0);
    let values = Arc::new(());
    for batch in 0..2_000 {
        // Nobody polls: the owner is blocked all the time.
        let arm = |n| shards.arm(home, tick(HOUR + batch + n), values.clone()).expect("room").id;
        let ids: Vec<TimerId> = (0..500).map(arm).collect();
        assert!(ids.into_iter().all(|id| shards.cancel(id)));
        let waiting = Arc::strong_count(&values) - 1;
        assert!(waiting <= RETURNS_MAX, "{waiting} values wait to be dropped");
        assert!(shards.stale_len(0) <= RETURNS_MAX, "{} said to be stale", shards.stale_len(0));
    }
    assert_eq!(shards.len(home), Some(0));
    assert_eq!(Arc::strong_count(&values), 1);
}

#[test]
fn close_hands_out_every_timer_once_and_refuses_the_rest() {
    let shards = shards(3);
    let homes: Vec<u32> = (0..3).map(|worker| shards.attach(worker)).collect();
    let deadlines = [5, 1 << 25, u64::MAX, 70, 5, u64::MAX - 1];
    let mut ids = Vec::new();
    for home in &homes {
        for deadline in deadlines {
            let value = ids.len();
            ids.push(shards.arm(*home, tick(deadline), value).expect("room").id);
        }
    }
    shards.detach(2);
    assert!(shards.cancel(ids[7]));
    assert_eq!(poll(&shards, homes[0], 5), [0, 4]);
    let mut drained = Vec::new();
    let closed = shards.close(
        |value| {
            let is_held = |home: &&u32| shards.len(**home).is_none();
            assert_eq!(homes.iter().find(is_held), None, "a guard is held");
            drained.push(value);
        },
        || panic!("nobody holds a guard"),
    );
    // A shard's in order of their deadlines; the last one's, which is unassigned, too.
    assert_eq!(drained, [3, 1, 5, 2, 6, 10, 9, 11, 8, 12, 16, 15, 13, 17, 14]);
    assert_eq!(closed, Closed { drained: 15, left: 0 });
    let refused = shards.arm(homes[0], tick(1), 77).expect_err("closed");
    assert!(refused.is_closed());
    assert_eq!(refused.into_inner(), Some(77));
    assert!(ids.iter().all(|id| !shards.cancel(*id)), "each has ended");
    assert!(shards.poll(homes[0], Tick::MAX, 10, |_| panic!("closed")).is_closed);
    assert_eq!(shards.next_wake(0), None);
    assert_eq!(
        shards.close(|_| panic!("handed out twice"), thread::yield_now),
        Closed { drained: 0, left: 0 }
    );
    assert_eq!(shards.stats().refused, 1);
    let timers = shards.timers();
    assert_eq!((timers.armed, timers.fired, timers.cancelled), (18, 2, 1));
    assert_eq!((timers.dropped, timers.pending), (15, 0), "dropped, and not fired");
}

#[test]
fn a_shard_that_is_closed_while_it_fires_is_left_to_the_caller_of_that_poll() {
    let shards = shards(1);
    let home = shards.attach(0);
    for number in 1..=3 {
        shards.arm(home, tick(number), number).expect("room");
    }
    let mut drained = Vec::new();
    let polled = shards.poll(home, tick(1), 10, |timer| {
        assert_eq!(timer.value, 1);
        let closed =
            shards.close(|_| panic!("the guard is held"), || panic!("it would wait for ever"));
        assert_eq!(closed, Closed { drained: 0, left: 1 });
        let refused = shards.arm(home, tick(9), 9).expect_err("closed");
        assert_eq!(refused.into_inner(), Some(9));
    });
    assert!(polled.is_closed, "the rest is left to the caller of this poll");
    assert!(shards.poll(home, tick(9), 10, |_| panic!("closed")).is_closed);
    assert_eq!(
        shards.close(|value| drained.push(value), thread::yield_now),
        Closed { drained: 2, left: 0 }
    );
    assert_eq!(drained, [2, 3]);
}

#[test]
fn a_full_shard_gives_the_value_back() {
    let shards = Shards::new(ShardsConfig { workers: 1, capacity: 8, start: Tick::ZERO });
    let home = shards.attach(0);
    let refused = (0..9).find_map(|n| shards.arm(home, tick(9), n).err()).expect("full");
    assert!(refused.is_full() && !refused.is_busy() && !refused.is_closed());
    assert_eq!(refused.into_inner(), Some(6), "two of eight wait in the inbox");
}

#[test]
#[should_panic(expected = "is attached already")]
fn two_workers_of_one_index_are_a_fault() {
    let shards = shards::<()>(1);
    shards.attach(0);
    shards.attach(0);
}

/// How often each timer of a stress test has ended.
struct Ends(Vec<AtomicUsize>);

impl Ends {
    fn count(&self, value: usize) {
        self.0[value].fetch_add(1, Ordering::Relaxed);
    }
}

/// What every thread does with its worker, until it has armed enough.
fn come_and_go(shards: &Shards<usize>, worker: usize, ends: &Ends, close_at: Option<usize>) {
    let mut numbers = Numbers(worker as u64 + 1);
    let mut ids: BTreeMap<usize, TimerId> = BTreeMap::new();
    let mut home = shards.attach(worker);
    for step in 0..PER_THREAD {
        let (value, now) = (worker * PER_THREAD + step, tick(step as u64));
        match shards.arm(home, tick(numbers.below(2 * PER_THREAD as u64)), value) {
            Ok(armed) => assert_eq!(ids.insert(value, armed.id), None),
            Err(refused) => {
                assert!(refused.into_inner().is_none_or(|other| other == value));
                ends.count(value);
            }
        }
        if close_at == Some(step) {
            shards.close(|value| ends.count(value), thread::yield_now);
        }
        match numbers.below(8) {
            0 => {
                if let Some((value, id)) = ids.pop_first()
                    && shards.cancel(id)
                {
                    ends.count(value);
                }
            }
            1 => {
                if let Some((value, id)) = ids.pop_last()
                    && let Cancelled::Won(taken) = shards.cancel_take(id)
                {
                    assert!(taken.is_none_or(|taken| taken == value), "another timer's value");
                    ends.count(value);
                }
            }
            2 if numbers.below(16) == 0 => {
                shards.detach(worker);
                home = shards.attach(worker);
            }
            3 => assert!(shards.reassign(|| Some((worker + 1) % 3), |_, _| ()) <= 3),
            4 => {
                if let Some(shard) = shards.overdue(now, Some(worker), step) {
                    shards.take_over(shard, now, 16, |timer| ends.count(timer.value));
                }
            }
            _ => {
                for shard in shards.assigned_to(worker) {
                    shards.poll(shard, now, 16, |timer| ends.count(timer.value));
                }
            }
        }
    }
    shards.detach(worker);
}

/// How many timers a thread of a stress test arms.
const PER_THREAD: usize = 30_000;

/// The law: each timer ends once, by its fire, its cancel, its refusal or the close.
fn check_ends(close_at: Option<usize>) {
    let shards = shards(3);
    let ends = Ends((0..3 * PER_THREAD).map(|_| AtomicUsize::new(0)).collect());
    thread::scope(|scope| {
        for worker in 0..3 {
            let (shards, ends) = (&shards, &ends);
            let close_at = close_at.filter(|_| worker == 0);
            scope.spawn(move || come_and_go(shards, worker, ends, close_at));
        }
    });
    let stats = shards.stats();
    assert_eq!(stats.unassigned, stats.shards, "all have left");
    assert!(stats.shards <= 3);
    assert_eq!(shards.close(|value| ends.count(value), thread::yield_now).left, 0);
    for (value, ends) in ends.0.iter().enumerate() {
        assert_eq!(ends.load(Ordering::Relaxed), 1, "the ends of timer {value}");
    }
}

#[test]
fn every_timer_ends_once_while_workers_come_and_go() {
    check_ends(None);
}

#[test]
fn every_timer_ends_once_while_workers_come_and_go_and_one_closes() {
    for close_at in [1, 100, PER_THREAD / 2] {
        check_ends(Some(close_at));
    }
}

/// A worker that does not free the timers that others cancel is the last that gets another shard; a
/// few of them do not decide, but the number of shards does.
#[test]
fn a_shard_is_assigned_to_the_worker_that_frees_its_timers_and_has_the_fewest_shards() {
    for (n_stale, expected) in [(RETURNS_MAX - 1, 0), (RETURNS_MAX, 1)] {
        let shards = shards(4);
        let homes: Vec<u32> = (0..4).map(|worker| shards.attach(worker)).collect();
        shards.detach(3);
        assert_eq!(adopt_all(&shards, 1), 1);
        shards.detach(2);
        assert_eq!([0, 1].map(|worker| shards.load(worker)), [(0, 1), (0, 2)]);
        let arm = |due| shards.arm(homes[0], tick(due), ()).expect("room").id;
        let ids: Vec<TimerId> = (0..n_stale).map(|_| arm(100)).collect();
        arm(1);
        let mut chosen = Vec::new();
        // The holder of the guard is in its callback meanwhile, and frees nothing.
        shards.poll(homes[0], tick(1), usize::MAX, |_| {
            assert!(ids.iter().all(|id| shards.cancel(*id)));
            let least = || (0..2).min_by_key(|worker| shards.load(*worker));
            shards.reassign(least, |worker, _| chosen.push(worker));
        });
        assert_eq!(chosen, [expected], "{n_stale} cancelled timers");
        assert_eq!(shards.timers().stale, n_stale, "they are freed by the next guard");
        assert_eq!(poll(&shards, homes[0], 2), []);
        assert_eq!((shards.timers().stale, shards.timers().cancelled), (0, n_stale));
    }
}
