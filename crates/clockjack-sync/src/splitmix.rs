//! A seeded pseudorandom number generator, the same on every machine: SplitMix64 (Steele, Lea and
//! Flood, "Fast splittable pseudorandom number generators", 2014), a counter and a mixing function.
//! Not for secrets.
//!
//! It has nothing to do with threads. It is here because every crate that draws numbers depends on
//! this crate.

/// By how much the counter rises: the odd number nearest to 2^64 divided by the golden ratio.
pub const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// Spreads each bit over all bits of the result; a bijection.
#[inline]
#[must_use]
pub const fn mix(n: u64) -> u64 {
    let n = (n ^ (n >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let n = (n ^ (n >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    n ^ (n >> 31)
}

/// A generator whose whole state is its counter.
#[derive(Clone, Debug)]
pub struct SplitMix {
    counter: u64,
}

impl SplitMix {
    /// The generator of this seed.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self { counter: seed }
    }

    /// The next number.
    #[inline]
    pub const fn next_u64(&mut self) -> u64 {
        self.counter = self.counter.wrapping_add(STEP);
        mix(self.counter)
    }

    /// A number in `0..bound`, by the high half of a product: no division, and a bias below
    /// `bound` / 2^64.
    ///
    /// # Panics
    ///
    /// If `bound` is zero.
    #[expect(clippy::cast_possible_truncation, reason = "the high half is below the bound")]
    #[inline]
    pub const fn below(&mut self, bound: u32) -> u32 {
        assert!(bound != 0, "no number is below zero");
        ((self.next_u64() as u128 * bound as u128) >> 64) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::SplitMix;

    #[test]
    fn the_sequence_is_the_published_one() {
        // The first outputs for seed 1234567, as published with the reference implementation.
        let mut numbers = SplitMix::new(1_234_567);
        let published = [
            6_457_827_717_110_365_317,
            3_203_168_211_198_807_973,
            9_817_491_932_198_370_423,
            4_593_380_528_125_082_431,
            16_408_922_859_458_223_821,
        ];
        assert_eq!(published.map(|_| numbers.next_u64()), published);
    }

    #[test]
    fn equal_seeds_give_equal_sequences_and_others_do_not() {
        let draw = |seed| {
            let mut numbers = SplitMix::new(seed);
            [(); 100].map(|()| numbers.next_u64())
        };
        assert_eq!(draw(42), draw(42));
        assert_ne!(draw(42), draw(43));
    }

    #[test]
    fn numbers_below_a_bound_reach_both_ends_and_are_even() {
        let mut numbers = SplitMix::new(7);
        let mut hits = [0_u32; 10];
        for _ in 0..100_000 {
            hits[numbers.below(10) as usize] += 1;
        }
        // Ten thousand expected in each; the standard deviation is below one hundred.
        for (number, &count) in hits.iter().enumerate() {
            assert!((9_500..10_500).contains(&count), "{number} came {count} times");
        }
        assert_eq!(numbers.below(1), 0);
    }
}
