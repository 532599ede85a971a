//! `advance` in pieces: bounded work per call, and the same order as in one call.

use clockjack_time::{FixedWheel, GrowingWheel, Storage, Wheel};

use crate::{RANGE, at, tick};

/// Advances in calls with one budget until nothing is left; returns what fired and the number of
/// calls.
fn fire_in_pieces<T, S: Storage<T>>(
    wheel: &mut Wheel<T, S>,
    to: u64,
    budget: usize,
) -> (Vec<T>, usize) {
    let (mut fired, mut calls) = (Vec::new(), 0);
    loop {
        calls += 1;
        let mut due = wheel.advance(tick(to), budget);
        let before = fired.len();
        fired.extend(due.by_ref().map(|timer| timer.value));
        let more = due.more();
        assert!(fired.len() - before <= budget, "call {calls} fired more than {budget}");
        if !more {
            return (fired, calls);
        }
        assert!(calls < 1_000_000, "no end");
    }
}

const CROWD: u32 = 100_000;

fn crowd(deadline: u64) -> GrowingWheel<u32> {
    let mut wheel = at(0);
    for value in 0..CROWD {
        wheel.insert(tick(deadline), value).expect("room");
    }
    wheel
}

#[test]
fn a_crowded_tick_is_fired_in_pieces_of_the_budget() {
    let mut wheel = crowd(50);
    let (fired, calls) = fire_in_pieces(&mut wheel, 60, 64);
    assert!(fired.iter().copied().eq(0..CROWD), "in order of registration");
    assert_eq!(calls, CROWD.div_ceil(64) as usize, "a unit for each, and no more");
}

#[test]
fn a_crowded_coarse_slot_is_dealt_out_in_pieces_of_the_budget() {
    for deadline in [5_000, 300_000, RANGE + 5] {
        let mut wheel = crowd(deadline);
        let (fired, calls) = fire_in_pieces(&mut wheel, deadline, 64);
        assert!(fired.iter().copied().eq(0..CROWD), "in order of registration");
        // Each was moved at least once, unless it fired straight from the overflow, and was fired.
        let units = if deadline < RANGE { 2 * CROWD } else { CROWD };
        assert!(calls >= (units / 64) as usize, "{calls} calls are too few for {deadline}");
    }
}

#[test]
fn next_deadline_is_now_while_work_is_left_over() {
    let mut wheel = at(0);
    for value in 0..30 {
        wheel.insert(tick(5_000), value).expect("room");
    }
    // The budget ends in the first cascade, at the start of the slot.
    let mut due = wheel.advance(tick(6_000), 10);
    assert_eq!(due.by_ref().count(), 0);
    assert!(due.more());
    assert_eq!(wheel.next_deadline(), Some(wheel.elapsed()));
    assert!(wheel.elapsed() <= tick(5_000), "time does not pass what was not looked at");
}

#[test]
fn a_budget_of_nothing_does_nothing_and_says_that_there_is_work() {
    let mut wheel = at(0);
    wheel.insert(tick(5), "a").expect("room");
    let mut due = wheel.advance(tick(4), 0);
    assert_eq!(due.next(), None);
    assert!(!due.more(), "nothing is due at 4");
    let mut due = wheel.advance(tick(5), 0);
    assert_eq!(due.next(), None);
    assert!(due.more());
    assert_eq!(wheel.elapsed(), tick(0));
    assert_eq!(wheel.len(), 1);
}

/// Twenty timers in the slot that begins at `slot` and spans `span` ticks; the cascade is
/// interrupted after every `budget` units, and after each call one more is armed in its span.
fn cascade_in_pieces<S: Storage<(u64, u32)>>(
    mut wheel: Wheel<(u64, u32), S>,
    slot: u64,
    span: u64,
    budget: usize,
) {
    // Few ticks, so that each gets old and new timers; none at the slot's start, which fires.
    let deadlines = [slot + 1, slot + span / 2, slot + 1, slot + span - 1, slot + span / 2];
    let mut number = 0;
    let mut arm = |wheel: &mut Wheel<(u64, u32), S>| {
        let deadline = deadlines[number as usize % deadlines.len()];
        wheel.insert(tick(deadline), (deadline, number)).expect("room");
        number += 1;
    };
    (0..20).for_each(|_| arm(&mut wheel));
    let mut interrupted = 0;
    for _ in 0..30 {
        let mut due = wheel.advance(tick(slot), budget);
        assert_eq!(due.by_ref().count(), 0, "nothing is due at the slot's start");
        interrupted += u32::from(due.more());
        arm(&mut wheel);
    }
    assert!(budget >= 20 || interrupted > 0, "a budget of {budget} ended nowhere");
    let (fired, _) = fire_in_pieces(&mut wheel, slot + span, budget);
    let mut expected = fired.clone();
    expected.sort_unstable();
    assert_eq!(fired, expected, "slot {slot}, span {span}, budget {budget}");
    assert_eq!(fired.len(), 50);
}

#[test]
fn a_cascade_interrupted_at_any_point_keeps_the_order_of_those_armed_meanwhile() {
    for budget in 1..=20 {
        for (slot, span) in [(128, 64), (8_192, 4_096), (524_288, 262_144)] {
            cascade_in_pieces(at(0), slot, span, budget);
            cascade_in_pieces(FixedWheel::<_, 64>::fixed(tick(0)), slot, span, budget);
        }
        // The next lap of the top level, and of all levels at once.
        cascade_in_pieces(at(RANGE - 3), RANGE, 64, budget);
        cascade_in_pieces(at(RANGE - 3), RANGE, 262_144, budget);
        cascade_in_pieces(at((1 << 36) - 3), 1 << 36, 262_144, budget);
    }
}

#[test]
fn a_cancel_or_re_arming_in_an_interrupted_cascade_hits_the_right_timer() {
    for budget in 1..=20 {
        let mut wheel = at(0);
        let mut ids = Vec::new();
        for value in 0..20 {
            ids.push(wheel.insert(tick(5_000), value).expect("room"));
        }
        assert_eq!(wheel.advance(tick(4_096), budget).count(), 0);
        // One that has moved down, one at the border, one that has not.
        let border = budget.min(19);
        for at in [0, border, 19] {
            let value = wheel.cancel(ids[at]);
            assert!(value.is_none() || value == u32::try_from(at).ok());
        }
        assert_eq!(wheel.len(), if border == 19 { 18 } else { 17 });
        let moved = wheel.rearm(ids[10], tick(5_000)).expect("room");
        assert_eq!(moved.is_some(), border != 10);
        let (fired, _) = fire_in_pieces(&mut wheel, 5_000, budget);
        let mut expected: Vec<u32> =
            (1..19).filter(|v| *v != 10 && *v as usize != border).collect();
        expected.extend(moved.map(|_| 10));
        assert_eq!(fired, expected, "budget {budget}");
    }
}

#[test]
fn dropping_the_iterator_at_any_point_loses_nothing() {
    let deadlines = [0, 3, 3, 70, 70, 70, 5_000, 5_000, 5_001, RANGE + 2, RANGE + 2, RANGE + 3];
    for stop in 0..=deadlines.len() {
        let mut wheel = at(0);
        for (number, deadline) in deadlines.iter().enumerate() {
            wheel.insert(tick(*deadline), number).expect("room");
        }
        let mut fired: Vec<_> =
            wheel.advance(tick(2 * RANGE), usize::MAX).take(stop).map(|t| t.value).collect();
        assert_eq!(fired.len(), stop);
        assert_eq!(wheel.len(), deadlines.len() - stop);
        // The host may also advance further than it first intended.
        fired.extend(wheel.advance(tick(71), usize::MAX).map(|timer| timer.value));
        fired.extend(wheel.advance(tick(2 * RANGE), usize::MAX).map(|timer| timer.value));
        assert_eq!(fired, (0..deadlines.len()).collect::<Vec<_>>(), "dropped after {stop}");
    }
}

#[test]
fn an_advance_that_is_not_drained_moves_nothing() {
    let mut wheel = at(0);
    wheel.insert(tick(5), "a").expect("room");
    drop(wheel.advance(tick(100), 100));
    assert_eq!(wheel.elapsed(), tick(0));
    assert_eq!(wheel.next_deadline(), Some(tick(5)));
}
