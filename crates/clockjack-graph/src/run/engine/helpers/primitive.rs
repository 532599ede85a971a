//! The lock of the ready queue. Loom models substitute their own.

pub(super) use std::sync::{Mutex, MutexGuard};
