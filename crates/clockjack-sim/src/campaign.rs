//! Many runs: which seeds, what they add up to, and whether that means anything.

use alloc::{collections::BTreeMap, format, string::String, vec::Vec};
use core::fmt;

use crate::{
    fault::Class,
    law::{Breach, Law},
    run::{Outcome, World, run},
    stage::Mode,
};

/// From how many runs of a world on each of its fault classes must have fired, and each of its laws
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
    pub worlds: Vec<&'w dyn World>,
    /// To show what; if it is open, each third run is for liveness.
    pub mode: Option<Mode>,
    /// Whether every run is repeated.
    pub is_twice: bool,
}

impl fmt::Debug for dyn World + '_ {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "World({})", self.about().name)
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
    worlds: BTreeMap<&'static str, PerWorld>,
}

#[derive(Clone, Debug, Default)]
struct PerWorld {
    runs: u64,
    faults: BTreeMap<Class, u64>,
    compared: BTreeMap<Law, u64>,
}

impl Plan<'_> {
    /// The world and the mode of a seed.
    #[must_use]
    pub fn at(&self, seed: u64) -> (&dyn World, Mode) {
        let at = usize::try_from(seed % self.worlds.len().max(1) as u64).unwrap_or(0);
        let turn = seed / self.worlds.len().max(1) as u64;
        let drawn = if turn.is_multiple_of(3) { Mode::Liveness } else { Mode::Safety };
        (self.worlds[at], self.mode.unwrap_or(drawn))
    }

    /// Plays the run of a seed, and again if that is wanted, and counts it in. What was broken is
    /// in the outcome.
    pub fn play(&self, seed: u64, tally: &mut Tally) -> Outcome {
        let (world, mode) = self.at(seed);
        let mut outcome = run(world, seed, mode, None);
        tally.add(&outcome);
        if outcome.is_clean() && (self.is_twice || tally.runs.is_multiple_of(REPEATED)) {
            tally.repeated += 1;
            let again = run(world, seed, mode, None);
            if let Some(breach) = difference(&outcome, &again) {
                outcome.breaches.push(breach);
            }
        }
        outcome
    }
}

/// What is wrong if two runs of one seed are not alike.
fn difference(one: &Outcome, other: &Outcome) -> Option<Breach> {
    let is_same = one.hash == other.hash && one.trace == other.trace;
    let differ = || one.trace.iter().zip(&other.trace).position(|(a, b)| a != b);
    (!is_same).then(|| Breach {
        law: Law::D1,
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
        let world = self.worlds.entry(outcome.world).or_default();
        world.runs += 1;
        for class in Class::ALL {
            *world.faults.entry(*class).or_default() += outcome.fired[class.index()];
        }
        for (law, n) in &outcome.compared {
            *world.compared.entry(*law).or_default() += n;
        }
    }

    /// What keeps the campaign from meaning anything: of each world that had enough runs, the fault
    /// classes that never fired and the laws that were never looked at.
    #[must_use]
    pub fn gaps(&self, plan: &Plan<'_>) -> Vec<String> {
        let mut gaps = Vec::new();
        for world in &plan.worlds {
            let about = world.about();
            let name = about.name;
            let Some(seen) = self.worlds.get(name) else { continue };
            if seen.runs < MEANINGFUL {
                continue;
            }
            let is_silent = |class: &Class| seen.faults.get(class).is_none_or(|n| *n == 0);
            for class in about.classes().filter(is_silent) {
                gaps.push(format!("{name}: no fault of class {class}"));
            }
            let is_unseen = |law: &&Law| {
                let is_wanted = **law != Law::L1 || plan.mode != Some(Mode::Safety);
                is_wanted && seen.compared.get(law).is_none_or(|n| *n == 0)
            };
            for law in about.laws.iter().filter(is_unseen) {
                gaps.push(format!("{name}: {law} was never looked at"));
            }
        }
        gaps
    }

    /// All faults.
    #[must_use]
    pub fn faults(&self) -> u64 {
        self.worlds.values().flat_map(|world| world.faults.values()).sum()
    }

    /// All comparisons.
    #[must_use]
    pub fn comparisons(&self) -> u64 {
        self.worlds.values().flat_map(|world| world.compared.values()).sum()
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
        self.worlds.keys().try_for_each(|world| write!(f, "{world:>12}"))?;
        let is_known = |class: &&Class| {
            self.worlds.values().any(|world| world.faults.get(class).is_some_and(|n| *n > 0))
        };
        for class in Class::ALL.iter().filter(is_known) {
            write!(f, "\n{class:<16}")?;
            for world in self.worlds.values() {
                write!(f, "{:>12}", world.faults.get(class).copied().unwrap_or(0))?;
            }
        }
        write!(f, "\n\n{:<16}", "law")?;
        self.worlds.keys().try_for_each(|world| write!(f, "{world:>12}"))?;
        let is_seen = |law: &&Law| {
            self.worlds.values().any(|world| world.compared.get(law).is_some_and(|n| *n > 0))
        };
        for law in Law::ALL.iter().filter(is_seen) {
            write!(f, "\n{law:<16}")?;
            for world in self.worlds.values() {
                write!(f, "{:>12}", world.compared.get(law).copied().unwrap_or(0))?;
            }
        }
        writeln!(f)
    }
}
