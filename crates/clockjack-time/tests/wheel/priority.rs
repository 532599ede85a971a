//! Timer priorities: which timer is evicted by which, and in which order load shedding drops.

use clockjack_time::{
    FixedWheel, GrowingWheel, Storage, TimerId, TimerPriority, Wheel, WheelConfig,
};

use crate::{RANGE, fire, fire_values, tick};

use TimerPriority::{High, Low, Normal};

fn wheel(capacity: usize, overflow_capacity: usize) -> GrowingWheel<u32> {
    Wheel::new(WheelConfig { capacity, overflow_capacity, ..WheelConfig::DEFAULT })
}

fn fill<S: Storage<u32>>(
    wheel: &mut Wheel<u32, S>,
    timers: &[(u64, TimerPriority)],
) -> Vec<TimerId> {
    let armed = timers.iter().zip(0..).map(|(&(deadline, priority), value)| {
        wheel.insert_with_priority(tick(deadline), priority, value).expect("room for all")
    });
    armed.collect()
}

/// A full wheel with the given timers, numbered from 0: which one does number 100 evict?
#[track_caller]
fn check(timers: &[(u64, TimerPriority)], new: (u64, TimerPriority), goes: Option<u32>) {
    let mut growing = wheel(timers.len(), timers.len());
    check_in(&mut growing, timers, new, goes);
    let mut fixed = FixedWheel::<u32, 3>::fixed(tick(0));
    assert_eq!(timers.len(), 3, "the fixed wheel is for three");
    check_in(&mut fixed, timers, new, goes);
}

#[track_caller]
fn check_in<S: Storage<u32>>(
    wheel: &mut Wheel<u32, S>,
    timers: &[(u64, TimerPriority)],
    (deadline, priority): (u64, TimerPriority),
    goes: Option<u32>,
) {
    let ids = fill(wheel, timers);
    let before = (
        wheel.len(),
        wheel.overflow_len(),
        TimerPriority::ALL.map(|priority| wheel.len_of(priority)),
    );
    match wheel.insert_or_evict(tick(deadline), priority, 100) {
        Ok(admitted) => {
            let evicted = admitted.evicted.expect("it was full");
            assert_eq!(Some(evicted.value), goes, "the wrong one had to go");
            assert_eq!(evicted.id, ids[evicted.value as usize]);
            assert_eq!(evicted.priority, timers[evicted.value as usize].1);
            assert!(evicted.priority < priority, "only a strictly lower priority goes");
            assert!(!wheel.contains(evicted.id) && wheel.contains(admitted.id));
            assert_eq!(wheel.len(), timers.len());
        }
        Err(refused) => {
            assert_eq!(goes, None, "somebody should have gone");
            assert_eq!(refused.into_inner(), 100);
            assert!(ids.iter().all(|id| wheel.contains(*id)), "a refusal evicts no timer");
            let classes = TimerPriority::ALL.map(|priority| wheel.len_of(priority));
            assert_eq!((wheel.len(), wheel.overflow_len(), classes), before);
        }
    }
    // One is cancelled, so that the rest fires from a wheel with room.
    let kept = ids.iter().copied().find(|id| wheel.contains(*id)).expect("two at least are left");
    wheel.cancel(kept).expect("armed");
    let fired = fire(wheel, u64::MAX);
    assert_eq!(fired.len(), timers.len() - 1, "all others fire");
    assert!(fired.is_sorted_by_key(|(deadline, _)| *deadline));
}

#[test]
fn only_a_strictly_lower_priority_is_displaced() {
    check(&[(5, Low), (6, Low), (7, Low)], (9, Low), None);
    check(&[(5, Normal), (6, Normal), (7, Normal)], (9, Low), None);
    check(&[(5, Normal), (6, Normal), (7, Normal)], (9, Normal), None);
    check(&[(5, High), (6, High), (7, High)], (9, High), None);
    check(&[(5, Normal), (6, Low), (7, High)], (9, Normal), Some(1));
    check(&[(5, High), (6, High), (7, Normal)], (9, High), Some(2));
}

#[test]
fn the_lowest_priority_goes_first() {
    check(&[(5, Normal), (6, High), (7, Low)], (9, High), Some(2));
    check(&[(5, Normal), (600, High), (70_000, Normal)], (9, High), Some(0));
    check(&[(5, High), (6, Low), (7, Normal)], (9, Normal), Some(1));
}

#[test]
fn a_wheel_timer_displaces_an_overflow_one_and_the_other_way_round() {
    check(&[(5, Normal), (RANGE + 6, Low), (7, High)], (9, High), Some(1));
    check(&[(RANGE + 5, Normal), (6, Low), (7, High)], (RANGE + 9, High), Some(1));
    check(&[(RANGE + 5, High), (RANGE + 6, High), (7, High)], (9, High), None);
}

#[test]
fn a_past_timer_displaces_and_is_displaced_like_any_other() {
    check(&[(0, Low), (6, Normal), (7, Normal)], (9, Normal), Some(0));
    check(&[(5, Normal), (6, Low), (7, Normal)], (0, High), Some(1));
}

#[test]
fn with_room_nobody_is_displaced() {
    let mut wheel = wheel(4, 4);
    fill(&mut wheel, &[(5, Low), (6, Low)]);
    let admitted = wheel.insert_or_evict(tick(7), High, 100).expect("room");
    assert_eq!(admitted.evicted, None);
    let admitted = wheel.insert_or_evict(tick(RANGE + 7), High, 101).expect("room");
    assert_eq!(admitted.evicted, None);
    assert_eq!(fire_values(&mut wheel, RANGE + 7), [0, 1, 100, 101]);
}

#[test]
fn a_full_overflow_displaces_an_overflow_timer_even_if_there_are_slots() {
    let mut wheel = wheel(100, 2);
    let ids = fill(&mut wheel, &[(5, Low), (RANGE + 9, Low), (RANGE + 8, Normal)]);
    let admitted = wheel.insert_or_evict(tick(RANGE + 7), High, 100).expect("a low one is far");
    assert_eq!(admitted.evicted.map(|evicted| evicted.value), Some(1), "not the near one");
    let refused = wheel.insert_or_evict(tick(RANGE + 7), Normal, 101).expect_err("none is lower");
    assert!(refused.is_overflow());
    assert!(wheel.contains(ids[0]) && wheel.contains(ids[2]));
    wheel.insert_or_evict(tick(6), Low, 102).expect("near ones have room");
    assert_eq!(fire_values(&mut wheel, RANGE + 9), [0, 102, 100, 2]);
}

#[test]
fn shedding_takes_low_then_normal_then_high_until_nothing_is_left() {
    let mut wheel = wheel(1_000, 1_000);
    let deadlines = [0, 3, 70, 5_000, 300_000, RANGE + 1];
    let timers: Vec<_> =
        (0..60).map(|n| (deadlines[n % 6], TimerPriority::ALL[n / 2 % 3])).collect();
    let ids = fill(&mut wheel, &timers);
    let mut shed = Vec::new();
    while let Some(dropped) = wheel.shed(usize::MAX) {
        assert_eq!(dropped.id, ids[dropped.value as usize]);
        assert_eq!(dropped.priority, timers[dropped.value as usize].1);
        assert!(!wheel.contains(dropped.id));
        shed.push((dropped.priority, dropped.value));
    }
    assert!(shed.is_sorted_by_key(|(priority, _)| *priority), "{shed:?}");
    let mut values: Vec<_> = shed.iter().map(|(_, value)| *value).collect();
    values.sort_unstable();
    assert_eq!(values, (0..60).collect::<Vec<_>>(), "each once");
    assert_eq!((wheel.len(), wheel.overflow_len(), wheel.occupied_slots()), (0, 0, 0));
    assert_eq!(wheel.next_deadline(), None);
}

/// How many bounded scans find the one timer of low priority.
fn looks_for_one_low(scan_max: usize, place: u32) -> usize {
    let mut wheel = wheel(20_000, 20_000);
    for value in 0..10_000 {
        let deadline = tick(1 + u64::from(value) * 150);
        let priority = if value == place { Low } else { Normal };
        wheel.insert_with_priority(deadline, priority, value).expect("room");
    }
    assert_eq!((wheel.len_of(Low), wheel.len_of(Normal), wheel.len_of(High)), (1, 9_999, 0));
    let mut looks = 1;
    let dropped = loop {
        match wheel.shed(scan_max) {
            Some(dropped) => break dropped,
            None => looks += 1,
        }
        assert!(looks < 10_000, "it is never found");
    };
    assert_eq!((dropped.priority, dropped.value), (Low, place));
    assert_eq!(wheel.len_of(Low), 0);
    looks
}

#[test]
fn one_low_timer_among_ten_thousand_is_found_by_repeated_bounded_looks() {
    for place in [0, 1, 4_999, 9_998, 9_999] {
        assert_eq!(looks_for_one_low(usize::MAX, place), 1);
        // Holes are scanned too: there are never more than eight cells per timer.
        let looks = looks_for_one_low(256, place);
        assert!(looks <= 8 * 10_000 / 256 + 1, "{looks} looks of 256");
    }
    assert!(looks_for_one_low(256, 5_000) > 1, "a look is bounded");
}

#[test]
fn an_insert_that_did_not_find_a_victim_finds_it_when_repeated() {
    let mut wheel = wheel(10_000, 10_000);
    for value in 0..10_000 {
        let priority = if value == 6_000 { Low } else { High };
        wheel.insert_with_priority(tick(50), priority, value).expect("room");
    }
    let mut refusals = 0;
    let evicted = loop {
        match wheel.insert_or_evict(tick(60), Normal, 77) {
            Ok(admitted) => break admitted.evicted.expect("it was full"),
            Err(refused) => assert_eq!(refused.into_inner(), 77),
        }
        refusals += 1;
        assert!(refusals < 1_000, "the low one is never found");
    };
    assert_eq!(evicted.value, 6_000);
    assert!(refusals > 0, "a search is bounded");
    assert_eq!(wheel.len(), 10_000);
}

#[test]
fn a_priority_moves_with_its_timer_through_cascades_and_re_arming() {
    let mut wheel = wheel(100, 100);
    let ids = fill(&mut wheel, &[(RANGE + 70_000, Low), (70_000, Low), (70_000, High)]);
    wheel.rearm(ids[1], tick(80_000)).expect("room").expect("armed");
    assert_eq!(fire_values(&mut wheel, 69_999), []);
    assert_eq!(TimerPriority::ALL.map(|priority| wheel.len_of(priority)), [2, 0, 1]);
    assert_eq!(fire_values(&mut wheel, 70_000), [2]);
    assert_eq!(wheel.shed(100).map(|dropped| dropped.priority), Some(Low));
    assert_eq!(wheel.shed(100).map(|dropped| dropped.priority), Some(Low));
    assert_eq!(wheel.shed(100), None);
}
