//! The shard: holder, remote insert, remote cancel and takeover, in every order.
//!
//! The invariant: for every accepted timer, either its cancel returned true or it fired, once; and
//! nothing is left in the end. loom itself reports two threads in the wheel concurrently, and a
//! value that is leaked or dropped twice (values are counted by an `Arc`).

use alloc::{sync::Arc, vec::Vec};

use clockjack_time::{Closed, Inserted, Shard, ShardConfig, Tick, TimerId, TimerPriority};
use loom::thread;

/// The value of a timer: a number, and a token whose count shows leaks.
type Value = (u32, Arc<()>);

fn shard(capacity: usize) -> Arc<Shard<Value>> {
    Arc::new(Shard::new(ShardConfig { capacity, ..ShardConfig::DEFAULT }))
}

/// The timers that fired up to `now`, if the shard could be locked.
fn poll(shard: &Shard<Value>, now: u64) -> Vec<u32> {
    let mut fired = Vec::new();
    if let Some(mut guard) = shard.try_lock() {
        assert!(!guard.poll(Tick::new(now), 100, |timer| {
            assert!(timer.deadline <= timer.now, "early");
            fired.push(timer.value.0);
        }));
    }
    fired
}

/// Polls until nothing is left and checks that each of `timers` fired or was cancelled, once.
fn poll_and_check(shard: &Arc<Shard<Value>>, mut fired: Vec<u32>, timers: &[(u32, bool)]) {
    fired.extend(poll(shard, 1_000));
    for (number, cancelled) in timers {
        let times = fired.iter().filter(|other| *other == number).count();
        assert_eq!(times, usize::from(!cancelled), "timer {number} of {fired:?}");
    }
    assert_eq!(fired.len(), timers.iter().filter(|(_, cancelled)| !cancelled).count());
    let guard = shard.try_lock().expect("all others are gone");
    assert!(guard.is_empty(), "{} timers are left", guard.len());
    drop(guard);
    assert_eq!(shard.next_wake(), None, "nothing is armed");
}

#[test]
fn holder_remote_arm_remote_cancel_and_takeover_lose_nothing() {
    loom::model(|| {
        let token = Arc::new(());
        let shard = shard(16);
        let first = shard.remote_insert(Tick::new(5), (1, token.clone())).expect("room");
        let holder = {
            let shard = shard.clone();
            thread::spawn(move || poll(&shard, 9))
        };
        let poster = {
            let (shard, token) = (shard.clone(), token.clone());
            thread::spawn(move || shard.remote_insert(Tick::new(7), (2, token)).is_ok())
        };
        let cancelled = shard.cancel(first);
        // The takeover: the thread that gets the lock polls.
        let mut fired = poll(&shard, 9);
        fired.extend(holder.join().expect("no panic"));
        let accepted = poster.join().expect("no panic");
        assert!(accepted, "the inbox has room");
        poll_and_check(&shard, fired, &[(1, cancelled), (2, false)]);
        drop(shard);
        assert_eq!(Arc::strong_count(&token), 1, "every value was dropped");
    });
}

#[test]
fn a_cancel_of_a_remote_timer_frees_it_wherever_it_is() {
    loom::model(|| {
        let token = Arc::new(());
        let shard = shard(16);
        let holder = {
            let shard = shard.clone();
            thread::spawn(move || poll(&shard, 3))
        };
        let poster = {
            let (shard, token) = (shard.clone(), token.clone());
            thread::spawn(move || {
                let id = shard.remote_insert(Tick::new(7), (1, token)).expect("room");
                shard.cancel(id)
            })
        };
        let fired = poll(&shard, 9);
        let mut all = holder.join().expect("no panic");
        all.extend(fired);
        let cancelled = poster.join().expect("no panic");
        poll_and_check(&shard, all, &[(1, cancelled)]);
        assert_eq!(Arc::strong_count(&token), 1, "freed, not only disarmed");
    });
}

#[test]
fn a_slot_that_is_returned_before_its_cell_is_reached_is_freed_once() {
    loom::model(|| {
        let token = Arc::new(());
        let shard = shard(16);
        let mut guard = shard.try_lock().expect("the shard is unlocked");
        // The first inserter may stop between claiming its cell and filling it; then the holder
        // cannot get past it to the second, whose slot it finds on the index stack.
        let first = {
            let (shard, token) = (shard.clone(), token.clone());
            thread::spawn(move || shard.remote_insert(Tick::new(7), (1, token)).is_ok())
        };
        let second = {
            let (shard, token) = (shard.clone(), token.clone());
            thread::spawn(move || {
                let id = shard.remote_insert(Tick::new(7), (2, token)).expect("room");
                shard.cancel(id)
            })
        };
        let mut fired = Vec::new();
        assert!(!guard.poll(Tick::new(9), 100, |timer| fired.push(timer.value.0)));
        drop(guard);
        assert!(first.join().expect("no panic"));
        let cancelled = second.join().expect("no panic");
        poll_and_check(&shard, fired, &[(1, false), (2, cancelled)]);
        assert_eq!(Arc::strong_count(&token), 1, "every value was dropped");
        // The slot is free again: as many timers fit as before.
        let room =
            core::iter::repeat_with(|| shard.remote_insert(Tick::new(2_000), (9, token.clone())));
        assert_eq!(room.take_while(Result::is_ok).count(), 14, "two of 16 wait in the inbox");
    });
}

#[test]
fn two_inserters_and_a_holder_keep_every_timer_once() {
    loom::model(|| {
        let token = Arc::new(());
        let shard = shard(16);
        let post = |number: u32| {
            let (shard, token) = (shard.clone(), token.clone());
            thread::spawn(move || shard.remote_insert(Tick::new(7), (number, token)).is_ok())
        };
        let (one, two) = (post(1), post(2));
        let fired = poll(&shard, 9);
        assert!(one.join().expect("no panic") && two.join().expect("no panic"));
        poll_and_check(&shard, fired, &[(1, false), (2, false)]);
    });
}

#[test]
fn two_cancels_and_an_expiry_have_one_winner() {
    loom::model(|| {
        let token = Arc::new(());
        let shard = shard(16);
        let id: TimerId = shard.remote_insert(Tick::new(5), (1, token)).expect("room");
        let other = {
            let shard = shard.clone();
            thread::spawn(move || shard.cancel(id))
        };
        let holder = {
            let shard = shard.clone();
            thread::spawn(move || poll(&shard, 9))
        };
        let mine = shard.cancel(id);
        let theirs = other.join().expect("no panic");
        assert!(!(mine && theirs), "both cancels said true");
        let fired = holder.join().expect("no panic");
        poll_and_check(&shard, fired, &[(1, mine || theirs)]);
    });
}

#[test]
fn next_wake_is_never_later_than_what_was_inserted() {
    loom::model(|| {
        let token = Arc::new(());
        let shard = shard(16);
        shard.remote_insert(Tick::new(50), (1, token.clone())).expect("room");
        let poster = {
            let shard = shard.clone();
            thread::spawn(move || -> Inserted {
                shard.arm(Tick::new(20), (2, token)).expect("room")
            })
        };
        // Publishes a later wake while the other inserts an earlier one.
        assert_eq!(poll(&shard, 1), []);
        let inserted = poster.join().expect("no panic");
        assert!(inserted.is_earliest, "20 comes before 50");
        let wake = shard.next_wake().expect("two are armed");
        assert!(wake <= Tick::new(20), "{wake:?} sleeps past 20");
        poll_and_check(&shard, poll(&shard, 60), &[(1, false), (2, false)]);
    });
}

/// Frees the timer, if its shard is due: rule 13.
fn free_if_due(shard: &Shard<Value>, token: &Arc<()>) {
    let now = Tick::new(3);
    assert!(
        Arc::strong_count(token) == 1 || shard.is_overdue(now),
        "a cancelled value stays until {:?}",
        shard.next_wake()
    );
    assert_eq!(poll(shard, 3), []);
    assert_eq!(Arc::strong_count(token), 1, "the value was dropped");
}

#[test]
fn a_cancelled_value_stays_only_while_its_shard_is_due() {
    loom::model(|| {
        let token = Arc::new(());
        let shard = shard(16);
        let id = shard.remote_insert(Tick::new(500), (1, token.clone())).expect("room");
        let canceller = {
            let shard = shard.clone();
            thread::spawn(move || {
                assert!(shard.cancel(id));
                shard.request_poll(Tick::new(3));
            })
        };
        // Publishes a later wake while the other cancels.
        assert_eq!(poll(&shard, 3), []);
        canceller.join().expect("no panic");
        free_if_due(&shard, &token);
    });
}

#[test]
fn a_value_cancelled_in_the_inbox_stays_only_while_its_shard_is_due() {
    loom::model(|| {
        let token = Arc::new(());
        let shard = shard(16);
        let mut guard = shard.try_lock().expect("the shard is unlocked");
        // May stop between claiming its cell and filling it, in front of the other one.
        let first = {
            let shard = shard.clone();
            thread::spawn(move || shard.remote_insert(Tick::new(900), (1, Arc::new(()))).is_ok())
        };
        let second = {
            let (shard, token) = (shard.clone(), token.clone());
            thread::spawn(move || {
                let id = shard.remote_insert(Tick::new(500), (2, token)).expect("room");
                assert!(shard.cancel(id));
                shard.request_poll(Tick::new(3));
            })
        };
        guard.poll(Tick::new(3), 100, |timer| panic!("{} is early", timer.value.0));
        drop(guard);
        assert!(first.join().expect("no panic"));
        second.join().expect("no panic");
        free_if_due(&shard, &token);
    });
}

#[test]
fn a_flood_of_cancels_is_freed_by_the_cancellers() {
    loom::model(|| {
        let token = Arc::new(());
        let shard = shard(16);
        let post =
            |number| shard.remote_insert(Tick::new(500), (number, token.clone())).expect("room");
        let ids = [post(1), post(2), post(3)];
        let other = {
            let (shard, id) = (shard.clone(), ids[0]);
            thread::spawn(move || shard.cancel(id))
        };
        assert!(shard.cancel(ids[1]) && shard.cancel(ids[2]));
        assert!(other.join().expect("no panic"));
        poll_and_check(&shard, Vec::new(), &[(1, true), (2, true), (3, true)]);
        assert_eq!(Arc::strong_count(&token), 1, "all three are freed");
    });
}

#[test]
fn one_threads_inserts_of_one_tick_keep_their_order() {
    // The first inserter may claim a cell and fill it last: then the first insert of the second
    // thread is hidden behind it, and its second insert must not overtake. With two cells it is
    // refused instead.
    loom::model(|| {
        let shard = Arc::new(Shard::new(ShardConfig { capacity: 16, ..ShardConfig::DEFAULT }));
        let guard = shard.try_lock().expect("the shard is unlocked");
        let first = {
            let shard = shard.clone();
            thread::spawn(move || drop(shard.remote_insert(Tick::new(7), 1)))
        };
        let second = {
            let shard = shard.clone();
            thread::spawn(move || {
                shard.remote_insert(Tick::new(7), 2).is_ok()
                    && shard.remote_insert(Tick::new(7), 3).is_ok()
            })
        };
        drop(guard);
        first.join().expect("no panic");
        let both = second.join().expect("no panic");
        let mut fired = Vec::new();
        shard.try_lock().expect("open").poll(Tick::new(9), 100, |timer| fired.push(timer.value));
        if both {
            let at = |n| fired.iter().position(|value| *value == n).expect("fired");
            assert!(at(2) < at(3), "{fired:?}");
        }
    });
}

#[test]
fn next_wake_is_no_later_than_a_timer_behind_an_unfilled_cell() {
    loom::model(|| {
        let shard = Arc::new(Shard::new(ShardConfig { capacity: 16, ..ShardConfig::DEFAULT }));
        let mut guard = shard.try_lock().expect("the shard is unlocked");
        let post = |deadline: u64| {
            let shard = shard.clone();
            thread::spawn(move || {
                let inserted = shard.remote_insert(Tick::new(deadline), deadline);
                assert!(inserted.is_ok(), "a cell for each");
            })
        };
        guard.arm(Tick::new(500), TimerPriority::Normal, 500).expect("room");
        let (first, second) = (post(900), post(20));
        guard.poll(Tick::new(1), 100, |_| {});
        drop(guard);
        first.join().expect("no panic");
        second.join().expect("no panic");
        // All are armed and the shard is unlocked: a host that sleeps until then must be in time.
        let wake = shard.next_wake().expect("three are armed");
        assert!(wake <= Tick::new(20), "{wake:?} sleeps past 20");
    });
}

/// One more close, when all other threads are done; checks that each of `accepted` was returned
/// once, counting `fired` as well, and nothing else.
fn settle_closed(shard: &Shard<Value>, mut out: Vec<u32>, accepted: &[(u32, bool)]) {
    assert_eq!(shard.close(|value| out.push(value.0)), Closed::Done, "no other thread is left");
    out.sort_unstable();
    let expected = accepted.iter().filter(|(_, accepted)| *accepted).map(|(number, _)| *number);
    assert_eq!(out, expected.collect::<Vec<_>>());
    assert_eq!(shard.next_wake(), None, "nothing is armed");
    let refused = shard.arm(Tick::new(5), (9, Arc::new(()))).expect_err("closed");
    assert!(refused.is_closed());
}

/// Closes once; returns the values and whether they were all.
fn close(shard: &Shard<Value>) -> (Vec<u32>, Closed) {
    let mut out = Vec::new();
    let closed = shard.close(|value| out.push(value.0));
    (out, closed)
}

#[test]
fn close_against_arm_hands_out_what_was_accepted() {
    loom::model(|| {
        let token = Arc::new(());
        let shard = shard(16);
        let arm = |number: u32| {
            let (shard, token) = (shard.clone(), token.clone());
            thread::spawn(move || match shard.arm(Tick::new(7), (number, token)) {
                Ok(_) => true,
                Err(refused) => {
                    assert!(refused.is_closed(), "the inbox has room");
                    assert_eq!(refused.into_inner().0, number);
                    false
                }
            })
        };
        let (one, two) = (arm(1), arm(2));
        let (out, closed) = close(&shard);
        let (one, two) = (one.join().expect("no panic"), two.join().expect("no panic"));
        if closed == Closed::Done {
            assert_eq!(out.len(), usize::from(one) + usize::from(two), "done, and one more came");
        }
        settle_closed(&shard, out, &[(1, one), (2, two)]);
        assert_eq!(Arc::strong_count(&token), 1, "every value was dropped");
    });
}

#[test]
fn close_against_arm_under_the_guard_is_busy_or_finds_it() {
    loom::model(|| {
        let token = Arc::new(());
        let shard = shard(16);
        let holder = {
            let (shard, token) = (shard.clone(), token.clone());
            thread::spawn(move || {
                let mut guard = shard.try_lock()?;
                let armed = guard.arm(Tick::new(7), TimerPriority::High, (1, token));
                let why = armed.map(|_| ()).map_err(clockjack_time::InsertError::discard);
                assert!(why.as_ref().err().is_none_or(|refused| refused.is_closed()), "{why:?}");
                Some(why.is_ok())
            })
        };
        let (out, closed) = close(&shard);
        let armed = holder.join().expect("no panic").unwrap_or(false);
        if closed == Closed::Done {
            assert_eq!(out.len(), usize::from(armed), "done, and one more came");
        }
        settle_closed(&shard, out, &[(1, armed)]);
        assert_eq!(Arc::strong_count(&token), 1, "every value was dropped");
    });
}

#[test]
fn close_against_arm_and_cancel_has_one_end_for_each_timer() {
    loom::model(|| {
        let token = Arc::new(());
        let shard = shard(16);
        let first = shard.remote_insert(Tick::new(5), (1, token.clone())).expect("room");
        let canceller = {
            let shard = shard.clone();
            thread::spawn(move || shard.cancel(first))
        };
        let holder = {
            let shard = shard.clone();
            thread::spawn(move || poll(&shard, 9))
        };
        let (mut out, closed) = close(&shard);
        let cancelled = canceller.join().expect("no panic");
        out.extend(holder.join().expect("no panic"));
        if closed == Closed::Done {
            assert_eq!(Arc::strong_count(&token), 1, "done, and a value is left");
        }
        settle_closed(&shard, out, &[(1, !cancelled)]);
        assert_eq!(Arc::strong_count(&token), 1, "every value was dropped");
    });
}

#[test]
fn two_closers_hand_out_each_value_once() {
    loom::model(|| {
        let token = Arc::new(());
        let shard = shard(16);
        shard.remote_insert(Tick::new(5), (1, token.clone())).expect("room");
        let poster = {
            let shard = shard.clone();
            thread::spawn(move || shard.arm(Tick::new(7), (2, token)).is_ok())
        };
        let other = {
            let shard = shard.clone();
            thread::spawn(move || close(&shard).0)
        };
        let (mut out, _) = close(&shard);
        out.extend(other.join().expect("no panic"));
        let inserted = poster.join().expect("no panic");
        settle_closed(&shard, out, &[(1, true), (2, inserted)]);
    });
}

#[test]
fn cancel_against_insert_never_enters_a_cancelled_timer() {
    loom::model(|| {
        let token = Arc::new(());
        let shard = shard(16);
        let mut guard = shard.try_lock().expect("the shard is unlocked");
        // By the inbox, because the shard is locked.
        let id = shard.remote_insert(Tick::new(7), (1, token.clone())).expect("room");
        let canceller = {
            let shard = shard.clone();
            thread::spawn(move || shard.cancel(id))
        };
        let mut fired = Vec::new();
        // Inserts the timer, or frees what the canceller has left of it, and fires what is armed.
        assert!(!guard.poll(Tick::new(9), 100, |timer| fired.push(timer.value.0)));
        drop(guard);
        let cancelled = canceller.join().expect("no panic");
        poll_and_check(&shard, fired, &[(1, cancelled)]);
        assert_eq!(Arc::strong_count(&token), 1, "freed, not only disarmed");
        let stats = shard.stats();
        assert_eq!((stats.armed, stats.pending, stats.stale), (1, 0, 0), "{stats:?}");
    });
}

#[test]
fn a_cancel_under_the_guard_leaves_a_timer_that_is_still_in_the_inbox() {
    loom::model(|| {
        let token = Arc::new(());
        let shard = shard(16);
        let guard = shard.try_lock().expect("the shard is unlocked");
        let post = |number| {
            let (shard, token) = (shard.clone(), token.clone());
            thread::spawn(move || {
                shard.remote_insert(Tick::new(7), (number, token)).expect("a cell")
            })
        };
        // Two cells are filled in any order: the second may be behind an unfilled one.
        let (first, second) = (post(1), post(2));
        drop(guard);
        let second = second.join().expect("no panic");
        let cancelled = match shard.try_lock() {
            Some(mut guard) => guard.cancel(second).is_some(),
            None => false,
        };
        // A timer that the holder did not see is decided by the timer state alone.
        assert!(cancelled || shard.cancel(second), "the timer is lost");
        first.join().expect("no panic");
        poll_and_check(&shard, poll(&shard, 9), &[(1, false), (2, true)]);
        assert_eq!(Arc::strong_count(&token), 1, "freed, not only disarmed");
    });
}

#[test]
fn takeover_against_owner_fires_each_timer_once_and_in_order() {
    loom::model(|| {
        let shard = Arc::new(Shard::new(ShardConfig { capacity: 16, ..ShardConfig::DEFAULT }));
        for number in 0..4_u32 {
            shard.remote_insert(Tick::new(5), number).expect("room");
        }
        // The common destination of both, in order: a lock, like that of a run queue.
        let handed = Arc::new(loom::sync::Mutex::new(Vec::new()));
        let poll = |shard: &Shard<u32>, handed: &loom::sync::Mutex<Vec<u32>>| {
            if !shard.is_overdue(Tick::new(9)) {
                return;
            }
            let Some(mut guard) = shard.try_lock() else { return };
            // Two at a time: the other thread may come in between.
            guard.poll(Tick::new(9), 2, |timer| {
                handed.lock().expect("no panic").push(timer.value);
            });
        };
        let helper = {
            let (shard, handed) = (shard.clone(), handed.clone());
            thread::spawn(move || poll(&shard, &handed))
        };
        poll(&shard, &handed);
        poll(&shard, &handed);
        helper.join().expect("no panic");
        let mut guard = shard.try_lock().expect("all others are gone");
        guard.poll(Tick::new(9), 100, |timer| handed.lock().expect("no panic").push(timer.value));
        assert_eq!(*handed.lock().expect("no panic"), [0, 1, 2, 3]);
    });
}

#[test]
fn adoption_against_remote_cancel_keeps_ids_good_and_loses_nothing() {
    use loom::sync::atomic::{AtomicBool, Ordering};

    loom::model(|| {
        let token = Arc::new(());
        let shard = shard(16);
        let first = shard.remote_insert(Tick::new(5), (1, token.clone())).expect("room");
        let left = Arc::new(AtomicBool::new(false));
        // The worker that leaves: fires nothing, arms one more, and unlocks the shard.
        let leaver = {
            let (shard, left, token) = (shard.clone(), left.clone(), token.clone());
            thread::spawn(move || {
                if let Some(mut guard) = shard.try_lock() {
                    guard.poll(Tick::new(3), 100, |_| panic!("early"));
                }
                shard.remote_insert(Tick::new(6), (2, token)).expect("room");
                left.store(true, Ordering::Release);
            })
        };
        // The worker that takes over, if it runs already: polls, and arms one more.
        let adopter = {
            let (shard, left, token) = (shard.clone(), left.clone(), token.clone());
            thread::spawn(move || {
                let is_mine = left.load(Ordering::Acquire);
                let fired = if is_mine { poll(&shard, 9) } else { Vec::new() };
                shard.remote_insert(Tick::new(20), (3, token)).expect("room");
                fired
            })
        };
        let cancelled = shard.cancel(first);
        leaver.join().expect("no panic");
        let fired = adopter.join().expect("no panic");
        poll_and_check(&shard, fired, &[(1, cancelled), (2, false), (3, false)]);
        assert_eq!(Arc::strong_count(&token), 1, "every value was dropped");
    });
}
