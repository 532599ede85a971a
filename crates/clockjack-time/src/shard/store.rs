//! The store of a shard's wheel: only the holder uses values and lists, any thread uses timer
//! states.
#![expect(unsafe_code, reason = "chunks of states are shared by address and freed with the table")]

use alloc::{boxed::Box, vec::Vec};
use core::{fmt, ptr};

use clockjack_sync::{
    Arc,
    index_stack::{Links, NIL},
    primitive::{
        self,
        atomic::{AtomicPtr, Ordering},
    },
};

use super::stats::Counts;
use crate::{
    AtomicTimerState,
    timer_state::{CancelledFrom, Generation, State},
    wheel::{
        Storage,
        list::compact,
        record::TimerEntry,
        slab::{Chunks, grown_columns},
        store::{Columns, Location, OverflowEntry},
    },
};

/// Timer states that are allocated at once: few under loom, so that a model has more than one
/// chunk, and on microcontrollers, where a whole shard has some dozen.
const STATES_PER_CHUNK: usize = primitive::scaled(4, 16, 1024);

/// The atomic timer states of a shard: allocated as they are needed, never moved or freed while the
/// shard lives, so that any thread may find one by the number of its slot.
pub(super) struct TimerStates {
    chunks: Box<[AtomicPtr<AtomicTimerState>]>,
}

impl TimerStates {
    fn new(slots_max: u32) -> Self {
        let chunks = (slots_max as usize).div_ceil(STATES_PER_CHUNK);
        let chunks = (0..chunks).map(|_| AtomicPtr::new(ptr::null_mut())).collect();
        Self { chunks }
    }

    /// The state of a slot; `None` if no slot of this number was ever taken.
    #[inline(always)]
    pub(super) fn get(&self, timer: u32) -> Option<&AtomicTimerState> {
        // Acquire pairs with the release in `add_chunk`: the states are initialised.
        let chunk = self.chunks.get(timer as usize / STATES_PER_CHUNK)?.load(Ordering::Acquire);
        if chunk.is_null() {
            return None;
        }
        // SAFETY: a chunk that is not null points to `STATES_PER_CHUNK` states, and the remainder
        // is less.
        let state = unsafe { chunk.add(timer as usize % STATES_PER_CHUNK) };
        // SAFETY: the states are initialised before the chunk is published, are only ever shared,
        // and live as long as `self`, to which the result is bound.
        Some(unsafe { &*state })
    }

    /// The state of a slot that was taken.
    #[inline(always)]
    fn of(&self, timer: u32) -> &AtomicTimerState {
        self.get(timer).expect("a slot that was taken has a state")
    }

    /// Allocates the chunk that contains the state of this slot. For the holder of the lock.
    fn add_chunk(&self, timer: u32) {
        let states: Box<[AtomicTimerState]> =
            (0..STATES_PER_CHUNK).map(|_| AtomicTimerState::new()).collect();
        let states = Box::into_raw(states).cast::<AtomicTimerState>();
        // Release pairs with the acquire in `get`.
        self.chunks[timer as usize / STATES_PER_CHUNK].store(states, Ordering::Release);
    }
}

impl Drop for TimerStates {
    fn drop(&mut self) {
        for chunk in &self.chunks {
            // Relaxed: `&mut self` proves that there are no other users.
            let states = chunk.load(Ordering::Relaxed);
            if !states.is_null() {
                let states: *mut [AtomicTimerState] =
                    ptr::slice_from_raw_parts_mut(states, STATES_PER_CHUNK);
                // SAFETY: `add_chunk` made this from a box of `STATES_PER_CHUNK` states, it is
                // dropped once, and no reference into it outlives `self`.
                drop(unsafe { Box::from_raw(states) });
            }
        }
    }
}

/// The link of the last slot: [`NIL`], or the largest number that a link can hold. No slot has this
/// number.
const LAST: u32 = AtomicTimerState::LINK_MAX;

const _: () = assert!(LAST > crate::Slab::<()>::SLOTS_MAX, "a link names every slot, and none");

/// The links of the stack of cancelled slots are in the states of those slots.
impl Links for TimerStates {
    fn set_next(&self, timer: u32, next: u32) {
        self.of(timer).set_link(if next == NIL { LAST } else { next });
    }

    fn next(&self, timer: u32) -> u32 {
        let next = self.of(timer).link();
        if next == LAST { NIL } else { next }
    }
}

impl fmt::Debug for TimerStates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TimerStates")
            .field("chunks_max", &self.chunks.len())
            .finish_non_exhaustive()
    }
}

/// The store of a shard's wheel: as [`Slab`](crate::Slab), but fire and cancel are decided on
/// atomic states that other threads reach. Per timer 4 bytes and the value, 8 shared bytes, and 64
/// bytes per seven entries of a list.
pub struct ShardStore<T> {
    entries: Vec<TimerEntry<T>>,
    free: Vec<u32>,
    chunks: Chunks,
    overflow: Vec<OverflowEntry>,
    slots_max: u32,
    states: Arc<TimerStates>,
    counts: Counts,
    compact_cursor: compact::Cursor,
}

impl<T> ShardStore<T> {
    pub(super) fn new(capacity: usize) -> Self {
        let slots_max =
            u32::try_from(capacity).unwrap_or(u32::MAX).min(crate::Slab::<T>::SLOTS_MAX);
        Self {
            entries: Vec::new(),
            free: Vec::new(),
            chunks: Chunks::default(),
            overflow: Vec::new(),
            slots_max,
            states: Arc::new(TimerStates::new(slots_max)),
            counts: Counts::default(),
            compact_cursor: compact::Cursor::START,
        }
    }

    #[inline(always)]
    fn add_slot(&mut self, timer: u32) {
        if (timer as usize).is_multiple_of(STATES_PER_CHUNK) {
            self.states.add_chunk(timer);
        }
        self.entries.push(TimerEntry::VACANT);
    }

    pub(super) fn states(&self) -> &Arc<TimerStates> {
        &self.states
    }

    /// How many chunks are in lists.
    pub(crate) fn n_chunks_used(&self) -> usize {
        self.chunks.n_taken() as usize - self.chunks.free.len()
    }

    /// Where the search for chunks to merge continues.
    pub(crate) const fn compact_cursor(&mut self) -> &mut compact::Cursor {
        &mut self.compact_cursor
    }

    pub(crate) const fn counts(&self) -> &Counts {
        &self.counts
    }

    pub(crate) const fn counts_mut(&mut self) -> &mut Counts {
        &mut self.counts
    }
}

impl<T> Storage<T> for ShardStore<T> {}

impl<T> Columns<T> for ShardStore<T> {
    #[inline(always)]
    fn slots(&self) -> u32 {
        #[expect(clippy::cast_possible_truncation, reason = "at most slots_max, which is a u32")]
        let slots = self.entries.len() as u32;
        slots
    }

    #[inline(always)]
    fn give_slot(&mut self, timer: u32) {
        self.states.of(timer).release();
        self.free.push(timer);
    }

    fn close(&mut self) {
        self.free.clear();
        self.slots_max = self.slots();
    }

    fn reset(&mut self) {
        // Ids and reserved slots refer to slots by number: a shard keeps its slots.
    }

    #[inline(always)]
    fn entry(&self, timer: u32) -> Option<&TimerEntry<T>> {
        self.entries.get(timer as usize)
    }

    #[inline(always)]
    fn entry_mut(&mut self, timer: u32) -> Option<&mut TimerEntry<T>> {
        self.entries.get_mut(timer as usize)
    }

    #[inline(always)]
    fn location(&self, timer: u32) -> Location {
        self.entries[timer as usize].location()
    }

    #[inline(always)]
    fn set_location(&mut self, timer: u32, location: Location) {
        self.entries[timer as usize].set_location(location);
    }

    #[inline(always)]
    fn fill(&mut self, timer: u32, generation: Generation, location: Location, value: T) {
        self.entries[timer as usize].put(location, value);
        self.states.of(timer).arm(generation);
        self.counts.armed = self.counts.armed.wrapping_add(1);
    }

    #[inline(always)]
    fn is_armed(&self, timer: u32, generation: Generation) -> bool {
        let state = self.states.get(timer);
        state.is_some_and(|state| state.state_of(generation) == Some(State::Scheduled))
    }

    fn is_live(&self, timer: u32) -> bool {
        self.states.of(timer).state().0 == State::Scheduled
    }

    #[inline(always)]
    fn claim(&mut self, timer: u32, generation: Generation) -> Option<(Location, T)> {
        let won = self.states.get(timer)?.cancel(generation)?;
        debug_assert_eq!(won, CancelledFrom::Scheduled, "a shard decides at expiry");
        self.counts.cancelled = self.counts.cancelled.wrapping_add(1);
        self.entries[timer as usize].take()
    }

    #[inline(always)]
    fn fire(&mut self, timer: u32) -> Option<(Generation, T)> {
        let state = self.states.of(timer);
        let (State::Scheduled, Some(generation)) = state.state() else { return None };
        if !state.fire(generation) {
            return None;
        }
        let (_, value) = self.entries[timer as usize].take()?;
        self.counts.fired = self.counts.fired.wrapping_add(1);
        Some((generation, value))
    }

    fn count_dropped(&mut self) {
        self.counts.count_dropped(1);
    }

    fn rearm(&mut self, timer: u32, from: Generation, to: Generation) -> bool {
        let state = self.states.of(timer);
        let won = state.cancel(from).is_some();
        if won {
            state.release();
            state.arm(to);
            self.counts.rescheduled = self.counts.rescheduled.wrapping_add(1);
        }
        won
    }

    grown_columns!();

    fn overflow_max(&self) -> usize {
        // As many as there are slots: a timer that the inbox has accepted must find room.
        self.slots_max as usize
    }
}

impl<T> fmt::Debug for ShardStore<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ShardStore")
            .field("slots", &self.slots())
            .field("slots_max", &self.slots_max)
            .field("overflow", &self.overflow.len())
            .finish_non_exhaustive()
    }
}
