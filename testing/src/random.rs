//! Pseudo-random numbers from a seed.

/// Pseudo-random numbers that are the same in every run (`SplitMix64`: Steele, Lea and Flood 2014).
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// The sequence that follows from this seed.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Any number.
    #[expect(clippy::should_implement_trait, reason = "the sequence is infinite")]
    #[inline]
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `bound`, which must not be zero. The bias is at most 2^-32 for a `bound`
    /// below 2^32.
    #[inline]
    pub fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    /// An index into a collection of length `len`.
    ///
    /// # Panics
    ///
    /// If `len` is zero.
    #[inline]
    pub fn index(&mut self, len: usize) -> usize {
        usize::try_from(self.below(len as u64)).expect("the index is below a length")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_generator_gives_the_published_numbers() {
        let mut random = Random::new(1_234_567);
        let expected = [6_457_827_717_110_365_317, 3_203_168_211_198_807_973];
        assert_eq!([random.next(), random.next()], expected);
    }

    #[test]
    fn what_is_drawn_is_below_the_bound_and_reaches_it() {
        let mut random = Random::new(1);
        let drawn: Vec<usize> = (0..1_000).map(|_| random.index(3)).collect();
        assert!((0..3).all(|n| drawn.contains(&n)));
        assert!(drawn.iter().all(|&n| n < 3));
        assert!((0..1_000).all(|_| random.below(1) == 0));
    }
}
