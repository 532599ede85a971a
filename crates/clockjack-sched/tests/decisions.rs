//! The decisions of the contract, each with the tests that are named after it.
#![cfg(not(loom))]

extern crate alloc;

#[path = "requirements/bench.rs"]
mod bench;
#[path = "decisions/cancel.rs"]
mod cancel;
#[path = "decisions/close.rs"]
mod close;
#[path = "decisions/hosts.rs"]
mod hosts;
#[path = "decisions/load.rs"]
mod load;
#[path = "decisions/periodic.rs"]
mod periodic;
#[path = "decisions/time.rs"]
mod time;
