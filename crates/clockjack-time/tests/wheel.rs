//! What a wheel promises, behaviour by behaviour; `wheel_model.rs` has the random walk beside it.
//!
//! Where a promise does not depend on the store, it is checked on the growing and the fixed one.
#![cfg(not(loom))]
#![cfg(feature = "alloc")]

extern crate alloc;

#[path = "wheel/at_once.rs"]
mod at_once;
#[path = "wheel/budget.rs"]
mod budget;
#[path = "wheel/capacity.rs"]
mod capacity;
#[path = "wheel/class.rs"]
mod class;
#[path = "wheel/edge.rs"]
mod edge;
#[path = "wheel/id.rs"]
mod id;
#[path = "wheel/reinsertion.rs"]
mod reinsertion;
#[path = "wheel/sleep.rs"]
mod sleep;
#[path = "wheel/value.rs"]
mod value;

use clockjack_time::{GrowingWheel, Storage, Tick, Wheel, WheelConfig};

/// The first distance that belongs to the overflow.
const RANGE: u64 = GrowingWheel::<()>::RANGE;

fn tick(ticks: u64) -> Tick {
    Tick::new(ticks)
}

/// A growing wheel of a million timers that stands at a tick.
fn at<T>(start: u64) -> GrowingWheel<T> {
    Wheel::new(WheelConfig { start: tick(start), ..WheelConfig::DEFAULT })
}

/// Deadlines and values of all that fires up to a tick.
fn fire<T, S: Storage<T>>(wheel: &mut Wheel<T, S>, to: u64) -> Vec<(u64, T)> {
    let mut due = wheel.advance(tick(to), usize::MAX);
    let fired = due.by_ref().map(|timer| (timer.deadline.get(), timer.value)).collect();
    assert!(!due.more(), "an unlimited budget ended");
    fired
}

/// The values alone.
fn fire_values<T, S: Storage<T>>(wheel: &mut Wheel<T, S>, to: u64) -> Vec<T> {
    fire(wheel, to).into_iter().map(|(_, value)| value).collect()
}
