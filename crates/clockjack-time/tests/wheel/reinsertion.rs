//! Timers that return from the overflow: on time and in order, whatever the limit per tick.

use clockjack_time::{GrowingWheel, Wheel, WheelConfig};

use crate::{RANGE, fire, fire_values, tick};

fn wheel(reinsertion_batch_limit: u32) -> GrowingWheel<u32> {
    Wheel::new(WheelConfig { reinsertion_batch_limit, ..WheelConfig::DEFAULT })
}

/// One more, one less and far more than 250 timers.
const LIMITS: [u32; 7] = [0, 1, 2, 100, 249, 250, u32::MAX];

#[test]
fn all_overflow_timers_of_one_tick_fire_in_it_whatever_the_limit() {
    for limit in LIMITS {
        for steps in [1, 2, 7, 1_000] {
            let mut wheel = wheel(limit);
            let deadline = RANGE + 1_234;
            for value in 0..250 {
                wheel.insert(tick(deadline), value).expect("room");
            }
            assert_eq!(wheel.overflow_len(), 250);
            // Time advances in a few large steps, so that some timers return early and some do not.
            for step in 0..steps {
                assert_eq!(fire(&mut wheel, (deadline - 1) * step / steps), []);
            }
            assert_eq!(fire(&mut wheel, deadline - 1), [], "not before its tick");
            let fired = fire(&mut wheel, deadline);
            let expected: Vec<_> = (0..250).map(|value| (deadline, value)).collect();
            assert_eq!(fired, expected, "limit {limit}, {steps} strides");
        }
    }
}

#[test]
fn a_tick_returns_no_more_than_the_limit() {
    for limit in [0, 1, 100] {
        let mut wheel = wheel(limit);
        for value in 0..250 {
            wheel.insert(tick(RANGE + 500), value).expect("room");
        }
        // From the first step on all of them are in range.
        let mut before = 250;
        for now in 501..510 {
            assert_eq!(fire(&mut wheel, now), []);
            let returned = before - wheel.overflow_len();
            assert_eq!(returned, before.min(limit as usize), "limit {limit} at {now}");
            before = wheel.overflow_len();
        }
    }
}

#[test]
fn timers_armed_while_the_overflow_is_in_range_stand_behind_it() {
    for limit in [0, 1, 100] {
        let mut wheel = wheel(limit);
        let shared = RANGE + 10;
        wheel.insert(tick(shared), 0).expect("room");
        wheel.insert(tick(shared), 1).expect("room");
        wheel.insert(tick(shared + 2), 10).expect("room");
        assert_eq!(fire(&mut wheel, 100), [], "now all three are in range");
        wheel.insert(tick(shared), 2).expect("room");
        wheel.insert(tick(shared + 1), 5).expect("room");
        wheel.insert(tick(shared + 2), 11).expect("room");
        wheel.insert(tick(shared - 1), 50).expect("room");
        wheel.insert(tick(60_000), 60).expect("room");
        assert_eq!(fire(&mut wheel, 200), []);
        wheel.insert(tick(shared), 3).expect("room");
        let expected = [60, 50, 0, 1, 2, 3, 5, 10, 11];
        assert_eq!(fire_values(&mut wheel, 2 * RANGE), expected, "limit {limit}");
    }
}

#[test]
fn a_cancel_of_the_overflows_first_keeps_the_order_of_the_rest() {
    for limit in [0, 1, 100] {
        let mut wheel = wheel(limit);
        let first = wheel.insert(tick(RANGE + 10), 0).expect("room");
        let second = wheel.insert(tick(RANGE + 20), 1).expect("room");
        wheel.insert(tick(RANGE + 30), 2).expect("room");
        assert_eq!(fire(&mut wheel, 100), []);
        wheel.insert(tick(RANGE + 20), 3).expect("room");
        assert_eq!(wheel.cancel(first), Some(0));
        wheel.insert(tick(RANGE + 20), 4).expect("room");
        wheel.insert(tick(RANGE + 15), 5).expect("room");
        wheel.insert(tick(RANGE + 10), 6).expect("room");
        assert!(wheel.rearm(second, tick(RANGE + 20)).expect("room").is_some());
        wheel.insert(tick(RANGE + 30), 7).expect("room");
        assert_eq!(fire_values(&mut wheel, 2 * RANGE), [6, 5, 3, 4, 1, 2, 7], "limit {limit}");
    }
}

#[test]
fn timers_for_a_tick_that_fires_from_the_overflow_join_its_end() {
    for limit in [0, 1, 3] {
        let mut wheel = wheel(limit);
        let deadline = RANGE + 10;
        for value in 0..6 {
            wheel.insert(tick(deadline), value).expect("room");
        }
        let mut fired = Vec::new();
        for value in 6..12 {
            fired.extend(wheel.advance(tick(deadline), 2).map(|timer| timer.value));
            if wheel.open_tick() == tick(deadline) {
                wheel.insert(tick(deadline), value).expect("room");
            }
        }
        fired.extend(fire_values(&mut wheel, deadline));
        assert!(fired.is_sorted(), "limit {limit}: {fired:?}");
        assert!(fired.len() > 6, "some came while it was firing");
        assert!(wheel.is_empty());
    }
}

#[test]
fn the_order_of_the_overflow_survives_cancels_in_its_middle() {
    let mut wheel = wheel(100);
    let deadline = |n: u32| RANGE + u64::from(n * 7_919 % 50);
    let ids: Vec<_> =
        (0..1_000).map(|n| wheel.insert(tick(deadline(n)), n).expect("room")).collect();
    let kept: Vec<u32> = (0..1_000).filter(|n| n % 3 != 0).collect();
    for n in (0..1_000).filter(|n| n % 3 == 0) {
        assert_eq!(wheel.cancel(ids[n as usize]), Some(n));
    }
    assert_eq!(wheel.overflow_len(), kept.len(), "a cancelled one leaves nothing behind");
    let mut expected = kept;
    expected.sort_by_key(|n| deadline(*n));
    assert_eq!(fire_values(&mut wheel, 2 * RANGE), expected);
}
