//! Making a failing run smaller: fewer faults that break the same invariant.
//!
//! This is delta debugging (Zeller and Hildebrandt, 2002): parts of the list are left out, first
//! large ones, then small ones, and what still fails is kept. In the end no single fault can be
//! left out.

use alloc::vec::Vec;

use crate::{
    fault::Fault,
    run::{Outcome, Workload, run},
};

/// What came of the attempt.
#[derive(Debug)]
pub struct Shrunk {
    /// The smallest run that was found; it breaks the same invariant.
    pub outcome: Outcome,
    /// How many runs it took.
    pub runs: usize,
}

/// Looks for fewer faults by which the run of `failed` breaks the same invariant, in at most `runs_max`
/// runs. None if the run does not fail when it is repeated.
#[must_use]
pub fn shrink(workload: &dyn Workload, failed: &Outcome, runs_max: usize) -> Option<Shrunk> {
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
                // Faults at points that are not reached any more are of no use either.
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
