//! Time in Clockjack: ticks, clocks, the timer wheel and tick drivers.
//!
//! ```
//! use clockjack_time::{FixedWheel, ManualClock, MonotonicClock, Resolution, Tick};
//! use core::time::Duration;
//!
//! // The caller passes the time in: here from a clock that a test advances.
//! let clock = ManualClock::new(Resolution::MILLI);
//! let mut wheel = FixedWheel::<&str, 16>::fixed(Tick::ZERO);
//!
//! let due = clock.now() + Duration::from_millis(1500);
//! let hello = wheel.insert(due.tick(), "hello")?;
//! wheel.insert(due.tick(), "world")?;
//!
//! clock.advance(Duration::from_millis(1499));
//! assert_eq!(wheel.advance(clock.now().tick(), 64).count(), 0); // never early
//!
//! clock.advance(Duration::from_millis(1));
//! let fired: Vec<_> = wheel.advance(clock.now().tick(), 64).map(|timer| timer.value).collect();
//! assert_eq!(fired, ["hello", "world"]); // one tick: in the order of arming
//! assert_eq!(wheel.cancel(hello), None); // too late
//! # Ok::<(), clockjack_time::InsertError<&str>>(())
//! ```
//!
//! # The model
//!
//! Time is a count of ticks since the start of the system; a [`Resolution`] says how long a tick
//! is. Nothing here reads a clock, sleeps or starts a thread. A host reads `now` from its
//! [`MonotonicClock`], passes it to a wheel, and gets the due timers; [`Wheel::next_deadline`] says
//! until when the host may sleep.
//!
//! * A **wheel** ([`wheel`]) has one owner: [`GrowingWheel`] with an allocator, [`FixedWheel`]
//!   without one.
//! * A **driver** ([`driver`]) provides ticks; [`InterruptDriver`] gets them from an interrupt
//!   handler.
//!
//! # Which to use
//!
//! | you have | use |
//! |---|---|
//! | one thread and an allocator | [`GrowingWheel`] |
//! | a microcontroller, or no allocation after start | [`FixedWheel`], which can be a static |
//! | a test | [`ManualClock`] and any of them |
//!
//! Several threads that arm and cancel use the timers of `clockjack-exec`. It builds them from the
//! hidden modules of this crate: `shard` (a wheel that several threads share) and `timer_state`
//! (decides between firing and cancelling, exactly once). Hidden items may change in any release;
//! the crates of Clockjack pin each other with `=`.
//!
//! # What is not here
//!
//! Periodic timers, closures, futures and waking: other crates build them on this one. Deadlines
//! more than 2^20 ticks ahead cost O(log n) instead of O(1) until they come into range.
//!
//! # Features
//!
//! * `alloc`: [`GrowingWheel`], and the hidden module `shard`. Off by default.
#![no_std]

#[cfg(feature = "alloc")]
extern crate alloc;

/// Makes a constructor `const`, except under loom, whose atomics cannot be built in a constant.
#[cfg(not(loom))]
macro_rules! const_unless_loom {
    ($(#[$attribute:meta])* $visibility:vis fn $($rest:tt)*) => {
        $(#[$attribute])* $visibility const fn $($rest)*
    };
}
/// Leaves a constructor as it is: loom's atomics cannot be built in a constant.
#[cfg(loom)]
macro_rules! const_unless_loom {
    ($($constructor:tt)*) => { $($constructor)* };
}

mod clock;
pub mod driver;
mod insert_error;
mod instant;
#[cfg(feature = "alloc")]
#[doc(hidden)]
pub mod shard;
#[doc(hidden)]
#[path = "driver/taken_ticks_32.rs"]
pub mod taken_ticks_32;
#[cfg(any(loom, target_has_atomic = "64"))]
#[doc(hidden)]
#[path = "driver/taken_ticks_64.rs"]
pub mod taken_ticks_64;
mod tick;
#[doc(hidden)]
#[path = "clock/ticks_32.rs"]
pub mod ticks_32;
#[cfg(any(loom, target_has_atomic = "64"))]
#[doc(hidden)]
#[path = "clock/ticks_64.rs"]
pub mod ticks_64;
#[doc(hidden)]
pub mod timer_state;
#[doc(hidden)]
#[path = "timer_state/state_32.rs"]
pub mod timer_state_32;
#[cfg(any(loom, target_has_atomic = "64"))]
#[doc(hidden)]
#[path = "timer_state/state_64.rs"]
pub mod timer_state_64;
pub mod wheel;

pub use clock::{ClockKind, ManualClock, MonotonicClock};
pub use driver::{DriverError, DriverStatus, InterruptDriver, ManualDriver, TickDriver, TickToken};
pub use insert_error::InsertError;
pub use instant::TimerInstant;
#[cfg(feature = "alloc")]
#[doc(hidden)]
pub use shard::{Closed, Inserted, Shard, ShardConfig, ShardGuard, ShardOccupancy, ShardStats};
pub use tick::{Resolution, Tick, TickSpan};
#[doc(hidden)]
pub use timer_state::{CancelledFrom, Generation};
pub use wheel::{
    Admitted, Advance, Dropped, Expired, Fixed, FixedWheel, Storage, TimerId, TimerPriority, Wheel,
    WheelConfig,
};
#[cfg(feature = "alloc")]
pub use wheel::{GrowingWheel, Slab};

#[doc(hidden)]
/// The timer state of this target: one 64-bit atomic where there is one, else two of 32 bits.
#[cfg(any(loom, target_has_atomic = "64"))]
pub type AtomicTimerState = timer_state::AtomicState<timer_state_64::TimerState64>;
#[doc(hidden)]
/// The timer state of this target: one 64-bit atomic where there is one, else two of 32 bits.
#[cfg(not(any(loom, target_has_atomic = "64")))]
pub type AtomicTimerState = timer_state::AtomicState<timer_state_32::TimerState32>;

/// The tick count of this target's clocks.
#[cfg(any(loom, target_has_atomic = "64"))]
pub(crate) type MonotoneTicks = ticks_64::Ticks64;
/// The tick count of this target's clocks.
#[cfg(not(any(loom, target_has_atomic = "64")))]
pub(crate) type MonotoneTicks = ticks_32::Ticks32;

/// The taken ticks of this target's drivers.
#[cfg(any(loom, target_has_atomic = "64"))]
pub(crate) type TargetTakenTicks = taken_ticks_64::TakenTicks64;
/// The taken ticks of this target's drivers.
#[cfg(not(any(loom, target_has_atomic = "64")))]
pub(crate) type TargetTakenTicks = taken_ticks_32::TakenTicks32;
