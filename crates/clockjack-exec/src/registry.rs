//! The table of processes: from the index and generation of a PID to the process, safely also while
//! the process ends.
//!
//! A slab of slots that are never freed before the registry. The count of references to a process
//! stands in its slot and not in the process, so that a look-up touches only memory that is there,
//! whatever became of the process. What a value is, how it is freed and which node a PID names is
//! not known here.
//!
//! # Life of a slot
//!
//! ```text
//!            reserve              occupy                 release of the last
//!    Free ────────────► Reserved ────────► Live, refs > 0 ────────────────► WaitTransition ──► (vacate)
//!     ▲                    │                                                  │
//!     ├────── cancel ──────┘                                                  │
//!     └───────────────────────────── vacate ──────────────────────────────────┘
//! ```
//!
//! Free slots are the set bits of words that stand beside the slots, 32 to a word. The other
//! choice was a stack of free slots, but taking one item off a shared stack needs a lock or a
//! tagged double word, and handing over the whole stack lets one worker sit on all free slots.
//! Here taking and giving back are unconditional read-modify-writes, one taker gets as many of 32
//! neighbours as it wants at once, and the only price is a walk over words when nearly all slots
//! are in use.
//!
//! # Roles
//!
//! * The **maker** has a [`Reserved`], that is a slot that nobody else can reach.
//! * A **holder** has a counted reference: a [`SlotRef`], or one that [`Slot::acquire`] made.
//! * The **last** is the holder whose release left no reference. It has a [`LastRef`], frees the
//!   value and gives the slot back.
//! * A **finder** has a PID, of whatever age.
//!
//! # Rules
//!
//! 1. The generation and the value of a slot are written by the maker alone, while `refs` is zero.
//! 2. `occupy` makes `refs` nonzero, with Release, as its last step. From zero nobody else raises
//!    it: a finder that reads zero goes away, and a holder adds to a count that includes its own.
//! 3. The value is read only by those who have a reference, or are the last.
//! 4. A finder raises `refs` first and compares the generation then. If it is another's it gives
//!    the reference back; that may have become the last one, and then the finder is the last.
//! 5. The generation of a slot grows by one with each reservation. It has 64 bits and never comes
//!    again.
//! 6. A slot is in the hands of one: the words of free slots, a cache, a maker, or its holders.
//!
//! The generation is read without a reference too, in two halves, but only to send a finder away
//! early: what it says then is a hint, and rule 4 decides.
//!
//! # Why a finder never meets the wrong process or freed memory
//!
//! The exchange that raises `refs` from a nonzero value reads what the `occupy` of some process
//! began, through changes that all continue its release sequence; so the generation and the value
//! of that process, or of a later one, are seen. Having raised it, the finder is a holder; the last
//! release of that process has not happened, so no later maker has written, and the generation is
//! exact. That the count may have gone to zero and up again between the finder's load and its
//! exchange does no harm, for the comparison comes after.
//!
//! # Why it cannot hang
//!
//! No call waits. A finder repeats its exchange only after another thread changed the count.
//! `reserve` walks each word of free slots at most twice, and once more those of chunks that were
//! made meanwhile; it asks a word again only after another thread took what it asked for. It grows
//! at most once per chunk.
#![doc(hidden)]
#![expect(unsafe_code, reason = "the count of references in a slot guards the pointer beside it")]

use alloc::{boxed::Box, vec::Vec};
use core::{
    fmt,
    num::{NonZeroU32, NonZeroU64},
    ptr::{self, NonNull},
};

use clockjack_sync::{
    mutant,
    pad::Padded,
    prim::{
        IS_MODEL, UnsafeCell,
        atomic::{
            AtomicPtr, AtomicU32,
            Ordering::{Acquire, Relaxed, Release},
        },
        scaled,
    },
    prim_array,
};

/// Slots of the first chunk; each further one has twice as many.
const FIRST_LEN: usize = scaled(2, 32, 64);
/// Chunks at most.
const CHUNKS_MAX: usize = if IS_MODEL { 3 } else { 24 };
/// The largest capacity of a registry.
pub const CAPACITY_MAX: usize = FIRST_LEN * ((1 << CHUNKS_MAX) - 1);
/// Free slots in one word.
const WORD_LEN: usize = 32;
/// A cache keeps at most this part of all slots from the others, so that many idle workers do not
/// make a registry look full.
const CACHE_SHARE: usize = if IS_MODEL { 2 } else { 64 };
/// References that a slot may have. Half of what the count can hold, so that threads that find it
/// exceeded at the same time cannot make it wrap.
const REFS_MAX: u32 = u32::MAX / 2;

const _: () = assert!(FIRST_LEN.is_power_of_two());
const _: () = assert!(CAPACITY_MAX < u32::MAX as usize);

/// The table of processes; see the [module](self) for the protocol.
///
/// Dropping it frees the slots, not the values of those that are live.
pub struct Registry {
    chunks: [AtomicPtr<Chunk>; CHUNKS_MAX],
    capacity: usize,
    /// Where free slots were found last.
    hint: Padded<AtomicU32>,
}

/// The place of one process. Every waker of the process counts in it, and processes that are
/// neighbours here run on different workers: a cache line each would be better for those that are
/// woken from everywhere, but costs each idle process, of which there are more.
pub struct Slot {
    refs: AtomicU32,
    index: u32,
    generation_low: AtomicU32,
    generation_high: AtomicU32,
    value: UnsafeCell<*mut ()>,
}

/// A free slot in the hands of the one who will fill it, or [cancel](Registry::cancel).
#[must_use = "a reservation that is dropped leaves the slot out of use for ever"]
#[derive(Debug)]
pub struct Reserved<'r> {
    slot: &'r Slot,
    generation: NonZeroU64,
}

/// One counted reference. Dropping it does not release it.
#[must_use = "a reference that is dropped is never released"]
#[derive(Debug)]
pub struct SlotRef<'r>(&'r Slot);

/// A slot whose last reference was released. Its holder frees the value, once, and
/// [vacates](Registry::vacate) the slot.
#[must_use = "nobody else frees the value and the slot"]
#[derive(Debug)]
pub struct LastRef<'r>(&'r Slot);

/// What a look-up found.
#[must_use = "what was found is counted"]
#[derive(Debug)]
pub enum Lookup<'r> {
    /// The process, with a reference to it.
    Found(SlotRef<'r>),
    /// No process of this generation.
    Missing,
    /// No process of this generation; but the look-up met *another* process while that ended, and
    /// now it is the caller's to free.
    LastRef(LastRef<'r>),
}

/// A worker's private free slots, at most one word of them.
#[derive(Debug)]
pub struct SlotCache {
    at: WordIndex,
    bits: u32,
}

/// A word of free slots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct WordIndex {
    chunk: usize,
    word: usize,
}

struct Chunk {
    slots: Box<[Slot]>,
    /// A set bit is a free slot.
    free: Box<[AtomicU32]>,
}

// SAFETY: the one field that is not Sync is the pointer in a slot. It is written by the maker while
// nobody else can reach the slot and read by holders, ordered by `refs` (rules 1 to 3). What it
// points to is touched by users only, by their own unsafe act.
unsafe impl Sync for Slot {}
// SAFETY: as for Sync; a slot is bound to no thread.
unsafe impl Send for Slot {}

impl Registry {
    /// An empty registry for at most `capacity` processes. It allocates as it grows.
    ///
    /// # Panics
    ///
    /// If `capacity` is more than [`CAPACITY_MAX`].
    #[must_use]
    pub fn new(capacity: usize) -> Self {
        assert!(capacity <= CAPACITY_MAX, "a capacity of {capacity} is more than {CAPACITY_MAX}");
        Self {
            chunks: prim_array![AtomicPtr::new(ptr::null_mut()); CHUNKS_MAX],
            capacity,
            hint: Padded(AtomicU32::new(0)),
        }
    }

    /// The number of processes that may live at once.
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
        SlotCache { at: WordIndex { chunk: 0, word: 0 }, bits: 0 }
    }

    /// Takes a free slot, from the cache if there is one in it, and begins its next generation.
    ///
    /// `None` if there is no free slot, or no memory for more. Slots in the caches of others are
    /// not free: each keeps at most 32 and at most a 64th of the capacity.
    pub fn reserve(&self, cache: Option<&mut SlotCache>) -> Option<Reserved<'_>> {
        let (at, bit) = match cache {
            Some(cache) if self.cache_max() > 0 => {
                if cache.bits == 0 {
                    (cache.at, cache.bits) = self.take(self.cache_max())?;
                }
                let bit = cache.bits.trailing_zeros();
                cache.bits &= cache.bits - 1;
                (cache.at, bit)
            }
            _ => {
                let (at, bits) = self.take(1)?;
                (at, bits.trailing_zeros())
            }
        };
        let chunk = self.chunk(at.chunk).expect("a free slot is in a chunk");
        let slot = &chunk.slots[at.word * WORD_LEN + bit as usize];
        Some(Reserved { slot, generation: slot.begin_generation() })
    }

    /// Publishes a process in a reserved slot. The caller owns `refs` references from now on.
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

    /// Gives an unused reservation back. Its generation is spent.
    pub fn cancel(&self, reserved: Reserved<'_>, cache: Option<&mut SlotCache>) {
        self.give(reserved.slot, cache);
    }

    /// Gives back the slot of a process that was freed.
    pub fn vacate(&self, last: LastRef<'_>, cache: Option<&mut SlotCache>) {
        self.give(last.0, cache);
    }

    /// Gives the free slots of a cache to all, as a worker does before it sleeps for long.
    pub fn flush(&self, cache: &mut SlotCache) {
        if cache.bits != 0 {
            let chunk = self.chunk(cache.at.chunk).expect("a free slot is in a chunk");
            chunk.give(cache.at.word, cache.bits);
            cache.bits = 0;
        }
    }

    /// The process of this index and generation, with a new reference.
    ///
    /// # Panics
    ///
    /// If the process has too many references already.
    pub fn get(&self, index: u32, generation: NonZeroU64) -> Lookup<'_> {
        let Some(slot) = self.slot(index) else { return Lookup::Missing };
        // A stale PID is sent away here, mostly, without writing to the slot of another process.
        if slot.read_generation() != generation.get() {
            return Lookup::Missing;
        }
        let Some(found) = slot.try_acquire() else { return Lookup::Missing };
        if found.0.read_generation() == generation.get() || mutant!("registry-get-without-check") {
            return Lookup::Found(found);
        }
        found.release().map_or(Lookup::Missing, Lookup::LastRef)
    }

    /// Whether the process of this index and generation was there at some moment of the call.
    ///
    /// A hint, which takes no reference.
    #[must_use]
    pub fn is_live(&self, index: u32, generation: NonZeroU64) -> bool {
        self.slot(index).is_some_and(|slot| {
            // Acquire: pairs with `occupy`, so that the generation is not older than the count.
            slot.refs.load(Acquire) != 0 && slot.read_generation() == generation.get()
        })
    }

    /// Calls `f` with a reference to each process that is live when the walk comes to it, in the
    /// order of the indices. `f` releases it, and frees what it was the last of.
    pub fn for_each_live<'r>(&'r self, mut f: impl FnMut(SlotRef<'r>)) {
        self.used_slots().filter_map(Slot::try_acquire).for_each(&mut f);
    }

    /// The number of occupied slots, by a walk over all that were ever used. Others may change it
    /// meanwhile.
    #[must_use]
    pub fn live_len(&self) -> usize {
        // Relaxed: a number for the eye.
        self.used_slots().filter(|slot| slot.refs.load(Relaxed) != 0).count()
    }

    fn used_slots(&self) -> impl Iterator<Item = &Slot> {
        (0..CHUNKS_MAX).map_while(|number| self.chunk(number)).flat_map(|chunk| &chunk.slots)
    }

    fn slot(&self, index: u32) -> Option<&Slot> {
        let index = index as usize;
        if index >= self.capacity {
            return None;
        }
        let (number, offset) = locate(index);
        Some(&self.chunk(number)?.slots[offset])
    }

    #[inline]
    fn chunk(&self, number: usize) -> Option<&Chunk> {
        // Acquire: pairs with the exchange in `grow`, so that the slots are seen.
        let chunk = self.chunks.get(number)?.load(Acquire);
        // SAFETY: null, or a chunk that `grow` published; it is freed by the drop of the registry,
        // which outlives the borrow, and never written through another pointer.
        unsafe { chunk.as_ref() }
    }

    fn cache_max(&self) -> usize {
        (self.capacity / CACHE_SHARE).min(WORD_LEN)
    }

    /// Takes up to `max` free slots of one word, at least one.
    fn take(&self, max: usize) -> Option<(WordIndex, u32)> {
        // Relaxed: any place is right to begin at.
        let hint = WordIndex::unpack(self.hint.load(Relaxed));
        // From the hint to the end, then from the beginning: the words of the hint's own chunk
        // that lie behind it are looked at twice.
        self.take_in(hint.chunk, hint.word, max).or_else(|| {
            // Counted before the walk: a chunk that is made during it is fresh.
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
        // Relaxed: a hint; written only when it moves, so that readers keep their line.
        if self.hint.load(Relaxed) != at.pack() {
            self.hint.store(at.pack(), Relaxed);
        }
        Some((at, bits))
    }

    /// Takes from chunks that did not exist a moment ago, whoever makes them.
    fn take_fresh(&self, n_known: usize, max: usize) -> Option<(WordIndex, u32)> {
        for number in n_known..CHUNKS_MAX {
            if self.chunk(number).is_none() {
                self.grow(number)?;
            } else if mutant!("registry-passes-fresh-chunk") {
                continue;
            }
            // Others may have emptied the new chunk already; then there is a next one.
            if let Some(taken) = self.take_in(number, 0, max) {
                return Some(taken);
            }
        }
        None
    }

    /// Makes this chunk, unless another thread does. `None` if it is beyond the capacity, or there
    /// is no memory.
    fn grow(&self, number: usize) -> Option<()> {
        let start = FIRST_LEN * ((1 << number) - 1);
        let len = self.capacity.checked_sub(start)?.min(FIRST_LEN << number);
        if len == 0 {
            return None;
        }
        let mine = Box::into_raw(Box::new(Chunk::new(start, len)?));
        // Release: publishes the slots to `chunk`. Relaxed: who fails looks again by `chunk`.
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
            Some(cache) if cache.has_room_at(at, self.cache_max()) => {
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
                // SAFETY: it came from `Box::into_raw` in `grow`, and was taken out of the table by
                // the exclusive borrow, so nobody uses it and nobody frees it again.
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

    /// The number of the slot.
    #[must_use]
    pub fn index(&self) -> u32 {
        self.index
    }

    /// The generation of the process.
    ///
    /// # Safety
    ///
    /// The caller has a reference.
    #[must_use]
    pub unsafe fn generation(&self) -> NonZeroU64 {
        self.held_generation()
    }

    /// The process.
    ///
    /// # Safety
    ///
    /// The caller has a reference.
    #[must_use]
    pub unsafe fn value(&self) -> NonNull<()> {
        self.held_value()
    }

    /// One more reference, which is the caller's.
    ///
    /// # Safety
    ///
    /// The caller has a reference.
    ///
    /// # Panics
    ///
    /// If there are too many.
    pub unsafe fn acquire(&self) {
        // Relaxed: who has a reference has acquired what is behind it; nothing is published.
        let before = self.refs.fetch_add(1, Relaxed);
        debug_assert_ne!(before, 0, "slot {} has no reference", self.index);
        if before >= REFS_MAX {
            // Relaxed: takes back what nobody has used.
            self.refs.fetch_sub(1, Relaxed);
            too_many(self.index);
        }
    }

    /// Gives a reference up. Who gets a [`LastRef`] frees the value and vacates the slot.
    ///
    /// # Safety
    ///
    /// The caller has a reference, and uses it no more.
    #[must_use = "nobody else frees the value and the slot"]
    pub unsafe fn release(&self) -> Option<LastRef<'_>> {
        SlotRef(self).release()
    }

    /// A new reference, unless there is none.
    fn try_acquire(&self) -> Option<SlotRef<'_>> {
        if mutant!("registry-inc-from-zero") {
            self.refs.fetch_add(1, Acquire);
            return Some(SlotRef(self));
        }
        let order = if mutant!("registry-get-relaxed") { Relaxed } else { Acquire };
        // Relaxed: only compared by the exchange.
        let mut refs = self.refs.load(Relaxed);
        while refs != 0 {
            if refs >= REFS_MAX {
                too_many(self.index);
            }
            // Acquire: pairs with the release in `occupy` (rule 2).
            match self.refs.compare_exchange_weak(refs, refs + 1, order, Relaxed) {
                Ok(_) => return Some(SlotRef(self)),
                Err(now) => refs = now,
            }
        }
        None
    }

    /// By the maker, while `refs` is zero.
    fn begin_generation(&self) -> NonZeroU64 {
        let next = self.read_generation().checked_add(1).and_then(NonZeroU64::new);
        let next = next.expect("2 to the power of 64 processes take longer than the machine lives");
        let [low, high] = halves(next.get());
        // Relaxed: `occupy` publishes them. Who reads them before has a hint.
        self.generation_low.store(low, Relaxed);
        self.generation_high.store(high, Relaxed);
        next
    }

    /// The generation: exact for the maker and for holders, a hint for others.
    fn read_generation(&self) -> u64 {
        // Relaxed: holders and makers have acquired what was written, and nobody writes meanwhile;
        // for the others see rule 4.
        let [low, high] =
            [&self.generation_low, &self.generation_high].map(|half| half.load(Relaxed));
        u64::from(high) << u32::BITS | u64::from(low)
    }

    fn held_generation(&self) -> NonZeroU64 {
        NonZeroU64::new(self.read_generation()).expect("a slot in use has a generation")
    }

    /// The value, for holders and for the last.
    fn held_value(&self) -> NonNull<()> {
        let value = self.value.with(|cell| {
            // SAFETY: the caller has a reference, or had the last one, so the maker's write came
            // before and the next maker's has not come (rules 1 and 3).
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
            // Relaxed: for the eye.
            .field("refs", &self.refs.load(Relaxed))
            .finish_non_exhaustive()
    }
}

impl Reserved<'_> {
    /// The index of the process to come.
    #[must_use]
    pub fn index(&self) -> u32 {
        self.slot.index
    }

    /// The generation of the process to come.
    #[must_use]
    pub fn generation(&self) -> NonZeroU64 {
        self.generation
    }

    /// Its slot, which lives as long as the registry.
    #[must_use]
    pub fn slot(&self) -> NonNull<Slot> {
        NonNull::from(self.slot)
    }
}

impl<'r> SlotRef<'r> {
    /// The index of the process.
    #[must_use]
    pub fn index(&self) -> u32 {
        self.0.index
    }

    /// The generation of the process.
    #[must_use]
    pub fn generation(&self) -> NonZeroU64 {
        self.0.held_generation()
    }

    /// The process.
    #[must_use]
    pub fn value(&self) -> NonNull<()> {
        self.0.held_value()
    }

    /// Leaves the reference to the caller, to be released by [`Slot::release`].
    #[must_use = "the reference is still counted"]
    pub fn into_slot(self) -> &'r Slot {
        self.0
    }

    /// Gives the reference up. Who gets a [`LastRef`] frees the value and vacates the slot.
    #[must_use = "nobody else frees the value and the slot"]
    pub fn release(self) -> Option<LastRef<'r>> {
        let order = if mutant!("registry-release-relaxed") { Relaxed } else { Release };
        // Release: what this holder did with the value comes before its end.
        let before = self.0.refs.fetch_sub(1, order);
        debug_assert_ne!(before, 0, "slot {} has no reference", self.0.index);
        if before != 1 {
            return None;
        }
        // Acquire: pairs with the releases of all other holders, which this thread's own decrement
        // continues. A load and not a fence, because ThreadSanitizer does not know fences.
        self.0.refs.load(Acquire);
        Some(LastRef(self.0))
    }
}

impl LastRef<'_> {
    /// The index of the process that ended.
    #[must_use]
    pub fn index(&self) -> u32 {
        self.0.index
    }

    /// The process that ended, to be freed.
    #[must_use]
    pub fn value(&self) -> NonNull<()> {
        self.0.held_value()
    }
}

impl SlotCache {
    /// Whether one more slot of this word may be kept: the cache is empty, or of the same word.
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

impl Chunk {
    /// A chunk of free slots, or `None` if there is no memory.
    fn new(start: usize, len: usize) -> Option<Self> {
        let mut slots = Vec::new();
        slots.try_reserve_exact(len).ok()?;
        let index = |n| u32::try_from(n).expect("a capacity is less than 2^32");
        slots.extend((start..start + len).map(|n| Slot::new(index(n))));
        let n_words = len.div_ceil(WORD_LEN);
        let mut free = Vec::new();
        free.try_reserve_exact(n_words).ok()?;
        free.extend((0..n_words).map(|word| {
            let n_bits = (len - word * WORD_LEN).min(WORD_LEN);
            AtomicU32::new(u32::MAX >> (WORD_LEN - n_bits))
        }));
        Some(Self { slots: slots.into_boxed_slice(), free: free.into_boxed_slice() })
    }

    /// Takes up to `max` free slots of the first word from `from` on that has any.
    fn take(&self, from: usize, max: usize) -> Option<(usize, u32)> {
        for (word, free) in self.free.iter().enumerate().skip(from) {
            // Relaxed: only chooses which bits to ask for.
            let mut wanted = lowest(free.load(Relaxed), max);
            while wanted != 0 {
                let order = if mutant!("registry-take-relaxed") { Relaxed } else { Acquire };
                // Acquire: pairs with `give`, so that the slot's last life is over for the next
                // maker. The bits that were still set are this thread's; the others were never its
                // own.
                let before = free.fetch_and(!wanted, order);
                if before & wanted != 0 {
                    return Some((word, before & wanted));
                }
                if mutant!("registry-word-asked-once") {
                    break;
                }
                // Others were faster, but the word may have more.
                wanted = lowest(before, max);
            }
        }
        None
    }

    fn give(&self, word: usize, bits: u32) {
        // Release: pairs with `take`.
        let before = self.free[word].fetch_or(bits, Release);
        debug_assert_eq!(before & bits, 0, "a slot was given back twice");
    }
}

/// The chunk of an index, and the place in it.
#[inline]
fn locate(index: usize) -> (usize, usize) {
    let n = index + FIRST_LEN;
    let chunk = n.ilog2() - FIRST_LEN.ilog2();
    (chunk as usize, n - (FIRST_LEN << chunk))
}

/// The `max` lowest set bits.
fn lowest(bits: u32, max: usize) -> u32 {
    let mut rest = bits;
    for _ in 0..max.min(WORD_LEN) {
        if rest == 0 {
            return bits;
        }
        rest &= rest - 1;
    }
    bits & !rest
}

fn halves(generation: u64) -> [u32; 2] {
    #[expect(clippy::cast_possible_truncation, reason = "the halves are what is wanted")]
    [generation as u32, (generation >> u32::BITS) as u32]
}

#[cold]
fn too_many(index: u32) -> ! {
    panic!("the process in slot {index} has more than {REFS_MAX} references")
}
