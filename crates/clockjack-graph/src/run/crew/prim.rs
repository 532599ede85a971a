//! The lock of the board. Models bring another.

pub(super) use std::sync::{Mutex, MutexGuard};
