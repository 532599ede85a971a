//! Every interleaving of the state word and the registry, in small.
//!
//! How these models are written: writers start before readers and the main thread joins them before
//! it looks itself, because loom finds the steps to reorder from the last access to each object.
#![cfg(loom)]

#[path = "loom/registry.rs"]
mod registry;
#[path = "loom/state.rs"]
mod state;
