//! The decisions of the contract, each with the tests that are named after it.
#![cfg(not(loom))]

extern crate alloc;

#[expect(dead_code, reason = "the tests of requirements need more of it")]
#[path = "requirements/bench.rs"]
mod bench;
#[path = "decisions/close.rs"]
mod close;
#[path = "decisions/load.rs"]
mod load;
#[path = "decisions/periodic.rs"]
mod periodic;
#[path = "decisions/time.rs"]
mod time;
