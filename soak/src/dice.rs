//! Random numbers: one stream per consumer, all from one seed.
//!
//! With separate streams, the numbers of one consumer do not depend on how often another one draws.

use clockjack_testing::Random;

/// The consumers. New ones are appended, so that the streams of the others do not change.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Consumer {
    /// A thread that starts work.
    FirstSubmitter,
    /// A second thread that starts work.
    SecondSubmitter,
    /// The thread that changes the number of workers.
    Resizer,
    /// The episodes after each round.
    Episodes,
}

/// A stream of pseudo-random numbers.
#[derive(Clone, Debug)]
pub(crate) struct Dice(Random);

impl Dice {
    /// The stream of a consumer: the stream of the seed itself produces the seeds of the consumers,
    /// in order.
    pub(crate) fn of(seed: u64, consumer: Consumer) -> Self {
        let mut seeds = Random::new(seed);
        for _earlier in 0..consumer as usize {
            seeds.next();
        }
        Self(Random::new(seeds.next()))
    }

    /// A separate stream for a second consumer.
    pub(crate) fn split(&mut self) -> Self {
        Self(Random::new(self.0.next()))
    }

    /// A number below `n`, which must not be zero. The bias is at most 2^-32 for `n` below 2^32.
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
