//! Building a run from a plan: its options, its regions, its threads, its start and its end.

pub(crate) mod options;
pub(crate) mod shared;
pub(crate) mod start;
pub(crate) mod threads;
pub(crate) mod wiring;
