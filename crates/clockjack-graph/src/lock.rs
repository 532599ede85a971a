//! A lock that ignores poisoning: a panic of a holder is reported as a failure of the run, and no
//! state under a lock of this crate is left half changed by code that can panic.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks a mutex, also after a panic of an earlier holder.
pub(crate) fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
