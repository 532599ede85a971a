//! The values: each is returned or dropped, exactly once, whatever panics.

use alloc::rc::Rc;
use core::{cell::Cell, panic::AssertUnwindSafe};
use std::panic;

use clockjack_time::{FixedWheel, Storage, Wheel};

use crate::{RANGE, at, fire, fire_values, tick};

/// One deadline for each place: already due, every level, the overflow.
const PLACES: [u64; 7] = [0, 101, 170, 5_000, 300_000, RANGE + 200, u64::MAX];

/// Counts its drops, and panics in its drop if requested.
struct DropCounter {
    drops: Rc<Cell<u32>>,
    panics: bool,
}

impl Drop for DropCounter {
    fn drop(&mut self) {
        self.drops.set(self.drops.get() + 1);
        assert!(!self.panics, "a drop that panics");
    }
}

fn each_value_goes_once<S: Storage<Rc<u32>>>(mut wheel: Wheel<Rc<u32>, S>) {
    let token = Rc::new(7);
    let held = || Rc::strong_count(&token) - 1;
    for deadline in PLACES {
        wheel.insert(tick(deadline), Rc::clone(&token)).expect("room");
    }
    assert_eq!(held(), 7);
    let id = wheel.insert(tick(101), Rc::clone(&token)).expect("room");
    drop(wheel.cancel(id).expect("armed"));
    assert_eq!(held(), 7, "a cancelled value is the caller's");
    let id = wheel.insert(tick(101), Rc::clone(&token)).expect("room");
    wheel.rearm(id, tick(5_000)).expect("room").expect("armed");
    assert_eq!(held(), 8, "re-arming keeps the value");
    assert_eq!(fire(&mut wheel, 200).len(), 3);
    assert_eq!(held(), 5, "a fired value is the caller's");
    // Half of a tick fires, and the rest stays inside.
    assert_eq!(wheel.advance(tick(6_000), usize::MAX).take(1).count(), 1);
    assert_eq!(held(), 4);
    drop(wheel);
    assert_eq!(held(), 0, "what is inside is dropped with the wheel");
}

#[test]
fn every_value_is_handed_out_or_dropped_once() {
    each_value_goes_once(at(100));
    each_value_goes_once(FixedWheel::<_, 9>::fixed(tick(100)));
}

#[test]
fn an_evicted_shed_or_refused_value_is_the_callers() {
    use clockjack_time::TimerPriority;
    let token = Rc::new(());
    let mut wheel = FixedWheel::<Rc<()>, 2>::fixed(tick(0));
    wheel.insert_with_priority(tick(5), TimerPriority::Low, Rc::clone(&token)).expect("room");
    wheel.insert(tick(5), Rc::clone(&token)).expect("room");
    let admitted =
        wheel.insert_or_evict(tick(5), TimerPriority::Normal, Rc::clone(&token)).expect("a low");
    assert_eq!(Rc::strong_count(&token), 4);
    drop(admitted);
    let refused = wheel.insert(tick(5), Rc::clone(&token)).expect_err("full");
    assert_eq!(Rc::strong_count(&token), 4);
    drop(refused);
    drop(wheel.shed(9));
    assert_eq!(Rc::strong_count(&token), 2);
    drop(wheel);
    assert_eq!(Rc::strong_count(&token), 1);
}

#[test]
fn a_panic_in_the_consumers_loop_leaves_the_wheel_usable() {
    let n = u32::try_from(PLACES.len()).expect("seven");
    for explodes in 0..n {
        let mut wheel = at(100);
        for (deadline, value) in PLACES.into_iter().zip(0..) {
            wheel.insert(tick(deadline), value).expect("room");
        }
        let mut fired = Vec::new();
        let outcome = panic::catch_unwind(AssertUnwindSafe(|| {
            for timer in wheel.advance(tick(u64::MAX), usize::MAX) {
                fired.push(timer.value);
                assert_ne!(timer.value, explodes, "the consumer's own fault");
            }
        }));
        assert!(outcome.is_err());
        assert_eq!(wheel.len(), (n - 1 - explodes) as usize);
        wheel.insert(tick(u64::MAX), n).expect("it still takes timers");
        fired.extend(fire_values(&mut wheel, u64::MAX));
        assert_eq!(fired, (0..=n).collect::<Vec<_>>(), "panicked at {explodes}");
    }
}

fn a_panicking_drop_spares_the_others<S: Storage<DropCounter>>(mut wheel: Wheel<DropCounter, S>) {
    let drops = Rc::new(Cell::new(0));
    for (deadline, number) in PLACES.into_iter().zip(0..) {
        let value = DropCounter { drops: Rc::clone(&drops), panics: number == 3 };
        assert!(wheel.insert(tick(deadline), value).is_ok());
    }
    let outcome = panic::catch_unwind(AssertUnwindSafe(|| drop(wheel)));
    assert!(outcome.is_err(), "the panic is not swallowed");
    assert_eq!(drops.get(), 7, "each was dropped once all the same");
}

#[test]
fn a_value_whose_drop_panics_spares_the_others() {
    a_panicking_drop_spares_the_others(at(100));
    a_panicking_drop_spares_the_others(FixedWheel::<_, 8>::fixed(tick(100)));
}

#[test]
fn a_value_whose_drop_panics_when_it_fires_leaves_the_wheel_usable() {
    let drops = Rc::new(Cell::new(0));
    let mut wheel = at(0);
    for number in 0..5 {
        let value = DropCounter { drops: Rc::clone(&drops), panics: number == 2 };
        assert!(wheel.insert(tick(5_000), value).is_ok());
    }
    let outcome =
        panic::catch_unwind(AssertUnwindSafe(|| wheel.advance(tick(5_000), 99).for_each(drop)));
    assert!(outcome.is_err());
    assert_eq!((drops.get(), wheel.len()), (3, 2));
    wheel.advance(tick(5_000), 99).for_each(drop);
    assert_eq!((drops.get(), wheel.len()), (5, 0));
}

#[test]
fn shrinking_keeps_what_is_armed() {
    let token = Rc::new(3);
    let mut wheel = at(0);
    wheel.insert(tick(5), Rc::clone(&token)).expect("room");
    wheel.shrink();
    assert_eq!((wheel.len(), Rc::strong_count(&token)), (1, 2));
    assert_eq!(fire(&mut wheel, 5).len(), 1);
    wheel.shrink();
    wheel.insert(tick(9), Rc::clone(&token)).expect("a shrunk wheel takes timers");
    assert_eq!(wheel.elapsed(), tick(5), "time has not advanced");
    assert_eq!(fire(&mut wheel, 9).len(), 1);
}
