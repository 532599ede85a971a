//! The acceptance criteria, each with the tests that are named after it.
#![cfg(not(loom))]

extern crate alloc;

#[expect(dead_code, reason = "the tests of decisions need more of it")]
#[path = "requirements/bench.rs"]
mod bench;
#[path = "requirements/diagnostics.rs"]
mod diagnostics;
#[path = "requirements/load.rs"]
mod load;
#[path = "requirements/once.rs"]
mod once;
#[path = "requirements/periodic.rs"]
mod periodic;
#[path = "requirements/system.rs"]
mod system;
