//! Memory: the fixed wheel allocates nothing, the growing one nothing in the steady state, and its
//! memory stays within the documented limits.
//!
//! Counted per thread, so that concurrent tests do not disturb each other.
#![cfg(not(loom))]
#![cfg(feature = "alloc")]

use clockjack_testing::{Random, allocation::Counting};
use clockjack_time::{
    FixedWheel, GrowingWheel, Shard, ShardConfig, Tick, TimerPriority, WheelConfig,
};

#[global_allocator]
static COUNTING: Counting = Counting::new();

/// Blocks that this thread has allocated so far.
fn allocations() -> u64 {
    COUNTING.allocations()
}

/// Bytes that this thread has allocated and not freed.
fn live_bytes() -> i64 {
    i64::try_from(COUNTING.counts().live_bytes).expect("64 bits are enough")
}

/// A distance on any level, or in the overflow.
fn distance(random: &mut Random) -> u64 {
    let bits = 1 + random.below(23);
    random.below(1 << bits)
}

fn tick(ticks: u64) -> Tick {
    Tick::new(ticks)
}

#[test]
fn a_fixed_wheel_allocates_nothing_in_a_long_run() {
    const N: usize = 64;
    let mut wheel = Box::new(FixedWheel::<u64, N, 16>::fixed(Tick::ZERO));
    let mut ids = Vec::with_capacity(4 * N);
    let mut random = Random::new(1);
    let (mut fired, mut cancelled, mut evicted, mut refused, mut far) = (0, 0, 0, 0, 0);
    let before = allocations();
    for number in 0..200_000 {
        let deadline = wheel.elapsed().get() + distance(&mut random);
        match random.below(8) {
            0..=2 => match wheel.insert(tick(deadline), number) {
                Ok(id) => ids.push(id),
                Err(full) => refused += u64::from(full.into_inner() == number),
            },
            3 => {
                let classes = TimerPriority::ALL.len() as u64;
                let priority =
                    TimerPriority::ALL[usize::try_from(random.below(classes)).unwrap_or(0)];
                match wheel.insert_or_evict(tick(deadline), priority, number) {
                    Ok(admitted) => {
                        evicted += u64::from(admitted.evicted.is_some());
                        ids.push(admitted.id);
                    }
                    Err(_) => refused += 1,
                }
            }
            4 if !ids.is_empty() => {
                let at = usize::try_from(random.next()).unwrap_or(0) % ids.len();
                cancelled += u64::from(wheel.cancel(ids.swap_remove(at)).is_some());
            }
            5 if !ids.is_empty() => {
                let at = usize::try_from(random.next()).unwrap_or(0) % ids.len();
                if let Ok(Some(id)) = wheel.rearm(ids[at], tick(deadline)) {
                    ids[at] = id;
                }
            }
            6 => drop(wheel.shed(7)),
            _ => {
                far += wheel.overflow_len() as u64;
                let to = wheel.elapsed().get() + distance(&mut random) / 16;
                let budget = usize::try_from(random.below(40)).unwrap_or(1);
                fired += wheel.advance(tick(to), budget).count() as u64;
            }
        }
        if ids.len() >= 4 * N {
            ids.retain(|id| wheel.contains(*id));
        }
    }
    assert_eq!(allocations(), before);
    let reached = [fired, cancelled, evicted, refused, far];
    assert!(reached.iter().all(|count| *count > 500), "not everything was tried: {reached:?}");
}

/// An empty growing wheel that has contained `n` timers at all distances, at its original tick.
fn warmed_up(n: u64) -> GrowingWheel<u32> {
    let mut wheel = GrowingWheel::new(WheelConfig::DEFAULT);
    let mut random = Random::new(2);
    for _ in 0..2 {
        let distances: Vec<_> = (0..n).map(|_| distance(&mut random)).collect();
        let now = wheel.elapsed().get();
        for distance in distances {
            wheel.insert(tick(now + distance), 0).expect("room");
        }
        wheel.advance(tick(now + (1 << 24)), usize::MAX).for_each(drop);
    }
    assert!(wheel.is_empty());
    wheel
}

#[test]
fn after_a_warm_up_arming_and_cancelling_allocate_nothing() {
    let mut wheel = warmed_up(2_000);
    let mut random = Random::new(3);
    let mut ids = Vec::with_capacity(1_000);
    let before = allocations();
    for _ in 0..1_000 {
        let now = wheel.elapsed().get();
        for value in 0..100 {
            ids.push(wheel.insert(tick(now + distance(&mut random)), value).expect("room"));
        }
        for id in ids.drain(..).rev() {
            assert!(wheel.cancel(id).is_some());
        }
    }
    assert_eq!(allocations(), before);
}

#[test]
fn after_a_warm_up_arming_and_firing_allocate_nothing() {
    let mut wheel = warmed_up(2_000);
    let mut random = Random::new(4);
    let before = allocations();
    for _ in 0..1_000 {
        let now = wheel.elapsed().get();
        for value in 0..100 {
            wheel.insert(tick(now + distance(&mut random)), value).expect("room");
        }
        assert_eq!(wheel.advance(tick(now + (1 << 24)), usize::MAX).count(), 100);
    }
    assert_eq!(allocations(), before);
}

#[test]
fn after_cancelling_all_and_shrinking_memory_is_that_of_an_empty_wheel() {
    let before = live_bytes();
    let mut wheel = GrowingWheel::new(WheelConfig::DEFAULT);
    let empty = live_bytes();
    let mut ids = Vec::new();
    let mut random = Random::new(5);
    for value in 0..50_000_u32 {
        ids.push(wheel.insert(tick(distance(&mut random)), value).expect("room"));
    }
    for id in &ids {
        assert!(wheel.cancel(*id).is_some());
    }
    assert_eq!((wheel.len(), wheel.overflow_len(), wheel.occupied_slots()), (0, 0, 0));
    drop(ids);
    assert!(live_bytes() > empty, "something was taken");
    wheel.shrink();
    assert_eq!(live_bytes(), empty);
    wheel.insert(tick(9), 1).expect("room");
    drop(wheel);
    assert_eq!(live_bytes(), before, "and nothing outlives the wheel");
}

/// The documented maximum for `n` timers of four bytes: for each 12 bytes and the value, a chunk of
/// 64 bytes if it is alone in one, 24 in the overflow, and a free mark for its slot and for its
/// chunk, all in tables that double; and a spare chunk for a cascade.
const fn bytes_max(n: i64) -> i64 {
    2 * (n + 8) * (16 + 64 + 24 + 8)
}

#[test]
fn a_million_operations_with_a_thousand_resident_stay_within_bounds() {
    const RESIDENT: usize = 1_000;
    let mut random = Random::new(6);
    let mut ids = Vec::with_capacity(RESIDENT);
    let before = live_bytes();
    let mut wheel = GrowingWheel::new(WheelConfig::DEFAULT);
    let mut peak = 0;
    for value in 0..RESIDENT {
        let deadline = tick(distance(&mut random));
        ids.push(wheel.insert(deadline, u32::try_from(value).unwrap_or(0)).expect("room"));
    }
    for operation in 0..1_000_000_u64 {
        let at = usize::try_from(random.next()).unwrap_or(0) % RESIDENT;
        // A timer that has fired is replaced, one that has not is cancelled and replaced.
        let _fired_before = wheel.cancel(ids[at]);
        let now = wheel.elapsed().get();
        ids[at] = wheel.insert(tick(now + distance(&mut random)), 0).expect("room");
        if operation % 64 == 0 {
            wheel.advance(tick(now + 1_000), usize::MAX).for_each(drop);
            peak = peak.max(live_bytes() - before);
        }
    }
    assert!(wheel.len() <= RESIDENT);
    let most = bytes_max(i64::try_from(RESIDENT).expect("a thousand"));
    assert!(peak <= most, "{peak} bytes, {most} allowed");
}

#[test]
fn a_timer_costs_at_most_thirty_two_bytes_at_a_hundred_thousand() {
    for spread in [60_000, 1 << 19] {
        let mut random = Random::new(7);
        let before = live_bytes();
        let mut wheel = GrowingWheel::new(WheelConfig::DEFAULT);
        for value in 0..100_000_u32 {
            wheel.insert(tick(1 + random.below(spread)), value).expect("room");
        }
        let bytes = live_bytes() - before;
        assert!(bytes <= 32 * 100_000, "{bytes} bytes for 100000 timers");
        drop(wheel);
    }
}

#[test]
fn a_shard_that_is_cancelled_from_outside_does_not_grow() {
    let shard = Shard::new(ShardConfig { capacity: 1 << 16, ..ShardConfig::DEFAULT });
    let hour = tick(3_600_000);
    // As deep as the index stack gets, and once around the inbox.
    for value in 0..1_000_u32 {
        let id = shard.remote_insert(hour, value).expect("room");
        assert!(shard.cancel(id));
    }
    let before = live_bytes();
    for value in 0..1_000_000_u32 {
        let id = shard.remote_insert(hour, value).expect("room");
        assert!(shard.cancel(id));
    }
    assert_eq!(live_bytes(), before, "a million timers of an hour, armed and cancelled");
    assert!(shard.try_lock().expect("the shard is unlocked").is_empty());
}

/// One hour in milliseconds: beyond the wheel's range, in the overflow.
const HOUR: u64 = 3_600_000;
/// In the wheel's range, in a slot of the coarsest level.
const TEN_MINUTES: u64 = 600_000;

fn shard() -> Shard<u32> {
    Shard::new(ShardConfig::DEFAULT)
}

#[test]
fn a_million_cancels_from_outside_leave_bounded_memory_though_nobody_polls() {
    for delay in [HOUR, TEN_MINUTES] {
        let shard = shard();
        let mut settled = 0;
        for n in 0..1_000_000 {
            if n == 1_000 {
                settled = live_bytes();
            }
            let id = shard.remote_insert(Tick::new(delay), n).expect("room");
            assert!(shard.cancel(id));
        }
        assert!(live_bytes() <= settled, "{} bytes, {settled} after a thousand", live_bytes());
        let stats = shard.stats();
        assert_eq!((stats.armed, stats.cancelled), (1_000_000, 1_000_000));
        assert!(stats.stale < 64 && stats.max_returns <= 64, "{stats:?}");
    }
}

#[test]
fn cancels_beside_a_holder_take_no_memory_and_what_they_leave_serves_again() {
    const N: u32 = 20_000;
    let shard = shard();
    let fill = || (0..N).map(|n| shard.remote_insert(Tick::new(HOUR), n).expect("room"));
    let mut ids = Vec::with_capacity(N as usize);
    ids.extend(fill());
    let (full, before) = (live_bytes(), allocations());
    for round in 0..5 {
        let guard = shard.try_lock().expect("the shard is unlocked");
        assert!(ids.drain(..).all(|id| shard.cancel(id)));
        if round == 0 {
            assert_eq!(allocations(), before, "a cancel allocates nothing");
        }
        assert_eq!(shard.stats().stale, N as usize, "no more than there were");
        drop(guard);
        for _ in 0..=N / 256 {
            drop(shard.try_lock());
        }
        assert_eq!((shard.stats().stale, shard.stats().pending), (0, 0));
        ids.extend(fill());
        // The list of free slots has been allocated meanwhile.
        let more = live_bytes() - full;
        assert!(more <= i64::from(2 * N) * 4, "{more} bytes more in round {round}");
    }
}

#[test]
fn chunks_of_which_one_timer_is_left_are_joined_by_the_polls() {
    const N_KEPT: u32 = 1_000_000 / 6;
    let shard = shard();
    let empty = live_bytes();
    for n in 0..N_KEPT {
        // Seven fill a chunk.
        let mut ids =
            [(); 7].map(|()| shard.remote_insert(Tick::new(TEN_MINUTES), n).expect("room"));
        ids.rotate_left(n as usize % 7);
        assert!(ids[1..].iter().all(|id| shard.cancel(*id)));
        if n % 32 == 0 {
            let mut guard = shard.try_lock().expect("the shard is unlocked");
            assert!(!guard.poll(Tick::new(1), 100, |_| panic!("early")));
        }
    }
    let stats = shard.stats();
    assert_eq!(stats.pending, N_KEPT as usize);
    // For each: 8 bytes of a timer entry and 4 of a list of free chunks, both in vectors that
    // double; 8 of a state; 32 of a chunk that two share. Alone in a chunk it would take 64.
    let bytes = live_bytes() - empty;
    assert!(bytes < i64::from(N_KEPT) * (16 + 8 + 8 + 34), "{bytes} bytes");
    assert!(stats.compacted > N_KEPT as usize / 3 && stats.scanned_lists > 0, "{stats:?}");
    let mut fired = 0;
    let mut guard = shard.try_lock().expect("the shard is unlocked");
    guard.poll(Tick::new(TEN_MINUTES), usize::MAX, |timer| {
        assert_eq!(timer.value, fired, "in order");
        fired += 1;
    });
    assert_eq!(fired, N_KEPT);
}

#[test]
fn a_wheel_whose_room_is_reserved_allocates_nothing_in_a_long_run_nor_after_a_shrink() {
    const N: usize = 600;
    let config = WheelConfig { capacity: N, overflow_capacity: N, ..WheelConfig::DEFAULT };
    let mut wheel = GrowingWheel::<u64>::new(config);
    wheel.reserve_all();
    let mut ids = Vec::with_capacity(N);
    let mut random = Random::new(9);
    let before = (allocations(), live_bytes());
    for round in 0..300 {
        while let Ok(id) = wheel.insert(tick(wheel.elapsed().get() + distance(&mut random)), round)
        {
            ids.push(id);
        }
        assert_eq!(wheel.len(), N);
        // Most timers are cancelled, so that many chunks have one entry.
        for id in ids.drain(..) {
            if random.below(7) > 0 {
                assert!(wheel.cancel(id).is_some());
            }
        }
        let to = wheel.elapsed().get() + distance(&mut random) / 4;
        wheel.advance(tick(to), usize::MAX).for_each(drop);
        if round % 50 == 0 {
            wheel.advance(tick(to + (1 << 24)), usize::MAX).for_each(drop);
            assert!(wheel.is_empty());
            wheel.shrink();
        }
    }
    assert_eq!((allocations(), live_bytes()), before);
}
