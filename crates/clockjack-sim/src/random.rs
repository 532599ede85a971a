//! Random numbers: one stream per consumer, identified by name.
//!
//! A stream depends only on the seed and its own name. Therefore a new consumer, or a consumer that
//! draws more numbers, does not affect the others. The generator is SplitMix64 (Steele, Lea, Flood,
//! OOPSLA 2014): integers only, the same on every machine.

/// The weight with which [`Stream::chance`] is always true.
pub const CERTAIN: u64 = 10_000;

/// One step of the generator: mixes a counter.
#[must_use]
pub const fn mix(state: u64) -> u64 {
    let mut z = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// FNV-1a, 64 bits.
#[must_use]
pub fn digest(bytes: &[u8]) -> u64 {
    let add = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, add)
}

/// The random numbers of one consumer.
///
/// # Examples
///
/// ```
/// use clockjack_sim::random::Stream;
///
/// let mut faults = Stream::new(7, "faults");
/// let mut again = Stream::new(7, "faults");
/// assert_eq!(faults.below(100), again.below(100));
/// assert_ne!(Stream::new(7, "faults").next_u64(), Stream::new(7, "work").next_u64());
/// ```
#[derive(Clone, Debug)]
pub struct Stream {
    state: u64,
}

impl Stream {
    /// The stream with this name.
    #[must_use]
    pub fn new(seed: u64, name: &str) -> Self {
        Self { state: mix(mix(seed) ^ digest(name.as_bytes())) }
    }

    /// The next number.
    pub fn next_u64(&mut self) -> u64 {
        let drawn = mix(self.state);
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        drawn
    }

    /// A number less than `n`; zero if `n` is zero.
    pub fn below(&mut self, n: u64) -> u64 {
        scale(self.next_u64(), n)
    }

    /// A number from `least` to `most`, both included.
    pub fn between(&mut self, least: u64, most: u64) -> u64 {
        least.saturating_add(self.below(most.saturating_sub(least).saturating_add(1)))
    }

    /// An index into a collection of this length.
    pub fn index(&mut self, len: usize) -> usize {
        usize::try_from(self.below(len as u64)).unwrap_or(0)
    }

    /// True with probability `weight` / [`CERTAIN`].
    pub fn chance(&mut self, weight: u64) -> bool {
        self.below(CERTAIN) < weight
    }

    /// A weighted choice; the last item if all weights are zero.
    pub fn pick<T: Copy>(&mut self, choices: &[(u64, T)]) -> Option<T> {
        let all = choices.iter().map(|(weight, _)| weight).sum();
        let mut left = self.below(all);
        for (weight, choice) in choices {
            if left < *weight {
                return Some(*choice);
            }
            left -= weight;
        }
        choices.last().map(|(_, choice)| *choice)
    }
}

/// Scales a 64-bit random number to a number less than `n`, using its upper bits (Lemire).
#[must_use]
pub fn scale(drawn: u64, n: u64) -> u64 {
    let wide = u128::from(drawn) * u128::from(n);
    u64::try_from(wide >> 64).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_numbers_are_drawn_on_every_machine() {
        let mut stream = Stream::new(1, "work");
        let drawn: [u64; 3] = core::array::from_fn(|_| stream.below(1_000));
        let mut again = Stream::new(1, "work");
        assert_eq!(drawn, core::array::from_fn(|_| again.below(1_000)));
        assert_eq!(mix(0), 0xe220_a839_7b1d_cdaf, "the first number of the paper's generator");
        assert_eq!(digest(b"a"), 0xaf63_dc4c_8601_ec8c, "a known value of FNV-1a");
    }

    #[test]
    fn a_stream_does_not_depend_on_who_else_draws() {
        let mut one = Stream::new(9, "one");
        let mut other = Stream::new(9, "other");
        other.next_u64();
        let mut alone = Stream::new(9, "one");
        for _ in 0..100 {
            assert_eq!(one.next_u64(), alone.next_u64());
            other.next_u64();
        }
    }

    #[test]
    fn every_number_below_the_bound_comes_up() {
        let mut stream = Stream::new(3, "bounds");
        let mut seen = [false; 7];
        for _ in 0..500 {
            seen[stream.index(7)] = true;
            let n = stream.between(5, 9);
            assert!((5..=9).contains(&n));
        }
        assert_eq!(seen, [true; 7]);
        assert_eq!(stream.below(0), 0);
    }

    #[test]
    fn weights_decide_what_is_picked() {
        let mut stream = Stream::new(4, "weights");
        let picked: u32 = (0..1_000)
            .map(|_| stream.pick(&[(1, 0), (0, 1_000_000), (9, 1)]).unwrap_or_default())
            .sum();
        assert!((800..1_000).contains(&picked), "{picked}");
        assert_eq!(stream.pick::<u32>(&[]), None);
    }
}
