//! Many runs: which seeds, what they add up to, and whether that means anything.

use alloc::{collections::BTreeMap, format, string::String, vec::Vec};
use core::fmt;

use crate::{
    context::Mode,
    fault::Class,
    invariant::{Invariant, Violation},
    run::{Outcome, Workload, run},
};

/// From how many runs of a workload on each of its fault classes must have fired, and each of its invariants
/// have been looked at.
pub const MEANINGFUL: u64 = 60;
/// In a campaign each run of so many is repeated, and must give the same trace.
const REPEATED: u64 = 50;

/// Ticks of a millisecond in an hour.
const TICKS_PER_HOUR: u64 = 3_600_000;

/// What is to be run.
#[derive(Clone, Debug)]
pub struct Plan<'w> {
    /// Where. Seeds take turns.
    pub workloads: Vec<&'w dyn Workload>,
    /// To show what; if it is open, each third run is for liveness.
    pub mode: Option<Mode>,
    /// Whether every run is repeated.
    pub is_twice: bool,
}

impl fmt::Debug for dyn Workload + '_ {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "World({})", self.description().name)
    }
}

/// What the runs add up to.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// Runs, repetitions apart.
    pub runs: u64,
    /// Those that were repeated.
    pub repeated: u64,
    /// Records of all traces.
    pub records: u64,
    /// Simulated time, in ticks.
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

    /// Plays the run of a seed, and again if that is wanted, and counts it in. What was broken is
    /// in the outcome.
    pub fn play(&self, seed: u64, tally: &mut Tally) -> Outcome {
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

/// What is wrong if two runs of one seed are not alike.
fn difference(one: &Outcome, other: &Outcome) -> Option<Violation> {
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
    fn add(&mut self, outcome: &Outcome) {
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

    /// What keeps the campaign from meaning anything: of each workload that had enough runs, the fault
    /// classes that never fired and the invariants that were never looked at.
    #[must_use]
    pub fn gaps(&self, plan: &Plan<'_>) -> Vec<String> {
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
                gaps.push(format!("{name}: no fault of class {class}"));
            }
            let is_unseen = |invariant: &&Invariant| {
                let is_wanted = **invariant != Invariant::L1 || plan.mode != Some(Mode::Safety);
                is_wanted && seen.compared.get(invariant).is_none_or(|n| *n == 0)
            };
            for invariant in description.invariants.iter().filter(is_unseen) {
                gaps.push(format!("{name}: {invariant} was never looked at"));
            }
        }
        gaps
    }

    /// All faults.
    #[must_use]
    pub fn faults(&self) -> u64 {
        self.workloads.values().flat_map(|workload| workload.faults.values()).sum()
    }

    /// All comparisons.
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
