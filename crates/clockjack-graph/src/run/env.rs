//! What all components of a domain see of an epoch.

use alloc::sync::Arc;
use core::sync::atomic::{AtomicBool, Ordering};

use super::tasks::Tasks;

/// What all components of a domain see of an epoch.
pub(crate) struct Env {
    /// From one.
    pub(crate) epoch: u64,
    /// Nanoseconds since the run began.
    pub(crate) now_ns: u64,
    /// Whether committed values are written down.
    pub(crate) logs: bool,
    pub(crate) tasks: Tasks,
    pub(crate) stop: Arc<AtomicBool>,
}

impl Env {
    pub(crate) fn is_stopping(&self) -> bool {
        // Pairs with nothing: a flag that says no more than itself, and is looked at again.
        self.stop.load(Ordering::Relaxed)
    }
}
