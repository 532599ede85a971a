//! The position that the current thread works at, in a parallel epoch: a thread-local variable.
//!
//! Counters and log lines of components go straight to their destination in a sequential epoch. In
//! a parallel epoch that would be wrong: a call may turn out not to count, because a region before
//! it in compiled order has failed, and calls of one component may overlap. So each worker sets the
//! position of its job here. Histogram values and log lines of the job are buffered together with
//! that position, and counters remember how much may have to be taken back. When the epoch is over,
//! the coordinator applies the buffered effects in the order of positions, which is the order of
//! one thread, and drops those of jobs that do not count.
//!
//! The position belongs to the thread and not to the call, because a component may keep a counter
//! and pass it to a task: what a task counts has no position, and always counts.

use core::{
    cell::Cell,
    sync::atomic::{AtomicBool, Ordering},
};

std::thread_local! {
    static CURRENT: Cell<Option<CurrentPosition>> = const { Cell::new(None) };
    /// Something was counted at a position since the flag was last taken.
    static HAS_COUNTED: Cell<bool> = const { Cell::new(false) };
}

/// The position of a job or of a call in it. The order is that of a single thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct CurrentPosition {
    /// The region, in compiled order.
    pub(crate) position: u32,
    /// Twice the number of batches that the region has begun, minus one within a batch.
    step: u32,
    /// The index of the call in a batch.
    invocation: usize,
}

impl CurrentPosition {
    /// The position of a region.
    pub(crate) fn of_region(position: u32) -> Self {
        Self { position, step: 0, invocation: 0 }
    }

    /// The position of this thread.
    pub(crate) fn current() -> Option<Self> {
        CURRENT.get()
    }

    /// The position of the first call of a batch that the region on this thread begins: after
    /// everything that the region has done, and before everything that it does later.
    pub(crate) fn next_batch() -> Option<Self> {
        let own = CURRENT.get()?;
        CURRENT.set(Some(Self { step: own.step + 2, ..own }));
        Some(Self { step: own.step + 1, ..own })
    }

    /// The position of a call of this batch.
    pub(crate) fn with_invocation(self, invocation: usize) -> Self {
        Self { invocation, ..self }
    }

    /// Makes this the position of the current thread, until the guard is dropped.
    pub(crate) fn enter(self, has_buffered_counts: &AtomicBool) -> PositionGuard<'_> {
        PositionGuard { before: CURRENT.replace(Some(self)), has_buffered_counts }
    }
}

/// Notes that something was counted that may have to be taken back. Returns false if this thread
/// has no position: then nothing has to be noted.
pub(crate) fn note_count() -> bool {
    let has_position = CURRENT.get().is_some();
    if has_position {
        HAS_COUNTED.set(true);
    }
    has_position
}

/// Restores the previous position of the thread when dropped.
pub(crate) struct PositionGuard<'a> {
    before: Option<CurrentPosition>,
    has_buffered_counts: &'a AtomicBool,
}

impl Drop for PositionGuard<'_> {
    fn drop(&mut self) {
        CURRENT.set(self.before);
        if HAS_COUNTED.take() {
            // Relaxed: the coordinator reads it after all workers of the epoch are done.
            self.has_buffered_counts.store(true, Ordering::Relaxed);
        }
    }
}
