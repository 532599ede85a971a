//! Clockjack's actors: typed, supervised and timed, on every host.
#![no_std]

extern crate alloc;
#[cfg(any(test, loom, mutants))]
extern crate std;

pub mod path;

pub use clockjack_exec::{Failure, Pid, SendError};
pub use path::ActorPath;
