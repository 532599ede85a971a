//! The inbox: a bounded ring by which other threads arm timers, each cell stocked with a slot.
//!
//! A poster must know the id of its timer at once, but slots are the holder's to give. So the
//! holder puts a reserved slot into every cell that is free; who claims the cell gets the slot.
//!
//! ```text
//!   turn of cell i          meaning                                      who may touch the cell
//!   position                stocked and free                             the poster that claims it
//!   position + 1            filled                                       the holder
//!   anything older          emptied and not stocked yet                  the holder
//! ```
//!
//! Positions count up for ever and wrap; cell `position % capacity` serves a position. A poster
//! claims a position by a compare-exchange of `tail`, having seen the cell stocked for it (as in
//! Dmitry Vyukov's bounded queue). The holder empties cells in order and stops at one that is
//! claimed and not filled yet: it will be filled, and then `next_wake` tells when to look again.
#![expect(unsafe_code, reason = "cells are handed over by their turn")]

use alloc::boxed::Box;
use core::mem::MaybeUninit;

use clockjack_sync::{
    mutant,
    pad::Padded,
    prim::{
        UnsafeCell,
        atomic::{AtomicU32, Ordering},
    },
};

use crate::word::Generation;

/// A slot that waits in a cell for whoever posts next.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reserved {
    pub(super) timer: u32,
    pub(super) generation: Generation,
}

/// A timer on its way from a poster to the wheel.
pub(super) struct Posted<T> {
    pub(super) reserved: Reserved,
    pub(super) deadline: u64,
    pub(super) value: T,
}

struct Cell<T> {
    turn: AtomicU32,
    body: UnsafeCell<Body<T>>,
}

struct Body<T> {
    reserved: Reserved,
    deadline: u64,
    /// Initialised exactly while the cell is filled.
    value: MaybeUninit<T>,
}

/// The part that all threads share.
pub(super) struct Inbox<T> {
    cells: Box<[Cell<T>]>,
    /// The position that the next poster claims.
    tail: Padded<AtomicU32>,
}

/// The holder's part: what it has emptied and what it has stocked.
#[derive(Debug, Default)]
pub(super) struct Cursor {
    /// The position that is emptied next.
    head: u32,
    /// The position that is stocked next: at most a capacity ahead of `head`.
    stocked: u32,
}

// SAFETY: a cell's body is touched only by the one thread that its turn allows: the poster that
// claimed its position, or the holder of the lease. Values move between threads, so `T: Send`.
unsafe impl<T: Send> Sync for Inbox<T> {}

impl<T> Inbox<T> {
    /// An inbox of `capacity` cells, a power of two, none of them stocked.
    pub(super) fn new(capacity: u32) -> Self {
        assert!(capacity.is_power_of_two(), "the capacity {capacity} is not a power of two");
        // With one cell, "filled" would be the next position's "stocked".
        assert!(capacity > 1, "an inbox has at least two cells");
        let cells = (0..capacity).map(|position| Cell {
            // Older than what the position asks for: not stocked.
            turn: AtomicU32::new(position.wrapping_sub(1)),
            body: UnsafeCell::new(Body {
                reserved: Reserved { timer: 0, generation: Generation::FIRST },
                deadline: 0,
                value: MaybeUninit::uninit(),
            }),
        });
        Self { cells: cells.collect(), tail: Padded(AtomicU32::new(0)) }
    }

    fn cell(&self, position: u32) -> &Cell<T> {
        let mask = self.cells.len() - 1;
        &self.cells[position as usize & mask]
    }

    /// Claims a cell, fills it, lets `arm` arm its slot, and publishes it. `Err` gives the value
    /// back if no cell is free.
    pub(super) fn push(
        &self,
        deadline: u64,
        value: T,
        arm: impl FnOnce(Reserved),
    ) -> Result<Reserved, T> {
        // Relaxed: the exchange below decides.
        let mut position = self.tail.load(Ordering::Relaxed);
        let cell = loop {
            let cell = self.cell(position);
            // Acquire pairs with the release in `stock`: the reserved slot is there.
            let turn = cell.turn.load(Ordering::Acquire);
            if turn != position {
                // Relaxed: only whether somebody else moved on is asked.
                let now = self.tail.load(Ordering::Relaxed);
                if now == position {
                    return Err(value);
                }
                position = now;
                continue;
            }
            // Relaxed: claims the position only; the cell was acquired by its turn, and is
            // published by it.
            match self.tail.compare_exchange_weak(
                position,
                position.wrapping_add(1),
                Ordering::Relaxed,
                Ordering::Relaxed,
            ) {
                Ok(_) => break cell,
                Err(now) => position = now,
            }
        };
        let reserved = cell.body.with_mut(|body| {
            // SAFETY: the turn said that the cell is stocked for this position, and this thread
            // has claimed the position: nobody else touches the body until it is published.
            let body = unsafe { &mut *body };
            body.deadline = deadline;
            body.value = MaybeUninit::new(value);
            body.reserved
        });
        arm(reserved);
        let publish =
            if mutant!("inbox_publish_relaxed") { Ordering::Relaxed } else { Ordering::Release };
        // Release pairs with the acquire in `pop`: body and armed word are there.
        cell.turn.store(position.wrapping_add(1), publish);
        Ok(reserved)
    }

    /// Whether the next cell in order is filled.
    #[inline(always)]
    pub(super) fn has_mail(&self, cursor: &Cursor) -> bool {
        // Relaxed: a look. `pop` acquires; rule 7's fence orders this load where it matters.
        self.cell(cursor.head).turn.load(Ordering::Relaxed) == cursor.head.wrapping_add(1)
    }

    /// Whether a poster has claimed a cell that the holder has not emptied: either there is mail,
    /// or somebody is about to fill a cell, behind which there may be mail.
    #[inline(always)]
    pub(super) fn is_busy(&self, cursor: &Cursor) -> bool {
        // Relaxed: as in `has_mail`. What this thread itself has posted it sees in any case.
        self.tail.load(Ordering::Relaxed) != cursor.head
    }

    /// The earliest deadline in filled cells, also behind one that is not filled yet, by the holder
    /// of the lease.
    pub(super) fn earliest(&self, cursor: &Cursor) -> Option<u64> {
        let waiting = self.tail.load(Ordering::Relaxed).wrapping_sub(cursor.head);
        let positions = (0..waiting).map(|ahead| cursor.head.wrapping_add(ahead));
        positions.filter_map(|position| self.peek(position)).min()
    }

    /// The deadline in the cell of a position, if it is filled.
    fn peek(&self, position: u32) -> Option<u64> {
        let cell = self.cell(position);
        // Acquire pairs with the release in `push`.
        if cell.turn.load(Ordering::Acquire) != position.wrapping_add(1) {
            return None;
        }
        // SAFETY: the turn said that the cell is filled, so it is the holder's, which calls this.
        Some(cell.body.with(|body| unsafe { (*body).deadline }))
    }

    /// Takes the next timer out, by the holder of the lease.
    pub(super) fn pop(&self, cursor: &mut Cursor) -> Option<Posted<T>> {
        let cell = self.cell(cursor.head);
        // Acquire pairs with the release in `push`.
        if cell.turn.load(Ordering::Acquire) != cursor.head.wrapping_add(1) {
            return None;
        }
        cursor.head = cursor.head.wrapping_add(1);
        Some(cell.body.with(|body| {
            // SAFETY: the turn said that the cell is filled, so it is the holder's, and there is
            // one holder (rule 1), which calls this.
            let body = unsafe { &*body };
            // SAFETY: a filled cell has a value, and the head has moved on, so that it is read
            // once.
            let value = unsafe { body.value.assume_init_read() };
            Posted { reserved: body.reserved, deadline: body.deadline, value }
        }))
    }

    /// How many cells wait for a slot, by the holder of the lease.
    #[inline(always)]
    pub(super) fn unstocked(&self, cursor: &Cursor) -> u32 {
        #[expect(clippy::cast_possible_truncation, reason = "made from a u32")]
        let capacity = self.cells.len() as u32;
        cursor.head.wrapping_add(capacity).wrapping_sub(cursor.stocked)
    }

    /// Puts a slot into the next cell that has none, by the holder of the lease.
    pub(super) fn stock(&self, cursor: &mut Cursor, reserved: Reserved) {
        debug_assert!(self.unstocked(cursor) > 0, "every cell has a slot");
        let cell = self.cell(cursor.stocked);
        cell.body.with_mut(|body| {
            // SAFETY: the cell was emptied and not stocked since, so that its turn allows no
            // poster in: it is the holder's, which calls this.
            let body = unsafe { &mut *body };
            body.reserved = reserved;
        });
        // Release pairs with the acquire in `push`: the slot is there.
        cell.turn.store(cursor.stocked, Ordering::Release);
        cursor.stocked = cursor.stocked.wrapping_add(1);
    }
}
