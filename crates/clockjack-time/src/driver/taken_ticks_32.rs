//! The 32-bit form of the taken ticks: one 32-bit atomic, for targets without 64-bit atomics.

use clockjack_sync::primitive::atomic::{AtomicU32, Ordering};

use crate::driver::TakenTicks;

const STOPPED: u64 = 1 << 31;

/// The stop bit and 31 bits of the last token's count.
#[derive(Debug)]
#[repr(transparent)]
pub struct TakenTicks32(AtomicU32);

impl TakenTicks32 {
    const_unless_loom! {
        /// Not stopped; all ticks up to `start` are taken.
        pub fn new(start: u64) -> Self {
            Self(AtomicU32::new(truncate(start & (STOPPED - 1))))
        }
    }
}

impl TakenTicks for TakenTicks32 {
    const STOPPED: u64 = STOPPED;

    #[inline]
    fn load(&self, order: Ordering) -> u64 {
        u64::from(self.0.load(order))
    }

    fn store(&self, bits: u64) {
        self.0.store(truncate(bits), Ordering::Release);
    }

    #[inline]
    fn exchange(&self, from: u64, to: u64) -> Result<(), u64> {
        // Acquire and release: see the trait.
        self.0
            .compare_exchange(truncate(from), truncate(to), Ordering::AcqRel, Ordering::Acquire)
            .map(|_| ())
            .map_err(u64::from)
    }
}

/// The word as it is stored; its users truncate it to this width.
#[inline(always)]
const fn truncate(bits: u64) -> u32 {
    debug_assert!(bits <= u32::MAX as u64);
    #[expect(clippy::cast_possible_truncation, reason = "cut to the stop bit and those below")]
    let bits = bits as u32;
    bits
}
