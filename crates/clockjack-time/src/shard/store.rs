//! The store of a shard's wheel: values and lists are the holder's, timer words are everybody's.
#![expect(unsafe_code, reason = "chunks of words are shared by address and freed with the table")]

use alloc::{boxed::Box, vec::Vec};
use core::{fmt, ptr};

use clockjack_sync::{
    Counted,
    counter::Striped,
    prim::{
        self,
        atomic::{AtomicPtr, Ordering},
    },
    return_stack::{Links, NIL},
};

use super::stats::Counts;
use crate::{
    TimerWord,
    wheel::{
        Storage,
        list::repack,
        record::Seat,
        slab::{Chunks, grown_columns},
        store::{Columns, Far, Place},
    },
    word::{CancelledFrom, Generation, State},
};

/// Words that are made at once: small under loom, so that a model sees more than one chunk, and on
/// microcontrollers, where a whole shard has some dozen.
const WORDS: usize = prim::scaled(4, 16, 1024);

/// The timer words of a shard: made as they are needed, never moved or freed while it lives, so
/// that any thread may look one up by the number of its slot.
pub(super) struct Words {
    chunks: Box<[AtomicPtr<TimerWord>]>,
    /// How many timers were cancelled without the lease.
    n_cancelled: Striped,
}

impl Words {
    fn new(slots_max: u32) -> Self {
        let chunks = (slots_max as usize).div_ceil(WORDS);
        let chunks = (0..chunks).map(|_| AtomicPtr::new(ptr::null_mut())).collect();
        Self { chunks, n_cancelled: Striped::new() }
    }

    /// Counts a cancel by somebody who does not hold the lease.
    #[inline]
    pub(super) fn count_cancel(&self, timer: u32) {
        // Threads that cancel at a time cancel different timers.
        self.n_cancelled.add(timer as usize, 1);
    }

    /// How many cancels were counted.
    pub(super) fn n_cancelled(&self) -> usize {
        self.n_cancelled.sum()
    }

    /// The word of a slot; `None` if no slot of this number was ever taken.
    #[inline(always)]
    pub(super) fn get(&self, timer: u32) -> Option<&TimerWord> {
        // Acquire pairs with the release in `add_chunk`: the words are initialised.
        let chunk = self.chunks.get(timer as usize / WORDS)?.load(Ordering::Acquire);
        if chunk.is_null() {
            return None;
        }
        // SAFETY: a chunk that is not null points to `WORDS` words, and the remainder is less.
        let word = unsafe { chunk.add(timer as usize % WORDS) };
        // SAFETY: the words are initialised before the chunk is published, are only ever shared,
        // and live as long as `self`, to which the result is bound.
        Some(unsafe { &*word })
    }

    /// The word of a slot that was taken.
    #[inline(always)]
    fn word(&self, timer: u32) -> &TimerWord {
        self.get(timer).expect("a slot that was taken has a word")
    }

    /// Makes the chunk that the word of this slot is in, by the holder of the lease.
    fn add_chunk(&self, timer: u32) {
        let words: Box<[TimerWord]> = (0..WORDS).map(|_| TimerWord::new()).collect();
        let words = Box::into_raw(words).cast::<TimerWord>();
        // Release pairs with the acquire in `get`.
        self.chunks[timer as usize / WORDS].store(words, Ordering::Release);
    }
}

impl Drop for Words {
    fn drop(&mut self) {
        for chunk in &self.chunks {
            // Relaxed: `&mut self` says that all other users are gone.
            let words = chunk.load(Ordering::Relaxed);
            if !words.is_null() {
                let words: *mut [TimerWord] = ptr::slice_from_raw_parts_mut(words, WORDS);
                // SAFETY: `add_chunk` made this from a box of `WORDS` words, it is dropped once,
                // and no reference into it outlives `self`.
                drop(unsafe { Box::from_raw(words) });
            }
        }
    }
}

/// The link of the last one: [`NIL`], or what a link has room for. No slot has this number.
const LAST: u32 = TimerWord::LINK_MAX;

const _: () = assert!(LAST > crate::Slab::<()>::SLOTS_MAX, "a link names every slot, and none");

/// The links of the return stack stand in the words of the slots that are on it.
impl Links for Words {
    fn set_next(&self, timer: u32, next: u32) {
        self.word(timer).set_link(if next == NIL { LAST } else { next });
    }

    fn next(&self, timer: u32) -> u32 {
        let next = self.word(timer).link();
        if next == LAST { NIL } else { next }
    }
}

impl fmt::Debug for Words {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Words").field("chunks_max", &self.chunks.len()).finish_non_exhaustive()
    }
}

/// The store of a shard's wheel: as [`Slab`](crate::Slab), but fire and cancel are decided on
/// words that other threads reach. For each timer 4 bytes and the value, 8 shared, 64 for seven
/// entries of a list.
pub struct Leased<T> {
    seats: Vec<Seat<T>>,
    free: Vec<u32>,
    chunks: Chunks,
    far: Vec<Far>,
    slots_max: u32,
    words: Counted<Words>,
    counts: Counts,
    repack_cursor: repack::Cursor,
}

impl<T> Leased<T> {
    pub(super) fn new(capacity: usize) -> Self {
        let slots_max =
            u32::try_from(capacity).unwrap_or(u32::MAX).min(crate::Slab::<T>::SLOTS_MAX);
        Self {
            seats: Vec::new(),
            free: Vec::new(),
            chunks: Chunks::default(),
            far: Vec::new(),
            slots_max,
            words: Counted::new(Words::new(slots_max)),
            counts: Counts::default(),
            repack_cursor: repack::Cursor::START,
        }
    }

    #[inline(always)]
    fn add_slot(&mut self, timer: u32) {
        if (timer as usize).is_multiple_of(WORDS) {
            self.words.add_chunk(timer);
        }
        self.seats.push(Seat::VACANT);
    }

    pub(super) fn words(&self) -> &Counted<Words> {
        &self.words
    }

    /// How many chunks are in lists.
    pub(crate) fn n_chunks_used(&self) -> usize {
        self.chunks.n_taken() as usize - self.chunks.free.len()
    }

    /// Where the search for chunks to join goes on.
    pub(crate) const fn repack_cursor(&mut self) -> &mut repack::Cursor {
        &mut self.repack_cursor
    }

    pub(crate) const fn counts(&self) -> &Counts {
        &self.counts
    }

    pub(crate) const fn counts_mut(&mut self) -> &mut Counts {
        &mut self.counts
    }
}

impl<T> Storage<T> for Leased<T> {}

impl<T> Columns<T> for Leased<T> {
    #[inline(always)]
    fn slots(&self) -> u32 {
        #[expect(clippy::cast_possible_truncation, reason = "at most slots_max, which is a u32")]
        let slots = self.seats.len() as u32;
        slots
    }

    #[inline(always)]
    fn give_slot(&mut self, timer: u32) {
        self.words.word(timer).release();
        self.free.push(timer);
    }

    fn retire(&mut self) {
        self.free.clear();
        self.slots_max = self.slots();
    }

    fn reset(&mut self) {
        // Ids and reserved slots name the slots: a shard keeps what it has.
    }

    #[inline(always)]
    fn seat(&self, timer: u32) -> Option<&Seat<T>> {
        self.seats.get(timer as usize)
    }

    #[inline(always)]
    fn seat_mut(&mut self, timer: u32) -> Option<&mut Seat<T>> {
        self.seats.get_mut(timer as usize)
    }

    #[inline(always)]
    fn place(&self, timer: u32) -> Place {
        self.seats[timer as usize].place()
    }

    #[inline(always)]
    fn set_place(&mut self, timer: u32, place: Place) {
        self.seats[timer as usize].set_place(place);
    }

    #[inline(always)]
    fn fill(&mut self, timer: u32, generation: Generation, place: Place, value: T) {
        self.seats[timer as usize].put(place, value);
        self.words.word(timer).arm(generation);
        self.counts.armed = self.counts.armed.wrapping_add(1);
    }

    #[inline(always)]
    fn is_armed(&self, timer: u32, generation: Generation) -> bool {
        let word = self.words.get(timer);
        word.is_some_and(|word| word.state_of(generation) == Some(State::Scheduled))
    }

    fn is_live(&self, timer: u32) -> bool {
        self.words.word(timer).state().0 == State::Scheduled
    }

    #[inline(always)]
    fn claim(&mut self, timer: u32, generation: Generation) -> Option<(Place, T)> {
        let won = self.words.get(timer)?.cancel(generation)?;
        debug_assert_eq!(won, CancelledFrom::Scheduled, "a shard decides at expiry");
        self.counts.cancelled = self.counts.cancelled.wrapping_add(1);
        self.seats[timer as usize].take()
    }

    #[inline(always)]
    fn fire(&mut self, timer: u32) -> Option<(Generation, T)> {
        let word = self.words.word(timer);
        let (State::Scheduled, Some(generation)) = word.state() else { return None };
        if !word.fire(generation) {
            return None;
        }
        let (_, value) = self.seats[timer as usize].take()?;
        self.counts.fired = self.counts.fired.wrapping_add(1);
        Some((generation, value))
    }

    fn count_dropped(&mut self) {
        self.counts.fired = self.counts.fired.wrapping_sub(1);
        self.counts.dropped = self.counts.dropped.wrapping_add(1);
    }

    fn rearm(&mut self, timer: u32, from: Generation, to: Generation) -> bool {
        let word = self.words.word(timer);
        let won = word.cancel(from).is_some();
        if won {
            word.release();
            word.arm(to);
            self.counts.rescheduled = self.counts.rescheduled.wrapping_add(1);
        }
        won
    }

    grown_columns!();

    fn far_max(&self) -> usize {
        // As many as there are slots: what the inbox has accepted must find room.
        self.slots_max as usize
    }
}

impl<T> fmt::Debug for Leased<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Leased")
            .field("slots", &self.slots())
            .field("slots_max", &self.slots_max)
            .field("far", &self.far.len())
            .finish_non_exhaustive()
    }
}
