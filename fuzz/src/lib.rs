//! What is fuzzed: one function for each part that bytes can be turned into work for.
//!
//! Each takes any bytes, ends soon, and panics only if the part breaks a promise. Two kinds:
//! *readers* are given the bytes as they are; *machines* are given what the bytes say to do, and
//! are held to a model that is plain enough to be believed. [`TARGETS`] lists them all.
//!
//! `cargo xtask fuzz` runs them under libFuzzer; `cargo run --release` here runs them on changed
//! inputs without it; `cargo test` runs the kept corpus once.

extern crate alloc;

mod graph;
mod input;
mod mailbox;
mod process;
mod scheduler;
mod trace;
mod wheel;

pub use graph::graph;
pub use mailbox::mailbox;
pub use process::process;
pub use scheduler::scheduler;
pub use trace::trace;
pub use wheel::wheel;

/// A name and its function.
pub type Target = (&'static str, fn(&[u8]));

/// Everything that is fuzzed; each has a folder of its name in `corpus/`.
pub const TARGETS: [Target; 6] = [
    ("graph", graph),
    ("mailbox", mailbox),
    ("process", process),
    ("scheduler", scheduler),
    ("trace", trace),
    ("wheel", wheel),
];
