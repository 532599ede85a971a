//! Building a run from a plan: its options, its regions, its threads, its start and its end.

pub mod options;
pub(crate) mod shared;
pub(crate) mod start;
pub mod threads;
pub(crate) mod wiring;
