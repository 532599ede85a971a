//! Races of the table of shards, explored by loom.
#![cfg(loom)]

extern crate alloc;

#[path = "loom/shards.rs"]
mod shards;
