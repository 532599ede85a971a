//! rayon, which has no tasks that wait: it forks and joins.

use rayon::ThreadPoolBuilder;

use super::load;
use super::measure::{Meter, Run};
use super::subject::{Case, N_WORKERS};
use crate::failure::Failure;
use crate::measure::Cost;
use crate::report::{Facts, Standing};

pub(crate) const FACTS: Facts = Facts {
    name: "rayon",
    package: Some("rayon"),
    standing: Standing::Rival,
    note: "`rayon::join` in a separate pool; nothing is spawned, boxed or awaited",
};

/// The cases that it supports.
pub(crate) const CASES: &[Case] = &[Case::ForkJoin];

/// Runs the case.
///
/// # Errors
///
/// If the pool cannot be started, or lost a leaf.
pub(crate) fn run(run: &Run) -> Result<Cost, Failure> {
    let pool = ThreadPoolBuilder::new().num_threads(N_WORKERS).build();
    let refused = |source| Failure::start(FACTS.name, std::io::Error::other(source));
    let pool = pool.map_err(refused)?;
    let mut meter = Meter::new(FACTS.name, run);
    for pass in run.passes() {
        let depth = load::depth(u64::from(run.n));
        meter.note(pass, pool.install(|| pass.measure(|| fork(0, depth))))?;
    }
    Ok(meter.cost())
}

fn fork(first: u64, depth: u32) -> u64 {
    let Some(below) = depth.checked_sub(1) else { return load::leaf_work(first) };
    let (own, other) = rayon::join(|| fork(first, below), || fork(first + (1 << below), below));
    own.wrapping_add(other)
}
