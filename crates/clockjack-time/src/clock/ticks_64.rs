//! The 64-bit form of the monotonic tick count: one 64-bit atomic, for targets that have it.

use clockjack_sync::primitive::atomic::{AtomicU64, Ordering};

use crate::driver::MonotonicCount;

/// A count of ticks with one writer and any number of readers, which only rises.
#[derive(Debug)]
#[repr(transparent)]
pub struct Ticks64(AtomicU64);

impl Ticks64 {
    const_unless_loom! {
        /// A count that starts at `ticks`.
        pub fn new(ticks: u64) -> Self {
            Self(AtomicU64::new(ticks))
        }
    }
}

impl MonotonicCount for Ticks64 {
    #[inline]
    fn load(&self) -> u64 {
        // Acquire pairs with the release of `raise`: a thread that sees a time sees what led to it.
        self.0.load(Ordering::Acquire)
    }

    #[inline]
    fn raise(&self, to: u64) {
        // Relaxed: the writer reads what it wrote itself, or what the previous holder of the lock
        // wrote.
        if to > self.0.load(Ordering::Relaxed) {
            // Release pairs with the acquire of `load`.
            self.0.store(to, Ordering::Release);
        }
    }
}
