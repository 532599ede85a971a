//! The store that grows: slabs of records and chunks with free lists.

use alloc::{boxed::Box, vec::Vec};
use core::fmt;

use clockjack_sync::{prefetch::prefetch, primitive};

use super::{
    Storage, Wheel, WheelConfig,
    list::{CHUNKS_MAX, EMPTY_MAX},
    record::{Record, TimerEntry, record_columns},
    store::{Columns, Location, OverflowEntry},
};
use crate::timer_state::Generation;

/// A store that grows up to a limit.
///
/// 12 bytes and the value per timer, 64 per seven entries of a list, 24 per timer in the overflow.
/// It never shrinks by itself; [`Wheel::shrink`](super::Wheel::shrink) frees the memory of an empty
/// wheel.
#[doc(hidden)]
pub struct Slab<T> {
    records: Vec<Record<T>>,
    /// Free records. Not a list through the records, so that taking one does not wait for a load of
    /// another.
    free: Vec<u32>,
    pub(crate) chunks: Chunks,
    pub(crate) overflow: Vec<OverflowEntry>,
    slots_max: u32,
    overflow_max: usize,
    is_reserved: bool,
}

/// One cache line of a list: a header and seven entries.
#[derive(Clone, Copy)]
#[repr(align(64))]
struct Chunk([u64; 8]);

/// Chunks that are allocated at once: 16 KiB, so that growing copies nothing and wastes little. On
/// a microcontroller four chunks, because the block is built on the stack.
const BLOCK: usize = primitive::scaled(256, 4, 256);

/// How many timers ahead of the next one [`Wheel::prefetch_free`] prefetches.
const PREFETCH_AHEAD: usize = 4;

/// Chunks that are allocated as they are needed and never move.
#[derive(Default)]
pub(crate) struct Chunks {
    blocks: Vec<Box<[Chunk; BLOCK]>>,
    live: Vec<u8>,
    pub(crate) free: Vec<u32>,
}

impl Chunks {
    pub(crate) const BITS: u32 = 3;

    #[inline]
    pub(crate) fn take(&mut self) -> u32 {
        if let Some(chunk) = self.free.pop() {
            return chunk;
        }
        let number = self.n_taken();
        assert!(number < CHUNKS_MAX, "every chunk has an entry, and slots are fewer than chunks");
        if number as usize / BLOCK == self.blocks.len() {
            self.blocks.push(Box::new([Chunk([0; 8]); BLOCK]));
        }
        self.live.push(0);
        number
    }

    #[inline]
    pub(crate) fn give(&mut self, chunk: u32) {
        self.free.push(chunk);
    }

    /// Allocates `n` chunks, so that taking and giving them back allocates nothing.
    fn reserve(&mut self, n: usize) {
        let n_blocks = n.div_ceil(BLOCK);
        self.blocks.reserve_exact(n_blocks.saturating_sub(self.blocks.len()));
        while self.blocks.len() < n_blocks {
            self.blocks.push(Box::new([Chunk([0; 8]); BLOCK]));
        }
        self.live.reserve_exact(n.saturating_sub(self.live.len()));
        self.free.reserve_exact(n.saturating_sub(self.free.len()));
    }

    /// Clears all chunks, and keeps the memory.
    fn clear(&mut self) {
        self.live.clear();
        self.free.clear();
    }

    pub(crate) fn n_taken(&self) -> u32 {
        #[expect(clippy::cast_possible_truncation, reason = "fewer than CHUNKS_MAX chunks")]
        let chunks = self.live.len() as u32;
        chunks
    }

    #[inline(always)]
    pub(crate) fn get(&self, chunk: u32) -> &[u64] {
        &self.blocks[chunk as usize / BLOCK][chunk as usize % BLOCK].0
    }

    #[inline(always)]
    pub(crate) fn get_mut(&mut self, chunk: u32) -> &mut [u64] {
        &mut self.blocks[chunk as usize / BLOCK][chunk as usize % BLOCK].0
    }

    #[inline(always)]
    pub(crate) fn live(&self, chunk: u32) -> u8 {
        self.live[chunk as usize]
    }

    #[inline(always)]
    pub(crate) fn live_mut(&mut self, chunk: u32) -> &mut u8 {
        &mut self.live[chunk as usize]
    }
}

/// The methods of [`Columns`] for a store whose slots, [`Chunks`] and overflow grow. The store has
/// a method `add_slot`.
macro_rules! grown_columns {
    () => {
        const CHUNK_BITS: u32 = Chunks::BITS;

        fn slots_max(&self) -> u32 {
            self.slots_max
        }

        fn has_slot(&self) -> bool {
            !self.free.is_empty() || self.slots() < self.slots_max
        }

        #[inline(always)]
        fn take_slot(&mut self) -> Option<u32> {
            if let Some(timer) = self.free.pop() {
                return Some(timer);
            }
            let timer = self.slots();
            if timer == self.slots_max {
                return None;
            }
            self.add_slot(timer);
            Some(timer)
        }

        #[inline]
        fn take_chunk(&mut self) -> u32 {
            self.chunks.take()
        }

        #[inline]
        fn give_chunk(&mut self, chunk: u32) {
            self.chunks.give(chunk);
        }

        fn chunks(&self) -> u32 {
            self.chunks.n_taken()
        }

        #[inline(always)]
        fn live(&self, chunk: u32) -> u8 {
            self.chunks.live(chunk)
        }

        #[inline(always)]
        fn live_mut(&mut self, chunk: u32) -> &mut u8 {
            self.chunks.live_mut(chunk)
        }

        #[inline(always)]
        fn chunk(&self, chunk: u32) -> &[u64] {
            self.chunks.get(chunk)
        }

        #[inline(always)]
        fn chunk_mut(&mut self, chunk: u32) -> &mut [u64] {
            self.chunks.get_mut(chunk)
        }

        #[inline(always)]
        fn overflow(&self) -> &[OverflowEntry] {
            &self.overflow
        }

        #[inline(always)]
        fn overflow_mut(&mut self) -> &mut [OverflowEntry] {
            &mut self.overflow
        }

        fn overflow_push(&mut self, entry: OverflowEntry) -> bool {
            if self.overflow.len() == Columns::<T>::overflow_max(self) {
                return false;
            }
            self.overflow.push(entry);
            true
        }

        fn overflow_pop(&mut self) -> Option<OverflowEntry> {
            self.overflow.pop()
        }
    };
}
pub(crate) use grown_columns;

impl<T> Slab<T> {
    /// The maximum number of timers of a store, limited by the chunk numbers.
    pub(crate) const SLOTS_MAX: u32 = CHUNKS_MAX - EMPTY_MAX - 1;

    /// A store for at most `slots_max` timers, of which `overflow_max` may be in the overflow.
    /// Numbers above 2^26 - 66 are reduced to that.
    #[must_use]
    pub fn new(slots_max: usize, overflow_max: usize) -> Self {
        let slots_max = u32::try_from(slots_max).unwrap_or(u32::MAX).min(Self::SLOTS_MAX);
        Self {
            records: Vec::new(),
            free: Vec::new(),
            chunks: Chunks::default(),
            overflow: Vec::new(),
            slots_max,
            overflow_max: overflow_max.min(slots_max as usize),
            is_reserved: false,
        }
    }

    #[inline(always)]
    fn add_slot(&mut self, _timer: u32) {
        self.records.push(Record::VACANT);
    }

    fn reserve(&mut self) {
        let slots_max = self.slots_max as usize;
        self.records.reserve_exact(slots_max - self.records.len());
        self.free.reserve_exact(slots_max - self.free.len());
        self.overflow.reserve_exact(self.overflow_max - self.overflow.len());
        // Each timer may be alone in its chunk, some chunks are empty and not freed yet, and a
        // cascade takes one before it gives one back.
        self.chunks.reserve(slots_max + EMPTY_MAX as usize + 1);
        self.is_reserved = true;
    }
}

/// A wheel that grows up to the limits of its [`WheelConfig`].
pub type GrowingWheel<T> = Wheel<T, Slab<T>>;

impl<T> Wheel<T, Slab<T>> {
    /// An empty wheel that grows up to its limits.
    #[must_use]
    pub fn new(config: WheelConfig) -> Self {
        let store = Slab::new(config.capacity, config.overflow_capacity);
        let mut wheel = Self::with_store(store, config.start);
        wheel.reinsertion_batch_limit = config.reinsertion_batch_limit;
        wheel.shard = config.shard;
        wheel
    }

    /// A hint that some timers are armed soon. Their records were freed in random order, so that
    /// arming them would wait for the memory of each.
    #[doc(hidden)]
    #[inline(always)]
    pub fn prefetch_free(&self) {
        if let Some(soon) = self.store.free.len().checked_sub(PREFETCH_AHEAD) {
            self.store.prefetch_timer(self.store.free[soon]);
        }
    }

    /// A hint that the timer in this [slot](super::TimerId::slot) is cancelled soon.
    #[doc(hidden)]
    #[inline(always)]
    pub fn prefetch(&self, slot: u32) {
        self.store.prefetch_timer(slot);
    }

    /// Allocates all the memory that the wheel may ever need, and keeps it: nothing is allocated
    /// later, and [`shrink`](Self::shrink) frees nothing.
    ///
    /// That is 80 bytes and the value per timer of its capacity, since each may be alone in a chunk
    /// of its list, and 24 per timer of the overflow's capacity.
    pub fn reserve_all(&mut self) {
        self.store.reserve();
    }
}

impl<T> Storage<T> for Slab<T> {}

impl<T> Columns<T> for Slab<T> {
    #[inline(always)]
    fn slots(&self) -> u32 {
        #[expect(clippy::cast_possible_truncation, reason = "at most slots_max, which is a u32")]
        let slots = self.records.len() as u32;
        slots
    }

    #[inline(always)]
    fn give_slot(&mut self, timer: u32) {
        self.free.push(timer);
    }

    fn reset(&mut self) {
        if self.is_reserved {
            self.records.clear();
            self.free.clear();
            self.chunks.clear();
            self.overflow.clear();
        } else {
            *self = Self::new(self.slots_max as usize, self.overflow_max);
        }
    }

    record_columns!();

    grown_columns!();

    #[inline(always)]
    fn prefetch_timer(&self, timer: u32) {
        prefetch(self.records.as_ptr().wrapping_add(timer as usize));
    }

    fn overflow_max(&self) -> usize {
        self.overflow_max
    }
}

impl<T> fmt::Debug for Slab<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Slab")
            .field("slots", &self.slots())
            .field("slots_max", &self.slots_max)
            .field("overflow", &self.overflow.len())
            .finish_non_exhaustive()
    }
}
