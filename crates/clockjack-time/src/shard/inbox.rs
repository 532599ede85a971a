//! The inbox: a bounded ring by which other threads arm timers; each free cell holds a reserved
//! slot.
//!
//! It is Dmitry Vyukov's bounded queue with one consumer. A remote inserter must know the id of its
//! timer at once, but only the holder of the lock can take slots from the wheel. So the holder puts
//! a reserved slot into every free cell; the inserter that claims the cell gets the slot.
//!
//! ```text
//!   sequence of a cell      meaning                                   who may touch the cell
//!   position                free, with a reserved slot                the inserter that claims it
//!   position + 1            filled                                    the holder
//!   anything older          emptied, without a reserved slot yet      the holder
//!
//!   tail                    the position that is claimed next; bit 0: closed
//! ```
//!
//! Positions are even numbers that count up for ever; they use the cells round robin. They are as
//! wide as an address: on 64-bit targets none occurs twice. On 32-bit targets they wrap after 2³¹
//! inserts. That does harm only if an inserter is suspended between its look at a cell and its
//! claim, for exactly that many inserts of other threads: it might then fill a cell that the holder
//! still owns. An
//! inserter that has seen a reserved slot in the cell of a position claims the position by a
//! compare-exchange of `tail`. The holder empties cells in order and stops at a cell that is
//! claimed and not filled yet: its inserter will fill it, and then `next_wake` says when to poll
//! again.
//!
//! The closed bit is in the same word as the next position. So every claim comes before the close
//! or is refused, and the closer learns which claims came before.
#![expect(unsafe_code, reason = "the sequence of a cell says which thread owns it")]

use alloc::boxed::Box;
use core::mem::MaybeUninit;

use clockjack_sync::{
    pad::Padded,
    primitive::{
        UnsafeCell,
        atomic::{AtomicUsize, Ordering},
    },
};

use crate::{InsertError, timer_state::Generation};

/// From one position to the next; the bit below tells a filled cell from a free one, and in `tail`
/// whether the inbox is closed.
const STEP: usize = 2;
/// In `tail`: no position can be claimed any more.
const CLOSED: usize = 1;

/// A slot that waits in a cell for the next inserter.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reserved {
    pub(super) timer: u32,
    pub(super) generation: Generation,
}

/// A timer on its way from a remote inserter to the wheel.
pub(super) struct RemoteInsert<T> {
    pub(super) reserved: Reserved,
    pub(super) deadline: u64,
    pub(super) value: T,
}

struct Cell<T> {
    sequence: AtomicUsize,
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
    /// The position that the next inserter claims, and [`CLOSED`].
    tail: Padded<AtomicUsize>,
}

/// The holder's part: which cells it has emptied and which it has given a reserved slot.
#[derive(Debug, Default)]
pub(super) struct Cursor {
    /// The position that is emptied next.
    head: usize,
    /// The position that gets a reserved slot next: at most a capacity ahead of `head`.
    reserved: usize,
}

// SAFETY: only the one thread that the sequence of a cell allows touches its data: the inserter
// that claimed its position, or the holder of the lock. Values move between threads, so `T: Send`.
unsafe impl<T: Send> Sync for Inbox<T> {}

impl<T> Inbox<T> {
    /// An inbox of `capacity` cells, a power of two, none of them with a reserved slot.
    pub(super) fn new(capacity: usize) -> Self {
        assert!(capacity.is_power_of_two(), "the capacity {capacity} is not a power of two");
        let cells = (0..capacity).map(|index| Cell {
            // Older than the position requires: no reserved slot yet.
            sequence: AtomicUsize::new((STEP * index).wrapping_sub(1)),
            data: UnsafeCell::new(CellData {
                reserved: Reserved { timer: 0, generation: Generation::FIRST },
                deadline: 0,
                value: MaybeUninit::uninit(),
            }),
        });
        Self { cells: cells.collect(), tail: Padded(AtomicUsize::new(0)) }
    }

    fn cell(&self, position: usize) -> &Cell<T> {
        let mask = self.cells.len() - 1;
        &self.cells[(position / STEP) & mask]
    }

    /// Claims a cell, fills it, lets `arm` arm its slot, and publishes it. `Err` returns the value
    /// if no cell is free or the inbox is closed.
    pub(super) fn push(
        &self,
        deadline: u64,
        value: T,
        arm: impl FnOnce(Reserved),
    ) -> Result<Reserved, InsertError<T>> {
        // Relaxed: the exchange below decides.
        let mut position = self.tail.load(Ordering::Relaxed);
        let cell = loop {
            if position & CLOSED != 0 {
                return Err(InsertError::closed(value));
            }
            let cell = self.cell(position);
            // Acquire pairs with the release in `add_reserved`: the reserved slot is visible.
            let sequence = cell.sequence.load(Ordering::Acquire);
            if sequence != position {
                // Relaxed: only tells whether another inserter was faster.
                let now = self.tail.load(Ordering::Relaxed);
                if now == position {
                    return Err(InsertError::busy(value));
                }
                position = now;
                continue;
            }
            // Relaxed: only claims the position; the load of the sequence acquired the cell, and
            // the store of the sequence publishes it.
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
            // SAFETY: by its sequence the cell has a reserved slot for this position, and this
            // thread has claimed the position: no other thread touches the data until it is
            // published.
            let data = unsafe { &mut *data };
            data.deadline = deadline;
            data.value = MaybeUninit::new(value);
            data.reserved
        });
        arm(reserved);
        // Release pairs with the acquire in `pop`: the data and the armed state are visible.
        cell.sequence.store(position.wrapping_add(1), Ordering::Release);
        Ok(reserved)
    }

    /// Refuses all claims from now on, and returns the position up to which there were claims.
    pub(super) fn close(&self) -> usize {
        // AcqRel: an inserter that is refused sees what the closer did before, as does the next
        // holder of the lock. Nothing else is published: the sequences publish the cells.
        self.tail.fetch_or(CLOSED, Ordering::AcqRel) & !CLOSED
    }

    /// Whether no position can be claimed any more.
    pub(super) fn is_closed(&self) -> bool {
        // Acquire pairs with the release in `close`.
        self.tail.load(Ordering::Acquire) & CLOSED != 0
    }

    /// Whether the holder of the lock has emptied all cells up to this position.
    pub(super) fn is_emptied(cursor: &Cursor, position: usize) -> bool {
        cursor.head == position
    }

    /// Whether the next cell in order is filled.
    #[inline(always)]
    pub(super) fn has_next(&self, cursor: &Cursor) -> bool {
        // Relaxed: a hint. `pop` acquires; rule 7's fence orders this load where it matters.
        self.cell(cursor.head).sequence.load(Ordering::Relaxed) == cursor.head.wrapping_add(1)
    }

    /// Whether an inserter has claimed a cell that the holder has not emptied: either the next cell
    /// is filled, or an inserter is about to fill it, and cells behind it may be filled. Also true
    /// if the inbox is closed, so that a holder that arms checks one condition in the common case.
    #[inline(always)]
    pub(super) fn has_pending(&self, cursor: &Cursor) -> bool {
        // Relaxed: as in `has_next`. A thread sees its own inserts in any case.
        self.tail.load(Ordering::Relaxed) != cursor.head
    }

    /// The earliest deadline in filled cells, also behind one that is not filled yet. For the
    /// holder of the lock.
    pub(super) fn earliest(&self, cursor: &Cursor) -> Option<u64> {
        let waiting = self.tail.load(Ordering::Relaxed).wrapping_sub(cursor.head) / STEP;
        let positions = (0..waiting).map(|ahead| cursor.head.wrapping_add(STEP * ahead));
        positions.filter_map(|position| self.peek(position)).min()
    }

    /// The deadline in the cell of a position, if it is filled.
    fn peek(&self, position: usize) -> Option<u64> {
        let cell = self.cell(position);
        // Acquire pairs with the release in `push`.
        if cell.sequence.load(Ordering::Acquire) != position.wrapping_add(1) {
            return None;
        }
        // SAFETY: by its sequence the cell is filled, so it belongs to the holder, which calls
        // this.
        Some(cell.data.with(|data| unsafe { (*data).deadline }))
    }

    /// Takes the next timer out. For the holder of the lock.
    pub(super) fn pop(&self, cursor: &mut Cursor) -> Option<RemoteInsert<T>> {
        let cell = self.cell(cursor.head);
        // Acquire pairs with the release in `push`.
        if cell.sequence.load(Ordering::Acquire) != cursor.head.wrapping_add(1) {
            return None;
        }
        cursor.head = cursor.head.wrapping_add(STEP);
        Some(cell.data.with(|data| {
            // SAFETY: by its sequence the cell is filled, so it belongs to the holder, and there is
            // one holder (rule 1), which calls this.
            let data = unsafe { &*data };
            // SAFETY: a filled cell has a value, and the head has advanced, so that it is read
            // once.
            let value = unsafe { data.value.assume_init_read() };
            RemoteInsert { reserved: data.reserved, deadline: data.deadline, value }
        }))
    }

    /// How many cells have no reserved slot. For the holder of the lock.
    #[inline(always)]
    pub(super) fn n_unreserved(&self, cursor: &Cursor) -> usize {
        let capacity = self.cells.len();
        cursor.head.wrapping_add(STEP * capacity).wrapping_sub(cursor.reserved) / STEP
    }

    /// Puts a slot into the next cell that has none. For the holder of the lock.
    pub(super) fn add_reserved(&self, cursor: &mut Cursor, reserved: Reserved) {
        debug_assert!(self.n_unreserved(cursor) > 0, "every cell has a slot");
        let cell = self.cell(cursor.reserved);
        cell.data.with_mut(|data| {
            // SAFETY: the cell was emptied and has got no slot since, so its sequence admits no
            // inserter: it belongs to the holder, which calls this.
            let data = unsafe { &mut *data };
            data.reserved = reserved;
        });
        // Release pairs with the acquire in `push`: the slot is visible.
        cell.sequence.store(cursor.reserved, Ordering::Release);
        cursor.reserved = cursor.reserved.wrapping_add(STEP);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn positions_do_not_wrap_after_two_to_the_31_inserts() {
        let mut inbox = Inbox::new(2);
        let start = u32::MAX as usize - 3;
        inbox.tail = Padded(AtomicUsize::new(start));
        inbox.cells.iter_mut().for_each(|cell| cell.sequence = AtomicUsize::new(start - 1));
        let mut cursor = Cursor { head: start, reserved: start };
        for number in 0..4 {
            let reserved = Reserved { timer: number, generation: Generation::FIRST };
            inbox.add_reserved(&mut cursor, reserved);
            let pushed = inbox.push(7, number, |_| ()).expect("a cell is free");
            assert_eq!(pushed.timer, number);
            assert_eq!(inbox.pop(&mut cursor).map(|inserted| inserted.value), Some(number));
        }
        assert_eq!(inbox.close(), start.wrapping_add(4 * STEP), "positions go on");
        assert!(inbox.push(7, 7, |_| ()).is_err());
    }
}
