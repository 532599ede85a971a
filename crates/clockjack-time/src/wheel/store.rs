//! The storage of a wheel, by columns: records of timers, chunks of list entries, the overflow.
//!
//! The trait is sealed. A store is memory with rules and has no behaviour; the wheel decides what
//! is in it. There are three stores: [`Slab`](super::Slab) grows, [`Fixed`](super::Fixed) never
//! allocates, and the shard's store shares its generations with other threads. `wheel.md` has a
//! drawing.
//!
//! Rules that the wheel keeps and relies on:
//!
//! 1. A timer's value is initialised exactly while its location is not [`Location::VACANT`]: `put`
//!    and `take` of [`TimerEntry`] keep that.
//! 2. A slot that `take_slot` returned has one user until `give_slot`; likewise for chunks.
//! 3. `claim` and `fire` succeed at most once for each `fill`, whichever thread calls them.

use super::{priority::TimerPriority, record::TimerEntry};
use crate::timer_state::Generation;

/// The location of a timer.
///
/// ```text
///   0 priority:2 cell:29         in a list: which cell of which chunk, and its priority
///   10 position:30               in the overflow: its position in the heap
///   1111..10                     in no list, until its slot is returned
///   1111..11                     none: the slot is free or reserved
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Location(u32);

impl Location {
    pub(crate) const VACANT: Self = Self(u32::MAX);
    pub(crate) const DETACHED: Self = Self(u32::MAX - 1);
    const OVERFLOW: u32 = 1 << 31;
    const CELL_BITS: u32 = 29;
    const CELL_MASK: u32 = (1 << Self::CELL_BITS) - 1;

    #[inline(always)]
    pub(crate) const fn in_list(priority_code: u32, cell: u32) -> Self {
        debug_assert!(cell <= Self::CELL_MASK, "cells are numbered by 29 bits");
        Self(priority_code << Self::CELL_BITS | cell)
    }

    #[inline(always)]
    pub(crate) const fn in_overflow(position: u32) -> Self {
        debug_assert!(position < Self::OVERFLOW >> 1, "positions are numbered by 30 bits");
        Self(Self::OVERFLOW | position)
    }

    /// The cell, if the timer is in a list.
    #[inline(always)]
    pub(crate) const fn cell(self) -> Option<u32> {
        if self.0 < Self::OVERFLOW { Some(self.0 & Self::CELL_MASK) } else { None }
    }

    /// The code of the priority, if the timer is in a list.
    #[inline(always)]
    pub(crate) const fn priority_code(self) -> u32 {
        self.0 >> Self::CELL_BITS & 3
    }

    /// The position, if the timer is in the overflow.
    #[inline(always)]
    pub(crate) const fn position(self) -> Option<u32> {
        if self.0 >> 30 == 2 { Some(self.0 & !Self::OVERFLOW) } else { None }
    }

    #[inline(always)]
    pub(crate) const fn is_vacant(self) -> bool {
        self.0 == u32::MAX
    }
}

/// An entry of a list: which timer, its priority and the low bits of its deadline. A cell that is
/// not live has no meaning.
///
/// ```text
///   63..62 priority   61..32 deadline   31..0 timer
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ListEntry(pub(crate) u64);

/// The part of a deadline that an entry keeps: enough, since the wheel's range is smaller.
pub(crate) const DUE_MASK: u64 = (1 << 30) - 1;

impl ListEntry {
    #[inline(always)]
    pub(crate) const fn new(timer: u32, priority: TimerPriority, deadline: u64) -> Self {
        Self((priority.code() as u64) << 62 | (deadline & DUE_MASK) << 32 | timer as u64)
    }

    #[inline(always)]
    #[expect(clippy::cast_possible_truncation, reason = "the low half")]
    pub(crate) const fn timer(self) -> u32 {
        self.0 as u32
    }

    /// The priority as a number below 4.
    #[inline(always)]
    pub(crate) const fn priority_code(self) -> u32 {
        (self.0 >> 62) as u32
    }

    /// The whole deadline, which is in `elapsed..elapsed + 2^30`.
    #[inline(always)]
    pub(crate) const fn ahead(self, elapsed: u64) -> u64 {
        elapsed.wrapping_add((self.0 >> 32).wrapping_sub(elapsed) & DUE_MASK)
    }

    /// The whole deadline, which is in `elapsed - 2^30 + 1..=elapsed`.
    #[inline(always)]
    pub(crate) const fn behind(self, elapsed: u64) -> u64 {
        elapsed.wrapping_sub(elapsed.wrapping_sub(self.0 >> 32) & DUE_MASK)
    }
}

/// An entry of the overflow: 24 bytes, ordered by deadline, then by registration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct OverflowEntry {
    pub(crate) deadline: u64,
    pub(crate) sequence: u64,
    pub(crate) timer: u32,
    pub(crate) priority: TimerPriority,
}

impl OverflowEntry {
    pub(crate) const NONE: Self =
        Self { deadline: 0, sequence: 0, timer: 0, priority: TimerPriority::Low };
}

const _: () = assert!(size_of::<OverflowEntry>() == 24, "an entry of the overflow costs 24 bytes");

/// Sealed: only this crate's stores implement it.
pub trait Columns<T> {
    /// log2 of the cells of a chunk; the first cell is its header, the others hold entries.
    const CHUNK_BITS: u32;

    /// How many slots were ever taken.
    fn slots(&self) -> u32;
    /// How many slots there may be.
    fn slots_max(&self) -> u32;
    /// Whether `take_slot` would find one.
    fn has_slot(&self) -> bool;
    /// Takes a slot, which is vacant.
    fn take_slot(&mut self) -> Option<u32>;
    /// Gives back a slot that is vacant.
    fn give_slot(&mut self, timer: u32);
    /// Prevents free slots from being taken.
    fn close(&mut self) {}
    /// Frees memory. Nothing is in use.
    fn reset(&mut self);

    /// The location and the value of a timer.
    fn entry(&self, timer: u32) -> Option<&TimerEntry<T>>;
    fn entry_mut(&mut self, timer: u32) -> Option<&mut TimerEntry<T>>;
    /// The location of the timer of a slot that was taken at least once.
    fn location(&self, timer: u32) -> Location;
    /// Changes the location of a timer; neither the old one nor the new one is vacant.
    fn set_location(&mut self, timer: u32, location: Location);

    /// Fills a slot and arms it under a new generation.
    fn fill(&mut self, timer: u32, generation: Generation, location: Location, value: T);
    /// Whether the slot is armed under this generation and neither fired nor cancelled.
    fn is_armed(&self, timer: u32, generation: Generation) -> bool;
    /// Whether a slot that is in a list is armed: false if another thread has cancelled it and has
    /// not returned it yet.
    fn is_live(&self, _timer: u32) -> bool {
        true
    }
    /// Cancel: decides the race for this arming and, if it is won, empties the slot.
    fn claim(&mut self, timer: u32, generation: Generation) -> Option<(Location, T)>;
    /// Expiry: decides the race for the current arming and, if it is won, empties the slot and
    /// returns which arming it was. `None` if another thread cancelled it and will return the slot.
    fn fire(&mut self, timer: u32) -> Option<(Generation, T)>;
    /// The last `fire` was not an expiry: the timer was dropped.
    fn count_dropped(&mut self) {}
    /// Changes the generation of an armed slot. False if it was cancelled meanwhile.
    fn rearm(&mut self, timer: u32, from: Generation, to: Generation) -> bool;

    /// Takes a chunk, whose cells have no meaning yet. There is always one: no list keeps a chunk
    /// without an entry, and there are as many chunks as slots.
    fn take_chunk(&mut self) -> u32;
    /// Gives back a chunk that has no entry.
    fn give_chunk(&mut self, chunk: u32);
    /// How many chunks were ever taken.
    fn chunks(&self) -> u32;
    /// The cells of a chunk: its header and its entries.
    fn chunk(&self, chunk: u32) -> &[u64];
    fn chunk_mut(&mut self, chunk: u32) -> &mut [u64];
    /// Which entries of a chunk are live, one bit each; 0 if the chunk is not in use. Stored apart
    /// from the cells, and so densely that a cancel finds it without a cache miss.
    fn live(&self, chunk: u32) -> u8;
    fn live_mut(&mut self, chunk: u32) -> &mut u8;

    /// A hint that `fire`, `claim`, `fill` or `set_location` follows for this timer. Any number is
    /// allowed.
    fn prefetch_timer(&self, _timer: u32) {}

    /// The overflow's entries.
    fn overflow(&self) -> &[OverflowEntry];
    fn overflow_mut(&mut self) -> &mut [OverflowEntry];
    /// How many entries the overflow may hold.
    fn overflow_max(&self) -> usize;
    /// Appends an entry. False if there is no room.
    fn overflow_push(&mut self, entry: OverflowEntry) -> bool;
    /// Removes the last entry.
    fn overflow_pop(&mut self) -> Option<OverflowEntry>;
}
