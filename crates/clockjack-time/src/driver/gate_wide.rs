//! The wide twin of the supply's gate: one 64-bit atomic, for targets that have it.

use clockjack_sync::prim::atomic::{AtomicU64, Ordering};

use crate::driver::Gate;

const STOPPED: u64 = 1 << 63;

/// The gate: stop bit and 63 bits of the last token's count.
#[derive(Debug)]
#[repr(transparent)]
pub struct WideGate(AtomicU64);

impl WideGate {
    const_unless_loom! {
        /// An open gate, where all ticks up to `start` are taken.
        pub fn new(start: u64) -> Self {
            Self(AtomicU64::new(start & (STOPPED - 1)))
        }
    }
}

impl Gate for WideGate {
    const STOPPED: u64 = STOPPED;

    #[inline]
    fn load(&self, order: Ordering) -> u64 {
        self.0.load(order)
    }

    fn store(&self, word: u64) {
        self.0.store(word, Ordering::Release);
    }

    #[inline]
    fn exchange(&self, from: u64, to: u64) -> Result<(), u64> {
        // Acquire and release: see the trait.
        self.0.compare_exchange(from, to, Ordering::AcqRel, Ordering::Acquire).map(|_| ())
    }
}
