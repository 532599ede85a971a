//! Every interleaving of what threads of this crate do to each other, in small: run with
//! `cargo xtask loom`.
#![cfg(loom)]

use clockjack_rt::Parker;

#[path = "loom/heartbeat.rs"]
mod heartbeat_models;
#[path = "loom/parker.rs"]
mod parker;

/// The part under test, which knows nothing of executors.
#[path = "../src/dispatchers/thread_watchdog/heartbeat.rs"]
mod heartbeat;
