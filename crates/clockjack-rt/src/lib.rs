//! Clockjack on an operating system: threads, clock, parking.

pub mod blocking;
pub mod clock;
pub mod parker;
pub mod thread;
