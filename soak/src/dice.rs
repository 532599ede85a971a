//! Random numbers: one stream for each consumer, all from one seed.
//!
//! SplitMix64, after Steele, Lea and Flood, "Fast splittable pseudorandom number generators",
//! 2014. A stream of its own keeps what one consumer draws independent of how often another draws.

/// Who draws. New ones are appended, so that the streams of the others stay as they were.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Consumer {
    /// A thread that starts work.
    FirstSubmitter,
    /// Another.
    SecondSubmitter,
    /// Who changes the number of workers.
    Resizer,
}

/// A stream of numbers.
#[derive(Clone, Debug)]
pub(crate) struct Dice(u64);

impl Dice {
    /// The stream of a consumer: the seed's own stream seeds the streams, in order.
    pub(crate) fn of(seed: u64, consumer: Consumer) -> Self {
        let mut seeds = Self(seed);
        for _earlier in 0..consumer as usize {
            seeds.next();
        }
        Self(seeds.next())
    }

    /// A stream for something that draws beside this one.
    pub(crate) fn split(&mut self) -> Self {
        Self(self.next())
    }

    /// A number below `n`, which is not zero. The bias is 2^-32 at most, for `n` below 2^32.
    pub(crate) fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_generator_gives_the_published_numbers() {
        let mut dice = Dice(1_234_567);
        let expected = [6_457_827_717_110_365_317, 3_203_168_211_198_807_973];
        assert_eq!([dice.next(), dice.next()], expected);
    }

    #[test]
    fn what_one_consumer_draws_moves_no_other_stream() {
        let mut first = Dice::of(7, Consumer::FirstSubmitter);
        let before = Dice::of(7, Consumer::SecondSubmitter).next();
        for _ in 0..100 {
            first.next();
        }
        assert_eq!(Dice::of(7, Consumer::SecondSubmitter).next(), before);
        assert_ne!(Dice::of(7, Consumer::FirstSubmitter).next(), before);
    }
}
