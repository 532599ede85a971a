//! Slots that are not used, for the next asks of a system.
//!
//! A few shelves, each under a small lock. Who comes tries them in order and passes by one that
//! somebody is at; so on one thread it is always the first, whatever the addresses are.

use alloc::{boxed::Box, vec::Vec};

use clockjack_exec::Handle;
use clockjack_sync::{
    lock::Lock,
    prim::atomic::{AtomicU32, Ordering::Relaxed},
};

use super::slot::{Home, Slot};
use crate::base::AnyActor;

const SHELVES: usize = 4;
/// How many slots a shelf keeps; what is more is freed.
const SHELF_MAX: usize = 256;

type AnySlot = Box<Slot<AnyActor>>;

/// See the [module](self).
pub(crate) struct Pool {
    shelves: [Lock<Vec<AnySlot>>; SHELVES],
    made: AtomicU32,
}

impl Pool {
    pub(crate) fn new() -> Self {
        Self { shelves: core::array::from_fn(|_| Lock::new(Vec::new())), made: AtomicU32::new(0) }
    }

    /// A slot, with timers of this executor; none if one would have to be made, and that is not
    /// allowed.
    pub(super) fn take(&self, timers: &Handle, may_make: bool) -> Option<AnySlot> {
        let found = self.shelves.iter().find_map(|shelf| shelf.try_with(Vec::pop)?);
        if found.is_some() || !may_make {
            return found;
        }
        // Relaxed: a number for names.
        Some(Slot::new(self.made.fetch_add(1, Relaxed), timers.clone()))
    }

    fn put(&self, slot: AnySlot) {
        let mut slot = Some(slot);
        let put = |shelf: &mut Vec<AnySlot>| {
            if shelf.len() < SHELF_MAX {
                shelf.extend(slot.take());
            }
            slot.is_none()
        };
        let mut put = put;
        let is_put = self.shelves.iter().any(|shelf| shelf.try_with(&mut put) == Some(true));
        if !is_put {
            drop(slot);
        }
    }
}

impl Home for AnyActor {
    type Timers = Handle;

    /// Whoever is asked belongs to the system whose slot it is.
    fn take_back(self, slot: Box<Slot<Self>>) {
        self.system().slots().put(slot);
    }
}
