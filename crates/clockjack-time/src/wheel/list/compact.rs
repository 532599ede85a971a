//! Compaction of lists: merges neighbouring chunks in which cancels have left few entries, a
//! bounded amount at a time.
//!
//! Two consecutive chunks are merged if their entries fit into one, so at least as many of their
//! cells are empty as are live. Every merge keeps the order, so compaction can stop anywhere. After
//! a full round without cancels a list of `n` entries has at most `n / 4 + 1` chunks.

use super::{CELLS_MAX, Lists, NONE, entries, header, live_entries};
use crate::wheel::{
    level::LISTS,
    store::{Columns, ListEntry, Location},
};

/// Where the scan of the lists continues.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cursor {
    list: u32,
    /// In that list, if it still is in it; [`NONE`] for the first.
    chunk: u32,
}

impl Cursor {
    pub(crate) const START: Self = Self { list: 0, chunk: NONE };
}

/// The result of a compaction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Compacted {
    /// Lists that were scanned: one, or none if all are empty.
    pub(crate) n_lists: usize,
    /// Chunks that were freed.
    pub(crate) n_chunks: usize,
}

impl Lists {
    /// Scans one list, or the part of it that the last call has left, for chunks to merge. Scanning
    /// a chunk and moving an entry are one unit of the budget each; the budget is exceeded by less
    /// than the entries of one chunk.
    pub(crate) fn compact<T, S: Columns<T>>(
        &mut self,
        store: &mut S,
        cursor: &mut Cursor,
        budget: usize,
    ) -> Compacted {
        self.free_empty_chunks(store);
        let Some(mut chunk) = self.resume(store, cursor) else { return Compacted::default() };
        let mut compacted = Compacted { n_lists: 1, n_chunks: 0 };
        let mut spent = 0;
        while spent < budget {
            spent += 1;
            let next = header(store, chunk).next();
            if next == NONE {
                *cursor = Cursor { list: (cursor.list + 1) % LISTS, chunk: NONE };
                return compacted;
            }
            let n_live = (store.live(chunk).count_ones() + store.live(next).count_ones()) as usize;
            if n_live <= entries::<T, S>() as usize {
                self.merge(store, chunk, next);
                spent += n_live;
                compacted.n_chunks += 1;
            } else {
                chunk = next;
            }
        }
        cursor.chunk = chunk;
        compacted
    }

    /// The chunk at which to continue, in the next list that is not empty.
    fn resume<T, S: Columns<T>>(&self, store: &S, cursor: &mut Cursor) -> Option<u32> {
        let at = cursor.chunk;
        // It may have been freed since, or belong to another list; if it belongs to this one again,
        // any chunk of the list is as good.
        if at < store.chunks() && store.live(at) != 0 && header(store, at).list() == cursor.list {
            return Some(at);
        }
        let lists = (0..LISTS).map(|ahead| (cursor.list + ahead) % LISTS);
        let list = lists.into_iter().find(|list| self.lists[*list as usize].first != NONE)?;
        cursor.list = list;
        Some(self.lists[list as usize].first)
    }

    /// Moves the entries of `next` behind those of `chunk`, its predecessor, and frees `next`.
    fn merge<T, S: Columns<T>>(&mut self, store: &mut S, chunk: u32, next: u32) {
        let mut merged = [ListEntry(0); CELLS_MAX];
        let mut n_merged = 0;
        for entry in live_entries(store, chunk).chain(live_entries(store, next)) {
            n_merged += 1;
            merged[n_merged] = entry;
        }
        let first = chunk << S::CHUNK_BITS;
        let mut at = first;
        for entry in &merged[1..=n_merged] {
            at += 1;
            store.chunk_mut(chunk)[(at - first) as usize] = entry.0;
            store.set_location(entry.timer(), Location::in_list(entry.priority_code(), at));
        }
        // Bit 0 is the header's.
        *store.live_mut(chunk) = u8::MAX >> (CELLS_MAX - 1 - n_merged) & !1;
        *store.live_mut(next) = 0;
        let is_last = header(store, next).next() == NONE;
        let list = header(store, chunk).list();
        self.unlink(store, next);
        if is_last {
            // The empty cells of the chunk take the next entries.
            self.lists[list as usize].tail = at;
        }
    }
}

#[cfg(all(test, feature = "alloc"))]
mod tests {
    use alloc::vec::Vec;

    use super::*;
    use crate::{GrowingWheel, Tick, WheelConfig, wheel::TimerId};

    /// A wheel with timers of one slot, from which all are cancelled except those that `keep`
    /// selects.
    fn thinned(n_timers: u64, keep: impl Fn(u64) -> bool) -> (GrowingWheel<u64>, Vec<TimerId>) {
        let mut wheel = GrowingWheel::new(WheelConfig::DEFAULT);
        let ids: Vec<_> =
            (0..n_timers).map(|n| wheel.insert(Tick::new(5), n).expect("room")).collect();
        let mut kept = Vec::new();
        for (n, id) in (0..).zip(ids) {
            if keep(n) {
                kept.push(id);
            } else {
                assert_eq!(wheel.cancel(id), Some(n));
            }
        }
        (wheel, kept)
    }

    fn n_chunks(wheel: &GrowingWheel<u64>) -> usize {
        (0..wheel.store.chunks()).filter(|chunk| wheel.store.live(*chunk) > 1).count()
    }

    fn fired(wheel: &mut GrowingWheel<u64>) -> Vec<u64> {
        wheel.advance(Tick::new(5), usize::MAX).map(|timer| timer.value).collect()
    }

    #[test]
    fn chunks_are_joined_in_order_whatever_is_left_and_wherever_the_budget_ends() {
        let patterns: [fn(u64) -> bool; 6] = [
            |_| true,
            |n| n % 7 == 0,
            |n| n % 7 == 6,
            |n| n % 3 == 1,
            |n| n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 62 == 0,
            |n| n == 699,
        ];
        for (nth, keep) in patterns.into_iter().enumerate() {
            for budget in [1, 2, 3, 10, usize::MAX] {
                let (mut wheel, kept) = thinned(700, keep);
                let mut cursor = Cursor::START;
                let mut freed = 0;
                wheel.lists.free_empty_chunks(&mut wheel.store);
                let before = n_chunks(&wheel);
                for _ in 0..1_000 {
                    let compacted = wheel.lists.compact(&mut wheel.store, &mut cursor, budget);
                    assert_eq!(compacted.n_lists, 1);
                    freed += compacted.n_chunks;
                }
                let after = n_chunks(&wheel);
                assert_eq!(before - after, freed, "pattern {nth}, budget {budget}");
                assert!(after <= kept.len() / 4 + 1, "{after} chunks for {}", kept.len());
                // Timers that are armed later are behind; ids of moved timers are valid.
                wheel.insert(Tick::new(5), 1_000).expect("room");
                wheel.insert(Tick::new(5), 1_001).expect("room");
                assert!(wheel.cancel(kept[kept.len() / 2]).is_some());
                let mut expected: Vec<_> = (0..700).filter(|n| keep(*n)).collect();
                expected.remove(kept.len() / 2);
                expected.extend([1_000, 1_001]);
                assert_eq!(fired(&mut wheel), expected, "pattern {nth}, budget {budget}");
                assert!(wheel.is_empty());
            }
        }
    }

    #[test]
    fn an_empty_wheel_has_nothing_to_join() {
        let (mut wheel, _) = thinned(70, |_| false);
        let mut cursor = Cursor::START;
        let compacted = wheel.lists.compact(&mut wheel.store, &mut cursor, 10);
        assert_eq!(compacted, Compacted::default());
    }
}
