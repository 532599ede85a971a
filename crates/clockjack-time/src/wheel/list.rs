//! Lists of timers in order of registration, as chains of chunks.
//!
//! A chunk is a header and a few entries side by side: seven on one cache line in the growing
//! stores, one in the fixed store. Firing and cascading read entries one after another instead of
//! chasing a pointer for each; a cancel leaves a hole and touches no neighbour. A timer knows its
//! cell, a chunk knows its list, so nothing is searched.
//!
//! ```text
//!   header   63..60 live   59..52 list   51..26 previous chunk   25..0 next chunk
//! ```
//!
//! A chunk without entries is freed at once, so there are never more chunks than timers, and a
//! cascade packs them anew. Joining chunks that are half empty was tried: it cost a cancel four
//! times what it took, for neighbours' headers and for telling the moved timers their new cells.

use super::{
    level::{LISTS, Occupancy},
    store::{Columns, Entry, Place},
};

const CHUNK_NUMBER_BITS: u32 = 26;
/// No chunk.
const NONE: u32 = (1 << CHUNK_NUMBER_BITS) - 1;
/// How many chunks there can be.
pub(crate) const CHUNKS_MAX: u32 = NONE;
/// No cell: the list is empty.
const NO_CELL: u32 = u32::MAX;

/// The header of a chunk.
#[derive(Clone, Copy, Debug)]
struct Header(u64);

impl Header {
    const ONE_LIVE: u64 = 1 << 60;

    #[inline(always)]
    const fn new(list: u32, previous: u32, live: u32) -> Self {
        Self(
            (live as u64) << 60
                | (list as u64) << 52
                | (previous as u64) << CHUNK_NUMBER_BITS
                | NONE as u64,
        )
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

    #[inline(always)]
    const fn live(self) -> u32 {
        (self.0 >> 60) as u32
    }

    const fn with_next(self, next: u32) -> Self {
        Self(self.0 & !(NONE as u64) | next as u64)
    }

    const fn with_previous(self, previous: u32) -> Self {
        let mask = (NONE as u64) << CHUNK_NUMBER_BITS;
        Self(self.0 & !mask | (previous as u64) << CHUNK_NUMBER_BITS)
    }

    const fn with_live(self, live: u32) -> Self {
        Self(self.0 & !(0xf << 60) | (live as u64) << 60)
    }
}

#[derive(Clone, Copy, Debug)]
struct List {
    /// The first chunk.
    first: u32,
    /// The cell that was filled last; the next one takes the next entry if it is in the chunk.
    tail: u32,
}

/// All lists of a wheel, and which of them hold anything.
#[derive(Clone, Debug)]
pub(crate) struct Lists {
    lists: [List; LISTS as usize],
    pub(crate) occupancy: Occupancy,
    /// The cell that [`pop`](Self::pop) emptied last, if its chunk is still the same; else 0.
    popped: u32,
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

impl Lists {
    pub(crate) const EMPTY: Self = Self {
        lists: [List { first: NONE, tail: NO_CELL }; LISTS as usize],
        occupancy: Occupancy::EMPTY,
        popped: 0,
    };

    /// Puts an entry at the end of a list and says where it stands.
    #[inline(always)]
    pub(crate) fn append<T, S: Columns<T>>(
        &mut self,
        store: &mut S,
        list: u32,
        entry: Entry,
    ) -> Place {
        let list_end = &mut self.lists[list as usize];
        let at = list_end.tail.wrapping_add(1);
        let position = at & entries::<T, S>();
        // Past the last cell of a chunk is the header of another; NO_CELL + 1 is a header too.
        if position == 0 {
            return self.append_chunk(store, list, entry);
        }
        list_end.tail = at;
        let cells = store.chunk_mut(at >> S::CHUNK_BITS);
        cells[0] += Header::ONE_LIVE;
        cells[position as usize] = entry.0;
        Place::in_list(at)
    }

    #[inline(never)]
    fn append_chunk<T, S: Columns<T>>(&mut self, store: &mut S, list: u32, entry: Entry) -> Place {
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
        cells[0] = Header::new(list, previous, 1).0;
        cells[1] = entry.0;
        let at = (chunk << S::CHUNK_BITS) + 1;
        list_end.tail = at;
        Place::in_list(at)
    }

    /// Takes the entry of a cell out of whatever list it is in.
    #[inline(always)]
    pub(crate) fn remove<T, S: Columns<T>>(&mut self, store: &mut S, at: u32) -> Entry {
        let chunk = at >> S::CHUNK_BITS;
        let cells = store.chunk_mut(chunk);
        let cell = &mut cells[(at & entries::<T, S>()) as usize];
        let entry = Entry(*cell);
        *cell = 0;
        cells[0] -= Header::ONE_LIVE;
        if Header(cells[0]).live() == 0 {
            self.unlink(store, chunk);
        }
        entry
    }

    /// Takes the first entry of a list; `None` if it is empty.
    #[inline(always)]
    pub(crate) fn pop<T, S: Columns<T>>(&mut self, store: &mut S, list: u32) -> Option<Entry> {
        let chunk = self.lists[list as usize].first;
        if chunk == NONE {
            return None;
        }
        let cells = store.chunk_mut(chunk);
        // Where the last call found something, all before it is empty.
        let mut position =
            if self.popped >> S::CHUNK_BITS == chunk { self.popped & entries::<T, S>() } else { 0 };
        let entry = loop {
            position += 1;
            let entry = cells[position as usize];
            if entry != 0 {
                break entry;
            }
        };
        cells[position as usize] = 0;
        cells[0] -= Header::ONE_LIVE;
        self.popped = (chunk << S::CHUNK_BITS) | position;
        if Header(cells[0]).live() == 0 {
            self.unlink(store, chunk);
        }
        Some(Entry(entry))
    }

    /// Takes the first chunk of a list away and hands its entries to `each` in order. False, and
    /// nothing is done, if the list is empty or the chunk has more than `most` entries.
    #[inline(always)]
    pub(crate) fn pop_chunk<T, S: Columns<T>>(
        &mut self,
        store: &mut S,
        list: u32,
        most: usize,
        mut each: impl FnMut(&mut Self, &mut S, Entry),
    ) -> usize {
        let chunk = self.lists[list as usize].first;
        if chunk == NONE {
            return 0;
        }
        let live = header(store, chunk).live() as usize;
        if live > most {
            return 0;
        }
        for position in 1..=entries::<T, S>() {
            let cell = &mut store.chunk_mut(chunk)[position as usize];
            let entry = *cell;
            if entry != 0 {
                *cell = 0;
                each(self, store, Entry(entry));
            }
        }
        change(store, chunk, |header| header.with_live(0));
        self.unlink(store, chunk);
        live
    }

    /// Calls `look` with the entries of a list in order until it says false.
    pub(crate) fn walk<T, S: Columns<T>>(
        &self,
        store: &S,
        list: u32,
        mut look: impl FnMut(Entry) -> bool,
    ) {
        let mut chunk = self.lists[list as usize].first;
        while chunk != NONE {
            let cells = store.chunk(chunk);
            for entry in &cells[1..] {
                if *entry != 0 && !look(Entry(*entry)) {
                    return;
                }
            }
            chunk = Header(cells[0]).next();
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
            // The next entry begins a new chunk, even if the last one has holes.
            list.tail = (previous << S::CHUNK_BITS) | entries::<T, S>();
        } else {
            list.tail = NO_CELL;
            self.occupancy.clear(gone.list());
        }
        store.give_chunk(chunk);
        self.popped = 0;
    }
}
