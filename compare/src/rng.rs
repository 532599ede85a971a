//! A deterministic source of numbers for the loads, so that every subject and every run sees the
//! same deadlines and the same order of cancels.
//!
//! A Weyl sequence with an avalanche step, the construction of SplitMix64 (Steele, Lea and Flood,
//! "Fast splittable pseudorandom number generators", 2014). Not for secrets.

/// A generator whose whole state is its seed and its position.
#[derive(Clone, Debug)]
pub(crate) struct Rng {
    weyl: u64,
}

impl Rng {
    /// The odd increment nearest to 2^64 divided by the golden ratio.
    const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

    pub(crate) const fn new(seed: u64) -> Self {
        Self { weyl: seed }
    }

    #[inline]
    pub(crate) const fn next(&mut self) -> u64 {
        self.weyl = self.weyl.wrapping_add(Self::STEP);
        let mixed = (self.weyl ^ (self.weyl >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number in `0..bound`, by the high half of a product: no division, and a bias below
    /// `bound / 2^64`, which no load can notice.
    ///
    /// # Panics
    ///
    /// If `bound` is zero.
    #[inline]
    pub(crate) fn below(&mut self, bound: u32) -> u32 {
        assert_ne!(bound, 0, "no number is below zero");
        let product = u128::from(self.next()) * u128::from(bound);
        u32::try_from(product >> 64).expect("the high half is below the bound")
    }

    /// The numbers `0..n` in random order (Fisher and Yates).
    pub(crate) fn permutation(&mut self, n: u32) -> Vec<u32> {
        let mut order: Vec<u32> = (0..n).collect();
        for last in (1..n).rev() {
            let other = self.below(last + 1);
            order.swap(last as usize, other as usize);
        }
        order
    }
}

#[cfg(test)]
mod tests {
    use super::Rng;

    #[test]
    fn the_sequence_is_that_of_splitmix64() {
        // The first outputs for seed 1234567, as published with the reference implementation.
        let mut rng = Rng::new(1_234_567);
        let first: Vec<u64> = (0..5).map(|_| rng.next()).collect();
        let published = [
            6_457_827_717_110_365_317,
            3_203_168_211_198_807_973,
            9_817_491_932_198_370_423,
            4_593_380_528_125_082_431,
            16_408_922_859_458_223_821,
        ];
        assert_eq!(first, published);
    }

    #[test]
    fn equal_seeds_give_equal_sequences_and_others_do_not() {
        let draw = |seed| {
            let mut rng = Rng::new(seed);
            (0..100).map(|_| rng.next()).collect::<Vec<_>>()
        };
        assert_eq!(draw(42), draw(42));
        assert_ne!(draw(42), draw(43));
    }

    #[test]
    fn numbers_below_a_bound_reach_both_ends_and_are_even() {
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
    fn a_permutation_holds_every_number_once_and_is_not_the_identity() {
        let order = Rng::new(3).permutation(1_000);
        let mut sorted = order.clone();
        sorted.sort_unstable();
        let identity: Vec<u32> = (0..1_000).collect();
        assert_eq!(sorted, identity);
        assert_ne!(order, identity);
        assert!(Rng::new(3).permutation(0).is_empty());
    }
}
