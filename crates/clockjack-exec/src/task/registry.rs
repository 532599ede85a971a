//! The registry of tasks: maps the index and the generation of a pid to the task, safely even while
//! the task ends.
//!
//! The scheme is a slot map with generational indices, in type-stable memory (Greenwald and
//! Cheriton, "The synergy between non-blocking synchronization and operating system structure",
//! 1996).
//!
//! A slab of slots, which are freed only with the registry. The reference count of a task is in its
//! slot and not in the task, so that a look-up touches only memory that exists, whatever became of
//! the task. The registry does not know what a value is, how it is freed, or which node a pid
//! names.
//!
//! The capacity counts the tasks that have not ended, by permits. A task that has ended needs a
//! slot as long as somebody keeps a reference to it, but no permit: then there are more slots than
//! the capacity.
//!
//! # Life cycle of a slot
//!
//! ```text
//!            reserve              occupy                 release of the last
//!    Free ────────────► Reserved ────────► Live, refs > 0 ────────────────► Ended
//!     ▲                    │                                                  │
//!     ├────── cancel ──────┘                                                  │
//!     └───────────────────────────── vacate ──────────────────────────────────┘
//! ```
//!
//! Free slots are the set bits of a bit set, 32 to a word. The alternative was a free list, but
//! popping one item off a shared stack needs a lock or a tagged double word, and taking the whole
//! stack lets one worker hoard all free slots. Here taking and freeing are unconditional
//! read-modify-writes, a thread gets as many of 32 neighbours as it wants at once, and the only
//! cost is a scan over words when nearly all slots are in use.
//!
//! # Roles
//!
//! * The **creator** has a [`Reserved`]: a slot that no other thread can reach.
//! * A **holder** has a counted reference: a [`SlotRef`], or one that [`Slot::acquire`] made.
//! * The **last holder** is the one whose release left no reference. It has a [`LastRef`], frees
//!   the value and vacates the slot.
//! * A **finder** has a pid, of whatever age.
//!
//! # Rules
//!
//! 1. Only the creator writes the generation and the value of a slot, while `refs` is zero.
//! 2. `occupy` makes `refs` nonzero, with Release, as its last step. Nobody else raises it from
//!    zero: a finder that reads zero returns, and a holder adds to a count that includes its own
//!    reference.
//! 3. Only a thread that has a reference, or is the last holder, reads the value.
//! 4. A finder first raises `refs` and then compares the generation. If the generation is another
//!    one, the finder releases the reference; that may have become the last one, and then the
//!    finder is the last holder.
//! 5. The generation of a slot grows by one with each reservation. It has 64 bits and never
//!    repeats.
//! 6. A slot has one owner at a time: the bit set of free slots, a cache, a creator, or its
//!    holders.
//!
//! A finder also reads the generation without a reference, in two halves, but only to return early:
//! what it reads then is a hint, and rule 4 decides.
//!
//! # Why a finder never gets the wrong task or freed memory
//!
//! The exchange that raises `refs` from a nonzero value reads a value that the `occupy` of some
//! task began, through changes that all continue its release sequence; so the finder sees the
//! generation and the value of that task, or of a later one. After the exchange the finder is a
//! holder; the last release of that task has not happened, so no later creator has written, and the
//! generation is exact. The count may have gone to zero and up again between the finder's load and
//! its exchange; that does no harm, because the comparison comes afterwards.
//!
//! # Why it cannot hang
//!
//! No call waits. A finder repeats its exchange only after another thread has changed the count.
//! `reserve` scans each word of free slots at most twice, and once more those of chunks that were
//! created in the meantime; it tries a word again only after another thread has taken the slots
//! that it tried to take. It grows at most once per chunk.
#![doc(hidden)]
#![expect(unsafe_code, reason = "the reference count in a slot guards the pointer next to it")]

mod chunk;
mod permits;

use alloc::boxed::Box;
use core::{
    fmt,
    num::{NonZeroU32, NonZeroU64},
    ptr::{self, NonNull},
};

use clockjack_sync::{
    pad::Padded,
    primitive::{
        IS_MODEL, UnsafeCell,
        atomic::{
            AtomicPtr, AtomicU32,
            Ordering::{Acquire, Relaxed, Release},
        },
        scaled,
    },
    primitive_array,
};

use chunk::Chunk;
use permits::Permits;

/// Slots of the first chunk; each further one has twice as many.
const FIRST_LEN: usize = scaled(2, 32, 64);
/// The maximum number of chunks.
const CHUNKS_MAX: usize = if IS_MODEL { 3 } else { 24 };
/// The largest capacity of a registry.
pub const CAPACITY_MAX: usize = FIRST_LEN * ((1 << CHUNKS_MAX) - 1);
/// Free slots in one word.
const WORD_LEN: usize = 32;
/// A cache holds at most this fraction of all slots.
const CACHE_SHARE: usize = if IS_MODEL { 2 } else { 64 };
/// All caches together hold at most this fraction of all slots, so that workers that are busy with
/// something else do not make a registry look full.
const ALL_CACHES_SHARE: usize = if IS_MODEL { 2 } else { 4 };
/// The first chunk beyond the capacity has this fraction of its slots, and at least [`BEYOND_MIN`].
const BEYOND_SHARE: usize = 8;
const BEYOND_MIN: usize = scaled(2, 8, 32);
/// The maximum number of references to a slot. Half of what the count can hold, so that threads
/// that exceed it at the same time cannot make it wrap.
const REFS_MAX: u32 = u32::MAX / 2;

const _: () = assert!(FIRST_LEN.is_power_of_two());
const _: () = assert!(CAPACITY_MAX < u32::MAX as usize);

/// The registry of tasks; see the [module](self) for the protocol.
///
/// Dropping it frees the slots, not the values of those that are live.
pub struct Registry {
    chunks: [AtomicPtr<Chunk>; CHUNKS_MAX],
    capacity: usize,
    permits: Permits,
    /// How many slots, and how many permits, a cache holds at most.
    cache_max: usize,
    /// Whether the slots in the caches of idle workers matter.
    flushes_idle: bool,
    /// Where free slots were found last.
    hint: Padded<AtomicU32>,
}

/// The slot of one task. Every waker of the task counts in it, and tasks with neighbouring slots
/// run on different workers. A cache line per slot would be better for tasks that are woken from
/// many threads, but it would cost memory for each idle task, of which there are more.
pub struct Slot {
    refs: AtomicU32,
    index: u32,
    generation_low: AtomicU32,
    generation_high: AtomicU32,
    value: UnsafeCell<*mut ()>,
}

/// A free slot that its owner will fill, or [cancel](Registry::cancel).
#[must_use = "a reservation that is dropped makes the slot unusable for ever"]
#[derive(Debug)]
pub struct Reserved<'r> {
    slot: &'r Slot,
    generation: NonZeroU64,
}

/// One counted reference. Dropping it does not release it.
#[must_use = "a reference that is dropped is never released"]
#[derive(Debug)]
pub struct SlotRef<'r>(&'r Slot);

/// A slot whose last reference was released. Its owner frees the value, once, and
/// [vacates](Registry::vacate) the slot.
#[must_use = "nobody else frees the value and the slot"]
#[derive(Debug)]
pub struct LastRef<'r>(&'r Slot);

/// The result of a look-up.
#[must_use = "the reference that was found is counted"]
#[derive(Debug)]
pub enum Lookup<'r> {
    /// The task, with a reference to it.
    Found(SlotRef<'r>),
    /// There is no task of this generation.
    Missing,
    /// There is no task of this generation; but the look-up held *another* task when that lost its
    /// last other reference, and now the caller frees it.
    LastRef(LastRef<'r>),
}

/// Free slots that a worker has reserved for itself, at most one word of them, and permits.
#[derive(Debug)]
pub struct SlotCache {
    at: WordIndex,
    bits: u32,
    permits: usize,
}

/// The position of a word of free slots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct WordIndex {
    chunk: usize,
    word: usize,
}

// SAFETY: the one field that is not `Sync` is the pointer in a slot. The creator writes it while
// nobody else can reach the slot, and holders read it, ordered by `refs` (rules 1 to 3). Users
// access what it points to by their own unsafe code.
unsafe impl Sync for Slot {}
// SAFETY: as for `Sync`; a slot is not bound to a thread.
unsafe impl Send for Slot {}

impl Registry {
    /// An empty registry for at most `capacity` tasks that have not ended, and for at most `caches`
    /// caches. It allocates as it grows.
    ///
    /// # Panics
    ///
    /// If `capacity` is more than [`CAPACITY_MAX`].
    #[must_use]
    pub fn new(capacity: usize, caches: usize) -> Self {
        assert!(capacity <= CAPACITY_MAX, "a capacity of {capacity} is more than {CAPACITY_MAX}");
        let caches = caches.max(1);
        let share = capacity / ALL_CACHES_SHARE / caches;
        Self {
            chunks: primitive_array![AtomicPtr::new(ptr::null_mut()); CHUNKS_MAX],
            capacity,
            permits: Permits::new(capacity),
            cache_max: share.min(capacity / CACHE_SHARE).min(WORD_LEN),
            flushes_idle: capacity / CACHE_SHARE < caches * WORD_LEN,
            hint: Padded(AtomicU32::new(0)),
        }
    }

    /// The maximum number of tasks that have not ended.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// An empty cache for one worker.
    ///
    /// # Safety
    ///
    /// It is passed to calls of this registry only.
    #[must_use]
    pub unsafe fn cache(&self) -> SlotCache {
        SlotCache { at: WordIndex { chunk: 0, word: 0 }, bits: 0, permits: 0 }
    }

    /// Takes a permit and a free slot, from the cache if that has any, and begins the slot's next
    /// generation.
    ///
    /// `None` if as many tasks as the [capacity](Self::capacity) have not [ended](Self::end), or if
    /// there is no memory for more slots. Permits in the caches of other workers are not free: each
    /// cache holds at most 32 and at most a 64th of the capacity, and all together hold at most a
    /// quarter.
    pub fn reserve(&self, mut cache: Option<&mut SlotCache>) -> Option<Reserved<'_>> {
        let permits = cache.as_deref_mut().map(|cache| &mut cache.permits);
        if !self.permits.acquire(permits, self.cache_max) {
            return None;
        }
        let taken = self.take_slot(cache.as_deref_mut());
        if taken.is_none() {
            self.end(cache);
        }
        let (at, bit) = taken?;
        let chunk = self.chunk(at.chunk).expect("a free slot is in a chunk");
        let slot = &chunk.slots[at.word * WORD_LEN + bit as usize];
        Some(Reserved { slot, generation: slot.begin_generation() })
    }

    /// A free slot, of which the caller is the owner now.
    fn take_slot(&self, cache: Option<&mut SlotCache>) -> Option<(WordIndex, u32)> {
        let Some(cache) = cache.filter(|_| self.cache_max > 0) else {
            let (at, bits) = self.take(1)?;
            return Some((at, bits.trailing_zeros()));
        };
        if cache.bits == 0 {
            (cache.at, cache.bits) = self.take(self.cache_max)?;
        }
        let bit = cache.bits.trailing_zeros();
        cache.bits &= cache.bits - 1;
        Some((cache.at, bit))
    }

    /// Publishes a task in a reserved slot. The caller owns `refs` references from now on.
    ///
    /// # Panics
    ///
    /// If `refs` is more than a count can hold.
    pub fn occupy<'r>(
        &'r self,
        reserved: Reserved<'r>,
        value: NonNull<()>,
        refs: NonZeroU32,
    ) -> &'r Slot {
        assert!(refs.get() <= REFS_MAX, "{refs} references are more than {REFS_MAX}");
        let slot = reserved.slot;
        slot.value.with_mut(|cell| {
            // SAFETY: the reservation is the only way to this slot, and `refs` is zero, so nobody
            // reads the cell (rules 1 and 3).
            unsafe { *cell = value.as_ptr() }
        });
        // Release: publishes value and generation to the exchange of a finder (rule 2).
        let before = slot.refs.swap(refs.get(), Release);
        assert_eq!(before, 0, "slot {} was reserved while in use", slot.index);
        slot
    }

    /// Frees the slot and the permit of an unused reservation. Its generation is not used again.
    pub fn cancel(&self, reserved: Reserved<'_>, mut cache: Option<&mut SlotCache>) {
        self.give(reserved.slot, cache.as_deref_mut());
        self.end(cache);
    }

    /// A task has ended, and no longer counts. Called once per task that was published, by its
    /// runner, before the slot is vacated.
    #[inline]
    pub fn end(&self, cache: Option<&mut SlotCache>) {
        self.permits.release(cache.map(|cache| &mut cache.permits), self.cache_max);
    }

    /// Frees the slot of a task that was freed.
    pub fn vacate(&self, last: LastRef<'_>, cache: Option<&mut SlotCache>) {
        self.give(last.0, cache);
    }

    /// Frees the slots and the permits in a cache, as a worker does when it stops.
    pub fn flush(&self, cache: &mut SlotCache) {
        self.permits.flush(&mut cache.permits);
        if cache.bits != 0 {
            let chunk = self.chunk(cache.at.chunk).expect("a free slot is in a chunk");
            chunk.give(cache.at.word, cache.bits);
            cache.bits = 0;
        }
    }

    /// As [`flush`](Self::flush), for a worker that goes to sleep; unless the registry is so large
    /// that the slots in caches do not matter.
    #[inline]
    pub fn flush_idle(&self, cache: &mut SlotCache) {
        if self.flushes_idle {
            self.flush(cache);
        }
    }

    /// The task of this index and generation, with a new reference.
    ///
    /// # Panics
    ///
    /// If the task has too many references already.
    pub fn get(&self, index: u32, generation: NonZeroU64) -> Lookup<'_> {
        let Some(slot) = self.slot(index) else { return Lookup::Missing };
        // Most stale pids return here, without writing to the slot of another task.
        if slot.read_generation() != generation.get() {
            return Lookup::Missing;
        }
        let Some(found) = slot.try_acquire() else { return Lookup::Missing };
        if found.0.read_generation() == generation.get() {
            return Lookup::Found(found);
        }
        found.release().map_or(Lookup::Missing, Lookup::LastRef)
    }

    /// The task of this index, whatever its generation, with a new reference.
    ///
    /// # Panics
    ///
    /// As [`get`](Self::get).
    pub fn get_any(&self, index: u32) -> Option<SlotRef<'_>> {
        self.slot(index)?.try_acquire()
    }

    /// Whether the task of this index and generation existed at some moment of the call.
    ///
    /// A hint, which takes no reference.
    #[must_use]
    pub fn is_live(&self, index: u32, generation: NonZeroU64) -> bool {
        self.slot(index).is_some_and(|slot| {
            // Acquire: pairs with `occupy`, so that the generation is not older than the count.
            slot.refs.load(Acquire) != 0 && slot.read_generation() == generation.get()
        })
    }

    /// Calls `f` with a reference to each live task, in the order of the indices. `f` releases the
    /// reference, and frees the task if it was the last.
    pub fn for_each_live<'r>(&'r self, mut f: impl FnMut(SlotRef<'r>)) {
        self.used_slots().filter_map(Slot::try_acquire).for_each(&mut f);
    }

    /// As [`for_each_live`](Self::for_each_live), for `n` slots from this index on. Returns the
    /// index to continue with; `None` if there are no further slots.
    pub fn for_each_live_in<'r>(
        &'r self,
        from: u32,
        n: u32,
        mut f: impl FnMut(SlotRef<'r>),
    ) -> Option<u32> {
        let end = from.saturating_add(n);
        for index in from..end {
            let slot = self.slot(index)?;
            if let Some(found) = slot.try_acquire() {
                f(found);
            }
        }
        self.slot(end).map(|_| end)
    }

    /// The number of occupied slots, by a scan over all that were ever used. Other threads may
    /// change it in the meantime.
    #[must_use]
    pub fn live_len(&self) -> usize {
        // Relaxed: a number for people.
        self.used_slots().filter(|slot| slot.refs.load(Relaxed) != 0).count()
    }

    fn used_slots(&self) -> impl Iterator<Item = &Slot> {
        (0..CHUNKS_MAX).map_while(|number| self.chunk(number)).flat_map(|chunk| &chunk.slots)
    }

    fn slot(&self, index: u32) -> Option<&Slot> {
        let index = index as usize;
        if index >= CAPACITY_MAX {
            return None;
        }
        let (number, offset) = locate(index);
        self.chunk(number)?.slots.get(offset)
    }

    #[inline]
    fn chunk(&self, number: usize) -> Option<&Chunk> {
        // Acquire: pairs with the exchange in `grow`, so that the caller sees the slots.
        let chunk = self.chunks.get(number)?.load(Acquire);
        // SAFETY: null, or a chunk that `grow` published; the drop of the registry frees it, which
        // outlives the borrow, and nobody writes it through another pointer.
        unsafe { chunk.as_ref() }
    }

    /// Takes up to `max` free slots of one word, at least one.
    fn take(&self, max: usize) -> Option<(WordIndex, u32)> {
        // Relaxed: the scan may begin anywhere.
        let hint = WordIndex::unpack(self.hint.load(Relaxed));
        // From the hint to the end, then from the beginning: the words after the hint in the hint's
        // own chunk are scanned twice.
        self.take_in(hint.chunk, hint.word, max).or_else(|| {
            // Counted before the scan: a chunk that is created during the scan is new.
            let n_known = (0..CHUNKS_MAX).take_while(|chunk| self.chunk(*chunk).is_some()).count();
            (hint.chunk + 1..n_known)
                .chain(0..n_known.min(hint.chunk + 1))
                .find_map(|chunk| self.take_in(chunk, 0, max))
                .or_else(|| self.take_fresh(n_known, max))
        })
    }

    fn take_in(&self, number: usize, from: usize, max: usize) -> Option<(WordIndex, u32)> {
        let (word, bits) = self.chunk(number)?.take(from, max)?;
        let at = WordIndex { chunk: number, word };
        // Relaxed: a hint; written only when it changes, so that readers keep their cache line.
        if self.hint.load(Relaxed) != at.pack() {
            self.hint.store(at.pack(), Relaxed);
        }
        Some((at, bits))
    }

    /// Takes from chunks that did not exist a moment ago, whichever thread creates them.
    fn take_fresh(&self, n_known: usize, max: usize) -> Option<(WordIndex, u32)> {
        for number in n_known..CHUNKS_MAX {
            if self.chunk(number).is_none() {
                self.grow(number)?;
            }
            // Other threads may have emptied the new chunk already; then there is a next one.
            if let Some(taken) = self.take_in(number, 0, max) {
                return Some(taken);
            }
        }
        None
    }

    /// The number of slots of a chunk. The last chunk within the capacity ends with the capacity;
    /// those beyond begin small and double, too.
    fn chunk_len(&self, number: usize, start: usize) -> usize {
        let max = FIRST_LEN << number;
        match self.capacity.checked_sub(start) {
            Some(len @ 1..) => len.min(max),
            _ => {
                let n_within = self.capacity.checked_sub(1).map_or(0, |last| locate(last).0 + 1);
                let first = (self.capacity / BEYOND_SHARE).max(BEYOND_MIN);
                (first << (number - n_within)).min(max)
            }
        }
    }

    /// Creates this chunk, unless another thread does. `None` if there is no memory.
    fn grow(&self, number: usize) -> Option<()> {
        let start = FIRST_LEN * ((1 << number) - 1);
        let len = self.chunk_len(number, start);
        let mine = Box::into_raw(Box::new(Chunk::new(start, len)?));
        // Release: publishes the slots to `chunk`. Relaxed: a thread that fails loads the pointer
        // again by `chunk`.
        let null = ptr::null_mut();
        if self.chunks[number].compare_exchange(null, mine, Release, Relaxed).is_err() {
            // SAFETY: `mine` came from `Box::into_raw` above and was not published.
            drop(unsafe { Box::from_raw(mine) });
        }
        Some(())
    }

    fn give(&self, slot: &Slot, cache: Option<&mut SlotCache>) {
        let (number, offset) = locate(slot.index as usize);
        let chunk = self.chunk(number).expect("a slot is in a chunk");
        assert!(
            ptr::eq(&raw const chunk.slots[offset], slot),
            "slot {} is another registry's",
            slot.index
        );
        let at = WordIndex { chunk: number, word: offset / WORD_LEN };
        let bit = 1 << (offset % WORD_LEN);
        match cache {
            Some(cache) if cache.has_room_at(at, self.cache_max) => {
                cache.at = at;
                cache.bits |= bit;
            }
            _ => chunk.give(at.word, bit),
        }
    }
}

impl Drop for Registry {
    fn drop(&mut self) {
        for chunk in &self.chunks {
            // Acquire: pairs with the exchange in `grow`; the exclusive borrow orders the rest.
            let chunk = chunk.swap(ptr::null_mut(), Acquire);
            if !chunk.is_null() {
                // SAFETY: it came from `Box::into_raw` in `grow`, and the exclusive borrow took it
                // out of the table, so nobody uses it and nobody frees it again.
                drop(unsafe { Box::from_raw(chunk) });
            }
        }
    }
}

impl fmt::Debug for Registry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Registry").field("capacity", &self.capacity).finish_non_exhaustive()
    }
}

impl Slot {
    fn new(index: u32) -> Self {
        Self {
            refs: AtomicU32::new(0),
            index,
            generation_low: AtomicU32::new(0),
            generation_high: AtomicU32::new(0),
            value: UnsafeCell::new(ptr::null_mut()),
        }
    }

    /// The index of the slot.
    #[must_use]
    pub fn index(&self) -> u32 {
        self.index
    }

    /// The generation of the task.
    ///
    /// # Safety
    ///
    /// The caller has a reference.
    #[must_use]
    pub unsafe fn generation(&self) -> NonZeroU64 {
        self.held_generation()
    }

    /// The task.
    ///
    /// # Safety
    ///
    /// The caller has a reference.
    #[must_use]
    pub unsafe fn value(&self) -> NonNull<()> {
        self.held_value()
    }

    /// Adds a reference, which the caller owns.
    ///
    /// # Safety
    ///
    /// The caller has a reference.
    ///
    /// # Panics
    ///
    /// If there are too many.
    pub unsafe fn acquire(&self) {
        // Relaxed: a thread that has a reference has acquired what it gives access to; nothing is
        // published.
        let before = self.refs.fetch_add(1, Relaxed);
        debug_assert_ne!(before, 0, "slot {} has no reference", self.index);
        if before >= REFS_MAX {
            // Relaxed: undoes an addition that nobody has used.
            self.refs.fetch_sub(1, Relaxed);
            too_many(self.index);
        }
    }

    /// Releases a reference. If the caller gets a [`LastRef`], it frees the value and vacates the
    /// slot.
    ///
    /// # Safety
    ///
    /// The caller has a reference, and does not use it afterwards.
    #[must_use = "nobody else frees the value and the slot"]
    pub unsafe fn release(&self) -> Option<LastRef<'_>> {
        SlotRef(self).release()
    }

    /// A new reference, unless the count is zero.
    fn try_acquire(&self) -> Option<SlotRef<'_>> {
        // Relaxed: only the exchange compares it.
        let mut refs = self.refs.load(Relaxed);
        while refs != 0 {
            if refs >= REFS_MAX {
                too_many(self.index);
            }
            // Acquire: pairs with the release in `occupy` (rule 2).
            match self.refs.compare_exchange_weak(refs, refs + 1, Acquire, Relaxed) {
                Ok(_) => return Some(SlotRef(self)),
                Err(now) => refs = now,
            }
        }
        None
    }

    /// By the creator, while `refs` is zero.
    fn begin_generation(&self) -> NonZeroU64 {
        let next = self.read_generation().checked_add(1).and_then(NonZeroU64::new);
        let next = next.expect("no machine starts 2 to the power of 64 tasks");
        let [low, high] = halves(next.get());
        // Relaxed: `occupy` publishes them. A thread that reads them before gets a hint.
        self.generation_low.store(low, Relaxed);
        self.generation_high.store(high, Relaxed);
        next
    }

    /// The generation: exact for the creator and for holders, a hint for others.
    fn read_generation(&self) -> u64 {
        // Relaxed: holders and creators have acquired what was written, and nobody writes
        // concurrently; for other threads see rule 4.
        let [low, high] =
            [&self.generation_low, &self.generation_high].map(|half| half.load(Relaxed));
        u64::from(high) << u32::BITS | u64::from(low)
    }

    fn held_generation(&self) -> NonZeroU64 {
        NonZeroU64::new(self.read_generation()).expect("a slot in use has a generation")
    }

    /// The value, for holders and for the last holder.
    fn held_value(&self) -> NonNull<()> {
        let value = self.value.with(|cell| {
            // SAFETY: the caller has a reference, or had the last one, so the creator's write came
            // before and the next creator's has not come (rules 1 and 3).
            unsafe { *cell }
        });
        NonNull::new(value).expect("a slot in use has a value")
    }
}

impl fmt::Debug for Slot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Slot")
            .field("index", &self.index)
            .field("generation", &self.read_generation())
            // Relaxed: for people to read.
            .field("refs", &self.refs.load(Relaxed))
            .finish_non_exhaustive()
    }
}

impl Reserved<'_> {
    /// The index of the future task.
    #[must_use]
    pub fn index(&self) -> u32 {
        self.slot.index
    }

    /// The generation of the future task.
    #[must_use]
    pub fn generation(&self) -> NonZeroU64 {
        self.generation
    }

    /// The slot, which lives as long as the registry.
    #[must_use]
    pub fn slot(&self) -> NonNull<Slot> {
        NonNull::from(self.slot)
    }
}

impl<'r> SlotRef<'r> {
    /// The index of the task.
    #[must_use]
    pub fn index(&self) -> u32 {
        self.0.index
    }

    /// The generation of the task.
    #[must_use]
    pub fn generation(&self) -> NonZeroU64 {
        self.0.held_generation()
    }

    /// The task.
    #[must_use]
    pub fn value(&self) -> NonNull<()> {
        self.0.held_value()
    }

    /// Passes the reference to the caller, which releases it by [`Slot::release`].
    #[must_use = "the reference is still counted"]
    pub fn into_slot(self) -> &'r Slot {
        self.0
    }

    /// Releases the reference. If the caller gets a [`LastRef`], it frees the value and vacates the
    /// slot.
    #[must_use = "nobody else frees the value and the slot"]
    pub fn release(self) -> Option<LastRef<'r>> {
        // Release: what this holder did with the value happens before the value is freed.
        let before = self.0.refs.fetch_sub(1, Release);
        debug_assert_ne!(before, 0, "slot {} has no reference", self.0.index);
        if before != 1 {
            return None;
        }
        // Acquire: pairs with the releases of all other holders, whose release sequence this
        // thread's decrement continues. A load and not a fence, because ThreadSanitizer does not
        // support fences.
        self.0.refs.load(Acquire);
        Some(LastRef(self.0))
    }
}

impl LastRef<'_> {
    /// The index of the task that ended.
    #[must_use]
    pub fn index(&self) -> u32 {
        self.0.index
    }

    /// The task that ended, to be freed.
    #[must_use]
    pub fn value(&self) -> NonNull<()> {
        self.0.held_value()
    }
}

impl SlotCache {
    /// Whether the cache may hold one more slot of this word: it is empty, or holds slots of the
    /// same word.
    fn has_room_at(&self, at: WordIndex, max: usize) -> bool {
        max > 0 && (self.bits == 0 || (self.at == at && (self.bits.count_ones() as usize) < max))
    }
}

impl WordIndex {
    const WORD_BITS: u32 = 27;

    fn pack(self) -> u32 {
        let pack = self.chunk << Self::WORD_BITS | self.word;
        u32::try_from(pack).expect("24 chunks take 5 bits, and a chunk has fewer than 2^27 words")
    }

    fn unpack(pack: u32) -> Self {
        let word = pack & ((1 << Self::WORD_BITS) - 1);
        Self { chunk: (pack >> Self::WORD_BITS) as usize, word: word as usize }
    }
}

/// The chunk of an index, and the offset in it.
#[inline]
fn locate(index: usize) -> (usize, usize) {
    let n = index + FIRST_LEN;
    let chunk = n.ilog2() - FIRST_LEN.ilog2();
    (chunk as usize, n - (FIRST_LEN << chunk))
}

fn halves(generation: u64) -> [u32; 2] {
    #[expect(clippy::cast_possible_truncation, reason = "the low and the high half are wanted")]
    [generation as u32, (generation >> u32::BITS) as u32]
}

#[cold]
fn too_many(index: u32) -> ! {
    panic!("the task in slot {index} has more than {REFS_MAX} references")
}
