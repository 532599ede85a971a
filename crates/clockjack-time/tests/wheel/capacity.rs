//! Limits: which insert is refused, that a refusal changes nothing, and when there is room again.

use clockjack_time::{FixedWheel, GrowingWheel, Storage, Wheel, WheelConfig};

use crate::{RANGE, fire_values, tick};

/// A wheel for four timers, two of them in the overflow.
fn growing() -> GrowingWheel<u32> {
    Wheel::new(WheelConfig { capacity: 4, overflow_capacity: 2, ..WheelConfig::DEFAULT })
}

fn fixed() -> FixedWheel<u32, 4, 2> {
    FixedWheel::fixed(tick(0))
}

/// Everything that can be seen from outside.
fn state<S: Storage<u32>>(wheel: &Wheel<u32, S>) -> (usize, usize, usize, Option<u64>, u64, u64) {
    (
        wheel.len(),
        wheel.overflow_len(),
        wheel.occupied_slots(),
        wheel.next_deadline().map(|tick| tick.get()),
        wheel.elapsed().get(),
        wheel.open_tick().get(),
    )
}

fn the_limit_hands_the_value_back<S: Storage<u32>>(mut wheel: Wheel<u32, S>) {
    assert_eq!((wheel.capacity(), wheel.overflow_capacity()), (4, 2));
    for value in 0..4 {
        wheel.insert(tick(10 + u64::from(value)), value).expect("room for four");
    }
    let before = state(&wheel);
    for deadline in [0, 5, 10, 5_000, RANGE - 1] {
        let refused = wheel.insert(tick(deadline), 77).expect_err("four are armed");
        assert!(refused.is_capacity() && !refused.is_overflow() && !refused.is_busy());
        assert_eq!(refused.into_inner(), 77);
        assert_eq!(state(&wheel), before, "a refusal for {deadline} changed something");
    }
    assert_eq!(fire_values(&mut wheel, 100), [0, 1, 2, 3], "those that were there");
}

#[test]
fn an_insert_at_the_limit_gives_the_value_back_and_changes_nothing() {
    the_limit_hands_the_value_back(growing());
    the_limit_hands_the_value_back(fixed());
}

fn room_comes_back<S: Storage<u32>>(mut wheel: Wheel<u32, S>) {
    let ids: Vec<_> =
        (0..4).map(|value| wheel.insert(tick(10), value).expect("room for four")).collect();
    assert!(wheel.insert(tick(10), 4).is_err());

    assert_eq!(wheel.cancel(ids[1]), Some(1));
    wheel.insert(tick(11), 5).expect("a cancel makes room");
    assert!(wheel.insert(tick(11), 6).is_err(), "for one");

    assert_eq!(wheel.advance(tick(10), 1).map(|timer| timer.value).collect::<Vec<_>>(), [0]);
    wheel.insert(tick(12), 7).expect("a fire makes room");
    assert!(wheel.insert(tick(12), 8).is_err(), "for one");
    assert_eq!(fire_values(&mut wheel, 12), [2, 3, 5, 7]);
}

#[test]
fn there_is_room_again_after_a_cancel_and_after_a_fire() {
    room_comes_back(growing());
    room_comes_back(fixed());
}

fn the_overflow_has_its_own_limit<S: Storage<u32>>(mut wheel: Wheel<u32, S>) {
    let far = wheel.insert(tick(RANGE + 5), 0).expect("room for two far ones");
    wheel.insert(tick(u64::MAX), 1).expect("room for two far ones");
    let before = state(&wheel);
    let refused = wheel.insert(tick(RANGE + 9), 77).expect_err("two far ones are armed");
    assert!(refused.is_overflow() && !refused.is_capacity() && !refused.is_busy());
    assert_eq!(refused.into_inner(), 77);
    assert_eq!(state(&wheel), before, "a refusal changed something");

    wheel.insert(tick(RANGE - 1), 2).expect("a near one is accepted");
    assert!(wheel.insert(tick(RANGE), 3).is_err_and(|refused| refused.is_overflow()));
    assert_eq!(wheel.cancel(far), Some(0));
    wheel.insert(tick(RANGE + 9), 4).expect("room for a far one again");
    assert_eq!(wheel.overflow_len(), 2);
    assert_eq!(fire_values(&mut wheel, RANGE + 9), [2, 4]);
    assert_eq!(wheel.overflow_len(), 1);
    wheel.insert(tick(3 * RANGE), 5).expect("a far one that fired made room");
}

#[test]
fn a_full_overflow_refuses_overflow_timers_and_takes_others() {
    the_overflow_has_its_own_limit(growing());
    the_overflow_has_its_own_limit(fixed());
}

#[test]
fn a_timer_that_came_into_range_makes_room_in_the_overflow() {
    let mut wheel = growing();
    for value in 0..2 {
        wheel.insert(tick(RANGE + 100), value).expect("room for two far ones");
    }
    assert!(wheel.insert(tick(2 * RANGE), 2).is_err_and(|refused| refused.is_overflow()));
    // The wheel is at a tick where both are in range: they have moved.
    assert_eq!(fire_values(&mut wheel, 200), []);
    assert_eq!((wheel.len(), wheel.overflow_len()), (2, 0));
    for value in 2..4 {
        wheel.insert(tick(2 * RANGE), value).expect("room for two far ones");
    }
    assert_eq!(fire_values(&mut wheel, 3 * RANGE), [0, 1, 2, 3]);
}

#[test]
fn a_wheel_of_no_capacity_refuses_everything() {
    let mut wheel = FixedWheel::<&str, 0>::fixed(tick(7));
    for deadline in [0, 7, 8, RANGE, u64::MAX] {
        assert_eq!(wheel.insert(tick(deadline), "no").expect_err("no room").into_inner(), "no");
    }
    assert_eq!(wheel.next_deadline(), None);
    assert_eq!(fire_values(&mut wheel, u64::MAX), Vec::<&str>::new());
}

#[test]
fn a_refusal_passes_on_without_its_value_and_reads_well() {
    let mut wheel = FixedWheel::<Vec<u8>, 1, 0>::fixed(tick(0));
    let far = wheel.insert(tick(RANGE), vec![1]).expect_err("no far timers here");
    assert_eq!(
        far.to_string(),
        "no room for another timer beyond the range: the overflow is at its capacity"
    );
    wheel.insert(tick(1), vec![2]).expect("room for one near timer");
    let full = wheel.insert(tick(1), vec![3]).expect_err("one is armed").discard();
    assert!(full.is_capacity());
    assert_eq!(full.to_string(), "no room for another timer: the wheel is at its capacity");
}

#[test]
fn a_refusal_by_the_overflow_means_that_a_near_timer_has_room() {
    let config = WheelConfig { capacity: 2, overflow_capacity: 2, ..WheelConfig::DEFAULT };
    let mut wheel = GrowingWheel::new(config);
    for n in 0..2 {
        wheel.insert(tick(1 << 30), n).expect("room");
    }
    let refused = wheel.insert(tick(1 << 30), 2).expect_err("full");
    assert_eq!(refused.is_overflow(), wheel.insert(tick(5), 3).is_ok());
}
