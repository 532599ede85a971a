//! The pool of unused reply slots of a system.
//!
//! A few free lists, each behind a small lock. A thread tries them in order and skips one that is
//! locked; so a single thread always uses the first list, independent of addresses.

use alloc::{boxed::Box, vec::Vec};
use core::task::Waker;

use clockjack_exec::Handle;
use clockjack_sync::{
    primitive::atomic::{AtomicU32, Ordering::Relaxed},
    spin_lock::SpinLock,
};

use super::slot::{ReplySlot, SlotOwner};
use crate::{cell::header::AnyActor, room::Grows as _, system::wake_catching_panics};

const FREE_LISTS: usize = 4;
/// How many slots a free list keeps; further ones are freed.
const FREE_LIST_MAX: usize = 256;

type AnySlot = Box<ReplySlot<AnyActor>>;

/// See the [module](self).
pub(crate) struct SlotPool {
    free_lists: [SpinLock<Vec<AnySlot>>; FREE_LISTS],
    made: AtomicU32,
}

impl SlotPool {
    pub(crate) fn new() -> Self {
        Self {
            free_lists: core::array::from_fn(|_| SpinLock::new(Vec::new())),
            made: AtomicU32::new(0),
        }
    }

    /// A slot, with timers of this executor; none if one would have to be allocated, and that is
    /// not allowed.
    pub(super) fn take(&self, timers: &Handle, may_make: bool) -> Option<AnySlot> {
        let found = self.free_lists.iter().find_map(|list| list.try_with(Vec::pop)?);
        if found.is_some() || !may_make {
            return found;
        }
        // Relaxed: a number for names.
        Some(ReplySlot::new(self.made.fetch_add(1, Relaxed), timers.clone()))
    }

    fn put(&self, slot: AnySlot) {
        let mut slot = Some(slot);
        for list in &self.free_lists {
            put_into(list, &mut slot);
            if slot.is_none() {
                return;
            }
        }
    }
}

/// Puts a slot into a list, unless the list is locked or full.
fn put_into(list: &SpinLock<Vec<AnySlot>>, slot: &mut Option<AnySlot>) {
    let mut room = None;
    loop {
        let missing = list.try_with(|list| {
            if list.len() >= FREE_LIST_MAX {
                return None;
            }
            let missing = list.grow(&mut room);
            if missing.is_none() {
                list.extend(slot.take());
            }
            missing
        });
        match missing.flatten() {
            Some(missing) => room = Some(Vec::allocate(missing)),
            None => return,
        }
    }
}

impl SlotOwner for AnyActor {
    type Timers = Handle;

    fn wake(&self, waker: Waker) {
        wake_catching_panics(self.system().default_executor(), waker);
    }

    /// The asked actor belongs to the system that the slot belongs to.
    fn reclaim(self, slot: Box<ReplySlot<Self>>) {
        self.system().slots().put(slot);
    }
}
