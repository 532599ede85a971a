//! What messages carry, so that one that is lost or dropped twice is seen.

use core::sync::atomic::{AtomicI64, Ordering::SeqCst};
use std::sync::Arc;

/// Is counted while it lives.
pub(crate) struct Token(Arc<AtomicI64>);

impl Token {
    pub(crate) fn new(alive: &Arc<AtomicI64>) -> Self {
        alive.fetch_add(1, SeqCst);
        Self(Arc::clone(alive))
    }
}

impl Drop for Token {
    fn drop(&mut self) {
        self.0.fetch_sub(1, SeqCst);
    }
}
