//! Hosts for simulated systems: one thread, or several workers that are interleaved on one thread.

pub(crate) mod any;
pub(crate) mod executor;
pub mod multi_worker;
pub mod single_thread;
