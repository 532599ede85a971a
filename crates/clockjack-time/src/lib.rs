//! Clockjack's time: ticks, clocks, the timer wheel, shards and tick drivers.
#![no_std]

#[cfg(feature = "alloc")]
extern crate alloc;

mod full;
mod instant;
mod tick;
pub mod wheel;

pub use full::Full;
pub use instant::TimerInstant;
pub use tick::{Resolution, Tick, TickSpan};
pub use wheel::{
    Admitted, Advance, Class, Dropped, Expired, Fixed, FixedWheel, Storage, TimerId, Wheel,
    WheelConfig,
};
#[cfg(feature = "alloc")]
pub use wheel::{GrowingWheel, Slab};
