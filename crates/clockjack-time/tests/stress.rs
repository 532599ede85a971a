//! A shard under real threads: every accepted timer fires or is cancelled, once.
//!
//! Bounded work and a virtual clock: a test ends when every timer is accounted for, or when a
//! thread has waited so often that a timer must be lost.
#![cfg(not(loom))]
#![cfg(feature = "alloc")]

use core::sync::atomic::{
    AtomicBool, AtomicU8, AtomicU64, AtomicUsize,
    Ordering::{Acquire, Relaxed, Release},
};
use std::{sync::OnceLock, thread};

use clockjack_testing::{Patience, Random};
use clockjack_time::{
    Closed, Expired, Shard, ShardConfig, ShardGuard, Tick, TimerId, TimerPriority,
};

/// The outcome of one timer.
#[derive(Default)]
struct Entry {
    id: OnceLock<TimerId>,
    fired: AtomicU8,
    cancelled: AtomicU8,
    dropped: AtomicU8,
}

/// The outcomes of all timers. Nothing is asserted while threads run, because the others would then
/// wait forever.
struct Ledger {
    entries: Vec<Entry>,
    clock: AtomicU64,
    early: AtomicUsize,
    settled: AtomicUsize,
}

impl Ledger {
    fn new(n_timers: usize) -> Self {
        Self {
            entries: (0..n_timers).map(|_| Entry::default()).collect(),
            clock: AtomicU64::new(0),
            early: AtomicUsize::new(0),
            settled: AtomicUsize::new(0),
        }
    }

    fn now(&self) -> Tick {
        Tick::new(self.clock.load(Acquire))
    }

    fn value(&self, number: usize, deadline: Tick) -> Value<'_> {
        Value { ledger: self, number, deadline }
    }

    fn fire(&self, timer: &Expired<Value<'_>>) {
        let wrong = timer.deadline != timer.value.deadline
            || timer.deadline > timer.now
            || timer.now > self.now();
        self.early.fetch_add(usize::from(wrong), Relaxed);
        self.entries[timer.value.number].fired.fetch_add(1, Relaxed);
        self.settled.fetch_add(1, Release);
    }

    /// Cancels a timer if it is armed.
    fn cancel(&self, shard: &Shard<Value<'_>>, number: usize) {
        let entry = &self.entries[number];
        if entry.id.get().is_some_and(|id| shard.cancel(*id)) {
            entry.cancelled.fetch_add(1, Relaxed);
            self.settled.fetch_add(1, Release);
        }
    }

    fn is_settled(&self) -> bool {
        self.settled.load(Acquire) >= self.entries.len()
    }

    /// Checks the outcomes when all threads are done and the shard is dropped.
    fn assert_conserved(&self) -> (usize, usize) {
        assert_eq!(self.early.load(Relaxed), 0, "early, or with another deadline");
        let (mut fired, mut cancelled) = (0, 0);
        for (number, entry) in self.entries.iter().enumerate() {
            let ends = (entry.fired.load(Relaxed), entry.cancelled.load(Relaxed));
            assert!(matches!(ends, (1, 0) | (0, 1)), "timer {number} fired, cancelled: {ends:?}");
            assert_eq!(entry.dropped.load(Relaxed), 1, "drops of the value of timer {number}");
            fired += usize::from(ends.0);
            cancelled += usize::from(ends.1);
        }
        (fired, cancelled)
    }
}

/// Knows its deadline, and counts its drop.
struct Value<'l> {
    ledger: &'l Ledger,
    number: usize,
    deadline: Tick,
}

impl Drop for Value<'_> {
    fn drop(&mut self) {
        self.ledger.entries[self.number].dropped.fetch_add(1, Relaxed);
    }
}

/// Inserts a timer remotely, and tries again while it is refused.
fn post<'l>(shard: &Shard<Value<'l>>, ledger: &'l Ledger, number: usize, deadline: Tick) {
    let mut value = ledger.value(number, deadline);
    let mut patience = Patience::default();
    loop {
        match shard.remote_insert(deadline, value) {
            Ok(id) => {
                ledger.entries[number].id.set(id).expect("armed once");
                return;
            }
            Err(refused) => {
                assert!(refused.is_busy() || refused.is_capacity());
                value = refused.into_inner();
            }
        }
        patience.wait();
    }
}

/// Inserts the timers of one of several inserters.
fn post_all<'l>(
    shard: &Shard<Value<'l>>,
    ledger: &'l Ledger,
    (poster, each): (usize, usize),
    deadline: impl Fn(&Ledger, &mut Random) -> Tick,
) {
    let mut random = Random::new(poster as u64);
    for number in poster * each..(poster + 1) * each {
        post(shard, ledger, number, deadline(ledger, &mut random));
    }
}

/// At every distance that a test of this length can reach: past, in the wheel, in the overflow.
fn deadline(ledger: &Ledger, random: &mut Random) -> Tick {
    let now = ledger.now().get();
    let ahead = match random.next() % 16 {
        0 => 0,
        1..=9 => random.next() % 20,
        10..=13 => random.next() % 5_000,
        14 => random.next() % (1 << 20),
        _ => (1 << 20) + random.next() % 5_000,
    };
    Tick::new((now + ahead).saturating_sub(random.next() % 3))
}

/// Advances the clock and polls, if the shard can be locked.
fn poll<'s, 'l>(
    shard: &'s Shard<Value<'l>>,
    ledger: &'l Ledger,
    random: &mut Random,
) -> Option<ShardGuard<'s, Value<'l>>> {
    let stride = if random.next().is_multiple_of(64) { 1 << 18 } else { random.next() % 30 };
    let now = Tick::new(ledger.clock.fetch_add(stride, Release) + stride);
    let mut guard = shard.try_lock()?;
    let budget = random.index(40);
    guard.poll(now, budget, |timer| ledger.fire(&timer));
    Some(guard)
}

#[test]
fn inserters_cancellers_and_pollers_lose_and_repeat_nothing() {
    const POSTERS: usize = 2;
    const EACH: usize = 8_000;
    const LOCAL: usize = 4_000;
    let ledger = Ledger::new(POSTERS * EACH + LOCAL);
    let shard = Shard::new(ShardConfig { capacity: 1 << 11, ..ShardConfig::DEFAULT });
    let (ledger_ref, shard_ref) = (&ledger, &shard);
    thread::scope(|scope| {
        for poster in 0..POSTERS {
            scope.spawn(move || post_all(shard_ref, ledger_ref, (poster, EACH), deadline));
        }
        for canceller in 0..2_u64 {
            scope.spawn(move || {
                let mut random = Random::new(100 + canceller);
                let mut patience = Patience::default();
                while !ledger_ref.is_settled() {
                    // Two of three timers are never cancelled, so that both outcomes occur.
                    let number = random.index(ledger_ref.entries.len()) / 3 * 3;
                    ledger_ref.cancel(shard_ref, number);
                    patience.wait();
                }
            });
        }
        for poller in 0..2 {
            scope.spawn(move || {
                let mut random = Random::new(200 + poller as u64);
                let mut patience = Patience::default();
                let mut local = POSTERS * EACH + poller * LOCAL / 2;
                let local_end = POSTERS * EACH + (poller + 1) * LOCAL / 2;
                while !ledger_ref.is_settled() {
                    let guard = poll(shard_ref, ledger_ref, &mut random);
                    if let Some(mut guard) = guard
                        && local < local_end
                    {
                        let deadline = deadline(ledger_ref, &mut random);
                        let value = ledger_ref.value(local, deadline);
                        match guard.arm(deadline, TimerPriority::High, value) {
                            Ok(inserted) => {
                                let id = &ledger_ref.entries[local].id;
                                id.set(inserted.id).expect("armed once");
                                local += 1;
                            }
                            // The same number comes again with another value: do not count the drop
                            // of this one.
                            Err(refused) => core::mem::forget(refused.into_inner()),
                        }
                    }
                    patience.wait();
                }
            });
        }
    });
    let guard = shard.try_lock().expect("all others are gone");
    assert!(guard.is_empty(), "{} timers are left", guard.len());
    drop(guard);
    drop(shard);
    let (fired, cancelled) = ledger.assert_conserved();
    assert!(fired > 0 && cancelled > 0, "fired {fired}, cancelled {cancelled}");
}

/// A thread that polls only when `next_wake` has come misses no timer: no timer is left that no
/// poll would find.
#[test]
fn a_host_that_polls_only_when_next_wake_says_so_fires_everything() {
    const POSTERS: usize = 3;
    const EACH: usize = 5_000;
    let ledger = Ledger::new(POSTERS * EACH);
    let shard = Shard::new(ShardConfig { capacity: 1 << 10, ..ShardConfig::DEFAULT });
    let (ledger_ref, shard_ref) = (&ledger, &shard);
    thread::scope(|scope| {
        for poster in 0..POSTERS {
            let soon = |ledger: &Ledger, random: &mut Random| {
                Tick::new(ledger.now().get() + random.next() % 500)
            };
            scope.spawn(move || post_all(shard_ref, ledger_ref, (poster, EACH), soon));
        }
        for _ in 0..2 {
            scope.spawn(move || {
                let mut patience = Patience::default();
                while !ledger_ref.is_settled() {
                    let now = Tick::new(ledger_ref.clock.fetch_add(1, Release) + 1);
                    if shard_ref.is_overdue(now)
                        && let Some(mut guard) = shard_ref.try_lock()
                    {
                        guard.poll(now, 64, |timer| ledger_ref.fire(&timer));
                    }
                    patience.wait();
                }
            });
        }
    });
    drop(shard);
    assert_eq!(ledger.assert_conserved(), (POSTERS * EACH, 0));
}

/// Timers of an hour, armed and cancelled by other threads than the polling one: there are few
/// slots, so a slot that is not freed is soon missed. Memory is therefore bounded by the capacity.
#[test]
fn remote_cancels_of_long_timers_leave_nothing_behind() {
    const CANCELLERS: usize = 3;
    const EACH: usize = 100_000;
    const CAPACITY: usize = 512;
    let shard = Shard::new(ShardConfig { capacity: CAPACITY, ..ShardConfig::DEFAULT });
    let done = AtomicBool::new(false);
    let (finished, fired) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let (shard_ref, done_ref, finished_ref, fired_ref) = (&shard, &done, &finished, &fired);
    let hour = Tick::new(3_600_000);
    thread::scope(|scope| {
        for _ in 0..CANCELLERS {
            scope.spawn(move || {
                let mut patience = Patience::default();
                let mut n_cancelled = 0;
                while n_cancelled < EACH {
                    match shard_ref.remote_insert(hour, n_cancelled) {
                        Ok(id) => n_cancelled += usize::from(shard_ref.cancel(id)),
                        Err(_) => patience.wait(),
                    }
                }
                if finished_ref.fetch_add(1, Release) + 1 == CANCELLERS {
                    done_ref.store(true, Release);
                }
            });
        }
        scope.spawn(move || {
            let mut patience = Patience::default();
            let mut now = 0;
            while !done_ref.load(Acquire) {
                now += 1;
                if let Some(mut guard) = shard_ref.try_lock() {
                    guard.poll(Tick::new(now.min(1_000_000)), 64, |_| {
                        fired_ref.fetch_add(1, Relaxed);
                    });
                }
                patience.wait();
            }
        });
    });
    assert_eq!(fired.load(Relaxed), 0, "none was due");
    // The next holder of the lock frees what the earlier ones left.
    for _ in 0..CAPACITY {
        drop(shard.try_lock());
    }
    assert_eq!(shard.try_lock().expect("all others are gone").len(), 0);
    let room = (0..).take_while(|n| shard.remote_insert(hour, *n).is_ok()).count();
    assert_eq!(room, CAPACITY - 64, "every slot is there again");
}

#[test]
fn a_close_beside_arming_cancelling_and_polling_accounts_for_every_timer() {
    const ROUNDS: u64 = 200;
    const POSTERS: usize = 2;
    for round in 0..ROUNDS {
        let shard = Shard::new(ShardConfig { capacity: 1 << 10, ..ShardConfig::DEFAULT });
        let (accepted, ended) = (AtomicUsize::new(0), AtomicUsize::new(0));
        thread::scope(|scope| {
            for poster in 0..POSTERS {
                let (shard, accepted, ended) = (&shard, &accepted, &ended);
                scope.spawn(move || {
                    let mut random = Random::new(round << 8 | poster as u64);
                    loop {
                        match shard.arm(Tick::new(random.next() % 5_000), round) {
                            Ok(inserted) => {
                                accepted.fetch_add(1, Relaxed);
                                if random.next().is_multiple_of(4) && shard.cancel(inserted.id) {
                                    ended.fetch_add(1, Relaxed);
                                }
                            }
                            Err(refused) if refused.is_closed() => break,
                            Err(_) => thread::yield_now(),
                        }
                    }
                });
            }
            scope.spawn(|| {
                for now in 0..100 {
                    if let Some(mut guard) = shard.try_lock() {
                        guard.poll(Tick::new(now * 10), 64, |_| {
                            ended.fetch_add(1, Relaxed);
                        });
                    }
                    thread::yield_now();
                }
            });
            (0..round % 50).for_each(|_| thread::yield_now());
            let mut patience = Patience::default();
            while shard.close(|_| _ = ended.fetch_add(1, Relaxed)) == Closed::Busy {
                patience.wait();
            }
            assert!(shard.remote_insert(Tick::new(1), 0).expect_err("closed").is_closed());
        });
        assert_eq!(accepted.load(Relaxed), ended.load(Relaxed), "in round {round}");
        let stats = shard.stats();
        assert_eq!(stats.armed, accepted.load(Relaxed), "{stats:?}");
        assert_eq!((stats.pending, stats.stale), (0, 0), "{stats:?}");
        assert_eq!(stats.fired + stats.cancelled + stats.dropped, stats.armed, "{stats:?}");
        assert!(shard.into_values().is_empty());
    }
}
