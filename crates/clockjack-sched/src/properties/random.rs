//! Numbers out of a seed, as the properties of jobs are drawn.

use clockjack_sync::splitmix::SplitMix;

/// A sequence of numbers that follows from its seed.
#[derive(Clone, Debug)]
pub(super) struct Random(SplitMix);

impl Random {
    pub(super) const fn new(seed: u64) -> Self {
        Self(SplitMix::new(seed))
    }

    /// A number below `bound`, which is not zero.
    pub(super) fn below(&mut self, bound: u64) -> u64 {
        self.0.next_u64() % bound
    }

    /// A number up to `max`, small ones more often: its length in bits is drawn first.
    pub(super) fn up_to(&mut self, max: u64) -> u64 {
        let bits = self.below(u64::from(u64::BITS - max.leading_zeros()) + 1);
        self.below(1 << bits.min(63)).min(max)
    }
}
