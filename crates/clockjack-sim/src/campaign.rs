//! A campaign: many runs, their totals, and whether the campaign covers enough.

use core::fmt;
use std::collections::BTreeMap;

use crate::{
    context::Mode,
    fault::Class,
    invariant::{Invariant, Violation},
    run::{RunOutcome, Workload, run},
};

/// The number of runs of a workload from which on every fault class must have fired and every
/// invariant must have been checked.
pub const MEANINGFUL: u64 = 60;
/// Every Nth run of a campaign is repeated, and must give the same trace.
const REPEATED: u64 = 50;

/// Ticks (milliseconds) per hour.
const TICKS_PER_HOUR: u64 = 3_600_000;

/// Which runs a campaign consists of.
#[derive(Clone, Debug)]
pub struct Plan<'w> {
    /// The workloads; consecutive seeds use them in turn.
    pub workloads: Vec<&'w dyn Workload>,
    /// The mode of all runs; `None` runs every third seed for liveness and the others for safety.
    pub mode: Option<Mode>,
    /// Whether every run is repeated.
    pub is_twice: bool,
}

impl fmt::Debug for dyn Workload + '_ {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Workload({})", self.description().name)
    }
}

/// The totals of all runs.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// The number of runs, without repetitions.
    pub runs: u64,
    /// The number of repeated runs.
    pub repeated: u64,
    /// The number of records in all traces.
    pub records: u64,
    /// Simulated time in ticks.
    pub ticks: u64,
    workloads: BTreeMap<&'static str, PerWorkload>,
}

#[derive(Clone, Debug, Default)]
struct PerWorkload {
    runs: u64,
    faults: BTreeMap<Class, u64>,
    compared: BTreeMap<Invariant, u64>,
}

impl Plan<'_> {
    /// The workload and the mode of a seed.
    #[must_use]
    pub fn at(&self, seed: u64) -> (&dyn Workload, Mode) {
        let at = usize::try_from(seed % self.workloads.len().max(1) as u64).unwrap_or(0);
        let turn = seed / self.workloads.len().max(1) as u64;
        let drawn = if turn.is_multiple_of(3) { Mode::Liveness } else { Mode::Safety };
        (self.workloads[at], self.mode.unwrap_or(drawn))
    }

    /// Runs a seed, repeats the run if required, and adds it to the totals. The outcome contains
    /// the violations.
    pub fn run_seed(&self, seed: u64, tally: &mut Tally) -> RunOutcome {
        let (workload, mode) = self.at(seed);
        let mut outcome = run(workload, seed, mode, None);
        tally.add(&outcome);
        if outcome.is_clean() && (self.is_twice || tally.runs.is_multiple_of(REPEATED)) {
            tally.repeated += 1;
            let again = run(workload, seed, mode, None);
            if let Some(violation) = difference(&outcome, &again) {
                outcome.violations.push(violation);
            }
        }
        outcome
    }
}

/// The violation of D1 if two runs of one seed differ.
fn difference(one: &RunOutcome, other: &RunOutcome) -> Option<Violation> {
    let is_same = one.hash == other.hash && one.trace == other.trace;
    let differ = || one.trace.iter().zip(&other.trace).position(|(a, b)| a != b);
    (!is_same).then(|| Violation {
        invariant: Invariant::D1,
        tick: 0,
        text: format!(
            "traces {:016x} and {:016x}, of {} and {} bytes, differ at byte {:?}",
            one.hash,
            other.hash,
            one.trace.len(),
            other.trace.len(),
            differ()
        ),
    })
}

impl Tally {
    fn add(&mut self, outcome: &RunOutcome) {
        self.runs += 1;
        self.records += outcome.records;
        self.ticks += outcome.ticks;
        let workload = self.workloads.entry(outcome.workload).or_default();
        workload.runs += 1;
        for class in Class::ALL {
            *workload.faults.entry(*class).or_default() += outcome.fired[class.index()];
        }
        for (invariant, n) in &outcome.compared {
            *workload.compared.entry(*invariant).or_default() += n;
        }
    }

    /// What the campaign does not cover: for each workload with enough runs, the fault classes that
    /// never fired and the invariants that were never checked.
    #[must_use]
    pub fn coverage_gaps(&self, plan: &Plan<'_>) -> Vec<String> {
        let mut gaps = Vec::new();
        for workload in &plan.workloads {
            let description = workload.description();
            let name = description.name;
            let Some(seen) = self.workloads.get(name) else { continue };
            if seen.runs < MEANINGFUL {
                continue;
            }
            let is_silent = |class: &Class| seen.faults.get(class).is_none_or(|n| *n == 0);
            for class in description.classes().filter(is_silent) {
                gaps.push(format!("{name}: fault class {class} never fired"));
            }
            let is_unseen = |invariant: &&Invariant| {
                let is_wanted = !invariant.needs_liveness() || plan.mode != Some(Mode::Safety);
                is_wanted && seen.compared.get(invariant).is_none_or(|n| *n == 0)
            };
            for invariant in description.invariants.iter().filter(is_unseen) {
                gaps.push(format!("{name}: invariant {invariant} was never checked"));
            }
        }
        gaps
    }

    /// The number of faults in all runs.
    #[must_use]
    pub fn faults(&self) -> u64 {
        self.workloads.values().flat_map(|workload| workload.faults.values()).sum()
    }

    /// The number of invariant checks in all runs.
    #[must_use]
    pub fn comparisons(&self) -> u64 {
        self.workloads.values().flat_map(|workload| workload.compared.values()).sum()
    }

    /// Simulated time in whole hours.
    #[must_use]
    pub fn hours(&self) -> u64 {
        self.ticks / TICKS_PER_HOUR
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { runs, repeated, records, .. } = self;
        writeln!(
            f,
            "{runs} runs ({repeated} repeated), {} simulated hours, {records} events, {} faults, \
             {} comparisons",
            self.hours(),
            self.faults(),
            self.comparisons()
        )?;
        write!(f, "\n{:<16}", "fault")?;
        self.workloads.keys().try_for_each(|workload| write!(f, "{workload:>12}"))?;
        let is_known = |class: &&Class| {
            self.workloads
                .values()
                .any(|workload| workload.faults.get(class).is_some_and(|n| *n > 0))
        };
        for class in Class::ALL.iter().filter(is_known) {
            write!(f, "\n{class:<16}")?;
            for workload in self.workloads.values() {
                write!(f, "{:>12}", workload.faults.get(class).copied().unwrap_or(0))?;
            }
        }
        write!(f, "\n\n{:<16}", "invariant")?;
        self.workloads.keys().try_for_each(|workload| write!(f, "{workload:>12}"))?;
        let is_seen = |invariant: &&Invariant| {
            self.workloads
                .values()
                .any(|workload| workload.compared.get(invariant).is_some_and(|n| *n > 0))
        };
        for invariant in Invariant::ALL.iter().filter(is_seen) {
            write!(f, "\n{invariant:<16}")?;
            for workload in self.workloads.values() {
                write!(f, "{:>12}", workload.compared.get(invariant).copied().unwrap_or(0))?;
            }
        }
        writeln!(f)
    }
}
