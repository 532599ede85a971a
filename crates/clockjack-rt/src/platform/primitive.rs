//! `Mutex` and `Condvar` for the code that loom models: std's, or loom's under `--cfg loom`.
//!
//! Atomics come from `clockjack_sync::primitive`. The crates below this one do not block on locks,
//! so these two types are here.

#[cfg(not(loom))]
pub(crate) use std::sync::{Condvar, Mutex, MutexGuard};

#[cfg(loom)]
pub(crate) use loom::sync::{Condvar, Mutex, MutexGuard};
