//! Races of this crate, explored by loom.
#![cfg(loom)]

extern crate alloc;

#[path = "loom/credit.rs"]
mod credit;
#[path = "loom/crew.rs"]
mod crew;
