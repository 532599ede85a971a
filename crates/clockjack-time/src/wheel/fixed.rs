//! The store of fixed capacity: slabs with free lists in arrays, no allocation, can be a static.

use core::fmt;

use super::{
    list::CHUNKS_MAX,
    record::{Record, TimerEntry, record_columns},
    store::{Columns, Location, OverflowEntry},
};
use crate::timer_state::Generation;

/// Marks a generation as the free-list link of a record: no generation is that large.
const FREE: u64 = 1 << 63;
/// The end of the free list of records, and of that of chunks.
const NONE: u32 = u32::MAX;

/// A store for `N` timers, of which `OVERFLOW` may be beyond the wheel's range, without heap
/// memory.
///
/// 29 bytes and the value for each of `N`, 24 for each of `OVERFLOW`.
#[doc(hidden)]
pub struct Fixed<T, const N: usize, const OVERFLOW: usize = N> {
    records: [Record<T>; N],
    /// Chunks of one entry: with so few timers, memory matters more than locality.
    chunks: [[u64; 2]; N],
    live: [u8; N],
    overflow: [OverflowEntry; OVERFLOW],
    overflow_len: usize,
    slots: u32,
    n_chunks: u32,
    free_record: u32,
    free_chunk: u32,
}

impl<T, const N: usize, const OVERFLOW: usize> Fixed<T, N, OVERFLOW> {
    /// An empty store. A `const fn`, so a wheel can be the initial value of a static.
    #[must_use]
    pub const fn new() -> Self {
        const { assert!(N < CHUNKS_MAX as usize, "chunks are numbered by 26 bits") };
        const { assert!(OVERFLOW <= N, "the overflow is not larger than the store") };
        Self {
            records: [const { Record::VACANT }; N],
            chunks: [[0; 2]; N],
            live: [0; N],
            overflow: [OverflowEntry::NONE; OVERFLOW],
            overflow_len: 0,
            slots: 0,
            n_chunks: 0,
            free_record: NONE,
            free_chunk: NONE,
        }
    }
}

impl<T, const N: usize, const OVERFLOW: usize> Default for Fixed<T, N, OVERFLOW> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T, const N: usize, const OVERFLOW: usize> Columns<T> for Fixed<T, N, OVERFLOW> {
    const CHUNK_BITS: u32 = 1;

    #[inline(always)]
    fn slots(&self) -> u32 {
        self.slots
    }

    fn slots_max(&self) -> u32 {
        #[expect(clippy::cast_possible_truncation, reason = "asserted in `new`")]
        let max = N as u32;
        max
    }

    fn has_slot(&self) -> bool {
        self.free_record != NONE || self.slots < self.slots_max()
    }

    #[inline]
    fn take_slot(&mut self) -> Option<u32> {
        let timer = self.free_record;
        if timer != NONE {
            let record = &mut self.records[timer as usize];
            #[expect(clippy::cast_possible_truncation, reason = "the link is the low half")]
            let next = record.generation() as u32;
            self.free_record = next;
            record.set_generation(0);
            return Some(timer);
        }
        let timer = self.slots;
        if timer == self.slots_max() {
            return None;
        }
        self.slots += 1;
        Some(timer)
    }

    #[inline]
    fn give_slot(&mut self, timer: u32) {
        self.records[timer as usize].set_generation(FREE | u64::from(self.free_record));
        self.free_record = timer;
    }

    fn reset(&mut self) {
        // Nothing is in use, and there is no memory to free.
    }

    record_columns!();

    #[inline]
    fn take_chunk(&mut self) -> u32 {
        let chunk = self.free_chunk;
        if chunk != NONE {
            let header = self.chunks[chunk as usize][0];
            #[expect(clippy::cast_possible_truncation, reason = "the link is the low half")]
            let next = header as u32;
            self.free_chunk = next;
            return chunk;
        }
        assert!(
            (self.n_chunks as usize) < N,
            "every chunk has an entry, and there are {N} of them"
        );
        self.n_chunks += 1;
        self.n_chunks - 1
    }

    #[inline]
    fn give_chunk(&mut self, chunk: u32) {
        self.chunks[chunk as usize][0] = u64::from(self.free_chunk);
        self.free_chunk = chunk;
    }

    fn chunks(&self) -> u32 {
        self.n_chunks
    }

    #[inline(always)]
    fn live(&self, chunk: u32) -> u8 {
        self.live[chunk as usize]
    }

    #[inline(always)]
    fn live_mut(&mut self, chunk: u32) -> &mut u8 {
        &mut self.live[chunk as usize]
    }

    #[inline(always)]
    fn chunk(&self, chunk: u32) -> &[u64] {
        &self.chunks[chunk as usize]
    }

    #[inline(always)]
    fn chunk_mut(&mut self, chunk: u32) -> &mut [u64] {
        &mut self.chunks[chunk as usize]
    }

    #[inline(always)]
    fn overflow(&self) -> &[OverflowEntry] {
        &self.overflow[..self.overflow_len]
    }

    #[inline(always)]
    fn overflow_mut(&mut self) -> &mut [OverflowEntry] {
        &mut self.overflow[..self.overflow_len]
    }

    fn overflow_max(&self) -> usize {
        OVERFLOW
    }

    fn overflow_push(&mut self, entry: OverflowEntry) -> bool {
        let Some(room) = self.overflow.get_mut(self.overflow_len) else { return false };
        *room = entry;
        self.overflow_len += 1;
        true
    }

    fn overflow_pop(&mut self) -> Option<OverflowEntry> {
        self.overflow_len = self.overflow_len.checked_sub(1)?;
        Some(self.overflow[self.overflow_len])
    }
}

impl<T, const N: usize, const OVERFLOW: usize> fmt::Debug for Fixed<T, N, OVERFLOW> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Fixed")
            .field("slots", &self.slots)
            .field("slots_max", &N)
            .field("overflow", &self.overflow_len)
            .finish_non_exhaustive()
    }
}
