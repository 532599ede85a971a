//! The lock and the bell of what is modelled: std's, or loom's under a model.
//!
//! Atomics come from `clockjack_sync::prim`. Below the host nothing locks, so these two are here.

#[cfg(not(loom))]
pub(crate) use std::sync::{Condvar, Mutex};

#[cfg(loom)]
pub(crate) use loom::sync::{Condvar, Mutex};
