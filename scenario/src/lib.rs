//! One program of actors for every host.
//!
//! [`plant`] is the program: a tree of actors with timers of each kind, a failure with a restart, a
//! watch, a question, an escalation to the root and the shutdown that follows. It knows no host,
//! and reads no clock. [`tape`] is what it leaves behind: its *logical* trace, for each actor what
//! came to it, in order, with the nominal deadline. That is the same on every host, however late or
//! on how many threads things were done there, and `golden.txt` is what it has to be. The order
//! *between* actors is one host's own, and is held to `orders.txt` in [`simulation`] only: there it
//! is the same for a seed, on every processor.
//!
//! `tests/hosts.rs` runs it in virtual time, on pools of threads, inside tokio and on Embassy, and
//! `firmware/src/bin/scenario.rs` without an operating system.
#![no_std]

extern crate alloc;

pub mod plant;
pub mod simulation;
pub mod tape;

pub use plant::{builder, start};
pub use simulation::simulate;
pub use tape::Tape;
