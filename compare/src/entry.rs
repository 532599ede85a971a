//! Subjects that run one load several times, in the list of their suite.

use alloc::sync::Arc;
use core::fmt;

use crate::clock::Watch;
use crate::failure::Failure;
use crate::measure::Mode;
use crate::order::{Results, in_turns};
use crate::report::{Facts, Reporter};
use crate::selection::{Effort, Listed};

/// The parameters of a run over the load `L`.
#[derive(Debug)]
pub(crate) struct Run<L> {
    pub(crate) load: Arc<L>,
    /// How often the load is measured within the run.
    pub(crate) n_passes: u32,
    pub(crate) mode: Mode,
    pub(crate) watch: Watch,
}

/// A subject without its type, so that all subjects of a suite are in one list.
pub(crate) struct Entry<L, F> {
    pub(crate) facts: Facts,
    /// Starts the subject, runs it through the load and returns its figures.
    pub(crate) run: fn(&Run<L>) -> Result<F, Failure>,
}

// Implemented by hand, because a derive would require `L: Copy`.
impl<L, F> Copy for Entry<L, F> {}

impl<L, F> Clone for Entry<L, F> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<L, F> fmt::Debug for Entry<L, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Entry").field("facts", &self.facts).finish_non_exhaustive()
    }
}

impl<L, F> Listed for Entry<L, F> {
    fn facts(&self) -> &Facts {
        &self.facts
    }
}

/// How often and how each subject runs a load.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    pub(crate) effort: Effort,
    pub(crate) n_rounds: u32,
    pub(crate) watch: Watch,
}

impl Plan {
    /// Runs all subjects through a load, interleaved, round after round; `what` names the load in
    /// the progress line.
    ///
    /// # Errors
    ///
    /// The error of the first run that fails; no further run is made.
    pub(crate) fn run<L, F>(
        self,
        what: &str,
        load: L,
        subjects: &[Entry<L, F>],
        reporter: &mut Reporter<'_>,
    ) -> Result<Results<F>, Failure> {
        let load = Arc::new(load);
        in_turns(what, self.n_rounds, subjects, reporter, |round, entry| {
            let mode = Mode::of_round(round);
            let n_passes = self.effort.n_passes(mode);
            (entry.run)(&Run { load: Arc::clone(&load), n_passes, mode, watch: self.watch })
        })
    }
}

/// Runs every subject through every case at each size and passes the figures to `check`.
#[cfg(test)]
pub(crate) fn for_each_run<C: Copy, L, F>(
    subjects: &[Entry<L, F>],
    cases: &[C],
    sizes: &[u32],
    load: impl Fn(C, u32) -> L,
    check: impl Fn(&'static str, C, u32, F),
) {
    let watch = Watch::calibrated(crate::clock::Scope::Process);
    for entry in subjects {
        for &case in cases {
            for &n in sizes {
                let load = Arc::new(load(case, n));
                let run = Run { load, n_passes: 1, mode: Mode::Timed, watch };
                let figure = (entry.run)(&run).unwrap_or_else(|failure| panic!("{failure}"));
                check(entry.facts.name, case, n, figure);
            }
        }
    }
}
