//! The two modes of a cell: one writer with load and store, or many with read-modify-writes.
//!
//! A counter or histogram has the same data in both modes. The mode is a type parameter, so
//! the declaration of a cell chooses its cost.

use clockjack_sync::primitive::atomic::{AtomicUsize, Ordering::Relaxed};

/// Any number of writers: every change is an atomic read-modify-write, and none is ever lost.
///
/// On a target without compare-exchange each change is a short critical section.
#[derive(Clone, Copy, Debug)]
pub enum Shared {}

/// One writer at a time: every change is a plain load and a plain store.
///
/// Cheap on every target and without compare-exchange, so it suits the counters that a worker, a
/// shard or an interrupt handler owns. Any thread may read. The type does not prevent a second
/// writer, since a handle per cell would double the size of every statistics struct; two concurrent
/// writers lose one of the two changes and do no other harm. Cells of different writers should not
/// share a cache line: pad each writer's group as a whole.
#[derive(Clone, Copy, Debug)]
pub enum SingleWriter {}

/// [`Shared`] or [`SingleWriter`]. Sealed.
pub trait Mode: sealed::Mode {}

impl Mode for Shared {}
impl Mode for SingleWriter {}

pub(crate) mod sealed {
    use super::AtomicUsize;

    /// The three operations on the cells of this crate.
    pub trait Mode: Sized + 'static {
        /// Adds with wrap-around and returns the previous value.
        fn add(cell: &AtomicUsize, n: usize) -> usize;
        /// Raises the cell to at least `value`.
        fn raise(cell: &AtomicUsize, value: usize);
        /// Lowers the cell to at most `value`.
        fn lower(cell: &AtomicUsize, value: usize);
    }
}

// Relaxed in both modes: a cell is an independent number. No code concludes from its value that
// other memory is initialized, so nothing is published through it.
impl sealed::Mode for Shared {
    #[inline(always)]
    fn add(cell: &AtomicUsize, n: usize) -> usize {
        cell.fetch_add(n, Relaxed)
    }

    #[inline(always)]
    fn raise(cell: &AtomicUsize, value: usize) {
        // The load avoids the read-modify-write in the usual case: the value is not an extreme.
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

impl sealed::Mode for SingleWriter {
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
