//! An item whose content only a correct hand-over makes readable, and whose drops are counted.
#![expect(unsafe_code, reason = "cells that loom watches stand for the items' content")]

use alloc::sync::Arc;
use core::sync::atomic::{AtomicUsize, Ordering::SeqCst};

use clockjack_sync::primitive::UnsafeCell;

/// Counts items that are alive; a plain counter, so that it orders nothing in the model.
#[derive(Clone, Default)]
pub(crate) struct Live(Arc<AtomicUsize>);

impl Live {
    pub(crate) fn count(&self) -> usize {
        self.0.load(SeqCst)
    }

    pub(crate) fn item(&self, id: u32) -> Tracked {
        self.0.fetch_add(1, SeqCst);
        Tracked { id: UnsafeCell::new(id), live: self.clone() }
    }
}

/// An item; `id` may be read only by a thread that got the item after a release and an acquire.
pub(crate) struct Tracked {
    id: UnsafeCell<u32>,
    live: Live,
}

impl Tracked {
    pub(crate) fn id(&self) -> u32 {
        self.id.with_mut(|id| {
            // SAFETY: the holder of the item has exclusive access; loom checks that.
            unsafe { *id }
        })
    }
}

impl Drop for Tracked {
    fn drop(&mut self) {
        self.live.0.fetch_sub(1, SeqCst);
    }
}
