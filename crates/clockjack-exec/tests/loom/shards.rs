//! Keepers that change, and closing, against arm, cancel and poll.
//!
//! The invariant: a timer that was accepted fires, or its cancel returns true, or the close returns
//! it, once; and a worker that sleeps until `next_wake`, or is woken as an arm says, is in time for
//! it. A value that is leaked or dropped twice shows in the count of an `Arc`.

use alloc::{sync::Arc, vec::Vec};

use clockjack_exec::shards::{ArmError, Armed, Cancelled, Shards, ShardsConfig, SourceClaim};
use clockjack_time::Tick;
use loom::{
    sync::{
        Mutex,
        atomic::{AtomicBool, AtomicU64, Ordering::Relaxed, fence},
    },
    thread::{self, JoinHandle},
};

/// What stands in a timer: a number, and a token whose count shows leaks.
type Value = (u32, Arc<()>);
type Table = Arc<Shards<Value>>;

/// A table in which the workers of these workers have come, one after the other.
fn table(workers: usize, attached: &[usize]) -> Table {
    let shards = Arc::new(Shards::new(ShardsConfig { workers, capacity: 16, start: Tick::ZERO }));
    for (shard, worker) in (0..).zip(attached) {
        assert_eq!(shards.attach(*worker), shard);
    }
    shards
}

fn spawn<R: 'static>(shards: &Table, run: impl FnOnce(&Table) -> R + 'static) -> JoinHandle<R> {
    let shards = shards.clone();
    thread::spawn(move || run(&shards))
}

/// Explores what is done with a [`table`] and values of a token. In the end none of them is left.
fn model(
    workers: usize,
    attached: &'static [usize],
    scene: impl Fn(&Table, &Arc<()>) + Sync + Send + 'static,
) {
    loom::model(move || {
        let (shards, token) = (table(workers, attached), Arc::new(()));
        scene(&shards, &token);
        drop(shards);
        assert_eq!(Arc::strong_count(&token), 1, "every value was dropped");
    });
}

/// Does something while the guard of shard 0 is held, by one whose timer fires.
fn while_leased<R>(shards: &Table, token: &Arc<()>, act: impl FnOnce() -> R) -> R {
    arm(shards, 1, (7, token.clone())).expect("room");
    let (mut act, mut done) = (Some(act), None);
    shards.poll(0, Tick::new(1), 100, |_| done = act.take().map(|act| act()));
    done.expect("it fired")
}

/// What fired up to `now`, if the guard could be taken.
fn poll(shards: &Table, shard: u32, now: u64) -> Vec<u32> {
    let mut fired = Vec::new();
    shards.poll(shard, Tick::new(now), 100, |timer| fired.push(timer.value.0));
    fired
}

fn arm(shards: &Table, deadline: u64, value: Value) -> Result<Armed, ArmError<Value>> {
    shards.arm(0, Tick::new(deadline), value)
}

fn drain(shards: &Table) -> (Vec<u32>, usize) {
    let mut drained = Vec::new();
    let closed = shards.close(|value| drained.push(value.0), thread::yield_now);
    (drained, closed.left)
}

/// What a close has left behind, as it said.
fn rest(shards: &Table, left: usize) -> Vec<u32> {
    let (rest, _) = drain(shards);
    assert!(left > 0 || rest.is_empty(), "the close said that nothing was left");
    rest
}

#[test]
fn a_reassignment_and_a_remote_cancel_end_a_timer_once() {
    model(2, &[0, 1], |shards, token| {
        let id = arm(shards, 5, (1, token.clone())).expect("room").id;
        shards.detach(0);
        let canceller = spawn(shards, move |shards| shards.cancel(id));
        let reassigner = spawn(shards, |shards| {
            let mut fired = Vec::new();
            assert_eq!(shards.reassign(|| Some(1), |_, shard| fired = poll(shards, shard, 9)), 1);
            fired
        });
        let cancelled = canceller.join().expect("no panic");
        let mut fired = reassigner.join().expect("no panic");
        fired.extend(poll(shards, 0, 9));
        assert_eq!(fired.len() + usize::from(cancelled), 1, "fired {fired:?}, {cancelled}");
    });
}

/// One thread reassigns, one attaches: a shard is assigned to one worker, and both agree on it.
#[test]
fn an_unassigned_shard_is_assigned_to_one_worker() {
    model(3, &[0, 1], |shards, _token| {
        shards.detach(0);
        let reassigner = spawn(shards, |shards| shards.reassign(|| Some(1), |_, _| ()));
        let comer = spawn(shards, |shards| shards.attach(2));
        reassigner.join().expect("no panic");
        let home = comer.join().expect("no panic");
        let keepers =
            [1, 2].map(|worker| shards.assigned_to(worker).filter(|shard| *shard == 0).count());
        let expected = if home == 0 { [0, 1] } else { [1, 0] };
        assert_eq!(keepers, expected, "the home of worker 2 is {home}");
        assert_eq!(shards.stats().unassigned, 0);
        assert_eq!(shards.detach(1) + shards.detach(2), shards.stats().shards);
    });
}

/// A worker starts and stops while its shard is reassigned: a shard that is unassigned in the end
/// is found.
#[test]
fn an_unassigned_shard_is_in_the_queue_or_about_to_be() {
    model(3, &[0, 1], |shards, _token| {
        shards.detach(0);
        let reassigner = spawn(shards, |shards| shards.reassign(|| Some(1), |_, _| ()));
        let guest = spawn(shards, |shards| {
            shards.attach(2);
            shards.detach(2);
        });
        reassigner.join().expect("no panic");
        guest.join().expect("no panic");
        shards.reassign(|| Some(1), |_, _| ());
        assert_eq!(shards.stats().unassigned, 0, "an unassigned shard that nobody can find");
        assert_eq!(shards.assigned_to(1).count(), shards.stats().shards);
    });
}

/// The last worker leaves, and the watchdog looks for another one, while a worker starts: it is
/// chosen, or it sees the shard and calls the watchdog.
#[test]
fn a_shard_without_a_worker_is_seen_by_the_worker_that_attaches() {
    model(2, &[0, 1], |shards, _token| {
        shards.detach(1);
        let leaver = spawn(shards, |shards| {
            shards.detach(0);
            shards.reassign(|| shards.local_shard(1).map(|_| 1), |_, _| ());
        });
        let comer = spawn(shards, |shards| {
            shards.attach(1);
            shards.has_unassigned()
        });
        leaver.join().expect("no panic");
        let is_called = comer.join().expect("no panic");
        let unassigned = shards.stats().unassigned;
        assert!(is_called || unassigned == 0, "a shard stays in the queue, and nobody knows");
    });
}

/// The worker that was chosen leaves at that moment.
#[test]
fn a_worker_that_leaves_keeps_nothing() {
    model(3, &[0, 1, 2], |shards, _token| {
        shards.detach(0);
        let leaver = spawn(shards, |shards| shards.detach(1));
        let reassigner = spawn(shards, |shards| {
            let mut workers = [1, 2].into_iter();
            shards.reassign(|| workers.next(), |_, _| ())
        });
        leaver.join().expect("no panic");
        reassigner.join().expect("no panic");
        assert_eq!(shards.assigned_to(1).count(), 0);
        shards.reassign(|| Some(2), |_, _| ());
        assert_eq!(shards.stats().unassigned, 0, "an unassigned shard that nobody can find");
        assert_eq!(shards.assigned_to(2).count(), 3, "a shard is kept by one who is gone");
    });
}

#[test]
fn an_arm_in_a_shard_that_is_reassigned_is_known_to_the_new_worker_or_its_caller() {
    model(2, &[0, 1], |shards, token| {
        let value = (1, token.clone());
        let arming = spawn(shards, move |shards| arm(shards, 20, value).expect("room"));
        let leaver = spawn(shards, |shards| {
            assert_eq!(shards.detach(0), 1);
            assert_eq!(shards.reassign(|| Some(1), |_, _| ()), 1);
            // The new worker is awake now; it is about to sleep until this.
            shards.next_wake(1)
        });
        let armed = arming.join().expect("no panic");
        let wake = leaver.join().expect("no panic");
        assert!(armed.is_earliest);
        let is_covered = wake.is_some_and(|wake| wake <= Tick::new(20));
        let is_woken = armed.worker == Some(1);
        assert!(is_covered || is_woken, "sleeps until {wake:?}, woken is {:?}", armed.worker);
        assert_eq!(poll(shards, 0, 20), [1]);
    });
}

/// As above, with a worker that comes instead of a reassigning thread.
#[test]
fn an_arm_in_an_unassigned_shard_is_known_to_the_worker_that_attaches_or_its_caller() {
    model(2, &[0], |shards, token| {
        shards.detach(0);
        let value = (1, token.clone());
        let arming = spawn(shards, move |shards| arm(shards, 20, value).expect("room"));
        let comer = spawn(shards, |shards| {
            assert_eq!(shards.attach(1), 0);
            shards.next_wake(1)
        });
        let armed = arming.join().expect("no panic");
        let wake = comer.join().expect("no panic");
        let is_covered = wake.is_some_and(|wake| wake <= Tick::new(20));
        assert!(is_covered || armed.worker == Some(1), "{wake:?}, {:?}", armed.worker);
    });
}

/// The fires of the owner and of one who takes over stand in one log, in order.
#[test]
fn a_takeover_beside_the_owner_keeps_the_order() {
    model(2, &[0, 1], |shards, token| {
        for number in [1, 2, 3] {
            arm(shards, u64::from(number), (number, token.clone())).expect("room");
        }
        let log = Arc::new(Mutex::new(Vec::new()));
        let fire = |log: &Mutex<Vec<u32>>, value: Value| {
            log.lock().expect("no panic").push(value.0);
        };
        let owner = {
            let log = log.clone();
            spawn(shards, move |shards| {
                shards.poll(0, Tick::new(2), 100, |timer| fire(&log, timer.value)).fired
            })
        };
        let other = {
            let log = log.clone();
            spawn(shards, move |shards| {
                let Some(shard) = shards.overdue(Tick::new(3), Some(1), 0) else { return 0 };
                let fire = |timer: clockjack_time::Expired<Value>| fire(&log, timer.value);
                shards.take_over(shard, Tick::new(3), 100, fire).fired
            })
        };
        let fired = owner.join().expect("no panic") + other.join().expect("no panic");
        let polled = shards.poll(0, Tick::new(3), 100, |timer| fire(&log, timer.value));
        assert_eq!(fired + polled.fired, 3);
        assert_eq!(*log.lock().expect("no panic"), [1, 2, 3]);
    });
}

/// The end of a timer that was armed concurrently with a close.
fn settle(
    shards: &Table,
    arming: JoinHandle<Result<Armed, ArmError<Value>>>,
    closer: JoinHandle<(Vec<u32>, usize)>,
) {
    let armed = arming.join().expect("no panic");
    let (drained, left) = closer.join().expect("no panic");
    let (rest, left_now) = drain(shards);
    assert_eq!(left_now, 0, "nobody else is there");
    let times = drained.iter().chain(&rest).filter(|number| **number == 1).count();
    match armed {
        Ok(_) => {
            assert_eq!(times, 1, "accepted: handed out once");
            assert!(left > 0 || rest.is_empty(), "the close said that nothing was left");
        }
        Err(refused) => {
            assert!(refused.is_closed());
            assert_eq!(times, 0, "refused, and handed out all the same");
        }
    }
}

#[test]
fn a_timer_that_is_armed_beside_a_close_is_handed_out_or_refused() {
    model(1, &[0], |shards, token| {
        let value = (1, token.clone());
        let arming = spawn(shards, move |shards| arm(shards, 20, value));
        let closer = spawn(shards, drain);
        settle(shards, arming, closer);
    });
}

/// The guard is held when both begin, so that the arm may use the inbox.
#[test]
fn a_timer_that_is_posted_beside_a_close_is_handed_out_or_refused() {
    model(1, &[0], |shards, token| {
        let (arming, closer) = while_leased(shards, token, || {
            let value = (1, token.clone());
            let arming = spawn(shards, move |shards| arm(shards, 20, value));
            (arming, spawn(shards, drain))
        });
        settle(shards, arming, closer);
    });
}

/// A poster may be between its two steps when the close comes to what was posted behind it.
#[test]
fn a_close_beside_a_poster_leaves_nothing_unsaid() {
    model(1, &[0], |shards, token| {
        let poster = while_leased(shards, token, || {
            let (one, two) = ((1, token.clone()), (2, token.clone()));
            let poster = spawn(shards, move |shards| arm(shards, 20, one).is_ok());
            arm(shards, 20, two).expect("a cell for each");
            poster
        });
        let (drained, left) = drain(shards);
        let accepted = poster.join().expect("no panic");
        let mut all = [drained, rest(shards, left)].concat();
        all.sort_unstable();
        assert_eq!(all, if accepted { vec![1, 2] } else { vec![2] });
    });
}

/// The shard is created concurrently with the close: either the closing thread finds it or the arm
/// is refused.
#[test]
fn a_timer_in_a_shard_that_is_made_beside_a_close_is_handed_out_or_refused() {
    model(1, &[], |shards, token| {
        let value = (1, token.clone());
        let arming = spawn(shards, move |shards| {
            assert_eq!(shards.attach(0), 0);
            arm(shards, 20, value)
        });
        let closer = spawn(shards, drain);
        settle(shards, arming, closer);
    });
}

/// A poll concurrent with the close: what it does not fire is returned.
#[test]
fn a_poll_beside_a_close_ends_every_timer_once() {
    model(1, &[0], |shards, token| {
        arm(shards, 5, (1, token.clone())).expect("room");
        arm(shards, 50, (2, token.clone())).expect("room");
        let poller = spawn(shards, |shards| poll(shards, 0, 9));
        let closer = spawn(shards, drain);
        let fired = poller.join().expect("no panic");
        let (drained, left) = closer.join().expect("no panic");
        let mut all = [fired, drained, rest(shards, left)].concat();
        all.sort_unstable();
        assert_eq!(all, [1, 2]);
    });
}

/// A thread that arms or cancels may hold the guard whenever the closing thread tries; nobody
/// closes again afterwards.
#[test]
fn a_close_beside_a_cancel_leaves_no_timer_behind() {
    model(1, &[0], |shards, token| {
        let id = arm(shards, 20, (1, token.clone())).expect("room").id;
        arm(shards, 50, (2, token.clone())).expect("room");
        let canceller = spawn(shards, move |shards| shards.cancel_take(id) != Cancelled::Lost);
        let closer = spawn(shards, drain);
        let cancelled = canceller.join().expect("no panic");
        let (drained, left) = closer.join().expect("no panic");
        assert_eq!(left, 0, "no poll is under way");
        assert_eq!(drained, if cancelled { vec![2] } else { vec![1, 2] });
    });
}

/// The closing thread does not wait for a poll: whoever polls closes again if the poll says so, and
/// nobody else does.
#[test]
fn a_close_beside_a_poll_leaves_no_timer_behind() {
    model(1, &[0], |shards, token| {
        arm(shards, 5, (1, token.clone())).expect("room");
        arm(shards, 50, (2, token.clone())).expect("room");
        let poller = spawn(shards, |shards| {
            let mut fired = Vec::new();
            let polled = shards.poll(0, Tick::new(9), 100, |timer| fired.push(timer.value.0));
            if polled.is_closed {
                fired.extend(drain(shards).0);
            }
            fired
        });
        let closer = spawn(shards, drain);
        let polled = poller.join().expect("no panic");
        let (drained, _) = closer.join().expect("no panic");
        let mut all = [polled, drained].concat();
        all.sort_unstable();
        assert_eq!(all, [1, 2], "a timer is left, and nobody comes for it");
    });
}

/// The first poster may have claimed a cell of the inbox and not filled it; then the value of the
/// second is behind it, where no holder reaches it yet.
#[test]
fn a_timer_that_is_cancelled_on_its_way_is_freed_once() {
    model(1, &[0], |shards, token| {
        let (first, second) = while_leased(shards, token, || {
            let (one, two) = ((1, token.clone()), (2, token.clone()));
            let first = spawn(shards, move |shards| arm(shards, 20, one).is_ok());
            let second = spawn(shards, move |shards| {
                let id = arm(shards, 20, two).expect("a cell for each").id;
                shards.cancel_take(id) != Cancelled::Lost
            });
            (first, second)
        });
        assert!(first.join().expect("no panic"));
        assert!(second.join().expect("no panic"), "nobody else ends it");
        assert_eq!(poll(shards, 0, 30), [1]);
        assert_eq!(shards.len(0), Some(0), "a slot is left");
        assert_eq!(Arc::strong_count(token), 1, "every value was dropped");
    });
}

/// A shard of a source that has one piece of work at most, due at some tick; 0 for none. Relaxed:
/// the table has to order the accesses.
type Work = Arc<AtomicU64>;

fn next_of(work: &Work) -> Option<Tick> {
    Some(work.load(Relaxed)).filter(|due| *due > 0).map(Tick::new)
}

fn claim(shards: &Table, now: u64) -> Option<SourceClaim> {
    shards.claim_source(0, Tick::new(now), 1)
}

/// Polls at a time at which the work is not due.
fn poll_source(shards: &Table, work: &Work, now: u64) {
    if let Some(claim) = claim(shards, now) {
        shards.finish_source(0, claim, next_of(work));
    }
}

/// The work is not done yet, so somebody has to poll the shard in time.
fn assert_due_by(shards: &Table, due: u64) {
    let wake = shards.next_wake(0);
    assert!(wake.is_some_and(|wake| wake <= Tick::new(due)), "nobody polls before {wake:?}");
}

#[test]
fn work_that_is_requested_beside_a_poll_is_seen_or_makes_the_shard_due() {
    model(1, &[0], |shards, _token| {
        let work = Work::default();
        shards.request_source(0, Tick::ZERO);
        let requester = {
            let work = work.clone();
            spawn(shards, move |shards| {
                work.store(8, Relaxed);
                shards.request_source(0, Tick::new(8));
            })
        };
        poll_source(shards, &work, 5);
        requester.join().expect("no panic");
        assert_due_by(shards, 8);
    });
}

/// A claim has run out: the poller that it was taken from, and the one that took it over, finish at
/// the same time. The first has made work due earlier.
#[test]
fn what_a_replaced_poller_leaves_is_seen_or_makes_the_shard_due() {
    model(2, &[0, 1], |shards, _token| {
        let work = Work::default();
        shards.request_source(0, Tick::ZERO);
        let first = claim(shards, 5).expect("it is due");
        let replaced = {
            let work = work.clone();
            spawn(shards, move |shards| {
                work.store(8, Relaxed);
                shards.finish_source(0, first, Some(Tick::new(8)));
            })
        };
        poll_source(shards, &work, 6);
        replaced.join().expect("no panic");
        assert_due_by(shards, 8);
    });
}

#[test]
fn of_two_workers_one_polls_a_shard_of_the_source() {
    model(2, &[0, 1], |shards, _token| {
        shards.request_source(0, Tick::ZERO);
        let other = spawn(shards, |shards| claim(shards, 5).is_some());
        let is_claimed = claim(shards, 5).is_some();
        assert_eq!(u8::from(is_claimed) + u8::from(other.join().expect("no panic")), 1);
    });
}

/// The worker announces that it parks, fences, and reads how long it may sleep.
#[test]
fn a_request_beside_a_worker_that_parks_is_known_to_the_worker_or_its_caller() {
    model(1, &[0], |shards, _token| {
        let is_parked = Arc::new(AtomicBool::new(false));
        let parks = {
            let is_parked = is_parked.clone();
            spawn(shards, move |shards| {
                is_parked.store(true, Relaxed);
                fence(loom::sync::atomic::Ordering::SeqCst);
                shards.next_wake(0)
            })
        };
        let earlier = shards.request_source(0, Tick::new(8)).expect("nothing was due");
        assert_eq!((earlier.at, earlier.worker), (Tick::new(8), Some(0)));
        let is_woken = is_parked.load(Relaxed);
        let wake = parks.join().expect("no panic");
        assert!(is_woken || wake == Some(Tick::new(8)), "it sleeps until {wake:?}");
    });
}

#[test]
fn a_request_in_a_shard_that_is_reassigned_is_known_to_the_new_worker_or_its_caller() {
    model(2, &[0, 1], |shards, _token| {
        let requester = spawn(shards, |shards| {
            shards.request_source(0, Tick::new(8)).expect("nothing was due")
        });
        let leaver = spawn(shards, |shards| {
            assert_eq!(shards.detach(0), 1);
            assert_eq!(shards.reassign(|| Some(1), |_, _| ()), 1);
            shards.next_wake(1)
        });
        let earlier = requester.join().expect("no panic");
        let wake = leaver.join().expect("no panic");
        let is_covered = wake == Some(Tick::new(8));
        assert!(is_covered || earlier.worker == Some(1), "{wake:?}, {:?}", earlier.worker);
    });
}
