//! The edges of time: counts that wrap, revolutions of the wheel, many slots at once, late
//! wake-ups, and the longest delays.
#![cfg(not(loom))]

extern crate alloc;

#[path = "time_edges/counts.rs"]
mod counts;
#[path = "time_edges/far.rs"]
mod far;
#[path = "time_edges/late.rs"]
mod late;
#[path = "time_edges/support.rs"]
mod support;
