//! One program of actors for every host.
//!
//! [`plant`] is the program: a tree of actors with timers of each kind, a failure with a restart, a
//! watch, an ask, an escalation to the root and the shutdown that follows. The program does not
//! know its host and reads no clock. [`tape`] is its output, the *logical* trace: for each actor
//! the messages and signals that it received, in order, with their nominal deadlines. The logical
//! trace must equal `golden.txt` on every host, however late the host is and however many threads
//! it has. The order *between* actors depends on the host; only [`simulation`] compares it with
//! `orders.txt`: there it is the same for a given seed, on every processor.
//!
//! [`order`] is a second, small program: a timer that fires while messages wait.
//!
//! `tests/hosts.rs` runs the programs in virtual time, on pools of threads, inside tokio and on
//! Embassy, and `firmware/src/bin/scenario.rs` runs the first without an operating system.
#![no_std]

extern crate alloc;

pub mod order;
pub mod plant;
pub mod simulation;
pub mod tape;

pub use plant::{builder, start};
pub use simulation::simulate;
pub use tape::Tape;
