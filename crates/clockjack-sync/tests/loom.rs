//! Every interleaving of the lock-free parts, in small: run with `cargo xtask loom`.
//!
//! How these models are written: for each object loom remembers only the *last* access when it looks
//! for steps to reorder, so a thread that loads a word and then changes it hides an earlier load by
//! someone else. Hence the threads start in the order "writers, then readers" and the main thread
//! only joins them: the plain run then has something to read, and reordering starts from there.
//! Whether a model sees enough is shown by the mutants that must fail it.
#![cfg(loom)]

#[path = "loom/mpsc.rs"]
mod mpsc;
#[path = "loom/return_stack.rs"]
mod return_stack;
#[path = "loom/tracked.rs"]
mod tracked;
