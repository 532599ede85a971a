//! Clockjack's time: ticks, clocks, the timer wheel, shards and tick drivers.
#![no_std]

#[cfg(feature = "alloc")]
extern crate alloc;

mod instant;
mod tick;

pub use instant::TimerInstant;
pub use tick::{Resolution, Tick, TickSpan};
