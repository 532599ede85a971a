//! The 64-bit form of the taken ticks: one 64-bit atomic, for targets that have it.

use clockjack_sync::primitive::atomic::{AtomicU64, Ordering};

use crate::driver::TakenTicks;

const STOPPED: u64 = 1 << 63;

/// The stop bit and 63 bits of the last token's count.
#[derive(Debug)]
#[repr(transparent)]
pub struct TakenTicks64(AtomicU64);

impl TakenTicks64 {
    const_unless_loom! {
        /// Not stopped; all ticks up to `start` are taken.
        pub fn new(start: u64) -> Self {
            Self(AtomicU64::new(start & (STOPPED - 1)))
        }
    }
}

impl TakenTicks for TakenTicks64 {
    const STOPPED: u64 = STOPPED;

    #[inline]
    fn load(&self, order: Ordering) -> u64 {
        self.0.load(order)
    }

    fn store(&self, bits: u64) {
        self.0.store(bits, Ordering::Release);
    }

    #[inline]
    fn exchange(&self, from: u64, to: u64) -> Result<(), u64> {
        // Acquire and release: see the trait.
        self.0.compare_exchange(from, to, Ordering::AcqRel, Ordering::Acquire).map(|_| ())
    }
}
