//! Every interleaving of what threads of this crate do to each other, in small: run with
//! `cargo xtask loom`.
#![cfg(loom)]

use clockjack_rt::Parker;

#[path = "loom/heartbeat.rs"]
mod heartbeat_models;
#[path = "loom/join_set.rs"]
mod join_set;
#[path = "loom/parker.rs"]
mod parker;

/// The part under test, which knows nothing of executors.
#[path = "../src/dispatchers/thread_watchdog/heartbeat.rs"]
mod heartbeat;

/// As above; it takes its lock from the crate around it.
#[path = "../src/pool/join_set/woken.rs"]
mod woken;

mod platform {
    //! The lock of models.

    pub(crate) mod primitive {
        pub(crate) use loom::sync::{Mutex, MutexGuard};
    }
}
