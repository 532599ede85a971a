//! One subject under one load, once, freshly started. What repeats, rotates and takes medians is
//! the suite.
//!
//! The clocks are read by the driver, within the subject: to start and stop it is nobody's
//! operation. The first pass of each run is not measured; it warms the subject and the allocator.

use super::load;
use super::subject::{Case, Facts, Subject};
use crate::clock::{Elapsed, Started, Watch};
use crate::failure::Failure;
use crate::tally::{CountingAll, Tally};

/// How a run is made.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Run {
    pub(crate) case: Case,
    pub(crate) n: u32,
    pub(crate) mode: Mode,
    pub(crate) watch: Watch,
}

/// Counting costs time, so a run either counts or is timed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    Timed,
    /// Counts allocations and the bytes that stay.
    Counted,
}

/// What a run says about its case, for one operation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Figure {
    /// CPU time of all threads together.
    pub(crate) cpu_ns: f64,
    pub(crate) wall_ns: f64,
    /// Allocations; zero in a timed run.
    pub(crate) n_allocs: f64,
    /// Bytes given out and not given back; zero in a timed run.
    pub(crate) live_bytes: f64,
}

/// One pass over a load.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pass {
    is_warm_up: bool,
    mode: Mode,
    watch: Watch,
}

impl Pass {
    /// Begins what is measured of a pass.
    pub(crate) fn begin(self) -> Begun {
        let counting = (self.mode == Mode::Counted && !self.is_warm_up).then(CountingAll::begin);
        Begun { counting, started: self.watch.start() }
    }
}

/// The measured part of a pass, under way.
#[derive(Debug)]
pub(crate) struct Begun {
    counting: Option<CountingAll>,
    started: Started,
}

impl Begun {
    pub(crate) fn end(self) -> Spent {
        let elapsed = self.started.stop();
        Spent { elapsed, tally: self.counting.map_or(Tally::default(), CountingAll::stop) }
    }
}

/// What the measured part of a pass took.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Spent {
    elapsed: Elapsed,
    tally: Tally,
}

/// Starts a subject, runs it through one case and stops it.
///
/// # Errors
///
/// If it cannot be started, or lost something of the load.
pub(crate) fn run<S: Subject>(run: &Run) -> Result<Figure, Failure> {
    let Run { case, n, mode, watch } = *run;
    let passes = S::run(case.threads, move |subject| async move {
        let warm_up = Pass { is_warm_up: true, mode, watch };
        let warmed = load::pass(&subject, case.load, n, warm_up).await;
        let measured = Pass { is_warm_up: false, mode, watch };
        [warmed, load::pass(&subject, case.load, n, measured).await]
    })?;
    let expected = load::expected(case.load, n);
    for (_, found) in passes {
        if found != expected {
            let what = "the sum over all actors";
            return Err(Failure::miscount(S::FACTS.name, what, found, expected));
        }
    }
    let [_, (spent, _)] = passes;
    let n_ops = load::n_ops(case.load, n) as f64;
    Ok(Figure {
        cpu_ns: spent.elapsed.cpu_ns / n_ops,
        wall_ns: spent.elapsed.wall_ns / n_ops,
        n_allocs: spent.tally.n_allocs as f64 / n_ops,
        live_bytes: spent.tally.live_bytes as f64 / n_ops,
    })
}

/// A subject whose type is forgotten, so that all of them stand in one list.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    pub(crate) facts: Facts,
    pub(crate) run: fn(&Run) -> Result<Figure, Failure>,
}

impl Entry {
    pub(crate) const fn name(&self) -> &'static str {
        self.facts.name
    }

    pub(crate) const fn of<S: Subject>() -> Self {
        Self { facts: S::FACTS, run: run::<S> }
    }
}
