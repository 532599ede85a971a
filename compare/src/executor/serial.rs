//! The work of a case without any executor, on one thread: two workers can take half of this time
//! at best.

use super::load;
use super::measure::{Meter, Run};
use super::subject::Case;
use crate::failure::Failure;
use crate::measure::Cost;
use crate::report::{Facts, Standing};

pub(crate) const FACTS: Facts = Facts {
    name: "serial",
    package: None,
    standing: Standing::Reference,
    note: "the arithmetic alone on one thread",
};

/// The cases that it supports.
pub(crate) const CASES: &[Case] = &[Case::ForkJoin, Case::Steal];

/// Runs the case.
///
/// # Errors
///
/// None: the signature is that of the other subjects.
pub(crate) fn run(run: &Run) -> Result<Cost, Failure> {
    let mut meter = Meter::new(FACTS.name, run);
    let work = if run.case == Case::Steal { load::serial_tasks } else { load::serial_leaves };
    for pass in run.passes() {
        meter.note(pass, pass.measure(|| work(run.n)))?;
    }
    Ok(meter.cost())
}
