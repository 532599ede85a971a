//! Clockjack on an operating system: threads, clock, parking.
//!
//! This is the crate that reads a clock, sleeps and starts threads, so that no crate below has to.
//!
//! | part | what it is |
//! |---|---|
//! | [`clock`] | [`OsClock`]: ticks counted by the monotonic clock of the system |

pub mod clock;
#[cfg(target_os = "linux")]
#[path = "clock/linux.rs"]
mod monotonic;
#[cfg(not(target_os = "linux"))]
#[path = "clock/portable.rs"]
mod monotonic;
// Both twins are compiled and tested where the tests run.
#[cfg(all(test, target_os = "linux"))]
#[path = "clock/portable.rs"]
mod monotonic_portable;

pub use clock::{OsClock, OsInstant};
