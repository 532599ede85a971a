//! The work of a case without any executor, on one thread: half of it is what two workers could
//! reach at best.

use super::load;
use super::measure::{Figure, Meter, Run};
use super::subject::{Case, Facts};
use crate::failure::Failure;
use crate::report::Standing;

pub(crate) const FACTS: Facts = Facts {
    name: "serial",
    package: None,
    standing: Standing::Reference,
    cases: &[Case::ForkJoin, Case::Steal],
    note: "the arithmetic alone on one thread",
};

/// Runs the case.
///
/// # Errors
///
/// None: the signature is that of the other subjects.
pub(crate) fn run(run: &Run) -> Result<Figure, Failure> {
    let mut meter = Meter::new(FACTS.name, run);
    let work = if run.case == Case::Steal { load::serial_tasks } else { load::serial_leaves };
    for pass in run.passes() {
        meter.note(pass, pass.measure(|| work(run.n)))?;
    }
    Ok(meter.figure())
}
