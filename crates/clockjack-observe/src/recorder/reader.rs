//! A reader of a ring: a cursor that copies records and counts the ones it missed.

use core::{fmt, ops::Deref};

use clockjack_sync::primitive::atomic::{
    Ordering::{Acquire, Relaxed},
    fence,
};

use super::{Ring, is_before, oldest, sealed::Storage};
use crate::event::Record;

/// How often [`Reader::read`] retries. Each failure halves the distance to the newest record, so
/// this reaches it from the far end of any ring that fits a cache, and bounds the time in any case.
const ATTEMPTS: usize = 16;

/// A cursor over a ring. Readers affect neither the writer nor each other.
///
/// `P` is the pointer to the ring: a borrow, `&'static`, or a reference-counted pointer.
pub struct Reader<P: Deref<Target: Ring>> {
    ring: P,
    cursor: usize,
    lost: u64,
    role: ReaderRole,
}

/// Whether a record that this reader returns counts as read for [`Ring::dropped`].
#[derive(Clone, Copy, PartialEq, Eq)]
enum ReaderRole {
    Consumer,
    Observer,
}

impl<P: Deref<Target: Ring>> Reader<P> {
    /// Creates a reader that starts at the oldest kept record. It does not count earlier records as
    /// lost.
    pub fn new(ring: P) -> Self {
        // Acquire: pairs with W3, for `oldest`.
        let head = ring.control().head.load(Acquire);
        let cursor = oldest(&*ring, head);
        Self { ring, cursor, lost: 0, role: ReaderRole::Consumer }
    }

    /// Creates a reader of at most the last `n` records and all later ones, which does not affect
    /// [`Ring::dropped`].
    pub fn tail(ring: P, n: usize) -> Self {
        // Acquire: pairs with W3, for `oldest`.
        let head = ring.control().head.load(Acquire);
        let kept = head.wrapping_sub(oldest(&*ring, head));
        let cursor = head.wrapping_sub(n.min(kept));
        Self { ring, cursor, lost: 0, role: ReaderRole::Observer }
    }

    /// Returns the next record, or `None` if there is none now.
    ///
    /// Records come in the order in which they were written. Records that were overwritten before
    /// they could be read are skipped and [counted](Self::lost). `None` is also returned in the
    /// rare case that the writer went round the ring during each of a fixed number of attempts.
    pub fn read(&mut self) -> Option<Record> {
        let (control, slots) = (self.ring.control(), self.ring.slots());
        let kept_max = slots.len() - 1;
        let mut distance = kept_max;
        for _ in 0..ATTEMPTS {
            // R1, acquire: pairs with W3.
            let head = control.head.load(Acquire);
            let behind = head.wrapping_sub(self.cursor);
            if behind == 0 {
                return None;
            }
            if behind > kept_max {
                self.lost += (behind - distance) as u64;
                self.cursor = head.wrapping_sub(distance);
                distance = distance.div_ceil(2);
            }
            // R2.
            let loaded = slots[self.cursor & kept_max].load();
            // R3 pairs with W1 of the writer that stored a newer word.
            fence(Acquire);
            // R4, relaxed: R3 orders it after R2, and nothing is read after it.
            let head = control.head.load(Relaxed);
            let kept = head.wrapping_sub(self.cursor) <= kept_max;
            if kept {
                let record = loaded.decode().expect("a record that R4 confirmed is whole");
                if self.role == ReaderRole::Consumer {
                    self.move_frontier();
                }
                self.cursor = self.cursor.wrapping_add(1);
                return Some(record);
            }
        }
        None
    }

    /// The number of records that this reader missed because they were overwritten first.
    pub fn lost(&self) -> u64 {
        self.lost
    }

    /// The ring.
    pub fn ring(&self) -> &P::Target {
        &self.ring
    }

    /// Notes that a reader got the record at the cursor, and that the records between the previous
    /// frontier and the cursor were dropped.
    fn move_frontier(&self) {
        let control = self.ring.control();
        // Relaxed throughout: numbers for `dropped`; no memory is accessed through them. Each
        // failed exchange means that another reader has moved the frontier forward.
        let mut frontier = control.frontier.load(Relaxed);
        while !is_before(self.cursor, frontier) {
            let next = self.cursor.wrapping_add(1);
            match control.frontier.compare_exchange_weak(frontier, next, Relaxed, Relaxed) {
                Ok(_) => {
                    let dropped = self.cursor.wrapping_sub(frontier);
                    if dropped != 0 {
                        control.dropped.fetch_add(dropped, Relaxed);
                    }
                    return;
                }
                Err(moved) => frontier = moved,
            }
        }
    }
}

/// Yields what [`read`](Reader::read) returns. It may yield records again after `None`, and with a
/// concurrent busy writer it may never end: limit it with [`take`](Iterator::take).
impl<P: Deref<Target: Ring>> Iterator for Reader<P> {
    type Item = Record;

    fn next(&mut self) -> Option<Record> {
        self.read()
    }
}

impl<P: Deref<Target: Ring>> fmt::Debug for Reader<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reader")
            .field("cursor", &self.cursor)
            .field("lost", &self.lost)
            .finish_non_exhaustive()
    }
}
