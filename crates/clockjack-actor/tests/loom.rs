//! Races of this crate, explored by loom.
//!
//! How these models are written: writers start before readers and the main thread joins them before
//! it looks itself, because loom finds the steps to reorder from the last access to each object.
#![cfg(loom)]

#[path = "loom/ask.rs"]
mod ask;
#[path = "loom/send.rs"]
mod send;
