//! `tell` from an interrupt, in a binary of its own because it counts allocations.
#![cfg(not(loom))]

#[path = "interrupt/linux.rs"]
mod linux;
