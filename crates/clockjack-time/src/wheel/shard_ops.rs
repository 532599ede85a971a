//! What a shard does with the wheel that it guards: slots that are given out before their timers
//! come, and slots that come back by another way than they went.

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

    /// Whether the lists take much more memory than they need: fewer than two entries in a chunk,
    /// beyond the one chunk that each list may have for itself. After a whole round of
    /// [`compact`](Self::compact) it is not so.
    pub(crate) fn is_sparse(&self) -> bool {
        let in_lists = self.len().saturating_sub(self.overflow_len());
        self.store.n_chunks_used() > in_lists / 2 + LISTS as usize
    }

    /// Joins chunks that hold little, in one list.
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

    /// Takes a slot for a timer that will come from outside.
    pub(crate) fn reserve(&mut self) -> Option<(u32, Generation)> {
        let timer = self.store.take_slot()?;
        Some((timer, self.next_generation()))
    }

    /// Gives back a slot whose timer came from outside and never entered the wheel.
    pub(crate) fn unreserve(&mut self, timer: u32) {
        self.store.give_slot(timer);
    }

    /// Enters a timer that came from outside, into a slot that was reserved and is armed.
    pub(crate) fn insert_reserved(&mut self, timer: u32, deadline: u64, value: T) {
        let location = self.link(timer, deadline, TimerPriority::Normal);
        let entry = self.store.entry_mut(timer).expect("a reserved slot has a entry");
        entry.put(location, value);
        self.len[TimerPriority::Normal.code() as usize] += 1;
        self.restore_heap_order(location);
    }

    /// Frees a slot that was cancelled from outside; `None`, and nothing is done, if its value has
    /// not come yet.
    pub(crate) fn reclaim(&mut self, timer: u32) -> Option<T> {
        let (location, value) = self.store.entry_mut(timer)?.take()?;
        let priority_code = self.unlink(location);
        self.free(timer, priority_code);
        Some(value)
    }

    /// Lets nothing be armed in slots that are free now.
    pub(crate) fn close(&mut self) {
        self.store.close();
    }

    /// Takes the values of all armed timers out, in no order. Says how many timers are left: those
    /// that somebody has cancelled and not returned yet.
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
