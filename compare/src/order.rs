//! Who comes when: the order of the subjects within a round, the same for every suite.

/// The order of the subjects in a round: each round starts at another one, and every second goes
/// backwards, so that nobody always runs behind the same neighbour.
pub(crate) fn turn_order(round: usize, n_subjects: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..n_subjects).collect();
    if n_subjects > 0 {
        order.rotate_left(round % n_subjects);
    }
    if round % 2 == 1 {
        order.reverse();
    }
    order
}

#[cfg(test)]
mod tests {
    use super::turn_order;

    #[test]
    fn every_subject_takes_every_place_and_has_changing_neighbours() {
        let n = 7;
        for place in 0..n {
            let mut seen: Vec<usize> =
                (0..2 * n).map(|round| turn_order(round, n)[place]).collect();
            seen.sort_unstable();
            seen.dedup();
            assert_eq!(seen.len(), n, "place {place} saw only {seen:?}");
        }
        assert_eq!(turn_order(0, 3), [0, 1, 2]);
        assert_eq!(turn_order(1, 3), [0, 2, 1]);
        assert_eq!(turn_order(2, 3), [2, 0, 1]);
        assert!(turn_order(5, 0).is_empty());
    }
}
