//! Rounds, the order of the subjects within a round, and the medians over all rounds, the same for
//! every suite.

use crate::failure::Failure;
use crate::report::Reporter;
use crate::selection::Named;
use crate::stats::Quartiles;

/// The results of each round, by subject: round 0 first, then the timed rounds.
#[derive(Clone, Debug)]
pub(crate) struct Results<R> {
    all: Vec<(&'static str, Vec<R>)>,
}

/// A value of each subject, by name.
pub(crate) type BySubject<T> = Vec<(&'static str, Option<T>)>;

impl<R> Results<R> {
    /// The value of `pick` for all rounds of each subject.
    pub(crate) fn each<T>(&self, pick: impl Fn(&'static str, &[R]) -> Option<T>) -> BySubject<T> {
        self.all.iter().map(|(name, rounds)| (*name, pick(name, rounds))).collect()
    }

    /// The value of `pick` for round 0.
    pub(crate) fn counted(&self, pick: impl Fn(&R) -> Option<f64>) -> BySubject<f64> {
        self.each(|_, rounds| rounds.first().and_then(&pick))
    }

    /// The quartiles of the values of `pick` in the timed rounds.
    pub(crate) fn quartiles(&self, pick: impl Fn(&R) -> Option<f64>) -> BySubject<Quartiles> {
        self.each(|_, rounds| {
            let samples: Vec<f64> = rounds.iter().skip(1).filter_map(&pick).collect();
            Quartiles::of(&samples)
        })
    }

    /// The medians of the values of `pick` in the timed rounds.
    pub(crate) fn medians(&self, pick: impl Fn(&R) -> Option<f64>) -> BySubject<f64> {
        let median = |(name, cuts): (_, Option<Quartiles>)| (name, cuts.map(|cuts| cuts.median));
        self.quartiles(pick).into_iter().map(median).collect()
    }
}

/// Runs all subjects interleaved, from round 0 to `n_rounds`; `what` describes the work in the
/// progress line.
///
/// # Errors
///
/// The error of the first run that fails; no further run is made.
pub(crate) fn in_turns<S: Named, R>(
    what: &str,
    n_rounds: u32,
    subjects: &[S],
    reporter: &mut Reporter<'_>,
    mut turn: impl FnMut(u32, &S) -> Result<R, Failure>,
) -> Result<Results<R>, Failure> {
    let mut all: Vec<_> = subjects.iter().map(|subject| (subject.name(), vec![])).collect();
    for round in 0..=n_rounds {
        for index in turn_order(round as usize, all.len()) {
            let (name, results) = &mut all[index];
            reporter.progress(&format!("{what}: round {round}/{n_rounds}, {name}"));
            results.push(turn(round, &subjects[index])?);
        }
    }
    Ok(Results { all })
}

/// The order of the subjects in a round: each round starts with another subject, and every second
/// round goes in reverse order, so that no subject always follows the same one.
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
    use super::{Results, turn_order};

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

    #[test]
    fn the_round_that_counts_is_not_among_those_that_were_timed() {
        let all = Results { all: vec![("a", vec![100.0, 1.0, 3.0, 2.0]), ("b", vec![50.0])] };
        assert_eq!(all.counted(|&one| Some(one)), [("a", Some(100.0)), ("b", Some(50.0))]);
        assert_eq!(all.medians(|&one| Some(one)), [("a", Some(2.0)), ("b", None)]);
        let above = |&one: &f64| Some(one).filter(|&one| one > 2.0);
        assert_eq!(all.medians(above), [("a", Some(3.0)), ("b", None)]);
    }
}
