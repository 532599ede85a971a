//! What the wheel keeps its timers in: records of timers, chunks of list entries, the overflow.
//!
//! The trait is sealed. A store is memory with rules, not a place for behaviour; the wheel decides
//! what stands in it. Three stores exist: [`Slab`](super::Slab) grows, [`Fixed`](super::Fixed)
//! lives wherever its owner puts it and never allocates, and the shard's store shares its
//! generations with other threads.
//!
//! Rules that the wheel keeps and relies on:
//!
//! 1. A timer's value is initialised exactly while its place is not [`Location::VACANT`]: `put` and
//!    `take` of [`TimerEntry`] keep that.
//! 2. A slot taken by `take_slot` is nobody else's until `give_slot`; likewise for chunks.
//! 3. `claim` and `fire` succeed at most once for each `fill`, whoever calls them.

use super::{priority::TimerPriority, record::TimerEntry};
use crate::timer_state::Generation;

/// Where a timer is.
///
/// ```text
///   0 class:2 cell:29            in a list: which cell of which chunk, and as what it counts
///   10 position:30               in the overflow: where in its heap
///   1111..10                     in no list, until its slot is returned
///   1111..11                     nowhere: the slot is free or reserved
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

    /// The code of the class, if the timer is in a list.
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

/// An entry of a list: which timer, its class and the low bits of its deadline. What a cell holds
/// that is not live means nothing.
///
/// ```text
///   63..62 class   61..32 deadline   31..0 timer
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ListEntry(pub(crate) u64);

/// The part of a deadline that an entry keeps: enough, since what is in the wheel is near.
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

    /// The class as a number below 4.
    #[inline(always)]
    pub(crate) const fn priority_code(self) -> u32 {
        (self.0 >> 62) as u32
    }

    /// The whole deadline, which lies in `elapsed..elapsed + 2^30`.
    #[inline(always)]
    pub(crate) const fn ahead(self, elapsed: u64) -> u64 {
        elapsed.wrapping_add((self.0 >> 32).wrapping_sub(elapsed) & DUE_MASK)
    }

    /// The whole deadline, which lies in `elapsed - 2^30 + 1..=elapsed`.
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

/// Sealed: only this crate's stores have it.
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
    /// Gives a slot back that is vacant.
    fn give_slot(&mut self, timer: u32);
    /// Lets no free slot be taken any more.
    fn close(&mut self) {}
    /// Gives memory back. Nothing is in use.
    fn reset(&mut self);

    /// Where a timer is and its value.
    fn entry(&self, timer: u32) -> Option<&TimerEntry<T>>;
    fn entry_mut(&mut self, timer: u32) -> Option<&mut TimerEntry<T>>;
    /// Where the timer of a slot is that was taken once.
    fn location(&self, timer: u32) -> Location;
    /// Moves a timer that is not vacant to a place that is not vacant either.
    fn set_location(&mut self, timer: u32, location: Location);

    /// Fills a slot and arms it under a new generation.
    fn fill(&mut self, timer: u32, generation: Generation, location: Location, value: T);
    /// Whether the slot is armed under this generation and neither fired nor cancelled.
    fn is_armed(&self, timer: u32, generation: Generation) -> bool;
    /// Whether a slot that is in a list is armed: not so if another thread has cancelled it and it
    /// was not returned yet.
    fn is_live(&self, _timer: u32) -> bool {
        true
    }
    /// Cancel: decides the race for this arming and, if it is won, empties the slot.
    fn claim(&mut self, timer: u32, generation: Generation) -> Option<(Location, T)>;
    /// Expiry: decides the race for the present arming and, if it is won, empties the slot and
    /// says which arming it was. `None` if somebody cancelled it and will return the slot by
    /// another way.
    fn fire(&mut self, timer: u32) -> Option<(Generation, T)>;
    /// The last `fire` was no expiry: the timer was given up.
    fn count_dropped(&mut self) {}
    /// Changes the generation of an armed slot. If false, it was cancelled meanwhile.
    fn rearm(&mut self, timer: u32, from: Generation, to: Generation) -> bool;

    /// Takes a chunk, whose cells say nothing. There is always one: no list keeps a chunk without
    /// an entry, and there are as many chunks as slots.
    fn take_chunk(&mut self) -> u32;
    /// Gives a chunk back that has no entry.
    fn give_chunk(&mut self, chunk: u32);
    /// How many chunks were ever taken.
    fn chunks(&self) -> u32;
    /// The cells of a chunk: its header and its entries.
    fn chunk(&self, chunk: u32) -> &[u64];
    fn chunk_mut(&mut self, chunk: u32) -> &mut [u64];
    /// Which entries of a chunk are live, bit by bit; 0 if it is not in use. Kept apart from the
    /// cells, and so close together that a cancel finds it without a cache miss.
    fn live(&self, chunk: u32) -> u8;
    fn live_mut(&mut self, chunk: u32) -> &mut u8;

    /// The overflow's entries.
    fn overflow(&self) -> &[OverflowEntry];
    fn overflow_mut(&mut self) -> &mut [OverflowEntry];
    /// How many entries the overflow may hold.
    fn overflow_max(&self) -> usize;
    /// Appends an entry. False if there is no room.
    fn overflow_push(&mut self, entry: OverflowEntry) -> bool;
    /// Takes the last entry away.
    fn overflow_pop(&mut self) -> Option<OverflowEntry>;
}
