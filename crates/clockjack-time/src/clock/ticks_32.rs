//! The 32-bit form of the monotonic tick count: three 32-bit words, loads and stores only.
//!
//! Writing the same value before and after the data, and reading in the opposite order, is from
//! Lamport ("Concurrent reading and writing", 1977).
//!
//! For targets without 64-bit atomics, where an interrupt would have to wait for a lock. The read
//! is like that of a seqlock, but does not repeat. The upper half is stored twice, `before` and
//! `after` the lower half. Rules:
//!
//! 1. The one writer stores `before`, `low`, `after`, each with release.
//! 2. A reader loads them the other way round, `after`, `low`, `before`, each with acquire.
//! 3. If both upper halves agree, they are those of `low` too: a `low` newer than `after` shows a
//!    `before` at least as new as itself, and an older one shows an `after` no newer than itself.
//! 4. If they differ, the count was carried past `before × 2^32` during the read: it had not
//!    reached that number before, and will not fall below it again. So this number is the result.
//!    The reader does not read again: a reader that has interrupted the writer on its own core
//!    would repeat for ever.

use clockjack_sync::primitive::atomic::{AtomicU32, Ordering};

use crate::driver::MonotonicCount;

/// A count of ticks with one writer and any number of readers, which only rises.
#[derive(Debug)]
#[repr(C)]
pub struct Ticks32 {
    before: AtomicU32,
    low: AtomicU32,
    after: AtomicU32,
}

impl Ticks32 {
    const_unless_loom! {
        /// A count that starts at `ticks`.
        pub fn new(ticks: u64) -> Self {
            let (high, low) = split(ticks);
            Self {
                before: AtomicU32::new(high),
                low: AtomicU32::new(low),
                after: AtomicU32::new(high),
            }
        }
    }
}

impl MonotonicCount for Ticks32 {
    /// Loads only, no loop.
    #[inline]
    fn load(&self) -> u64 {
        // Acquire, all three, pair with the releases in `raise`: later loads are not older.
        let after = self.after.load(Ordering::Acquire);
        let low = self.low.load(Ordering::Acquire);
        let before = self.before.load(Ordering::Acquire);
        let (high, low) = if before == after { (after, low) } else { (before, 0) };
        u64::from(high) << 32 | u64::from(low)
    }

    #[inline]
    fn raise(&self, to: u64) {
        // Relaxed: the writer reads what it wrote itself, or what the previous holder of the lock
        // wrote.
        let (high, low) = (self.before.load(Ordering::Relaxed), self.low.load(Ordering::Relaxed));
        if to <= u64::from(high) << 32 | u64::from(low) {
            return;
        }
        let (to_high, to_low) = split(to);
        let carries = to_high != high;
        // Release, all three, pair with the acquires in `load`.
        if carries {
            self.before.store(to_high, Ordering::Release);
        }
        self.low.store(to_low, Ordering::Release);
        if carries {
            self.after.store(to_high, Ordering::Release);
        }
    }
}

#[inline(always)]
const fn split(ticks: u64) -> (u32, u32) {
    #[expect(clippy::cast_possible_truncation, reason = "the two halves")]
    ((ticks >> 32) as u32, ticks as u32)
}
