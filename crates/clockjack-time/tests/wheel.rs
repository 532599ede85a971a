//! The guarantees of a wheel, behaviour by behaviour; `wheel_model.rs` has random sequences.
//!
//! A guarantee that does not depend on the store is checked on the growing and the fixed one.
#![cfg(not(loom))]
#![cfg(feature = "alloc")]

extern crate alloc;

#[path = "wheel/already_due.rs"]
mod already_due;
#[path = "wheel/budget.rs"]
mod budget;
#[path = "wheel/capacity.rs"]
mod capacity;
#[path = "wheel/edge.rs"]
mod edge;
#[path = "wheel/id.rs"]
mod id;
#[path = "wheel/priority.rs"]
mod priority;
#[path = "wheel/reinsertion.rs"]
mod reinsertion;
#[path = "wheel/sleep.rs"]
mod sleep;
#[path = "wheel/value.rs"]
mod value;
#[path = "support/wheels.rs"]
mod wheels;

use clockjack_time::{Storage, Wheel};
use wheels::{RANGE, at, fire, tick};

/// The values alone.
fn fire_values<T, S: Storage<T>>(wheel: &mut Wheel<T, S>, to: u64) -> Vec<T> {
    fire(wheel, to).into_iter().map(|(_, value)| value).collect()
}
