//! Random choices that depend only on a seed, so that a seed identifies a run on every machine.

pub(crate) use clockjack_sync::splitmix::{SplitMix as Rng, mix};

/// Shuffles `items` (Fisher-Yates).
///
/// # Panics
///
/// If there are more than `u32::MAX` items.
pub(crate) fn shuffle<T>(rng: &mut Rng, items: &mut [T]) {
    for last in (1..items.len()).rev() {
        let bound = u32::try_from(last + 1).expect("a slice of at most u32::MAX items");
        items.swap(last, rng.below(bound) as usize);
    }
}

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
    use super::{Choice, Rng, shuffle};

    #[test]
    fn a_shuffle_keeps_every_item_and_changes_the_order() {
        let sorted: Vec<u32> = (0..1_000).collect();
        let mut items = sorted.clone();
        shuffle(&mut Rng::new(3), &mut items);
        assert_ne!(items, sorted);
        items.sort_unstable();
        assert_eq!(items, sorted);
        shuffle::<u32>(&mut Rng::new(3), &mut []);
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
