//! The inbox: a bounded ring by which other threads arm timers, each cell stocked with a slot.
//!
//! A poster must know the id of its timer at once, but slots are the holder's to give. So the
//! holder puts a reserved slot into every cell that is free; who claims the cell gets the slot.
//!
//! ```text
//!   sequence of a cell          meaning                                      who may touch the cell
//!   position                stocked and free                             the poster that claims it
//!   position + 1            filled                                       the holder
//!   anything older          emptied and not stocked yet                  the holder
//!
//!   tail                    31..1 the position that is claimed next      0 closed
//! ```
//!
//! Positions are even numbers that count up for ever and wrap; they take the cells in sequence. A
//! poster claims a position by a compare-exchange of `tail`, having seen the cell stocked for it
//! (as in Dmitry Vyukov's bounded queue). The holder empties cells in order and stops at one that
//! is claimed and not filled yet: it will be filled, and then `next_wake` tells when to look again.
//!
//! Whether the inbox is closed stands in the same word as what was claimed. So every claim comes
//! before the close or is refused, and who closes learns which claims came before.
#![expect(unsafe_code, reason = "cells are handed over by their sequence")]

use alloc::boxed::Box;
use core::mem::MaybeUninit;

use clockjack_sync::{
    mutant,
    pad::Padded,
    primitive::{
        UnsafeCell,
        atomic::{AtomicU32, Ordering},
    },
};

use crate::{Full, timer_state::Generation};

/// From one position to the next; the bit below tells filled from stocked, and in `tail` whether
/// the inbox is closed.
const STEP: u32 = 2;
/// In `tail`: nothing can be claimed any more.
const CLOSED: u32 = 1;

/// A slot that waits in a cell for whoever posts next.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reserved {
    pub(super) timer: u32,
    pub(super) generation: Generation,
}

/// A timer on its way from a poster to the wheel.
pub(super) struct RemoteInsert<T> {
    pub(super) reserved: Reserved,
    pub(super) deadline: u64,
    pub(super) value: T,
}

struct Cell<T> {
    sequence: AtomicU32,
    data: UnsafeCell<CellData<T>>,
}

struct CellData<T> {
    reserved: Reserved,
    deadline: u64,
    /// Initialised exactly while the cell is filled.
    value: MaybeUninit<T>,
}

/// The part that all threads share.
pub(super) struct Inbox<T> {
    cells: Box<[Cell<T>]>,
    /// The position that the next poster claims, and [`CLOSED`].
    tail: Padded<AtomicU32>,
}

/// The holder's part: what it has emptied and what it has stocked.
#[derive(Debug, Default)]
pub(super) struct Cursor {
    /// The position that is emptied next.
    head: u32,
    /// The position that is stocked next: at most a capacity ahead of `head`.
    reserved: u32,
}

// SAFETY: a cell's body is touched only by the one thread that its sequence allows: the poster that
// claimed its position, or the holder of the lease. Values move between threads, so `T: Send`.
unsafe impl<T: Send> Sync for Inbox<T> {}

impl<T> Inbox<T> {
    /// An inbox of `capacity` cells, a power of two, none of them stocked.
    pub(super) fn new(capacity: u32) -> Self {
        assert!(capacity.is_power_of_two(), "the capacity {capacity} is not a power of two");
        let cells = (0..capacity).map(|index| Cell {
            // Older than what the position asks for: not stocked.
            sequence: AtomicU32::new((STEP * index).wrapping_sub(1)),
            data: UnsafeCell::new(CellData {
                reserved: Reserved { timer: 0, generation: Generation::FIRST },
                deadline: 0,
                value: MaybeUninit::uninit(),
            }),
        });
        Self { cells: cells.collect(), tail: Padded(AtomicU32::new(0)) }
    }

    fn cell(&self, position: u32) -> &Cell<T> {
        let mask = self.cells.len() - 1;
        &self.cells[(position / STEP) as usize & mask]
    }

    /// Claims a cell, fills it, lets `arm` arm its slot, and publishes it. `Err` gives the value
    /// back if no cell is free or the inbox is closed.
    pub(super) fn push(
        &self,
        deadline: u64,
        value: T,
        arm: impl FnOnce(Reserved),
    ) -> Result<Reserved, Full<T>> {
        // Relaxed: the exchange below decides.
        let mut position = self.tail.load(Ordering::Relaxed);
        let cell = loop {
            if position & CLOSED != 0 {
                return Err(Full::closed(value));
            }
            let cell = self.cell(position);
            // Acquire pairs with the release in `add_reserved`: the reserved slot is there.
            let sequence = cell.sequence.load(Ordering::Acquire);
            if sequence != position {
                // Relaxed: only whether somebody else moved on is asked.
                let now = self.tail.load(Ordering::Relaxed);
                if now == position {
                    return Err(Full::busy(value));
                }
                position = now;
                continue;
            }
            // Relaxed: claims the position only; the cell was acquired by its sequence, and is
            // published by it.
            match self.tail.compare_exchange_weak(
                position,
                position.wrapping_add(STEP),
                Ordering::Relaxed,
                Ordering::Relaxed,
            ) {
                Ok(_) => break cell,
                Err(now) => position = now,
            }
        };
        let reserved = cell.data.with_mut(|data| {
            // SAFETY: the sequence said that the cell is stocked for this position, and this thread
            // has claimed the position: nobody else touches the body until it is published.
            let data = unsafe { &mut *data };
            data.deadline = deadline;
            data.value = MaybeUninit::new(value);
            data.reserved
        });
        arm(reserved);
        let publish =
            if mutant!("inbox_publish_relaxed") { Ordering::Relaxed } else { Ordering::Release };
        // Release pairs with the acquire in `pop`: body and armed word are there.
        cell.sequence.store(position.wrapping_add(1), publish);
        Ok(reserved)
    }

    /// Refuses all claims from now on, and says the position up to which there were some.
    pub(super) fn close(&self) -> u32 {
        if mutant!("inbox_close_by_store") {
            let tail = self.tail.load(Ordering::Acquire);
            self.tail.store(tail | CLOSED, Ordering::Release);
            return tail & !CLOSED;
        }
        // AcqRel: what the closer did before is seen by who is refused, as by who takes the lease
        // after it. Nothing else is published: cells are, by their turns.
        self.tail.fetch_or(CLOSED, Ordering::AcqRel) & !CLOSED
    }

    /// Whether nothing can be claimed any more.
    pub(super) fn is_closed(&self) -> bool {
        // Acquire pairs with the release in `close`.
        self.tail.load(Ordering::Acquire) & CLOSED != 0
    }

    /// Whether the holder of the lease has emptied all cells up to this position.
    pub(super) fn is_emptied(cursor: &Cursor, position: u32) -> bool {
        cursor.head == position
    }

    /// Whether the next cell in order is filled.
    #[inline(always)]
    pub(super) fn has_next(&self, cursor: &Cursor) -> bool {
        // Relaxed: a look. `pop` acquires; rule 7's fence orders this load where it matters.
        self.cell(cursor.head).sequence.load(Ordering::Relaxed) == cursor.head.wrapping_add(1)
    }

    /// Whether a poster has claimed a cell that the holder has not emptied: either there is mail,
    /// or somebody is about to fill a cell, behind which there may be mail. Also if the inbox is
    /// closed, so that who arms asks one question in the common case.
    #[inline(always)]
    pub(super) fn has_pending(&self, cursor: &Cursor) -> bool {
        // Relaxed: as in `has_next`. What this thread itself has posted it sees in any case.
        self.tail.load(Ordering::Relaxed) != cursor.head
    }

    /// The earliest deadline in filled cells, also behind one that is not filled yet, by the holder
    /// of the lease.
    pub(super) fn earliest(&self, cursor: &Cursor) -> Option<u64> {
        let waiting = self.tail.load(Ordering::Relaxed).wrapping_sub(cursor.head) / STEP;
        let positions = (0..waiting).map(|ahead| cursor.head.wrapping_add(STEP * ahead));
        positions.filter_map(|position| self.peek(position)).min()
    }

    /// The deadline in the cell of a position, if it is filled.
    fn peek(&self, position: u32) -> Option<u64> {
        let cell = self.cell(position);
        // Acquire pairs with the release in `push`.
        if cell.sequence.load(Ordering::Acquire) != position.wrapping_add(1) {
            return None;
        }
        // SAFETY: the sequence said that the cell is filled, so it is the holder's, which calls this.
        Some(cell.data.with(|data| unsafe { (*data).deadline }))
    }

    /// Takes the next timer out, by the holder of the lease.
    pub(super) fn pop(&self, cursor: &mut Cursor) -> Option<RemoteInsert<T>> {
        let cell = self.cell(cursor.head);
        // Acquire pairs with the release in `push`.
        if cell.sequence.load(Ordering::Acquire) != cursor.head.wrapping_add(1) {
            return None;
        }
        cursor.head = cursor.head.wrapping_add(STEP);
        Some(cell.data.with(|data| {
            // SAFETY: the sequence said that the cell is filled, so it is the holder's, and there is
            // one holder (rule 1), which calls this.
            let data = unsafe { &*data };
            // SAFETY: a filled cell has a value, and the head has moved on, so that it is read
            // once.
            let value = unsafe { data.value.assume_init_read() };
            RemoteInsert { reserved: data.reserved, deadline: data.deadline, value }
        }))
    }

    /// How many cells wait for a slot, by the holder of the lease.
    #[inline(always)]
    pub(super) fn n_unreserved(&self, cursor: &Cursor) -> u32 {
        #[expect(clippy::cast_possible_truncation, reason = "made from a u32")]
        let capacity = self.cells.len() as u32;
        cursor.head.wrapping_add(STEP * capacity).wrapping_sub(cursor.reserved) / STEP
    }

    /// Puts a slot into the next cell that has none, by the holder of the lease.
    pub(super) fn add_reserved(&self, cursor: &mut Cursor, reserved: Reserved) {
        debug_assert!(self.n_unreserved(cursor) > 0, "every cell has a slot");
        let cell = self.cell(cursor.reserved);
        cell.data.with_mut(|data| {
            // SAFETY: the cell was emptied and not stocked since, so that its sequence allows no
            // poster in: it is the holder's, which calls this.
            let data = unsafe { &mut *data };
            data.reserved = reserved;
        });
        // Release pairs with the acquire in `push`: the slot is there.
        cell.sequence.store(cursor.reserved, Ordering::Release);
        cursor.reserved = cursor.reserved.wrapping_add(STEP);
    }
}
