//! The operations of a wheel that only a shard uses: reserved slots, and slots that remote
//! cancellers return.

use alloc::vec::Vec;

use super::{
    Storage, TimerPriority, Wheel, level::LISTS, list::compact::Compacted, record::TimerEntry,
};
use crate::{
    shard::{ShardStore, stats::Counts},
    timer_state::Generation,
};

impl<T> Wheel<T, ShardStore<T>> {
    pub(crate) fn counts(&self) -> &Counts {
        self.store.counts()
    }

    pub(crate) fn counts_mut(&mut self) -> &mut Counts {
        self.store.counts_mut()
    }

    /// Whether the lists use much more memory than they need: fewer than two entries per chunk, not
    /// counting one chunk per list. After a full round of [`compact`](Self::compact) it is false.
    pub(crate) fn is_sparse(&self) -> bool {
        let in_lists = self.len().saturating_sub(self.overflow_len());
        self.store.n_chunks_used() > in_lists / 2 + LISTS as usize
    }

    /// Merges chunks with few entries, in one list.
    pub(crate) fn compact(&mut self, budget: usize) -> Compacted {
        let mut cursor = *self.store.compact_cursor();
        let compacted = self.lists.compact(&mut self.store, &mut cursor, budget);
        *self.store.compact_cursor() = cursor;
        compacted
    }
}

impl<T, S: Storage<T>> Wheel<T, S> {
    pub(crate) fn set_shard(&mut self, shard: u32) {
        self.shard = shard;
    }

    /// Reserves a slot for a remote insert.
    pub(crate) fn reserve(&mut self) -> Option<(u32, Generation)> {
        let timer = self.store.take_slot()?;
        Some((timer, self.next_generation()))
    }

    /// Frees a reserved slot whose timer never entered the wheel.
    pub(crate) fn unreserve(&mut self, timer: u32) {
        self.store.give_slot(timer);
    }

    /// Inserts a timer from the inbox, into a slot that was reserved and is armed.
    pub(crate) fn insert_reserved(&mut self, timer: u32, deadline: u64, value: T) {
        let location = self.link(timer, deadline, TimerPriority::Normal);
        let entry = self.store.entry_mut(timer).expect("a reserved slot has an entry");
        entry.put(location, value);
        self.len[TimerPriority::Normal.code() as usize] += 1;
        self.restore_heap_order(location);
    }

    /// Frees a slot that was cancelled remotely; `None`, without effect, if its value is still in
    /// the inbox.
    pub(crate) fn reclaim(&mut self, timer: u32) -> Option<T> {
        let (location, value) = self.store.entry_mut(timer)?.take()?;
        let priority_code = self.unlink(location);
        self.free(timer, priority_code);
        Some(value)
    }

    /// Prevents free slots from being used.
    pub(crate) fn close(&mut self) {
        self.store.close();
    }

    /// Takes the values of all armed timers out, in no order. Returns how many timers are left:
    /// those that another thread has cancelled and not returned yet.
    pub(crate) fn drain_into(&mut self, values: &mut Vec<T>) -> usize {
        let mut n_left = 0;
        for timer in 0..self.store.slots() {
            let Some(location) = self.store.entry(timer).map(TimerEntry::location) else {
                continue;
            };
            if location.is_vacant() {
                continue;
            }
            if let Some((_, value)) = self.store.fire(timer) {
                self.store.count_dropped();
                let priority_code = self.unlink(location);
                self.free(timer, priority_code);
                values.push(value);
            } else {
                n_left += 1;
            }
        }
        n_left
    }
}
