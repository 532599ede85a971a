//! A task that counts how it ends.

use alloc::sync::Arc;
use core::sync::atomic::{AtomicU32, Ordering::SeqCst};

use clockjack_sched::{FireContext, HandlerError, SchedulerTask};

/// Counts how often it ran, and how often it was notified of its cancel.
#[derive(Clone, Default)]
pub(crate) struct CountingTask {
    pub(crate) ran: Arc<AtomicU32>,
    pub(crate) told: Arc<AtomicU32>,
}

impl SchedulerTask for CountingTask {
    fn run(&mut self, _fire: &FireContext) -> Result<(), HandlerError> {
        self.ran.fetch_add(1, SeqCst);
        Ok(())
    }

    fn cancelled(&mut self) {
        self.told.fetch_add(1, SeqCst);
    }
}
