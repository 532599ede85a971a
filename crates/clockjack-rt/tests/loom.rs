//! Every interleaving of the parker's token, in small: run with `cargo xtask loom`.
#![cfg(loom)]

#[path = "loom/parker.rs"]
mod parker;
