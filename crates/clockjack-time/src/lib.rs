//! Clockjack's time: ticks, clocks, the timer wheel, shards and tick drivers.
#![no_std]

#[cfg(feature = "alloc")]
extern crate alloc;

/// Makes a constructor `const`, except under loom, whose atomics cannot be made so.
#[cfg(not(loom))]
macro_rules! const_unless_loom {
    ($(#[$attribute:meta])* $visibility:vis fn $($rest:tt)*) => {
        $(#[$attribute])* $visibility const fn $($rest)*
    };
}
/// Leaves a constructor as it is: under loom atomics cannot be made in a constant.
#[cfg(loom)]
macro_rules! const_unless_loom {
    ($($constructor:tt)*) => { $($constructor)* };
}

mod clock;
pub mod driver;
mod full;
#[doc(hidden)]
#[path = "driver/gate_narrow.rs"]
pub mod gate_narrow;
#[cfg(any(loom, target_has_atomic = "64"))]
#[doc(hidden)]
#[path = "driver/gate_wide.rs"]
pub mod gate_wide;
mod instant;
#[cfg(all(feature = "alloc", any(loom, target_has_atomic = "64")))]
pub mod shard;
mod tick;
#[doc(hidden)]
#[path = "clock/ticks_narrow.rs"]
pub mod ticks_narrow;
#[cfg(any(loom, target_has_atomic = "64"))]
#[doc(hidden)]
#[path = "clock/ticks_wide.rs"]
pub mod ticks_wide;
pub mod wheel;
pub mod word;
#[doc(hidden)]
#[path = "word/narrow.rs"]
pub mod word_narrow;
#[cfg(any(loom, target_has_atomic = "64"))]
#[doc(hidden)]
#[path = "word/wide.rs"]
pub mod word_wide;

pub use clock::{ClockKind, ManualClock, MonotonicClock};
pub use driver::{DriverError, DriverStatus, InterruptDriver, ManualDriver, TickDriver, TickToken};
pub use full::Full;
pub use instant::TimerInstant;
#[cfg(all(feature = "alloc", any(loom, target_has_atomic = "64")))]
pub use shard::{Lease, Posted, Shard, ShardConfig};
pub use tick::{Resolution, Tick, TickSpan};
pub use wheel::{
    Admitted, Advance, Class, Dropped, Expired, Fixed, FixedWheel, Storage, TimerId, Wheel,
    WheelConfig,
};
#[cfg(feature = "alloc")]
pub use wheel::{GrowingWheel, Slab};
pub use word::{CancelledFrom, Generation};

/// The timer word of this target: one 64-bit atomic where there is one, else two of 32 bits.
#[cfg(any(loom, target_has_atomic = "64"))]
pub type TimerWord = word::Word<word_wide::Wide>;
/// The timer word of this target: one 64-bit atomic where there is one, else two of 32 bits.
#[cfg(not(any(loom, target_has_atomic = "64")))]
pub type TimerWord = word::Word<word_narrow::Narrow>;

/// The tick count of this target: one 64-bit atomic where there is one, else three of 32 bits. One
/// writer, any number of readers, only rising.
#[cfg(any(loom, target_has_atomic = "64"))]
pub type MonotoneTicks = ticks_wide::WideTicks;
/// The tick count of this target: one 64-bit atomic where there is one, else three of 32 bits. One
/// writer, any number of readers, only rising.
#[cfg(not(any(loom, target_has_atomic = "64")))]
pub type MonotoneTicks = ticks_narrow::NarrowTicks;

/// The gate of this target's drivers.
#[cfg(any(loom, target_has_atomic = "64"))]
pub(crate) type TickGate = gate_wide::WideGate;
/// The gate of this target's drivers.
#[cfg(not(any(loom, target_has_atomic = "64")))]
pub(crate) type TickGate = gate_narrow::NarrowGate;
