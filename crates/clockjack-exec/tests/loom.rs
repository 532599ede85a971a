//! Races of this crate, explored by loom.
//!
//! How these models are written: writers start before readers and the main thread joins them before
//! it looks itself, because loom finds the steps to reorder from the last access to each object.
#![cfg(loom)]

extern crate alloc;

#[path = "loom/custom.rs"]
mod custom;
#[path = "loom/idle.rs"]
mod idle;
#[path = "loom/metronome.rs"]
mod metronome;
#[path = "loom/registry.rs"]
mod registry;
#[path = "loom/shards.rs"]
mod shards;
#[path = "loom/state.rs"]
mod state;
