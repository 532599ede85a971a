//! A deterministic source of numbers, so that a seed names a run on every machine.
//!
//! The construction of SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number
//! generators", 2014): a counter with an odd step, and a mixing function. Not for secrets.

/// A generator whose whole state is one number.
#[derive(Clone, Debug)]
pub(crate) struct Rng {
    state: u64,
}

impl Rng {
    /// The odd number nearest to 2^64 divided by the golden ratio.
    const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

    pub(crate) const fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    pub(crate) const fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(Self::STEP);
        mix(self.state)
    }

    /// A number in `0..bound`: the high half of a product, whose bias is below `bound` / 2^64.
    ///
    /// # Panics
    ///
    /// If `bound` is zero.
    #[expect(clippy::cast_possible_truncation, reason = "the high half is below the bound")]
    pub(crate) const fn below(&mut self, bound: u32) -> u32 {
        assert!(bound != 0, "no number is below zero");
        ((self.next() as u128 * bound as u128) >> 64) as u32
    }

    /// Brings `items` into random order (Fisher and Yates).
    ///
    /// # Panics
    ///
    /// If there are more items than a `u32` counts.
    pub(crate) fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            let bound = u32::try_from(last + 1).expect("a slice of at most u32::MAX items");
            items.swap(last, self.below(bound) as usize);
        }
    }
}

/// Chooses exactly `wanted` of `left` items that come by one after another, every subset being as
/// likely as every other (Knuth, The Art of Computer Programming 3.4.2, algorithm S).
#[derive(Debug)]
pub(crate) struct Choice {
    pub(crate) wanted: u32,
    pub(crate) left: u32,
}

impl Choice {
    pub(crate) fn takes_next(&mut self, rng: &mut Rng) -> bool {
        let is_taken = rng.below(self.left) < self.wanted;
        self.left -= 1;
        self.wanted -= u32::from(is_taken);
        is_taken
    }
}

/// Spreads every bit of a number over all bits of the result; a bijection.
pub(crate) const fn mix(n: u64) -> u64 {
    let n = (n ^ (n >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let n = (n ^ (n >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    n ^ (n >> 31)
}

#[cfg(test)]
mod tests {
    use super::{Choice, Rng};

    #[test]
    fn the_sequence_is_the_published_one() {
        // The first outputs for seed 1234567, as published with the reference implementation.
        let mut rng = Rng::new(1_234_567);
        let first = [rng.next(), rng.next(), rng.next()];
        let published =
            [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423];
        assert_eq!(first, published);
    }

    #[test]
    fn numbers_below_a_bound_reach_both_ends_evenly() {
        let mut rng = Rng::new(7);
        let mut hits = [0_u32; 10];
        for _ in 0..100_000 {
            hits[rng.below(10) as usize] += 1;
        }
        // Ten thousand expected in each; the standard deviation is below one hundred.
        for (number, &count) in hits.iter().enumerate() {
            assert!((9_500..10_500).contains(&count), "{number} came {count} times");
        }
        assert_eq!(rng.below(1), 0);
    }

    #[test]
    fn a_shuffle_keeps_every_item_and_changes_the_order() {
        let sorted: Vec<u32> = (0..1_000).collect();
        let mut items = sorted.clone();
        Rng::new(3).shuffle(&mut items);
        assert_ne!(items, sorted);
        items.sort_unstable();
        assert_eq!(items, sorted);
        Rng::new(3).shuffle::<u32>(&mut []);
    }

    #[test]
    fn a_choice_takes_as_many_as_wanted_and_not_the_first_ones() {
        let mut rng = Rng::new(5);
        let mut choice = Choice { wanted: 10, left: 1_000 };
        let taken: Vec<u32> = (0..1_000).filter(|_| choice.takes_next(&mut rng)).collect();
        assert_eq!(taken.len(), 10);
        assert!(taken[9] > 500, "{taken:?}");
    }
}
