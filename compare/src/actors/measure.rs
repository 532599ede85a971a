//! One run of one subject under one load, newly started. The suite repeats runs, rotates subjects
//! and takes medians.
//!
//! The driver reads the clocks inside the subject, so that the start and the stop of the subject
//! are not measured. The first pass of each run is not measured; it warms up the subject and the
//! allocator.

use super::load;
use super::subject::{Case, Load, Subject};
use crate::clock::Watch;
use crate::failure::Failure;
use crate::measure::{Begun, Cost, Mode};
use crate::report::Facts;
use crate::selection::Listed;

/// The parameters of a run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Run {
    pub(crate) case: Case,
    pub(crate) n: u32,
    pub(crate) mode: Mode,
    pub(crate) watch: Watch,
}

/// One pass over a load.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pass {
    mode: Mode,
    watch: Watch,
}

impl Pass {
    /// Starts the measured part of a pass.
    pub(crate) fn begin(self) -> Begun {
        Begun::new(self.mode, self.watch)
    }
}

/// Starts a subject, runs it through one case and stops it.
///
/// # Errors
///
/// If it cannot be started, or lost a part of the load.
pub(crate) fn run<S: Subject>(run: &Run) -> Result<Cost, Failure> {
    let Run { case, n, mode, watch } = *run;
    let passes = S::run(case.threads, move |subject| async move {
        // The cost of warming up is not used.
        let warmed = load::pass(&subject, case.load, n, Pass { mode: Mode::Timed, watch }).await;
        [warmed, load::pass(&subject, case.load, n, Pass { mode, watch }).await]
    });
    let passes = passes.map_err(|source| Failure::start(S::FACTS.name, source))?;
    let expected = load::expected(case.load, n);
    for (_, found) in passes {
        if found != expected {
            let what = "the sum over all actors";
            return Err(Failure::miscount(S::FACTS.name, what, found, expected));
        }
    }
    let [_, (spent, _)] = passes;
    Ok(spent.per(load::n_ops(case.load, n) as f64))
}

/// A subject without its type, so that all subjects are in one list.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    pub(crate) facts: Facts,
    /// The loads that it does not support.
    pub(crate) lacks: &'static [Load],
    pub(crate) run: fn(&Run) -> Result<Cost, Failure>,
}

impl Entry {
    pub(crate) const fn of<S: Subject>() -> Self {
        Self { facts: S::FACTS, lacks: S::LACKS, run: run::<S> }
    }
}

impl Listed for Entry {
    fn facts(&self) -> &Facts {
        &self.facts
    }
}
