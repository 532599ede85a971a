//! Every interleaving of what threads of this crate do to each other, in small: run with
//! `cargo xtask loom`.
#![cfg(loom)]

extern crate alloc;

use clockjack_rt::Parker;

#[path = "loom/lookout.rs"]
mod lookout;
#[path = "loom/parker.rs"]
mod parker;

/// The part under test, which knows nothing of executors.
#[path = "../src/dispatchers/lookout/post.rs"]
mod post;
