//! Who comes when: rounds, and the order of the subjects within a round, the same for every suite.

use crate::failure::Failure;
use crate::report::Reporter;

/// Who ran, and what came out in each round.
pub(crate) type Results<S, R> = Vec<(S, Vec<R>)>;

/// Runs all subjects interleaved, from round 0 to `n_rounds`; `what` says in the progress line
/// what is done.
///
/// # Errors
///
/// The first that a turn has; no other turn follows it.
pub(crate) fn in_turns<S: Copy, R>(
    what: &str,
    n_rounds: u32,
    subjects: &[S],
    name: impl Fn(&S) -> &'static str,
    reporter: &mut Reporter<'_>,
    mut turn: impl FnMut(u32, &S) -> Result<R, Failure>,
) -> Result<Results<S, R>, Failure> {
    let mut all: Results<S, R> = subjects.iter().map(|&subject| (subject, vec![])).collect();
    for round in 0..=n_rounds {
        for index in turn_order(round as usize, all.len()) {
            let (subject, results) = &mut all[index];
            let name = name(subject);
            reporter.progress(&format!("{what}: round {round}/{n_rounds}, {name}"));
            results.push(turn(round, subject)?);
        }
    }
    Ok(all)
}

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
