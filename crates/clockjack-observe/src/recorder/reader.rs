//! A reader of a ring: a cursor that copies records and counts the ones it missed.

use core::fmt;

use clockjack_sync::primitive::atomic::{
    Ordering::{Acquire, Relaxed},
    fence,
};

use super::Ring;
use crate::event::Record;

/// How often [`Reader::read`] retries. Each failure halves the distance to the newest record, so
/// this reaches it from the far end of any ring that fits a cache, and bounds the time in any case.
const ATTEMPTS: usize = 16;

/// A cursor over a ring. Readers affect neither the writer nor each other.
pub struct Reader<'r> {
    ring: &'r Ring,
    cursor: usize,
    lost: u64,
}

impl<'r> Reader<'r> {
    pub(super) fn new(ring: &'r Ring) -> Self {
        Self { ring, cursor: ring.oldest(), lost: 0 }
    }

    /// Returns the next record, or `None` if there is none now.
    ///
    /// Records come in the order in which they were written. Records that were overwritten before
    /// they could be read are skipped and [counted](Self::lost). `None` is also returned in the
    /// rare case that the writer went round the ring during each of a fixed number of attempts.
    pub fn read(&mut self) -> Option<Record> {
        let Ring { head, slots, .. } = self.ring;
        let kept_max = slots.len() - 1;
        let mut distance = kept_max;
        for _ in 0..ATTEMPTS {
            // R1, acquire: pairs with W3.
            let now = head.load(Acquire);
            let behind = now.wrapping_sub(self.cursor);
            if behind == 0 {
                return None;
            }
            if behind > kept_max {
                self.lost += (behind - distance) as u64;
                self.cursor = now.wrapping_sub(distance);
                distance = distance.div_ceil(2);
            }
            // R2.
            let loaded = slots[self.cursor & kept_max].load();
            // R3 pairs with W1 of the writer that stored a newer word.
            fence(Acquire);
            // R4, relaxed: R3 orders it after R2, and nothing is read after it.
            let now = head.load(Relaxed);
            let kept = now.wrapping_sub(self.cursor) <= kept_max;
            if kept {
                let record = loaded.decode().expect("a record that R4 confirmed is whole");
                self.cursor = self.cursor.wrapping_add(1);
                return Some(record);
            }
        }
        None
    }

    /// The number of records that this reader missed because they were overwritten first.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.lost
    }
}

/// Yields what [`read`](Reader::read) returns. It may yield records again after `None`, and with a
/// concurrent busy writer it may never end: limit it with [`take`](Iterator::take).
impl Iterator for Reader<'_> {
    type Item = Record;

    fn next(&mut self) -> Option<Record> {
        self.read()
    }
}

impl fmt::Debug for Reader<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reader")
            .field("cursor", &self.cursor)
            .field("lost", &self.lost)
            .finish_non_exhaustive()
    }
}
