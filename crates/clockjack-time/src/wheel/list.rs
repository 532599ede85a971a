//! Lists of timers in order of registration: unrolled linked lists, made of chunks.
//!
//! Unrolled linked lists are from Shao, Reppy and Appel ("Unrolling lists", 1994).
//!
//! A chunk is a header and a few consecutive entries: seven on one cache line in the growing
//! stores, one in the fixed store. Firing and cascading read entries one after another instead of
//! following a pointer for each. A timer knows its cell, a chunk knows its list: nothing is
//! searched. `wheel.md` has a drawing.
//!
//! ```text
//!   header   59..52 list   51..26 previous chunk   25..0 next chunk
//! ```
//!
//! One byte per chunk, stored apart from the cells in a dense array, says which entries are live. A
//! cancel clears a bit there, and waits for no cache line but that of its own record; the contents
//! of the cell are stale from then on. A chunk without live entries is freed, so there are never
//! many more chunks than timers, and a cascade packs the entries that it moves. A cancel that
//! empties a chunk only records the chunk in an array; the recorded chunks are freed [`EMPTY_MAX`]
//! at a time, so that their cache misses overlap, and before anything reads the lists. (Rejected
//! alternatives: to mark the cell itself as empty, which costs every cancel one more cache line; to
//! check the timer of each entry, which costs every cascade one; to merge half-empty chunks at a
//! cancel, which cost several times what it saved, measured on a loaded machine only. A shard
//! merges them from time to time: `list/compact.rs`.)

#[cfg(feature = "alloc")]
pub(crate) mod compact;

use clockjack_sync::primitive;

use super::{
    level::{Event, LISTS, Occupancy},
    store::{Columns, ListEntry, Location},
};

const CHUNK_NUMBER_BITS: u32 = 26;
/// No chunk.
const NONE: u32 = (1 << CHUNK_NUMBER_BITS) - 1;
/// How many chunks there can be.
pub(crate) const CHUNKS_MAX: u32 = NONE;
/// No cell: the list is empty.
const NO_CELL: u32 = u32::MAX;

/// The maximum number of cells of a chunk: one for the header, and one bit of a byte for each
/// other.
const CELLS_MAX: usize = 8;

/// How many chunks may be empty and not freed yet.
pub(crate) const EMPTY_MAX: u32 = if primitive::IS_SMALL { 8 } else { 64 };

/// How many chunks [`Lists::prefetch`] looks at.
const PREFETCH_CHUNKS: u32 = 5;

/// In the byte of a chunk's live entries, at the position of the header's bit: the chunk is
/// recorded as empty. It may have got an entry since.
const QUEUED_AS_EMPTY: u8 = 1;

/// The header of a chunk.
#[derive(Clone, Copy, Debug)]
struct Header(u64);

impl Header {
    #[inline(always)]
    const fn new(list: u32, previous: u32) -> Self {
        Self((list as u64) << 52 | (previous as u64) << CHUNK_NUMBER_BITS | NONE as u64)
    }

    #[inline(always)]
    #[expect(clippy::cast_possible_truncation, reason = "masked to 26 bits")]
    const fn next(self) -> u32 {
        self.0 as u32 & NONE
    }

    #[inline(always)]
    #[expect(clippy::cast_possible_truncation, reason = "masked to 26 bits")]
    const fn previous(self) -> u32 {
        (self.0 >> CHUNK_NUMBER_BITS) as u32 & NONE
    }

    #[inline(always)]
    const fn list(self) -> u32 {
        (self.0 >> 52) as u32 & 0xff
    }

    const fn with_next(self, next: u32) -> Self {
        Self(self.0 & !(NONE as u64) | next as u64)
    }

    const fn with_previous(self, previous: u32) -> Self {
        let mask = (NONE as u64) << CHUNK_NUMBER_BITS;
        Self(self.0 & !mask | (previous as u64) << CHUNK_NUMBER_BITS)
    }
}

#[derive(Clone, Copy, Debug)]
struct List {
    /// The first chunk.
    first: u32,
    /// The cell that was filled last; the next cell takes the next entry if it is in the same
    /// chunk.
    tail: u32,
}

/// All lists of a wheel, and which of them are not empty.
#[derive(Clone, Debug)]
pub(crate) struct Lists {
    lists: [List; LISTS as usize],
    pub(crate) occupancy: Occupancy,
    /// Chunks that a cancel has emptied, to be freed.
    empty_chunks: [u32; EMPTY_MAX as usize],
    n_empty_chunks: usize,
}

/// The entries of a chunk.
const fn entries<T, S: Columns<T>>() -> u32 {
    (1 << S::CHUNK_BITS) - 1
}

#[inline(always)]
fn header<T, S: Columns<T>>(store: &S, chunk: u32) -> Header {
    Header(store.chunk(chunk)[0])
}

#[inline(always)]
fn change<T, S: Columns<T>>(store: &mut S, chunk: u32, f: impl FnOnce(Header) -> Header) {
    let header = &mut store.chunk_mut(chunk)[0];
    *header = f(Header(*header)).0;
}

/// The live entries of a chunk, in order.
pub(crate) fn live_entries<T, S: Columns<T>>(
    store: &S,
    chunk: u32,
) -> impl Iterator<Item = ListEntry> + '_ {
    let live = store.live(chunk);
    (1..=entries::<T, S>())
        .filter(move |position| live & bit(*position) != 0)
        .map(move |position| ListEntry(store.chunk(chunk)[position as usize]))
}

/// The bit of a position in a chunk's live entries.
#[inline(always)]
const fn bit(position: u32) -> u8 {
    1 << position
}

impl Lists {
    pub(crate) const EMPTY: Self = Self {
        lists: [List { first: NONE, tail: NO_CELL }; LISTS as usize],
        occupancy: Occupancy::EMPTY,
        empty_chunks: [0; EMPTY_MAX as usize],
        n_empty_chunks: 0,
    };

    /// Appends an entry to a list and returns its location.
    #[inline(always)]
    pub(crate) fn append<T, S: Columns<T>>(
        &mut self,
        store: &mut S,
        list: u32,
        entry: ListEntry,
    ) -> Location {
        let list_end = &mut self.lists[list as usize];
        let at = list_end.tail.wrapping_add(1);
        let position = at & entries::<T, S>();
        // Behind the last cell of a chunk is the header of another; NO_CELL + 1 is a header too.
        if position == 0 {
            return self.append_chunk(store, list, entry);
        }
        list_end.tail = at;
        let chunk = at >> S::CHUNK_BITS;
        store.chunk_mut(chunk)[position as usize] = entry.0;
        *store.live_mut(chunk) |= bit(position);
        Location::in_list(entry.priority_code(), at)
    }

    #[inline(never)]
    fn append_chunk<T, S: Columns<T>>(
        &mut self,
        store: &mut S,
        list: u32,
        entry: ListEntry,
    ) -> Location {
        let chunk = store.take_chunk();
        let list_end = &mut self.lists[list as usize];
        let previous = if list_end.tail == NO_CELL { NONE } else { list_end.tail >> S::CHUNK_BITS };
        if previous == NONE {
            list_end.first = chunk;
            self.occupancy.set(list);
        } else {
            change(store, previous, |header| header.with_next(chunk));
        }
        let cells = store.chunk_mut(chunk);
        cells[0] = Header::new(list, previous).0;
        cells[1] = entry.0;
        *store.live_mut(chunk) = bit(1);
        let at = (chunk << S::CHUNK_BITS) + 1;
        list_end.tail = at;
        Location::in_list(entry.priority_code(), at)
    }

    /// Takes an entry out of its list.
    #[inline(always)]
    pub(crate) fn remove<T, S: Columns<T>>(&mut self, store: &mut S, at: u32) {
        let chunk = at >> S::CHUNK_BITS;
        let live = store.live_mut(chunk);
        *live &= !bit(at & entries::<T, S>());
        let is_empty = *live == 0;
        if S::CHUNK_BITS == 1 {
            // One entry per chunk, and no spare chunks.
            self.unlink(store, chunk);
            return;
        }
        // Without a branch: which cancel empties its chunk is unpredictable.
        *live |= u8::from(is_empty) * QUEUED_AS_EMPTY;
        self.empty_chunks[self.n_empty_chunks] = chunk;
        self.n_empty_chunks += usize::from(is_empty);
        if self.n_empty_chunks == EMPTY_MAX as usize {
            self.free_empty_chunks_slow(store);
        }
    }

    /// Frees the chunks that were recorded as empty and still are.
    #[cold]
    #[inline(never)]
    fn free_empty_chunks_slow<T, S: Columns<T>>(&mut self, store: &mut S) {
        for index in 0..self.n_empty_chunks {
            let chunk = self.empty_chunks[index];
            let live = store.live_mut(chunk);
            *live &= !QUEUED_AS_EMPTY;
            if *live == 0 {
                self.unlink(store, chunk);
            }
        }
        self.n_empty_chunks = 0;
    }

    /// Prepares the lists for reading: afterwards no chunk is empty, and the occupancy is exact.
    #[inline(always)]
    pub(crate) fn free_empty_chunks<T, S: Columns<T>>(&mut self, store: &mut S) {
        if self.n_empty_chunks != 0 {
            self.free_empty_chunks_slow(store);
        }
    }

    /// The first slot that is not empty at or after `elapsed`, also if some chunks are empty.
    pub(crate) fn next_event<T, S: Columns<T>>(&self, store: &S, elapsed: u64) -> Option<Event> {
        if self.n_empty_chunks == 0 {
            return self.occupancy.next(elapsed);
        }
        let mut occupancy = self.occupancy.clone();
        loop {
            let event = occupancy.next(elapsed)?;
            if !self.is_empty(store, event.list) {
                return Some(event);
            }
            occupancy.clear(event.list);
        }
    }

    /// Whether a list has no entry, also if some of its chunks are empty.
    pub(crate) fn is_empty<T, S: Columns<T>>(&self, store: &S, list: u32) -> bool {
        let mut is_empty = true;
        self.walk(store, list, |_| {
            is_empty = false;
            false
        });
        is_empty
    }

    /// Takes the first entry of a list; `None` if it is empty.
    #[inline(always)]
    pub(crate) fn pop<T, S: Columns<T>>(&mut self, store: &mut S, list: u32) -> Option<ListEntry> {
        let chunk = self.lists[list as usize].first;
        if chunk == NONE {
            return None;
        }
        let live = store.live_mut(chunk);
        let position = live.trailing_zeros();
        // Clears the lowest bit, which is that of the position.
        *live &= *live - 1;
        let is_last = *live == 0;
        let entry = ListEntry(store.chunk(chunk)[(position & entries::<T, S>()) as usize]);
        if is_last {
            self.unlink(store, chunk);
        }
        Some(entry)
    }

    /// Frees the first chunk of a list and passes its entries to `each`, in order. Returns how many
    /// there were: 0, without effect, if the list is empty or there are more than `most`.
    #[inline(always)]
    pub(crate) fn pop_chunk<T, S: Columns<T>>(
        &mut self,
        store: &mut S,
        list: u32,
        most: usize,
        mut each: impl FnMut(&mut Self, &mut S, ListEntry),
    ) -> usize {
        let chunk = self.lists[list as usize].first;
        if chunk == NONE {
            return 0;
        }
        let mut live = store.live(chunk);
        let n_live = live.count_ones() as usize;
        if n_live > most {
            return 0;
        }
        // Copied and freed first, so that entries that are appended meanwhile reuse it while it is
        // in the cache.
        let mut cells = [0; CELLS_MAX];
        cells[..1 << S::CHUNK_BITS].copy_from_slice(store.chunk(chunk));
        *store.live_mut(chunk) = 0;
        self.unlink(store, chunk);
        while live != 0 {
            let position = live.trailing_zeros();
            live &= live - 1;
            each(self, store, ListEntry(cells[position as usize]));
        }
        n_live
    }

    /// Calls `visit` with the entries of a list in order until it returns false.
    pub(crate) fn walk<T, S: Columns<T>>(
        &self,
        store: &S,
        list: u32,
        mut visit: impl FnMut(ListEntry) -> bool,
    ) {
        let mut chunk = self.lists[list as usize].first;
        while chunk != NONE {
            if !live_entries(store, chunk).all(&mut visit) {
                return;
            }
            chunk = header(store, chunk).next();
        }
    }

    /// Takes a chunk without entries out of its list and frees it.
    #[inline(never)]
    fn unlink<T, S: Columns<T>>(&mut self, store: &mut S, chunk: u32) {
        let gone = header(store, chunk);
        let (previous, next) = (gone.previous(), gone.next());
        let list = &mut self.lists[gone.list() as usize];
        if previous == NONE {
            list.first = next;
        } else {
            change(store, previous, |header| header.with_next(next));
        }
        if next != NONE {
            change(store, next, |header| header.with_previous(previous));
        } else if previous != NONE {
            // The next entry begins a new chunk, even if the last one has empty cells.
            list.tail = (previous << S::CHUNK_BITS) | entries::<T, S>();
        } else {
            list.tail = NO_CELL;
            self.occupancy.clear(gone.list());
        }
        store.give_chunk(chunk);
    }

    /// Prefetches the timers of the first chunks of a list.
    #[inline]
    pub(crate) fn prefetch<T, S: Columns<T>>(&self, store: &S, list: u32) {
        let mut chunk = self.lists[list as usize].first;
        for _ in 0..PREFETCH_CHUNKS {
            if chunk == NONE {
                return;
            }
            // A cell that is not live has the number of some other timer, which does no harm.
            let entries = &store.chunk(chunk)[1..];
            entries.iter().for_each(|cell| store.prefetch_timer(ListEntry(*cell).timer()));
            chunk = header(store, chunk).next();
        }
    }
}
