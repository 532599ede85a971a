//! Random choices that depend only on a seed, so that a seed identifies a run on every machine.

pub(crate) use clockjack_sync::splitmix::{SplitMix as Rng, mix};

/// Chooses exactly `wanted` of `left` items that are offered one by one; every subset is equally
/// likely (selection sampling: Knuth, The Art of Computer Programming, 3.4.2, algorithm S).
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

#[cfg(test)]
mod tests {
    use super::{Choice, Rng};

    #[test]
    fn a_choice_takes_as_many_as_wanted_and_not_the_first_ones() {
        let mut rng = Rng::new(5);
        let mut choice = Choice { wanted: 10, left: 1_000 };
        let taken: Vec<u32> = (0..1_000).filter(|_| choice.takes_next(&mut rng)).collect();
        assert_eq!(taken.len(), 10);
        assert!(taken[9] > 500, "{taken:?}");
    }
}
