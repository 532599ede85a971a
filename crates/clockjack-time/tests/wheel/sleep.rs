//! `next_deadline`: a host that sleeps until then wakes in time and rarely too early.

use clockjack_time::{GrowingWheel, Storage, Wheel};

use crate::{RANGE, at, fire, tick};

/// Sleeps until `next_deadline` repeatedly; returns when it woke and what fired then.
fn sleep_through<T, S: Storage<T>>(wheel: &mut Wheel<T, S>) -> Vec<(u64, Vec<(u64, T)>)> {
    let mut wakes = Vec::new();
    while let Some(wake) = wheel.next_deadline() {
        assert!(wake >= wheel.elapsed(), "a wake-up in the past");
        wakes.push((wake.get(), fire(wheel, wake.get())));
        assert!(wakes.len() < 1_000, "it never comes to an end");
    }
    wakes
}

#[test]
fn an_empty_wheel_lets_its_host_sleep() {
    let mut wheel = at(5);
    assert_eq!(wheel.next_deadline(), None);
    let id = wheel.insert(tick(9), ()).expect("room");
    assert_eq!(wheel.next_deadline(), Some(tick(9)));
    wheel.cancel(id).expect("armed");
    assert_eq!(wheel.next_deadline(), None);
    wheel.insert(tick(9), ()).expect("room");
    assert_eq!(fire(&mut wheel, 9).len(), 1);
    assert_eq!(wheel.next_deadline(), None);
}

#[test]
fn a_lone_timer_costs_one_wake_up_at_any_distance() {
    for start in [0, 63, 4_095, RANGE - 1, (1 << 32) - 1, 1 << 62] {
        for bits in 0..=40 {
            for distance in [(1_u64 << bits) - 1, 1 << bits, (1 << bits) + 1] {
                let mut wheel = at(start);
                let deadline = start + distance.max(1);
                wheel.insert(tick(deadline), ()).expect("room");
                let wakes = sleep_through(&mut wheel);
                assert_eq!(wakes, [(deadline, vec![(deadline, ())])], "from {start}");
            }
        }
    }
}

/// `n` timers in one coarse slot, the earliest of them in the middle of the list.
fn crowded_slot(n: u64, first: u64) -> GrowingWheel<u64> {
    let mut wheel = at(0);
    for number in 0..n {
        let deadline = if number == n / 2 { first } else { first + 1 + number * 3 % 50 };
        wheel.insert(tick(deadline), deadline).expect("room");
    }
    wheel
}

#[test]
fn it_is_exact_for_up_to_sixty_four_timers_in_the_next_slot() {
    for first in [140, 8_300, 600_000, RANGE + 9] {
        for n in [1, 2, 7, 8, 63, 64] {
            let wheel = crowded_slot(n, first);
            assert_eq!(wheel.next_deadline(), Some(tick(first)), "{n} timers");
        }
    }
}

#[test]
fn for_a_more_crowded_slot_it_is_never_later_and_costs_a_wake_up_a_level_at_most() {
    for first in [140, 8_300, 600_000, RANGE + 9, (1 << 40) + 77] {
        let mut wheel = crowded_slot(2_000, first);
        let said = wheel.next_deadline().expect("many are armed");
        assert!(said <= tick(first), "{said:?} is later than {first}");
        let in_vain = sleep_through(&mut wheel)
            .iter()
            .take_while(|(wake, fired)| {
                assert!(*wake <= first, "overslept");
                fired.is_empty()
            })
            .count();
        assert!(in_vain <= 4, "{in_vain} wake-ups in vain for {first}");
    }
}

#[test]
fn a_host_that_sleeps_until_then_is_never_late() {
    let mut wheel = at(0);
    let mut random = 1_u64;
    for _ in 0..300 {
        random =
            random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let deadline = 1 + (random >> 33) % (1 << (random >> 59).min(24));
        wheel.insert(tick(deadline), deadline).expect("room");
    }
    for (wake, fired) in sleep_through(&mut wheel) {
        assert!(fired.iter().all(|(deadline, _)| *deadline == wake), "late at {wake}: {fired:?}");
    }
}

#[test]
fn the_earlier_of_wheel_and_overflow_counts() {
    let mut wheel = at(0);
    wheel.insert(tick(RANGE + 9), "overflow").expect("room");
    assert_eq!(wheel.next_deadline(), Some(tick(RANGE + 9)));
    wheel.insert(tick(7), "near").expect("room");
    assert_eq!(wheel.next_deadline(), Some(tick(7)));
    let past = wheel.insert(tick(0), "past").expect("room");
    assert_eq!(wheel.next_deadline(), Some(tick(0)), "immediately: the current tick of the wheel");
    wheel.cancel(past).expect("armed");
    assert_eq!(fire(&mut wheel, 7), [(7, "near")]);
    assert_eq!(wheel.next_deadline(), Some(tick(RANGE + 9)));
}
