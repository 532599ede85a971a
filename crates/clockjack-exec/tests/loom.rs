//! Races of this crate, explored by loom.
//!
//! How these models are written: writers start before readers and the main thread joins them before
//! it looks itself, because loom finds the steps to reorder from the last access to each object.
#![cfg(loom)]

extern crate alloc;

#[path = "loom/custom_task.rs"]
mod custom_task;
#[path = "loom/idle.rs"]
mod idle;
#[path = "loom/registry.rs"]
mod registry;
#[path = "loom/shards.rs"]
mod shards;
#[path = "loom/state.rs"]
mod state;
#[path = "loom/watchdog.rs"]
mod watchdog;
