//! Ids: each names one arming of one timer, and never another.

use clockjack_time::{
    FixedWheel, GrowingWheel, Storage, TimerId, TimerPriority, Wheel, WheelConfig,
};

use crate::{RANGE, at, fire, fire_values, tick};

#[track_caller]
fn names_nothing<S: Storage<u32>>(wheel: &mut Wheel<u32, S>, id: TimerId) {
    let before = wheel.len();
    assert!(!wheel.contains(id));
    assert_eq!(wheel.get(id), None);
    assert_eq!(wheel.get_mut(id), None);
    assert!(wheel.rearm(id, tick(7)).expect("no refusal").is_none());
    assert!(wheel.rearm(id, tick(u64::MAX)).expect("no refusal").is_none());
    assert_eq!(wheel.cancel(id), None);
    assert_eq!(wheel.len(), before, "no other timer was cancelled");
}

fn stale_ids_name_nothing<S: Storage<u32>>(mut wheel: Wheel<u32, S>) {
    let mut stale = Vec::new();
    let mut round = |wheel: &mut Wheel<u32, S>, deadline: u64| {
        let base = wheel.elapsed().get();
        let cancelled = wheel.insert(tick(base + deadline), 1).expect("room");
        assert_eq!(wheel.cancel(cancelled), Some(1));
        let moved = wheel.insert(tick(base + deadline), 2).expect("room");
        let new = wheel.rearm(moved, tick(base + deadline)).expect("room").expect("armed");
        assert_ne!(moved, new);
        let evicted =
            wheel.insert_with_priority(tick(base + deadline), TimerPriority::Low, 3).expect("room");
        assert_eq!(wheel.shed(usize::MAX).map(|dropped| dropped.id), Some(evicted));
        assert_eq!(fire_values(wheel, base + deadline), [2]);
        stale.extend([cancelled, moved, new, evicted]);
        // The slots are used again and again; here one of them is in use.
        let armed = wheel.insert(tick(base + deadline + 9), 4).expect("room");
        for id in &stale {
            names_nothing(wheel, *id);
        }
        assert_eq!(wheel.cancel(armed), Some(4));
        stale.push(armed);
    };
    for deadline in [1, 70, 5_000, 300_000, RANGE + 1, 0] {
        round(&mut wheel, deadline);
    }
    wheel.shrink();
    round(&mut wheel, 3);
    let mut unique = stale.clone();
    unique.sort_by_key(|id| format!("{id:?}"));
    unique.dedup();
    assert_eq!(unique.len(), stale.len(), "no id was given twice");
}

#[test]
fn an_id_names_nothing_after_fire_cancel_re_arming_eviction_and_shrink() {
    stale_ids_name_nothing(at(0));
    stale_ids_name_nothing(FixedWheel::<u32, 4>::fixed(tick(0)));
}

#[test]
fn an_id_of_another_wheel_is_refused() {
    let numbered = |shard| GrowingWheel::new(WheelConfig { shard, ..WheelConfig::DEFAULT });
    let (mut one, mut two) = (numbered(1), numbered(2));
    let in_one = one.insert(tick(5), 11).expect("room");
    let in_two = two.insert(tick(5), 22).expect("room");
    assert_eq!((in_one.shard(), in_two.shard()), (1, 2));
    names_nothing(&mut one, in_two);
    names_nothing(&mut two, in_one);
    // Also one from a wheel that has far more timers.
    let far = (0..100).map(|n| two.insert(tick(9), n).expect("room")).last().expect("100");
    names_nothing(&mut one, far);
    assert_eq!((one.cancel(in_one), two.cancel(in_two)), (Some(11), Some(22)));
}

#[test]
fn a_live_timer_can_be_looked_at_and_changed_wherever_it_is() {
    let mut wheel = at(100);
    for deadline in [0, 101, 200, 5_000, 300_000, RANGE + 100, u64::MAX] {
        let id = wheel.insert(tick(deadline), 7).expect("room");
        assert!(wheel.contains(id));
        assert_eq!(wheel.get(id), Some(&7));
        *wheel.get_mut(id).expect("armed") += 1;
        assert_eq!(wheel.get(id), Some(&8));
        assert_eq!(wheel.cancel(id), Some(8), "deadline {deadline}");
    }
    assert!(wheel.is_empty());
}

#[test]
fn re_arming_moves_a_timer_to_the_end_of_its_tick() {
    for deadline in [0, 105, 170, 5_000, 300_000, RANGE + 200] {
        let mut wheel = at(100);
        let ids: Vec<_> =
            (0..4).map(|value| wheel.insert(tick(deadline), value).expect("room")).collect();
        let id = wheel.rearm(ids[1], tick(deadline)).expect("room").expect("armed");
        assert_eq!(wheel.get(id), Some(&1), "the value goes along");
        wheel.insert(tick(deadline), 4).expect("room");
        wheel.rearm(ids[0], tick(deadline)).expect("room").expect("armed");
        assert_eq!(fire_values(&mut wheel, 2 * RANGE), [2, 3, 1, 4, 0], "deadline {deadline}");
    }
}

#[test]
fn re_arming_moves_a_timer_between_all_places() {
    let places = [50, 101, 170, 5_000, 300_000, RANGE + 200, 1 << 40];
    for from in places {
        for to in places {
            let mut wheel = at(100);
            let old = wheel.insert(tick(from), 1).expect("room");
            let new = wheel.rearm(old, tick(to)).expect("room").expect("armed");
            assert!(wheel.contains(new) && !wheel.contains(old));
            assert_eq!(wheel.len(), 1);
            assert_eq!(wheel.next_deadline(), Some(tick(to.max(100))), "from {from} to {to}");
            assert_eq!(fire(&mut wheel, 1 << 40), [(to, 1)], "from {from}");
        }
    }
}

#[test]
fn re_arming_into_a_full_overflow_leaves_the_timer_as_it_was() {
    let mut wheel = GrowingWheel::new(WheelConfig {
        overflow_capacity: 1,
        capacity: 3,
        ..WheelConfig::DEFAULT
    });
    let first = wheel.insert(tick(5), 0).expect("room");
    wheel.insert(tick(5), 1).expect("room");
    let far = wheel.insert(tick(RANGE + 5), 2).expect("room");
    let refused = wheel.rearm(first, tick(RANGE + 9)).expect_err("one is far already");
    assert!(refused.is_overflow() && !refused.is_capacity());
    assert!(wheel.contains(first), "under its old id");
    // The overflow timer may move within the overflow, because it leaves its own entry.
    let far = wheel.rearm(far, tick(RANGE + 7)).expect("its own place").expect("armed");
    assert_eq!(fire(&mut wheel, 10), [(5, 0), (5, 1)], "in its old place");
    assert_eq!(wheel.cancel(far), Some(2));
}

#[test]
fn re_arming_needs_no_room() {
    let mut wheel = FixedWheel::<u32, 2>::fixed(tick(0));
    wheel.insert(tick(5), 0).expect("room");
    let id = wheel.insert(tick(6), 1).expect("room");
    let id = wheel.rearm(id, tick(4)).expect("no slot is needed").expect("armed");
    let id = wheel.rearm(id, tick(RANGE + 4)).expect("no slot is needed").expect("armed");
    let id = wheel.rearm(id, tick(3)).expect("no slot is needed").expect("armed");
    assert_eq!(fire_values(&mut wheel, 9), [1, 0]);
    assert!(!wheel.contains(id));
}
