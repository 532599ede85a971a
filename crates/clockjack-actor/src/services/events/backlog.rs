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
//!    The next sender drains the rest; or, so that nothing waits for ever, the owner's own means: a
//!    timer, of which at most one is pending, or the receiver itself when it has room again.
//! 4. A sender that may be an interrupt must not free memory, which dropping an item may do. Such a
//!    sender [pushes quietly](Backlog::push_quietly): an item that must make room goes to a
//!    bounded list of evicted items, which a thread takes and drops later. If that list is full,
//!    the new item is dropped instead, because nothing else can be dropped without freeing memory.
//!
//! *Why it cannot hang*: no thread waits for the drainer.

use alloc::collections::VecDeque;

use clockjack_sync::primitive::IS_SMALL;

/// How many evicted items wait to be dropped by a thread, at least if there is memory for them.
const EVICTED_MIN: usize = 16;

/// See the [module](self).
pub(crate) struct Backlog<T> {
    waiting: VecDeque<T>,
    /// Items that a sender has evicted and must not drop (rule 4).
    evicted: VecDeque<T>,
    evicted_max: usize,
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

/// What became of an item that was [pushed quietly](Backlog::push_quietly).
pub(crate) struct QuietPush<T> {
    /// How many items are lost: older ones, or the item itself.
    pub(crate) n_lost: usize,
    /// A thread must take the evicted items, of which there were none before.
    pub(crate) needs_thread: bool,
    /// The item, if it was not appended because the oldest one can be neither dropped nor kept for
    /// a thread.
    pub(crate) refused: Option<T>,
}

impl<T> Backlog<T> {
    /// A backlog for at most `capacity` items (at least one).
    pub(crate) fn new(capacity: usize) -> Self {
        Self {
            waiting: VecDeque::new(),
            evicted: VecDeque::new(),
            evicted_max: if IS_SMALL { EVICTED_MIN } else { capacity.max(EVICTED_MIN) },
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
        // One more for an item that is put back.
        backlog.waiting.reserve_exact(backlog.capacity + 1);
        backlog.evicted.reserve_exact(backlog.evicted_max);
        backlog
    }

    /// As [`push`](Self::push), for a sender that must not free memory (rule 4). `release` drops an
    /// item if that frees nothing, and returns it otherwise.
    pub(crate) fn push_quietly(
        &mut self,
        item: T,
        release: impl Fn(T) -> Result<(), T>,
    ) -> QuietPush<T> {
        let (mut n_lost, had_evicted) = (0, !self.evicted.is_empty());
        while let Some(oldest) = self.evict() {
            n_lost += 1;
            let Err(oldest) = release(oldest) else { continue };
            if self.evicted.len() >= self.evicted_max {
                self.waiting.push_front(oldest);
                return QuietPush { n_lost, needs_thread: false, refused: Some(item) };
            }
            self.evicted.push_back(oldest);
        }
        self.waiting.push_back(item);
        let needs_thread = !had_evicted && !self.evicted.is_empty();
        QuietPush { n_lost, needs_thread, refused: None }
    }

    /// An item that was evicted quietly, to be dropped outside of the lock. For threads.
    pub(crate) fn take_evicted(&mut self) -> Option<T> {
        self.evicted.pop_front()
    }

    /// As [`put_back`](Self::put_back), for a sender that must not free memory: the item takes its
    /// place even if newer items have taken its room, and then the next push makes room for two.
    pub(crate) fn put_back_quietly(&mut self, entry: BacklogEntry<T>) {
        self.is_draining = false;
        match entry {
            BacklogEntry::Lost(n) => self.lost += n,
            BacklogEntry::Item(item) => self.waiting.push_front(item),
        }
    }

    /// Appends an item. Returns the items that were dropped for it, so that the caller drops them
    /// outside of the lock: two after an item was [put back](Self::put_back_quietly) without room.
    pub(crate) fn push(&mut self, item: T) -> [Option<T>; 2] {
        let oldest = [self.evict(), self.evict()];
        debug_assert!(self.waiting.len() < self.capacity, "no more than one was put back");
        self.waiting.push_back(item);
        oldest
    }

    /// Takes the oldest item, which is lost, if there is no room for another one.
    fn evict(&mut self) -> Option<T> {
        if self.waiting.len() < self.capacity {
            return None;
        }
        self.count_lost(1);
        self.waiting.pop_front()
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

#[cfg(test)]
mod tests {
    use super::{Backlog, BacklogEntry};

    /// A backlog of two items in which an item was put back after its room was taken.
    fn overfull() -> Backlog<u8> {
        let mut backlog = Backlog::prepared(2);
        for item in 1..=2 {
            assert_eq!(backlog.push(item), [None, None]);
        }
        assert!(backlog.begin_drain());
        let first = backlog.next();
        assert!(matches!(first, Some(BacklogEntry::Item(1))));
        assert_eq!(backlog.push(3), [None, None]);
        first.into_iter().for_each(|first| backlog.put_back_quietly(first));
        backlog
    }

    #[test]
    fn a_push_after_an_item_was_put_back_makes_room_for_two_and_counts_both() {
        let mut backlog = overfull();
        assert_eq!(backlog.push(4), [Some(1), Some(2)]);
        assert_eq!(backlog.lost_total(), 2);
        for (release, evicted) in [(Ok(()), None), (Err(1), Some(1))] {
            let mut backlog = overfull();
            let pushed = backlog.push_quietly(4, |item| release.map_err(|_: u8| item));
            assert_eq!((pushed.n_lost, pushed.refused), (2, None));
            assert_eq!(backlog.lost_total(), 2);
            assert_eq!(backlog.take_evicted(), evicted);
        }
    }
}
