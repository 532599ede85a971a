//! Timers whose deadline has passed when they are armed: first, in order of registration, once.

use clockjack_time::{FixedWheel, Storage, Wheel};

use crate::{RANGE, at, fire, tick};

fn past_ones_come_first<S: Storage<u32>>(mut wheel: Wheel<u32, S>) {
    assert_eq!(wheel.elapsed(), tick(100));
    wheel.insert(tick(101), 9).expect("room");
    // Now, long ago, never, a moment ago, now: all of these deadlines have passed.
    for (value, deadline) in [100, 3, 0, 99, 100].into_iter().enumerate() {
        wheel.insert(tick(deadline), u32::try_from(value).expect("five")).expect("room");
    }
    wheel.insert(tick(101), 10).expect("room");
    assert_eq!(wheel.next_deadline(), Some(tick(100)), "there is something to do now");

    let due: Vec<_> = wheel
        .advance(tick(102), usize::MAX)
        .map(|timer| (timer.value, timer.deadline.get(), timer.now.get(), timer.late().get()))
        .collect();
    let expected = [
        (0, 100, 102, 2),
        (1, 3, 102, 99),
        (2, 0, 102, 102),
        (3, 99, 102, 3),
        (4, 100, 102, 2),
        (9, 101, 102, 1),
        (10, 101, 102, 1),
    ];
    assert_eq!(due, expected);
    assert_eq!(fire(&mut wheel, 1_000), [], "and none of them again");
}

#[test]
fn past_timers_fire_first_in_order_of_registration_and_say_how_late_they_are() {
    past_ones_come_first(at(100));
    past_ones_come_first(FixedWheel::<u32, 16>::fixed(tick(100)));
}

#[test]
fn a_past_timer_fires_without_time_moving() {
    let mut wheel = at(100);
    wheel.insert(tick(100), "now").expect("room");
    assert_eq!(fire(&mut wheel, 100), [(100, "now")]);
    wheel.insert(tick(100), "now again").expect("room");
    assert_eq!(fire(&mut wheel, 0), [(100, "now again")], "also if the clock stepped back");
    assert_eq!(wheel.next_deadline(), None);
}

#[test]
fn past_timers_keep_their_order_under_a_budget_with_arming_in_between() {
    let mut wheel = at(100);
    for value in 0..10 {
        wheel.insert(tick(value * 10), value).expect("room");
    }
    let mut fired = Vec::new();
    for value in 10..40 {
        let mut due = wheel.advance(tick(200), 1);
        fired.extend(due.by_ref().map(|timer| timer.value));
        assert!(due.more(), "ten were waiting");
        // Time has not advanced: this deadline has passed, too, and the timer is behind the others.
        wheel.insert(tick(5), value).expect("room");
    }
    fired.extend(fire(&mut wheel, 200).into_iter().map(|(_, value)| value));
    assert_eq!(fired, (0..40).collect::<Vec<_>>());
}

#[test]
fn a_timer_for_the_tick_that_is_firing_joins_it() {
    let mut wheel = at(0);
    for value in 0..4 {
        wheel.insert(tick(5), value).expect("room");
    }
    wheel.insert(tick(6), 100).expect("room");
    assert_eq!(wheel.advance(tick(9), 2).map(|timer| timer.value).collect::<Vec<_>>(), [0, 1]);
    assert_eq!((wheel.elapsed(), wheel.open_tick()), (tick(5), tick(5)));
    wheel.insert(tick(5), 4).expect("room");
    wheel.insert(tick(4), 50).expect("room");
    // The timer for tick 4 is already due and fires first; the one for tick 5 fires in its order.
    let expected = [(4, 50), (5, 2), (5, 3), (5, 4), (6, 100)];
    assert_eq!(fire(&mut wheel, 9), expected);
    assert_eq!((wheel.elapsed(), wheel.open_tick()), (tick(9), tick(10)));
    wheel.insert(tick(9), 60).expect("room");
    wheel.insert(tick(10), 61).expect("room");
    assert_eq!(fire(&mut wheel, 9), [(9, 60)], "tick 9 is finished, tick 10 has not begun");
}

#[test]
fn a_very_old_deadline_is_remembered_for_two_to_the_thirty_ticks() {
    for start in [1 << 31, 1 << 40, 1 << 63, u64::MAX - 2 * RANGE] {
        let mut wheel = at(start);
        for deadline in [0, 1, start - (1 << 30), start - (1 << 30) + 1, start - 7] {
            wheel.insert(tick(deadline), deadline).expect("room");
            let due: Vec<_> = wheel.advance(tick(start), 9).collect();
            let [timer] = due.as_slice() else { panic!("{} fired", due.len()) };
            assert_eq!(timer.value, deadline);
            let oldest = start - (1 << 30);
            if deadline > oldest {
                assert_eq!(timer.deadline.get(), deadline, "seen from {start}");
            } else {
                // Never earlier than its deadline, and at most clamped as documented.
                assert!((oldest..=oldest + 1).contains(&timer.deadline.get()), "{timer:?}");
            }
        }
    }
}

#[test]
fn past_timers_can_be_cancelled_and_re_armed_like_others() {
    let mut wheel = at(50);
    let first = wheel.insert(tick(1), "first").expect("room");
    let second = wheel.insert(tick(2), "second").expect("room");
    wheel.insert(tick(3), "third").expect("room");
    assert_eq!(wheel.cancel(first), Some("first"));
    let second = wheel.rearm(second, tick(4)).expect("room").expect("armed");
    assert_eq!(wheel.get(second), Some(&"second"));
    assert_eq!(fire(&mut wheel, 50), [(3, "third"), (4, "second")], "armed again counts as new");
}
