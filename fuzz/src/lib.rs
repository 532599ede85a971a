//! The fuzz targets: one function for each part that can be driven by bytes.
//!
//! Each function accepts any bytes, returns quickly, and panics only if the part violates an
//! invariant. There are two kinds: *readers* parse the bytes; *machines* interpret the bytes as
//! operations, and are compared with a simple model. [`TARGETS`] lists them all.
//!
//! `cargo xtask fuzz` runs them under libFuzzer; `cargo run --release` here runs them on mutated
//! inputs without it; `cargo test` runs the stored corpus once.

extern crate alloc;

mod graph;
mod input;
mod mailbox;
mod net;
mod process;
mod scheduler;
mod trace;
mod wheel;
mod wire;

pub use graph::graph;
pub use mailbox::mailbox;
pub use net::{core_inputs, log_record};
pub use process::process;
pub use scheduler::scheduler;
pub use trace::trace;
pub use wheel::wheel;
pub use wire::{wire_frame, wire_types};

/// A name and its function.
pub type Target = (&'static str, fn(&[u8]));

/// All targets; each has a folder of its name in `corpus/`.
pub const TARGETS: [Target; 10] = [
    ("core_inputs", core_inputs),
    ("graph", graph),
    ("log_record", log_record),
    ("mailbox", mailbox),
    ("process", process),
    ("scheduler", scheduler),
    ("trace", trace),
    ("wheel", wheel),
    ("wire_frame", wire_frame),
    ("wire_types", wire_types),
];
