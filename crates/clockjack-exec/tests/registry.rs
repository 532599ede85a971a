//! The registry against a map, at its capacity, over the reuse of a slot, and under threads.
#![cfg(not(loom))]
#![expect(unsafe_code, reason = "a cache is bound to its registry by its maker's promise")]

extern crate alloc;

use alloc::collections::{BTreeMap, BTreeSet};
use core::{
    iter,
    num::{NonZeroU32, NonZeroU64},
    ptr::{self, NonNull},
    sync::atomic::{AtomicUsize, Ordering::Relaxed},
};
use std::thread;

use clockjack_exec::registry::{LastRef, Lookup, Registry, SlotCache};
use proptest::prelude::*;

const ONE: NonZeroU32 = NonZeroU32::MIN;

/// A value that can be distinguished from others and is never read.
fn value(n: usize) -> NonNull<()> {
    NonNull::new(ptr::without_provenance_mut(n + 1)).unwrap()
}

/// A process with one reference.
fn insert(
    registry: &Registry,
    cache: Option<&mut SlotCache>,
    n: usize,
) -> Option<(u32, NonZeroU64)> {
    let reserved = registry.reserve(cache)?;
    let pid = (reserved.index(), reserved.generation());
    let slot = registry.occupy(reserved, value(n), ONE);
    assert_eq!(slot.index(), pid.0);
    Some(pid)
}

/// What a look-up finds; gives the reference back at once.
fn find(registry: &Registry, (index, generation): (u32, NonZeroU64)) -> Option<NonNull<()>> {
    let Lookup::Found(found) = registry.get(index, generation) else { return None };
    assert_eq!((found.index(), found.generation()), (index, generation));
    let value = found.value();
    assert!(found.release().is_none(), "the map has a reference too");
    Some(value)
}

/// Ends a process, and gives up the reference that `insert` made.
fn release<'r>(
    registry: &'r Registry,
    (index, generation): (u32, NonZeroU64),
    cache: Option<&mut SlotCache>,
) -> LastRef<'r> {
    let Lookup::Found(found) = registry.get(index, generation) else { panic!("it is live") };
    registry.end(cache);
    let slot = found.into_slot();
    // SAFETY: the reference of the look-up.
    assert!(unsafe { slot.release() }.is_none());
    // SAFETY: the reference of `insert`, which nobody uses any more.
    unsafe { slot.release() }.expect("nobody else has a reference")
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Insert { cached: bool },
    Cancel { cached: bool },
    Remove { nth: usize, cached: bool },
    Flush,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        5 => any::<bool>().prop_map(|cached| Step::Insert { cached }),
        1 => any::<bool>().prop_map(|cached| Step::Cancel { cached }),
        4 => (any::<usize>(), any::<bool>()).prop_map(|(nth, cached)| Step::Remove { nth, cached }),
        1 => Just(Step::Flush),
    ];
    proptest::collection::vec(step, 0..400)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn it_agrees_with_a_map(capacity in 0_usize..300, steps in steps()) {
        let registry = Registry::new(capacity, 1);
        // SAFETY: passed to this registry only.
        let mut cache = unsafe { registry.cache() };
        let mut map = BTreeMap::new();
        let mut gone = BTreeSet::new();
        for (n, step) in steps.into_iter().enumerate() {
            match step {
                Step::Insert { cached } => {
                    let pid = insert(&registry, cached.then_some(&mut cache), n);
                    let Some(pid) = pid else {
                        // Only what the cache keeps may be missing.
                        prop_assert!(map.len() + capacity / 64 >= capacity);
                        continue;
                    };
                    prop_assert!(!gone.contains(&pid), "{pid:?} came again");
                    prop_assert!(map.keys().all(|&(index, _)| index != pid.0), "in use twice");
                    map.insert(pid, value(n));
                }
                Step::Cancel { cached } => {
                    if let Some(reserved) = registry.reserve(None) {
                        gone.insert((reserved.index(), reserved.generation()));
                        registry.cancel(reserved, cached.then_some(&mut cache));
                    }
                }
                Step::Remove { nth, cached } => {
                    let Some(&pid) = map.keys().nth(nth % map.len().max(1)) else { continue };
                    let last = release(&registry, pid, cached.then_some(&mut cache));
                    prop_assert_eq!(Some(last.value()), map.remove(&pid));
                    registry.vacate(last, cached.then_some(&mut cache));
                    gone.insert(pid);
                }
                Step::Flush => registry.flush(&mut cache),
            }
            prop_assert!(map.len() <= capacity);
        }
        for (&pid, &value) in &map {
            prop_assert_eq!(find(&registry, pid), Some(value));
            prop_assert!(registry.is_live(pid.0, pid.1));
        }
        for &pid in &gone {
            prop_assert!(matches!(registry.get(pid.0, pid.1), Lookup::Missing));
            prop_assert!(!registry.is_live(pid.0, pid.1));
        }
        let mut walked = BTreeMap::new();
        registry.for_each_live(|found| {
            walked.insert((found.index(), found.generation()), found.value());
            assert!(found.release().is_none());
        });
        prop_assert_eq!(registry.live_len(), map.len());
        let (mut in_slices, mut next) = (BTreeMap::new(), Some(0));
        while let Some(from) = next {
            next = registry.for_each_live_in(from, 7, |found| {
                in_slices.insert((found.index(), found.generation()), found.value());
                assert!(found.release().is_none());
            });
        }
        prop_assert_eq!(&in_slices, &map);
        prop_assert_eq!(walked, map);
    }
}

#[test]
fn it_holds_as_many_as_its_capacity_and_refuses_one_more() {
    for capacity in [0, 1, 4, 63, 64, 65, 192, 193, 1000] {
        let registry = Registry::new(capacity, 1);
        let pids: Vec<_> = (0..capacity).map(|n| insert(&registry, None, n).unwrap()).collect();
        assert_eq!(insert(&registry, None, 0), None, "capacity {capacity}");
        assert_eq!((registry.live_len(), registry.capacity()), (capacity, capacity));
        assert_eq!(pids.iter().map(|pid| pid.0).collect::<BTreeSet<_>>().len(), capacity);
        if let Some(&pid) = pids.get(capacity / 2) {
            registry.vacate(release(&registry, pid, None), None);
            assert_eq!(insert(&registry, None, 0).map(|pid| pid.0), Some(pid.0));
            assert_eq!(insert(&registry, None, 0), None);
        }
    }
}

#[test]
fn what_lies_in_a_cache_is_missing_elsewhere_until_it_is_flushed() {
    let registry = Registry::new(128, 1);
    // SAFETY: passed to this registry only.
    let mut cache = unsafe { registry.cache() };
    let reserved = registry.reserve(Some(&mut cache)).unwrap();
    registry.cancel(reserved, Some(&mut cache));
    let n = (0..).take_while(|&n| insert(&registry, None, n).is_some()).count();
    assert!((126..128).contains(&n), "a cache keeps a 64th: {n} were left");
    registry.flush(&mut cache);
    assert_eq!((0..).take_while(|&n| insert(&registry, None, n).is_some()).count(), 128 - n);
}

#[test]
fn a_slot_used_again_has_the_next_generation_and_the_old_pid_finds_nothing() {
    let registry = Registry::new(1, 1);
    for n in 1..100 {
        let pid = insert(&registry, None, 7).unwrap();
        assert_eq!((pid.0, pid.1.get()), (0, n));
        for old in (1..n).filter_map(NonZeroU64::new) {
            assert!(matches!(registry.get(0, old), Lookup::Missing));
            assert!(!registry.is_live(0, old));
        }
        let next = pid.1.checked_add(1).unwrap();
        assert!(matches!(registry.get(0, next), Lookup::Missing), "a process to come");
        registry.vacate(release(&registry, pid, None), None);
        assert!(matches!(registry.get(0, pid.1), Lookup::Missing));
    }
}

#[test]
fn a_process_that_ended_is_not_found_and_its_slot_is_not_used_before_it_is_vacated() {
    let registry = Registry::new(1, 1);
    let pid = insert(&registry, None, 7).unwrap();
    let last = release(&registry, pid, None);
    assert!(matches!(registry.get(pid.0, pid.1), Lookup::Missing));
    let other = registry.reserve(None).unwrap();
    assert_ne!(other.index(), pid.0, "the value is not freed yet");
    registry.cancel(other, None);
    assert_eq!(last.value(), value(7));
    registry.vacate(last, None);
    assert!(registry.reserve(None).is_some());
}

#[test]
fn processes_that_ended_and_are_kept_count_for_nothing_and_the_limit_stays_exact() {
    for capacity in [1, 4, 63, 64, 65, 1000] {
        let registry = Registry::new(capacity, 1);
        let fill = || {
            let pids: Vec<_> =
                iter::from_fn(|| insert(&registry, None, 7)).take(capacity + 1).collect();
            assert_eq!(pids.len(), capacity);
            pids
        };
        let mut kept = Vec::new();
        for _ in 0..20 {
            for pid in fill() {
                let Lookup::Found(found) = registry.get(pid.0, pid.1) else { panic!("it is live") };
                let slot = found.into_slot();
                registry.end(None);
                // SAFETY: the reference of `insert`; that of the look-up is kept.
                assert!(unsafe { slot.release() }.is_none());
                kept.push((pid, slot));
            }
        }
        let n_kept = kept.iter().map(|(pid, _)| pid.0).collect::<BTreeSet<_>>().len();
        assert_eq!(n_kept, 20 * capacity, "two of them have one slot");
        let live = fill();
        for (pid, slot) in kept {
            assert!(registry.is_live(pid.0, pid.1));
            // SAFETY: the reference that was kept.
            let last = unsafe { slot.release() }.expect("it was the last");
            registry.vacate(last, None);
        }
        assert_eq!(insert(&registry, None, 7), None, "free slots are not room for more");
        assert_eq!(registry.live_len(), capacity);
        assert!(live.iter().all(|pid| find(&registry, *pid).is_some()));
    }
}

#[test]
fn a_reserved_slot_is_not_found() {
    let registry = Registry::new(1, 1);
    let reserved = registry.reserve(None).unwrap();
    assert!(matches!(registry.get(reserved.index(), reserved.generation()), Lookup::Missing));
    assert!(!registry.is_live(reserved.index(), reserved.generation()));
    assert_eq!(registry.live_len(), 0);
    registry.cancel(reserved, None);
}

#[test]
fn an_index_from_nowhere_finds_nothing() {
    let registry = Registry::new(100, 1);
    insert(&registry, None, 7).unwrap();
    for index in [1, 63, 64, 99, 100, 1 << 20, u32::MAX] {
        assert!(matches!(registry.get(index, NonZeroU64::MIN), Lookup::Missing));
        assert!(!registry.is_live(index, NonZeroU64::MIN));
    }
}

#[test]
#[should_panic(expected = "is another registry's")]
fn a_reservation_of_another_registry_is_not_taken_back() {
    let (one, two) = (Registry::new(1, 1), Registry::new(1, 1));
    two.cancel(two.reserve(None).unwrap(), None);
    two.cancel(one.reserve(None).unwrap(), None);
}

#[test]
fn a_value_is_freed_once_by_whoever_comes_last() {
    const THREADS: usize = 4;
    // Enough for a cache to keep two.
    const CAPACITY: usize = 128;
    const ROUNDS: usize = if cfg!(miri) { 30 } else { 20_000 };
    let registry = Registry::new(CAPACITY, 1);
    let [made, freed] = [const { AtomicUsize::new(0) }; 2];
    let free = |last: LastRef<'_>, cache: &mut SlotCache| {
        // SAFETY: made by `Box::into_raw` below, and the last reference is gone.
        let value = unsafe { Box::from_raw(last.value().cast::<usize>().as_ptr()) };
        assert!(*value < THREADS * ROUNDS);
        freed.fetch_add(1, Relaxed);
        registry.end(Some(cache));
        registry.vacate(last, Some(cache));
    };
    thread::scope(|scope| {
        for thread in 0..THREADS {
            let (registry, made, free) = (&registry, &made, &free);
            scope.spawn(move || {
                // SAFETY: passed to this registry only.
                let mut cache = unsafe { registry.cache() };
                for round in 0..ROUNDS {
                    if let Some(reserved) = registry.reserve(Some(&mut cache)) {
                        let value = Box::new(thread * ROUNDS + round);
                        made.fetch_add(1, Relaxed);
                        let value = NonNull::from(Box::leak(value)).cast();
                        let slot = registry.occupy(reserved, value, ONE);
                        // SAFETY: the reference that `occupy` gave.
                        if let Some(last) = unsafe { slot.release() } {
                            free(last, &mut cache);
                        }
                    }
                    let index = u32::try_from(round % 8).unwrap();
                    let generation = NonZeroU64::new(round as u64 / 2 + 1).unwrap();
                    match registry.get(index, generation) {
                        Lookup::Found(found) => {
                            assert_eq!(found.generation(), generation);
                            // SAFETY: a reference is held, so the value is there.
                            let n = unsafe { found.value().cast::<usize>().read() };
                            assert!(n < THREADS * ROUNDS);
                            if let Some(last) = found.release() {
                                free(last, &mut cache);
                            }
                        }
                        Lookup::Missing => {}
                        Lookup::LastRef(last) => free(last, &mut cache),
                    }
                    registry.for_each_live(|found| {
                        if let Some(last) = found.release() {
                            free(last, &mut cache);
                        }
                    });
                }
                registry.flush(&mut cache);
            });
        }
    });
    assert_eq!(registry.live_len(), 0);
    assert_eq!(made.load(Relaxed), freed.load(Relaxed));
    let free_slots: Vec<_> = iter::from_fn(|| registry.reserve(None)).collect();
    assert_eq!(free_slots.len(), CAPACITY);
}

#[test]
fn the_caches_of_many_workers_hold_a_quarter_of_a_small_registry_at_most() {
    const WORKERS: usize = 64;
    const CAPACITY: usize = 2048;
    let registry = Registry::new(CAPACITY, WORKERS);
    // SAFETY: they are used with this registry only.
    let mut caches: Vec<_> =
        iter::repeat_with(|| unsafe { registry.cache() }).take(WORKERS).collect();
    for cache in &mut caches {
        let reserved = registry.reserve(Some(cache)).expect("nothing is alive");
        registry.cancel(reserved, Some(cache));
    }
    let free = iter::from_fn(|| registry.reserve(None)).collect::<Vec<_>>();
    assert!(free.len() >= CAPACITY - CAPACITY / 4, "{} of {CAPACITY} are free", free.len());
    // And workers that sleep hold nothing.
    caches.iter_mut().for_each(|cache| registry.flush_idle(cache));
    let n = free.len() + iter::from_fn(|| registry.reserve(None)).count();
    assert_eq!(n, CAPACITY);
}

#[test]
fn a_task_is_found_by_its_index_alone() {
    let registry = Registry::new(100, 1);
    let pids: Vec<_> = (0..70).map(|n| insert(&registry, None, n).unwrap()).collect();
    for (n, pid) in pids.iter().enumerate() {
        let found = registry.get_any(pid.0).expect("it is live");
        assert_eq!((found.generation(), found.value()), (pid.1, value(n)));
        assert!(found.release().is_none());
    }
    registry.vacate(release(&registry, pids[3], None), None);
    assert!(registry.get_any(pids[3].0).is_none());
    assert!([99, 100, u32::MAX].iter().all(|index| registry.get_any(*index).is_none()));
}
