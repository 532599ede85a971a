//! Races of this crate, explored by loom.
#![cfg(loom)]

#[path = "loom/credit.rs"]
mod credit;
#[path = "loom/helpers.rs"]
mod helpers;
