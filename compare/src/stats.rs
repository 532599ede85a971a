//! Order statistics of a few dozen samples: the median is the figure, the quartiles show the
//! spread. No means: one preempted round would distort them.

/// The three cuts of a sample into quarters.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Quartiles {
    pub(crate) q1: f64,
    pub(crate) median: f64,
    pub(crate) q3: f64,
}

impl Quartiles {
    /// The quartiles of `samples`, or `None` if there are none.
    ///
    /// A cut between two samples is interpolated, so that the median of an even number of samples
    /// is the mean of the two in the middle.
    ///
    /// # Panics
    ///
    /// If a sample is not a finite number.
    pub(crate) fn of(samples: &[f64]) -> Option<Self> {
        for sample in samples {
            assert!(sample.is_finite(), "a sample is {sample}");
        }
        let mut sorted = samples.to_vec();
        sorted.sort_unstable_by(f64::total_cmp);
        Some(Self { q1: cut(&sorted, 1)?, median: cut(&sorted, 2)?, q3: cut(&sorted, 3)? })
    }
}

/// The median of `samples`, or `None` if there are none.
pub(crate) fn median(samples: &[f64]) -> Option<f64> {
    Quartiles::of(samples).map(|quartiles| quartiles.median)
}

/// The smallest sample that at least `per_cent` of the samples do not exceed, or `None` if there
/// are none.
///
/// This is always a measured sample: the tail of a latency is not interpolated.
pub(crate) fn percentile<T: Copy>(sorted: &[T], per_cent: usize) -> Option<T> {
    let rank = (sorted.len() * per_cent).div_ceil(100).max(1);
    sorted.get(rank - 1).copied()
}

/// The point `quarters / 4` of the way through `sorted`.
fn cut(sorted: &[f64], quarters: usize) -> Option<f64> {
    let last = sorted.len().checked_sub(1)?;
    let below = last * quarters / 4;
    let rest = (last * quarters % 4) as f64 / 4.0;
    let above = (below + 1).min(last);
    Some(sorted[below] + (sorted[above] - sorted[below]) * rest)
}

#[cfg(test)]
mod tests {
    use super::{Quartiles, median, percentile};

    #[test]
    fn an_empty_sample_has_no_median() {
        assert_eq!(median(&[]), None);
        assert_eq!(Quartiles::of(&[]), None);
    }

    #[test]
    fn quartiles_of_known_samples() {
        fn check(samples: &[f64], q1: f64, median: f64, q3: f64) {
            assert_eq!(Quartiles::of(samples), Some(Quartiles { q1, median, q3 }), "{samples:?}");
        }
        check(&[5.0], 5.0, 5.0, 5.0);
        check(&[1.0, 2.0], 1.25, 1.5, 1.75);
        check(&[3.0, 1.0, 2.0], 1.5, 2.0, 2.5);
        check(&[4.0, 1.0, 3.0, 2.0], 1.75, 2.5, 3.25);
        check(&[5.0, 4.0, 3.0, 2.0, 1.0], 2.0, 3.0, 4.0);
    }

    #[test]
    fn one_outlier_does_not_move_the_median() {
        assert_eq!(median(&[10.0, 11.0, 1e9, 9.0, 10.0]), Some(10.0));
    }

    #[test]
    fn a_percentile_is_a_sample_that_so_many_do_not_exceed() {
        fn check(n: u64, per_cent: usize, expected: Option<u64>) {
            let sorted: Vec<u64> = (1..=n).collect();
            assert_eq!(percentile(&sorted, per_cent), expected, "{per_cent} % of 1..={n}");
        }
        check(0, 50, None);
        check(1, 0, Some(1));
        check(1, 100, Some(1));
        check(100, 50, Some(50));
        check(100, 99, Some(99));
        check(101, 99, Some(100));
        check(7, 90, Some(7));
        check(1_000, 100, Some(1_000));
    }

    #[test]
    #[should_panic(expected = "a sample is NaN")]
    fn a_sample_that_is_no_number_is_refused() {
        let _unreachable = median(&[1.0, f64::NAN]);
    }
}
