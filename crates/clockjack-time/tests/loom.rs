//! Races of this crate, explored by loom. Each model is run for every form that it concerns.
#![cfg(loom)]

extern crate alloc;

#[path = "loom/clock.rs"]
mod clock;
#[path = "loom/driver.rs"]
mod driver;
#[path = "loom/shard.rs"]
mod shard;
#[path = "loom/timer_state.rs"]
mod timer_state;
