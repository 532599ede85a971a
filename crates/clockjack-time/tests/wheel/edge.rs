//! The first and last ticks, clocks that step back, long delays, unusual values and statics.

use std::sync::Mutex;

use clockjack_time::{FixedWheel, Resolution, Storage, Tick, Wheel};

use crate::{RANGE, at, fire, fire_values, tick};

/// Arms at several distances around a border and checks that each fires on its tick and not one
/// before.
fn cross<S: Storage<u64>>(mut wheel: Wheel<u64, S>, distances: &[u64]) {
    let start = wheel.elapsed().get();
    let mut deadlines: Vec<u64> =
        distances.iter().filter_map(|distance| start.checked_add(*distance)).collect();
    for deadline in &deadlines {
        wheel.insert(tick(*deadline), *deadline).expect("room");
    }
    deadlines.sort_unstable();
    for deadline in deadlines {
        assert_eq!(wheel.next_deadline(), Some(tick(deadline)));
        if deadline - 1 > wheel.elapsed().get() {
            assert_eq!(fire(&mut wheel, deadline - 1), [], "before {deadline}");
        }
        assert_eq!(fire(&mut wheel, deadline), [(deadline, deadline)], "from {start}");
    }
    assert!(wheel.is_empty());
}

#[test]
fn timers_fire_on_their_tick_across_every_border_of_the_clock() {
    let distances = [
        1,
        2,
        63,
        64,
        65,
        4_095,
        4_096,
        4_097,
        262_143,
        262_144,
        262_145,
        RANGE - 1,
        RANGE,
        RANGE + 1,
        2 * RANGE,
        1 << 30,
        1 << 32,
        1 << 36,
        1 << 40,
    ];
    for border in [6, 12, 18, 20, 30, 31, 32, 36, 48, 63] {
        for before in [0, 1, 2, 64, 4_097, 262_145, RANGE + 1] {
            let start = (1_u64 << border).saturating_sub(before);
            cross(at(start), &distances);
            cross(FixedWheel::<u64, 32>::fixed(tick(start)), &distances);
        }
    }
}

#[test]
fn timers_fire_on_their_tick_up_to_the_last_one() {
    for before in [1, 2, 63, 64, 65, 4_097, 262_145, RANGE - 1, RANGE, RANGE + 1, 1 << 21] {
        let distances: Vec<u64> = [1, 2, 64, 4_096, 262_144, RANGE, before - 1, before]
            .into_iter()
            .filter(|distance| (1..=before).contains(distance))
            .collect::<alloc::collections::BTreeSet<_>>()
            .into_iter()
            .collect();
        cross(at(u64::MAX - before), &distances);
        cross(FixedWheel::<u64, 16>::fixed(tick(u64::MAX - before)), &distances);
    }
}

#[test]
fn at_the_last_tick_the_wheel_still_works() {
    for start in [u64::MAX, u64::MAX - 1] {
        let mut wheel = at(start);
        for value in 0..3 {
            wheel.insert(Tick::MAX, value).expect("room");
        }
        let id = wheel.insert(Tick::MAX, 9).expect("room");
        assert!(wheel.next_deadline().is_some());
        assert_eq!(wheel.cancel(id), Some(9));
        assert_eq!(fire_values(&mut wheel, u64::MAX), [0, 1, 2]);
        wheel.insert(Tick::MAX, 3).expect("room");
        assert_eq!(fire_values(&mut wheel, u64::MAX), [3]);
        wheel.insert(tick(5), 4).expect("room");
        wheel.insert(Tick::MAX, 5).expect("room");
        assert_eq!(fire_values(&mut wheel, u64::MAX), [4, 5], "what is past goes first");
        assert_eq!(wheel.next_deadline(), None);
    }
}

#[test]
fn a_past_deadline_near_the_end_of_time_is_not_taken_for_a_near_one() {
    let mut wheel = at(u64::MAX - 2 * RANGE);
    assert_eq!(fire(&mut wheel, u64::MAX - 10), []);
    wheel.insert(tick(0), "long ago").expect("room");
    wheel.insert(tick(5), "as long ago").expect("room");
    wheel.insert(Tick::MAX, "last").expect("room");
    assert_eq!(fire_values(&mut wheel, u64::MAX - 10), ["long ago", "as long ago"]);
    assert_eq!(fire_values(&mut wheel, u64::MAX), ["last"]);
}

#[test]
fn a_clock_that_steps_back_fires_nothing_early_and_loses_nothing() {
    let mut wheel = at(1_000);
    for deadline in [1_001, 1_005, 1_100, 9_000, RANGE + 5_000] {
        wheel.insert(tick(deadline), deadline).expect("room");
    }
    assert_eq!(fire(&mut wheel, 1_002), [(1_001, 1_001)]);
    for back in [1_001, 1_000, 999, 1, 0] {
        assert_eq!(fire(&mut wheel, back), [], "at {back}");
        assert_eq!(wheel.elapsed(), tick(1_002), "the wheel does not go back");
        assert_eq!(wheel.next_deadline(), Some(tick(1_005)));
    }
    // A timer that is armed while the clock is behind is compared with the tick of the wheel.
    wheel.insert(tick(1_001), 7).expect("room");
    let due: Vec<_> = wheel.advance(tick(500), 10).collect();
    assert_eq!(due.len(), 1);
    assert_eq!((due[0].value, due[0].now, due[0].late().get()), (7, tick(1_002), 1));
    let fired = [1_005, 1_100, 9_000, RANGE + 5_000];
    assert_eq!(fire_values(&mut wheel, 2 * RANGE), fired);
}

#[test]
fn a_clock_that_steps_back_in_an_unfinished_tick_loses_nothing() {
    let mut wheel = at(0);
    for value in 0..6 {
        wheel.insert(tick(10), value).expect("room");
    }
    assert_eq!(wheel.advance(tick(20), 2).map(|t| t.value).collect::<Vec<_>>(), [0, 1]);
    // Tick 10 was reached: the rest is due whatever the clock says now.
    assert_eq!(fire_values(&mut wheel, 3), [2, 3, 4, 5]);
}

#[test]
fn a_year_at_ten_milliseconds_and_the_longest_delay_fire_on_their_tick() {
    let resolution = Resolution::from_nanos(10_000_000).expect("not zero");
    let year = core::time::Duration::from_secs(365 * 24 * 3_600);
    let year = resolution.ticks_ceil(year).expect("fits").get();
    assert_eq!(year, 3_153_600_000);
    let longest = u64::from(i32::MAX.unsigned_abs());
    let mut wheel = at(0);
    wheel.insert(tick(year), "year").expect("room");
    wheel.insert(tick(longest), "longest").expect("room");
    assert_eq!(wheel.next_deadline(), Some(tick(longest)));
    assert_eq!(fire(&mut wheel, longest - 1), []);
    assert_eq!(fire(&mut wheel, longest), [(longest, "longest")]);
    assert_eq!(fire(&mut wheel, year - 1), []);
    assert_eq!(fire(&mut wheel, year), [(year, "year")]);
}

#[test]
fn a_year_in_steps_of_a_day_fires_on_its_tick() {
    let day = 8_640_000;
    let mut wheel = at(0);
    for days in 1..=365_u64 {
        wheel.insert(tick(days * day), days).expect("room");
        wheel.insert(tick(days * day), days).expect("room");
    }
    for days in 1..=365 {
        assert_eq!(fire(&mut wheel, days * day - 1), [], "before day {days}");
        assert_eq!(fire_values(&mut wheel, days * day), [days, days]);
    }
}

static ALARMS: Mutex<FixedWheel<&str, 8, 2>> = Mutex::new(FixedWheel::fixed(Tick::ZERO));

#[test]
fn a_fixed_wheel_is_a_constant_that_a_static_can_start_with() {
    let mut alarms = ALARMS.lock().expect("no thread panicked");
    assert_eq!((alarms.capacity(), alarms.overflow_capacity()), (8, 2));
    alarms.insert(tick(5_000), "tea").expect("room");
    alarms.insert(tick(RANGE + 1), "cake").expect("room");
    assert_eq!(fire_values(&mut alarms, 5_000), ["tea"]);
    assert_eq!(fire_values(&mut alarms, 2 * RANGE), ["cake"]);
}

#[test]
fn values_without_size_are_fired_one_by_one() {
    let mut wheel = at(0);
    let ids: Vec<_> = (0..100).map(|n| wheel.insert(tick(n * 777), ()).expect("room")).collect();
    assert_eq!(wheel.cancel(ids[50]), Some(()));
    assert_eq!(wheel.get(ids[51]), Some(&()));
    assert_eq!(fire(&mut wheel, u64::MAX).len(), 99);
    let mut fixed = FixedWheel::<(), 4>::fixed(tick(0));
    fixed.insert(tick(3), ()).expect("room");
    assert_eq!(fire(&mut fixed, 3), [(3, ())]);
}

#[test]
fn large_and_aligned_values_come_back_whole() {
    #[derive(Clone, Copy, Debug, PartialEq)]
    #[repr(align(64))]
    struct TimerState64([u64; 40]);
    let mut wheel = at(0);
    for n in 0..50 {
        wheel.insert(tick(n * 999), TimerState64([n; 40])).expect("room");
    }
    let expected: Vec<_> = (0..50).map(|n| (n * 999, TimerState64([n; 40]))).collect();
    assert_eq!(fire(&mut wheel, RANGE), expected);
}

#[test]
fn a_full_fixed_wheel_cascades() {
    let mut one = FixedWheel::<u32, 1>::fixed(Tick::ZERO);
    one.insert(tick(100), 1).expect("room");
    assert_eq!(one.advance(tick(100), 100).count(), 1);
    let mut three = FixedWheel::<u32, 3>::fixed(Tick::ZERO);
    for deadline in [300_000, 300_000, 300_100] {
        three.insert(tick(deadline), 1).expect("room");
    }
    assert_eq!(three.advance(tick(400_000), 100).count(), 3);
}

#[test]
fn a_past_deadline_is_past_in_a_new_wheel_near_the_end_of_time() {
    let mut wheel = FixedWheel::<u32, 2>::fixed(tick(u64::MAX - 10));
    wheel.insert(tick(0), 1).expect("room");
    assert_eq!(wheel.advance(tick(u64::MAX - 10), 100).count(), 1);
}
