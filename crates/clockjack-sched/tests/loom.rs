//! Every interleaving of the scheduler's shared parts, in small: run with `cargo xtask loom`.
#![cfg(loom)]

extern crate alloc;

#[path = "loom/close.rs"]
mod close;
#[path = "loom/quota.rs"]
mod quota;
