//! One run: a workload, a seed, and the outcome.

use core::{any::Any, fmt, panic::AssertUnwindSafe};
use std::panic::catch_unwind;

use crate::{
    context::{Mode, SimContext},
    fault::{Class, Counts, Fault},
    invariant::{Invariant, Violation},
    random::CERTAIN,
};

/// The number of trace records in a report.
const TAIL: usize = 40;

/// A system with its load and its oracles.
///
/// # For implementers
///
/// 1. All random values come from the [`SimContext`]: settings, one stream per consumer, and
///    faults. Nothing else may differ between runs.
/// 2. The workload [records](SimContext::record) events with integers that are the same on every
///    machine.
/// 3. The expected results do not depend on the system under test: a message carries its sender and
///    its number, a timer carries its deadline.
/// 4. In [`Mode::Liveness`] the workload [heals](SimContext::heal) the simulation at some time, and
///    then checks that all work completes; in [`Mode::Safety`] the run stops at an arbitrary time.
pub trait Workload {
    /// The name, the fault classes and the invariants of the workload.
    fn description(&self) -> Description;

    /// Executes one run.
    fn run(&self, sim: &SimContext);
}

/// Static properties of a workload.
#[derive(Clone, Copy, Debug)]
pub struct Description {
    /// The name on command lines.
    pub name: &'static str,
    /// The fault classes, in groups. In a large campaign, every class must fire.
    pub faults: &'static [&'static [Class]],
    /// The invariants. In a large campaign, every invariant must be checked.
    pub invariants: &'static [Invariant],
    /// The minimum number of trace records of a meaningful run.
    pub least_records: u64,
    /// The minimum number of invariant checks of a meaningful run.
    pub least_comparisons: u64,
}

impl Description {
    /// All fault classes.
    pub fn classes(&self) -> impl Iterator<Item = Class> + use<> {
        self.faults.iter().copied().flatten().copied()
    }
}

/// A workload run with the usual phases: see [`run_phases`].
pub(crate) trait Phases {
    /// Performs one step, with faults.
    fn step(&mut self);

    /// In [`Mode::Liveness`]: no more faults; all work must complete.
    fn drain(&mut self);

    /// Shuts the system down and checks the final state.
    fn shutdown(&mut self);
}

/// Runs `n_steps` steps, then the drain phase in liveness mode, then the shutdown; stops at the
/// first violation.
pub(crate) fn run_phases(sim: &SimContext, n_steps: u64, phases: &mut impl Phases) {
    for _ in 0..n_steps {
        phases.step();
        if sim.is_broken() {
            return;
        }
    }
    if sim.mode() == Mode::Liveness {
        phases.drain();
    }
    if !sim.is_broken() {
        phases.shutdown();
    }
}

/// The outcome of a run.
#[derive(Clone, Debug)]
pub struct RunOutcome {
    /// The workload.
    pub workload: &'static str,
    /// The seed.
    pub seed: u64,
    /// The mode.
    pub mode: Mode,
    /// The random settings of the run.
    pub settings: Vec<(&'static str, u64)>,
    /// The fault rate per class, out of [`CERTAIN`] points.
    pub rates: Vec<(Class, u64)>,
    /// The faults that occurred, in order.
    pub faults: Vec<Fault>,
    /// The number of faults per class.
    pub(crate) fired: Counts,
    /// The number of checks per invariant.
    pub compared: Vec<(Invariant, u64)>,
    /// The violations.
    pub violations: Vec<Violation>,
    /// The trace.
    pub trace: Vec<u8>,
    /// The hash of the trace.
    pub hash: u64,
    /// The number of records in the trace.
    pub records: u64,
    /// The last records as text, if an invariant was violated.
    pub tail: String,
    /// The duration in ticks (milliseconds).
    pub ticks: u64,
    /// Whether the caller chose the faults.
    pub is_chosen: bool,
}

impl RunOutcome {
    /// Whether no invariant was violated.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.violations.is_empty()
    }

    /// The number of invariant checks.
    #[must_use]
    pub fn comparisons(&self) -> u64 {
        self.compared.iter().map(|(_, n)| n).sum()
    }

    /// The command that repeats this run.
    #[must_use]
    pub fn command(&self) -> String {
        let mut command =
            format!("cargo xtask sim --seed {} --workload {}", self.seed, self.workload);
        if self.mode == Mode::Liveness {
            command += " --liveness";
        }
        if self.is_chosen {
            let list: Vec<String> = self.faults.iter().map(|fault| format!("{fault}")).collect();
            command += &format!(" --faults '{}'", list.join(","));
        }
        command
    }
}

impl fmt::Display for RunOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { workload, seed, mode, hash, records, ticks, .. } = self;
        writeln!(
            f,
            "seed {seed}, workload {workload}, {mode}: trace {hash:016x}, {records} records, \
             {ticks} ms"
        )?;
        write!(f, "  settings:")?;
        self.settings.iter().try_for_each(|(name, value)| write!(f, " {name}={value}"))?;
        write!(f, "\n  fault rates per {CERTAIN} points:")?;
        self.rates.iter().try_for_each(|(class, rate)| write!(f, " {class}={rate}"))?;
        write!(f, "\n  faults: {}", self.faults.len())?;
        for violation in &self.violations {
            write!(f, "\n  BROKEN {violation}")?;
        }
        if !self.is_clean() {
            write!(f, "\n  end of the trace:")?;
            self.tail.lines().try_for_each(|line| write!(f, "\n    {line}"))?;
            write!(f, "\n  repeat with: {}", self.command())?;
        }
        Ok(())
    }
}

/// Executes a run. With `only`, exactly these faults can occur.
#[must_use]
pub fn run(workload: &dyn Workload, seed: u64, mode: Mode, only: Option<&[Fault]>) -> RunOutcome {
    let description = workload.description();
    let sim = SimContext::new(seed, mode, description.classes(), only);
    let start = sim.now();
    let result = catch_unwind(AssertUnwindSafe(|| workload.run(&sim)));
    if let Err(payload) = result {
        sim.check(Invariant::X5, false, || format!("the run panicked: {}", message(&*payload)));
    }
    judge_work(&description, &sim, only.is_some());
    sim.with(|inner| {
        let is_clean = inner.checker.violations().is_empty();
        let rate = |class: Class| (class, inner.faults.rates()[class.index()]);
        RunOutcome {
            workload: description.name,
            seed,
            mode,
            settings: inner.settings.clone(),
            rates: description.classes().map(rate).collect(),
            faults: inner.faults.log().to_vec(),
            fired: *inner.faults.fired(),
            compared: Invariant::ALL.iter().copied().zip(*inner.checker.compared()).collect(),
            violations: inner.checker.violations().to_vec(),
            trace: inner.trace.bytes().to_vec(),
            hash: inner.trace.hash(),
            records: inner.trace.records(),
            tail: if is_clean { String::new() } else { inner.trace.tail(TAIL) },
            ticks: sim.now() - start,
            is_chosen: only.is_some(),
        }
    })
}

/// A run that did too little fails. A run with chosen faults is exempt: it may violate an invariant
/// early.
fn judge_work(description: &Description, sim: &SimContext, is_chosen: bool) {
    if is_chosen || sim.is_broken() {
        return;
    }
    let (records, comparisons) =
        sim.with(|inner| (inner.trace.records(), inner.checker.compared().iter().sum::<u64>()));
    let (least, enough) = (description.least_records, description.least_comparisons);
    sim.check(Invariant::W1, records >= least, || format!("{records} records, fewer than {least}"));
    sim.check(Invariant::W1, comparisons >= enough, || {
        format!("{comparisons} comparisons, fewer than {enough}")
    });
}

fn message(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| payload.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "a payload that is not a string".to_owned())
}

/// The payload of an injected panic.
#[derive(Debug)]
pub struct Injected;

/// Injects a panic as a fault. Nothing is printed, because the program is not at fault.
pub fn inject_panic() -> ! {
    std::panic::resume_unwind(Box::new(Injected))
}
