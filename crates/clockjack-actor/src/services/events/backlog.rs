//! A bounded queue of items for one receiver whose mailbox is full; when the queue is full, the
//! oldest item is dropped.
//!
//! The owner keeps the backlog under a lock. Roles: *senders*, any thread, which push items, and
//! the *drainer*, one of the senders at a time, which pops items and sends them to the receiver.
//!
//! 1. A sender pushes its item under the lock. If the backlog is full, the oldest item is dropped
//!    and counted.
//! 2. A sender that finds no drainer becomes the drainer: it pops an item under the lock, sends it
//!    outside of the lock, and repeats that until nothing is left. Finding the backlog empty and
//!    ceasing to be the drainer is one step under the lock, so no item is left behind. So items are
//!    sent in the order in which they were pushed, and a sender that is called from within `tell`,
//!    on the same stack, only pushes its item.
//! 3. If the receiver has no room, the drainer puts the item back at the front and stops draining.
//!    The next sender or a timer, of which at most one is pending, drains the rest.
//!
//! *Why it cannot hang*: no thread waits for the drainer.

use alloc::collections::VecDeque;

/// See the [module](self).
pub(crate) struct Backlog<T> {
    waiting: VecDeque<T>,
    capacity: usize,
    is_draining: bool,
    /// A timer that will drain the backlog is pending.
    has_timer: bool,
    /// Items dropped since the last report.
    lost: u64,
    lost_total: u64,
}

/// What has to be sent next.
pub(crate) enum BacklogEntry<T> {
    Item(T),
    /// This many items were dropped before the next one.
    Lost(u64),
}

impl<T> Backlog<T> {
    /// A backlog for at most `capacity` items (at least one).
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

    /// As [`new`](Self::new), with all its memory from the beginning: a push does not allocate.
    pub(crate) fn prepared(capacity: usize) -> Self {
        let mut backlog = Self::new(capacity);
        backlog.waiting.reserve_exact(backlog.capacity);
        backlog
    }

    /// Appends an item. Returns the item that was dropped for it, so that the caller drops it
    /// outside of the lock.
    pub(crate) fn push(&mut self, item: T) -> Option<T> {
        let is_full = self.waiting.len() >= self.capacity;
        let oldest = if is_full { self.waiting.pop_front() } else { None };
        if oldest.is_some() {
            self.count_lost(1);
        }
        self.waiting.push_back(item);
        oldest
    }

    /// Makes the caller the drainer, if there is none and there is something to send.
    pub(crate) fn begin_drain(&mut self) -> bool {
        let has_some = !self.waiting.is_empty() || self.lost > 0;
        let starts = has_some && !self.is_draining;
        self.is_draining |= starts;
        starts
    }

    /// Pops what has to be sent next; ends the drain if there is nothing.
    pub(crate) fn next(&mut self) -> Option<BacklogEntry<T>> {
        if self.lost > 0 {
            return Some(BacklogEntry::Lost(core::mem::take(&mut self.lost)));
        }
        let next = self.waiting.pop_front().map(BacklogEntry::Item);
        self.is_draining = next.is_some();
        next
    }

    /// The receiver had no room: ends the drain. Returns the item if it is dropped because newer
    /// items have taken its room, so that the caller drops it outside of the lock.
    pub(crate) fn put_back(&mut self, entry: BacklogEntry<T>) -> Option<T> {
        self.is_draining = false;
        match entry {
            BacklogEntry::Lost(n) => {
                self.lost += n;
                None
            }
            // Newer items have taken its room.
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

    /// Ends the drain, even if items are left.
    pub(crate) fn end_drain(&mut self) {
        self.is_draining = false;
    }

    /// Counts items that were lost.
    pub(crate) fn count_lost(&mut self, n: u64) {
        self.lost += n;
        self.lost_total += n;
    }

    /// Whether the caller has to set a timer.
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
