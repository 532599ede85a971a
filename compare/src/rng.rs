//! The random values of the loads, so that every subject and every run has the same deadlines and
//! the same order of cancels.

pub(crate) use clockjack_sync::splitmix::SplitMix as Rng;

/// The numbers `0..n` in random order (Fisher and Yates).
pub(crate) fn permutation(rng: &mut Rng, n: u32) -> Vec<u32> {
    let mut order: Vec<u32> = (0..n).collect();
    for last in (1..n).rev() {
        let other = rng.below(last + 1);
        order.swap(last as usize, other as usize);
    }
    order
}

#[cfg(test)]
mod tests {
    use super::{Rng, permutation};

    #[test]
    fn a_permutation_holds_every_number_once_and_is_not_the_identity() {
        let order = permutation(&mut Rng::new(3), 1_000);
        let mut sorted = order.clone();
        sorted.sort_unstable();
        let identity: Vec<u32> = (0..1_000).collect();
        assert_eq!(sorted, identity);
        assert_ne!(order, identity);
        assert!(permutation(&mut Rng::new(3), 0).is_empty());
    }
}
