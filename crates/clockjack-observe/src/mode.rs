//! How a cell is written: by one writer with load and store, or by many with read-modify-writes.
//!
//! A counter, gauge or histogram is the same data in both modes; the mode is a type parameter, so
//! that the cost is chosen where the cell is declared and cannot change from call to call.

use clockjack_sync::{
    mutant,
    prim::atomic::{AtomicUsize, Ordering::Relaxed},
};

/// Any number of writers: every change is an atomic read-modify-write, and none is ever lost.
///
/// On a target without compare-exchange each change is a short critical section.
#[derive(Clone, Copy, Debug)]
pub enum Shared {}

/// One writer at a time: every change is a plain load and a plain store.
///
/// Cheap on every target and free of compare-exchange, so it is right for the counters that a
/// worker, a shard or an interrupt handler keeps for itself. Readers may be anywhere. The type does
/// not stop a second writer, since a handle per cell would double every statistics struct; two
/// writers at the same moment lose one of the two changes and do no other harm. Cells of different
/// writers should not share a cache line: pad each writer's group as a whole.
#[derive(Clone, Copy, Debug)]
pub enum Sole {}

/// [`Shared`] or [`Sole`]. Sealed.
pub trait Mode: sealed::Mode {}

impl Mode for Shared {}
impl Mode for Sole {}

pub(crate) mod sealed {
    use super::AtomicUsize;

    /// The three changes that the cells of this crate are made of.
    pub trait Mode: Sized + 'static {
        /// Adds with wrap-around and returns the value before.
        fn add(cell: &AtomicUsize, n: usize) -> usize;
        /// Makes the cell at least `value`.
        fn raise(cell: &AtomicUsize, value: usize);
        /// Makes the cell at most `value`.
        fn lower(cell: &AtomicUsize, value: usize);
    }
}

// Relaxed in both modes: a cell is a number by itself. Nobody concludes from its value that other
// memory is ready, so nothing is published through it.
impl sealed::Mode for Shared {
    #[inline(always)]
    fn add(cell: &AtomicUsize, n: usize) -> usize {
        if mutant!("mode-shared-as-sole") {
            return <Sole as sealed::Mode>::add(cell, n);
        }
        cell.fetch_add(n, Relaxed)
    }

    #[inline(always)]
    fn raise(cell: &AtomicUsize, value: usize) {
        // The load spares the read-modify-write in the usual case, a record that is no extreme.
        if value > cell.load(Relaxed) {
            cell.fetch_max(value, Relaxed);
        }
    }

    #[inline(always)]
    fn lower(cell: &AtomicUsize, value: usize) {
        if value < cell.load(Relaxed) {
            cell.fetch_min(value, Relaxed);
        }
    }
}

impl sealed::Mode for Sole {
    #[inline(always)]
    fn add(cell: &AtomicUsize, n: usize) -> usize {
        let before = cell.load(Relaxed);
        cell.store(before.wrapping_add(n), Relaxed);
        before
    }

    #[inline(always)]
    fn raise(cell: &AtomicUsize, value: usize) {
        if value > cell.load(Relaxed) {
            cell.store(value, Relaxed);
        }
    }

    #[inline(always)]
    fn lower(cell: &AtomicUsize, value: usize) {
        if value < cell.load(Relaxed) {
            cell.store(value, Relaxed);
        }
    }
}
