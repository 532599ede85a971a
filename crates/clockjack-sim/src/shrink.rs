//! Shrinks a failing run: fewer faults that violate the same invariant.
//!
//! This is delta debugging (Zeller and Hildebrandt, 2002): the search leaves out parts of the fault
//! list, first large parts, then small ones, and keeps a list that still fails. In the result, no
//! single fault can be left out.

use crate::{
    fault::Fault,
    run::{RunOutcome, Workload, run},
};

/// The result of shrinking.
#[derive(Debug)]
pub struct Shrunk {
    /// The smallest run that was found; it violates the same invariant.
    pub outcome: RunOutcome,
    /// The number of runs that the search took.
    pub runs: usize,
}

/// Searches for fewer faults with which the run of `failed` violates the same invariant, in at most
/// `runs_max` runs. Returns `None` if the repeated run does not fail.
#[must_use]
pub fn shrink(workload: &dyn Workload, failed: &RunOutcome, runs_max: usize) -> Option<Shrunk> {
    let invariant = failed.violations.first()?.invariant;
    let mut runs = 0;
    let mut attempt = |faults: &[Fault]| {
        runs += 1;
        let outcome = run(workload, failed.seed, failed.mode, Some(faults));
        let fails =
            outcome.violations.first().is_some_and(|violation| violation.invariant == invariant);
        fails.then_some(outcome)
    };
    let mut best = attempt(&failed.faults)?;
    if let Some(none) = attempt(&[]) {
        return Some(Shrunk { outcome: none, runs });
    }
    let mut best_list = best.faults.clone();
    let mut left = runs_max;
    let mut parts = 2;
    while best_list.len() > 1 && left > 0 {
        let size = best_list.len().div_ceil(parts);
        let mut smaller = None;
        for start in (0..best_list.len()).step_by(size) {
            left = left.saturating_sub(1);
            let end = (start + size).min(best_list.len());
            let rest: Vec<Fault> =
                best_list[..start].iter().chain(&best_list[end..]).copied().collect();
            if let Some(outcome) = attempt(&rest) {
                smaller = Some((outcome, rest));
                break;
            }
            if left == 0 {
                break;
            }
        }
        match smaller {
            Some((outcome, rest)) => {
                // Faults at points that the run no longer reaches have no effect either.
                best_list =
                    if outcome.faults.len() < rest.len() { outcome.faults.clone() } else { rest };
                best = outcome;
                parts = parts.saturating_sub(1).max(2);
            }
            None if size == 1 => break,
            None => parts = (parts * 2).min(best_list.len()),
        }
    }
    Some(Shrunk { outcome: best, runs })
}
