//! What actors promise where threads are the subject: laws that virtual time on one thread shows
//! as well, and races that it cannot.
//!
//! Nothing waits in order to pass; a bound is reached only by a fault.
#![cfg(not(loom))]

#[path = "actors/asks.rs"]
mod asks;
#[path = "support/eventually.rs"]
mod eventually;
#[path = "support/in_time.rs"]
mod in_time;
#[path = "actors/laws.rs"]
mod laws;
#[path = "support/patience.rs"]
mod patience;
#[path = "support/token.rs"]
mod token;
