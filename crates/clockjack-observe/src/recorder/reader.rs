//! A reader of a ring: a cursor that takes copies and counts what it missed.

use core::{fmt, ops::Deref};

use clockjack_sync::{
    mutant,
    prim::atomic::{
        Ordering::{Acquire, Relaxed},
        fence,
    },
};

use super::{Ring, is_before, oldest, sealed::Storage};
use crate::event::Record;

/// How often [`Reader::read`] tries: each failure halves the distance to the newest record, so this
/// reaches it from the far end of any ring that fits a cache, and bounds the time in any case.
const ATTEMPTS: usize = 16;

/// A cursor over a ring. Readers do not disturb the writer or one another.
///
/// `P` is how it holds the ring: a borrow, `&'static`, or a counted pointer.
pub struct Reader<P: Deref<Target: Ring>> {
    ring: P,
    cursor: usize,
    lost: u64,
    duty: Duty,
}

/// Whether a record that this reader got counts as seen.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Duty {
    Consumes,
    LooksOn,
}

impl<P: Deref<Target: Ring>> Reader<P> {
    /// A reader that starts at the oldest record kept. What was overwritten before is not counted
    /// as lost by it.
    pub fn new(ring: P) -> Self {
        // Acquire: pairs with W3, for `oldest`.
        let head = ring.control().head.load(Acquire);
        let cursor = oldest(&*ring, head);
        Self { ring, cursor, lost: 0, duty: Duty::Consumes }
    }

    /// A reader of at most the last `n` records and all that follow, which does not count for
    /// [`Ring::dropped`].
    pub fn tail(ring: P, n: usize) -> Self {
        // Acquire: pairs with W3, for `oldest`.
        let head = ring.control().head.load(Acquire);
        let kept = head.wrapping_sub(oldest(&*ring, head));
        let cursor = head.wrapping_sub(n.min(kept));
        Self { ring, cursor, lost: 0, duty: Duty::LooksOn }
    }

    /// The next record, or `None` if there is none now.
    ///
    /// Records come in the order in which they were written. Those that were overwritten before
    /// they could be read are skipped and [counted](Self::lost). `None` also stands for the rare
    /// case that the writer went round the ring during each of a fixed number of attempts.
    pub fn read(&mut self) -> Option<Record> {
        let (control, slots) = (self.ring.control(), self.ring.slots());
        let kept_max = slots.len() - 1;
        let readable = kept_max + usize::from(mutant!("recorder-writer-slot-read"));
        let mut reach = kept_max;
        for _ in 0..ATTEMPTS {
            // R1, acquire: pairs with W3.
            let head = control.head.load(Acquire);
            let behind = head.wrapping_sub(self.cursor);
            if behind == 0 {
                return None;
            }
            if behind > kept_max {
                self.lost += (behind - reach) as u64;
                self.cursor = head.wrapping_sub(reach);
                reach = reach.div_ceil(2);
            }
            // R2.
            let loaded = slots[self.cursor & kept_max].load();
            // R3 pairs with W1 of whoever stored a newer word.
            if !mutant!("recorder-read-fence-removed") {
                fence(Acquire);
            }
            // R4, relaxed: R3 has ordered it behind R2, nothing is read after it.
            let head = control.head.load(Relaxed);
            let kept = head.wrapping_sub(self.cursor) <= readable;
            if kept || mutant!("recorder-recheck-removed") {
                let record = loaded.decode().expect("a record that R4 confirmed is whole");
                if self.duty == Duty::Consumes {
                    self.move_frontier();
                }
                self.cursor = self.cursor.wrapping_add(1);
                return Some(record);
            }
        }
        None
    }

    /// How many records this reader could not get because they were overwritten first.
    pub fn lost(&self) -> u64 {
        self.lost
    }

    /// The ring that is read.
    pub fn ring(&self) -> &P::Target {
        &self.ring
    }

    /// Says that some reader got the record at the cursor, and that those between the former
    /// frontier and it were dropped.
    fn move_frontier(&self) {
        let control = self.ring.control();
        // Relaxed throughout: numbers for `dropped`, through which no memory is reached. Each
        // failure of the exchange means that another reader moved the frontier forward.
        let mut frontier = control.frontier.load(Relaxed);
        while !is_before(self.cursor, frontier) {
            let next = self.cursor.wrapping_add(1);
            match control.frontier.compare_exchange_weak(frontier, next, Relaxed, Relaxed) {
                Ok(_) => {
                    let dropped = self.cursor.wrapping_sub(frontier);
                    if dropped != 0 && !mutant!("recorder-frontier-uncounted") {
                        control.dropped.fetch_add(dropped, Relaxed);
                    }
                    return;
                }
                Err(moved) => frontier = moved,
            }
        }
    }
}

/// Yields what [`read`](Reader::read) returns. It may go on after `None`, and beside a busy writer
/// it may not come to an end: bound it with [`take`](Iterator::take).
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
