//! What waits for one receiver whose mailbox has no room: bounded, the oldest goes first.
//!
//! It stands under a lock of its owner's. Roles: *senders*, any thread, who put items in, and the
//! *server*, one of them at a time, who takes them out and tells them.
//!
//! 1. A sender puts its item in, under the lock. If that is the bound, the oldest goes, and is
//!    counted.
//! 2. The one that finds nobody serving serves: it takes an item under the lock, tells it outside,
//!    and so on until nothing is left. That it finds nothing and that it ends its service is one
//!    step under the lock, so no item is left behind. So items are told in the order in which they
//!    were put in, and whoever is called from `tell`, on the same stack, only leaves its item.
//! 3. If the receiver has no room the server puts the item back, in front, and ends its service.
//!    What is left is served by the next sender or by a timer, of which one is under way.
//!
//! *Why it cannot hang*: nobody waits for the server.

use alloc::collections::VecDeque;

/// See the [module](self).
pub(crate) struct Backlog<T> {
    waiting: VecDeque<T>,
    capacity: usize,
    is_draining: bool,
    /// A timer will serve it.
    has_timer: bool,
    /// Lost since the last look.
    lost: u64,
    lost_total: u64,
}

/// What is to be told next.
pub(crate) enum BacklogEntry<T> {
    Item(T),
    /// So many were lost before what comes next.
    Lost(u64),
}

impl<T> Backlog<T> {
    /// Room for so many, at least one.
    pub(crate) fn new(capacity: usize) -> Self {
        Self {
            waiting: VecDeque::new(),
            capacity: capacity.max(1),
            is_draining: false,
            has_timer: false,
            lost: 0,
            lost_total: 0,
        }
    }

    /// Puts an item behind the others; the one that had to go for it is to be dropped outside of
    /// the lock.
    pub(crate) fn push(&mut self, item: T) -> Option<T> {
        let is_full = self.waiting.len() >= self.capacity;
        let oldest = if is_full { self.waiting.pop_front() } else { None };
        if oldest.is_some() {
            self.count_lost(1);
        }
        self.waiting.push_back(item);
        oldest
    }

    /// Begins to serve, if nobody does and there is something.
    pub(crate) fn begin_drain(&mut self) -> bool {
        let has_some = !self.waiting.is_empty() || self.lost > 0;
        let starts = has_some && !self.is_draining;
        self.is_draining |= starts;
        starts
    }

    /// What is to be told next; ends the service if nothing is.
    pub(crate) fn next(&mut self) -> Option<BacklogEntry<T>> {
        if self.lost > 0 {
            return Some(BacklogEntry::Lost(core::mem::take(&mut self.lost)));
        }
        let next = self.waiting.pop_front().map(BacklogEntry::Item);
        self.is_draining = next.is_some();
        next
    }

    /// There was no room: ends the service. What is lost for it is to be dropped outside of the
    /// lock.
    pub(crate) fn put_back(&mut self, entry: BacklogEntry<T>) -> Option<T> {
        self.is_draining = false;
        match entry {
            BacklogEntry::Lost(n) => {
                self.lost += n;
                None
            }
            // Newer ones have its room.
            BacklogEntry::Item(item) if self.waiting.len() >= self.capacity => {
                self.count_lost(1);
                Some(item)
            }
            BacklogEntry::Item(item) => {
                self.waiting.push_front(item);
                None
            }
        }
    }

    /// Ends the service, whatever is left.
    pub(crate) fn end_drain(&mut self) {
        self.is_draining = false;
    }

    /// Counts what was lost otherwise.
    pub(crate) fn count_lost(&mut self, n: u64) {
        self.lost += n;
        self.lost_total += n;
    }

    /// Whether the caller is to set a timer.
    pub(crate) fn needs_timer(&mut self) -> bool {
        !core::mem::replace(&mut self.has_timer, true)
    }

    /// The timer has fired, or could not be set.
    pub(crate) fn timer_fired(&mut self) {
        self.has_timer = false;
    }

    pub(crate) fn lost_total(&self) -> u64 {
        self.lost_total
    }
}
