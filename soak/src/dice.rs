//! Random numbers: one stream for each consumer, all from one seed.
//!
//! A stream of its own keeps what one consumer draws independent of how often another draws.

use clockjack_testing::Random;

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
pub(crate) struct Dice(Random);

impl Dice {
    /// The stream of a consumer: the seed's own stream seeds the streams, in order.
    pub(crate) fn of(seed: u64, consumer: Consumer) -> Self {
        let mut seeds = Random::new(seed);
        for _earlier in 0..consumer as usize {
            seeds.next();
        }
        Self(Random::new(seeds.next()))
    }

    /// A stream for something that draws beside this one.
    pub(crate) fn split(&mut self) -> Self {
        Self(Random::new(self.0.next()))
    }

    /// A number below `n`, which is not zero. The bias is 2^-32 at most, for `n` below 2^32.
    pub(crate) fn below(&mut self, n: u64) -> u64 {
        self.0.below(n)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_one_consumer_draws_moves_no_other_stream() {
        let mut first = Dice::of(7, Consumer::FirstSubmitter);
        let before = Dice::of(7, Consumer::SecondSubmitter).0.next();
        for _ in 0..100 {
            first.0.next();
        }
        assert_eq!(Dice::of(7, Consumer::SecondSubmitter).0.next(), before);
        assert_ne!(Dice::of(7, Consumer::FirstSubmitter).0.next(), before);
    }
}
