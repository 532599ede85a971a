//! Races of this crate, explored by loom.
#![cfg(loom)]

extern crate alloc;

#[path = "loom/idle.rs"]
mod idle;
#[path = "loom/metronome.rs"]
mod metronome;
