//! Processes and what runs them, without an operating system.
#![no_std]

extern crate alloc;
#[cfg(any(test, loom, mutants))]
extern crate std;

pub mod error;
pub mod exit;
pub mod failure;
#[cfg(any(loom, target_has_atomic = "64"))]
pub mod idle;
pub mod limits;
#[cfg(any(loom, target_has_atomic = "64"))]
pub mod metronome;
pub mod payload;
pub mod pid;
pub mod registry;
#[cfg(any(loom, target_has_atomic = "64"))]
pub mod shards;
pub mod state;
