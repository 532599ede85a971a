//! The load: the deadlines and the order of cancels. The same for every subject and every run.

use super::subject::{Facts, Fired, Ids};
use crate::failure::Failure;
use crate::rng::{Rng, permutation};

/// The seed of all loads. Another seed gives other deadlines and, within noise, equal figures.
const SEED: u64 = 42;

/// Deadlines lie in `1..DEADLINES_END_MS`.
const DEADLINES_END_MS: u32 = 60_000;

/// At this time every deadline of a load has passed.
pub(crate) const ALL_DUE_MS: u64 = 60_001;

/// The length of a resident time-out in `churn`.
pub(crate) const CHURN_TIMEOUT_MS: u64 = 30_000;

/// The clock advances by one millisecond after this many operations of `churn`.
pub(crate) const CHURN_OPS_PER_MS: u64 = 1_000;

/// Deadlines and order of cancels for `n` timers.
#[derive(Debug)]
pub(crate) struct Load {
    pub(crate) n: u32,
    /// The deadline of each timer, in milliseconds; its index is its id.
    pub(crate) deadlines_ms: Vec<u32>,
    /// The ids in the order in which they are cancelled.
    pub(crate) cancels: Vec<u32>,
}

impl Load {
    pub(crate) fn new(n: u32) -> Self {
        let mut rng = Rng::new(SEED);
        let deadlines_ms = (0..n).map(|_| 1 + rng.below(DEADLINES_END_MS - 1)).collect();
        let cancels = permutation(&mut rng, n);
        Self { n, deadlines_ms, cancels }
    }

    /// The random source for the timers that `churn` cancels, the same each time.
    pub(crate) const fn victims(&self) -> Rng {
        Rng::new(SEED + self.n as u64)
    }

    /// The expected result if all timers with the ids `ids` fire.
    pub(crate) fn fires(ids: impl Iterator<Item = u32>) -> Fired {
        let mut fired = Fired::default();
        ids.for_each(|id| fired.note(id));
        fired
    }
}

/// Checks that a subject fired exactly the expected timers.
///
/// # Errors
///
/// A miscount, with the name of the subject.
pub(crate) fn check_fired(facts: &Facts, found: Fired, expected: Fired) -> Result<(), Failure> {
    if found.count != expected.count {
        return Err(Failure::miscount(
            facts.name,
            "the number of timers fired",
            found.count,
            expected.count,
        ));
    }
    if facts.ids == Ids::HandedBack && found.id_sum != expected.id_sum {
        return Err(Failure::miscount(
            facts.name,
            "the sum of the ids fired",
            found.id_sum,
            expected.id_sum,
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{ALL_DUE_MS, Load};

    #[test]
    fn a_load_is_the_same_each_time_and_within_its_range() {
        let load = Load::new(10_000);
        assert_eq!(load.deadlines_ms, Load::new(10_000).deadlines_ms);
        assert_eq!(load.cancels, Load::new(10_000).cancels);
        for &deadline_ms in &load.deadlines_ms {
            assert!((1..60_000).contains(&deadline_ms), "{deadline_ms}");
            assert!(u64::from(deadline_ms) < ALL_DUE_MS, "{deadline_ms}");
        }
    }
}
