//! Whose turn it is on this thread, while several work on an epoch.
//!
//! What components count and write for people goes straight to where people find it, unless others
//! are at work at the same time: then a call may turn out not to count, because one before it in
//! compiled order has failed, and calls of one component may overlap. So who does a job says whose
//! it is; what is counted and written in it keeps that mark until the epoch is over. Then it is
//! taken in the order of marks, which is that of one thread, and only of those that count.
//!
//! A mark is of the thread and not of the call, because counters may be kept and handed on: what a
//! task counts has no mark, and counts in any case.

use core::{
    cell::Cell,
    sync::atomic::{AtomicBool, Ordering},
};

std::thread_local! {
    static TURN: Cell<Option<Turn>> = const { Cell::new(None) };
    /// Something was counted in a turn.
    static HAS_COUNTED: Cell<bool> = const { Cell::new(false) };
}

/// Whose turn it is. One that is less comes before on one thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Turn {
    /// The region, in compiled order.
    pub(crate) position: u32,
    /// How many batches the region has begun and ended.
    step: u32,
    /// Which call of a batch.
    invocation: usize,
}

impl Turn {
    /// That of a region.
    pub(crate) fn of(position: u32) -> Self {
        Self { position, step: 0, invocation: 0 }
    }

    /// The turn on this thread.
    pub(crate) fn current() -> Option<Self> {
        TURN.get()
    }

    /// The turn of the first call of a batch that the region on this thread begins: after all that
    /// it has done, and before what it will do.
    pub(crate) fn of_batch() -> Option<Self> {
        let own = TURN.get()?;
        TURN.set(Some(Self { step: own.step + 2, ..own }));
        Some(Self { step: own.step + 1, ..own })
    }

    /// That of a call of its batch.
    pub(crate) fn call(self, invocation: usize) -> Self {
        Self { invocation, ..self }
    }

    /// Makes it the turn on this thread.
    pub(crate) fn begin(self, has_counted: &AtomicBool) -> Begun<'_> {
        Begun { before: TURN.replace(Some(self)), has_counted }
    }
}

/// Notes that something was counted that a turn may take back; false if it is nobody's turn.
pub(crate) fn counts() -> bool {
    let is_turn = TURN.get().is_some();
    if is_turn {
        HAS_COUNTED.set(true);
    }
    is_turn
}

/// A turn that is under way; dropping it ends it.
pub(crate) struct Begun<'a> {
    before: Option<Turn>,
    has_counted: &'a AtomicBool,
}

impl Drop for Begun<'_> {
    fn drop(&mut self) {
        TURN.set(self.before);
        if HAS_COUNTED.take() {
            // Relaxed: the coordinator looks at it when all who work on the epoch are done.
            self.has_counted.store(true, Ordering::Relaxed);
        }
    }
}
