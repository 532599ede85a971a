//! One run: a workload, a seed, and what came of it.

use alloc::{borrow::ToOwned as _, boxed::Box, format, string::String, vec::Vec};
use core::{any::Any, fmt, panic::AssertUnwindSafe};
use std::panic::catch_unwind;

use crate::{
    context::{Mode, SimContext},
    fault::{Class, Counts, Fault},
    invariant::{Invariant, Violation},
    random::CERTAIN,
};

/// How many records of the trace a report shows.
const TAIL: usize = 40;

/// A system with its workload and its oracles.
///
/// # For implementers
///
/// 1. Everything that is drawn comes from the [`SimContext`]: settings, a stream for each consumer,
///    faults. Nothing else may differ from run to run.
/// 2. What happens is [noted](SimContext::note), by whole numbers that are the same on every machine.
/// 3. What is expected is known independently of what is tested: a message carries its sender and
///    its number, a timer its deadline.
/// 4. In [`Mode::Liveness`] the workload [heals](SimContext::heal) the sim some time, and from then on
///    checks that everything gets done; in [`Mode::Safety`] it ends at an odd moment.
pub trait Workload {
    /// What it is called, what may go wrong in it, and what it is judged by.
    fn description(&self) -> Description;

    /// Plays one run.
    fn play(&self, sim: &SimContext);
}

/// What is known of a workload before it is played.
#[derive(Clone, Copy, Debug)]
pub struct Description {
    /// What it is called on command lines.
    pub name: &'static str,
    /// What may go wrong in it, in groups. Each class must, in a campaign of some size.
    pub faults: &'static [&'static [Class]],
    /// What it is judged by. Each must be looked at in a campaign of some size.
    pub invariants: &'static [Invariant],
    /// How many records a run must leave to mean something.
    pub least_records: u64,
    /// How many comparisons a run must make to mean something.
    pub least_comparisons: u64,
}

impl Description {
    /// What may go wrong, one by one.
    pub fn classes(&self) -> impl Iterator<Item = Class> + use<> {
        self.faults.iter().copied().flatten().copied()
    }
}

/// A play that takes the usual course: see [`play`].
pub(crate) trait Steps {
    /// Something happens, and things go wrong.
    fn step(&mut self);

    /// In [`Mode::Liveness`]: from here on nothing fails, and all gets done.
    fn drain(&mut self);

    /// The end, and what must be true behind it.
    fn end(&mut self);
}

/// So many steps, rest if that is what is to be shown, and the end; up to the first violation.
pub(crate) fn play(sim: &SimContext, n_steps: u64, acts: &mut impl Steps) {
    for _ in 0..n_steps {
        acts.step();
        if sim.is_broken() {
            return;
        }
    }
    if sim.mode() == Mode::Liveness {
        acts.drain();
    }
    if !sim.is_broken() {
        acts.end();
    }
}

/// What came of a run.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// In which workload.
    pub workload: &'static str,
    /// By which seed.
    pub seed: u64,
    /// To show what.
    pub mode: Mode,
    /// What was drawn, by name.
    pub settings: Vec<(&'static str, u64)>,
    /// How often faults were asked to be there, of [`CERTAIN`] places each.
    pub rates: Vec<(Class, u64)>,
    /// The faults that there were, in order.
    pub faults: Vec<Fault>,
    /// How many faults there were of each class.
    pub(crate) fired: Counts,
    /// The invariants with how often each was looked at.
    pub compared: Vec<(Invariant, u64)>,
    /// What was broken.
    pub violations: Vec<Violation>,
    /// The trace.
    pub trace: Vec<u8>,
    /// Its hash.
    pub hash: u64,
    /// Its records.
    pub records: u64,
    /// Its last records, as text, if something was broken.
    pub tail: String,
    /// How many ticks of a millisecond have passed.
    pub ticks: u64,
    /// Whether the faults were chosen by who asked for the run.
    pub is_chosen: bool,
}

impl Outcome {
    /// Whether all invariants were kept.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.violations.is_empty()
    }

    /// How many comparisons were made.
    #[must_use]
    pub fn comparisons(&self) -> u64 {
        self.compared.iter().map(|(_, n)| n).sum()
    }

    /// The one command that repeats this run.
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

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { workload, seed, mode, hash, records, ticks, .. } = self;
        writeln!(
            f,
            "seed {seed}, workload {workload}, {mode}: trace {hash:016x}, {records} records, {ticks} ms"
        )?;
        write!(f, "  settings:")?;
        self.settings.iter().try_for_each(|(name, value)| write!(f, " {name}={value}"))?;
        write!(f, "\n  faults of {CERTAIN} places:")?;
        self.rates.iter().try_for_each(|(class, rate)| write!(f, " {class}={rate}"))?;
        write!(f, "\n  faults that were there: {}", self.faults.len())?;
        for violation in &self.violations {
            write!(f, "\n  BROKEN {violation}")?;
        }
        if !self.is_clean() {
            write!(f, "\n  the last of the trace:")?;
            self.tail.lines().try_for_each(|line| write!(f, "\n    {line}"))?;
            write!(f, "\n  repeat it: {}", self.command())?;
        }
        Ok(())
    }
}

/// Plays a run. With `only`, there are those faults and no others.
#[must_use]
pub fn run(workload: &dyn Workload, seed: u64, mode: Mode, only: Option<&[Fault]>) -> Outcome {
    let description = workload.description();
    let sim = SimContext::new(seed, mode, description.classes(), only);
    let start = sim.now();
    let played = catch_unwind(AssertUnwindSafe(|| workload.play(&sim)));
    if let Err(payload) = played {
        sim.check(Invariant::X5, false, || format!("the run panicked: {}", message(&*payload)));
    }
    judge_work(&description, &sim, only.is_some());
    sim.with(|inner| {
        let is_clean = inner.checker.violations().is_empty();
        let rate = |class: Class| (class, inner.faults.rates()[class.index()]);
        Outcome {
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

/// A run that did too little fails. One whose faults were chosen is there to break a invariant, or not.
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
        .unwrap_or_else(|| "something that is no text".to_owned())
}

/// What a handler panics with that was told to.
#[derive(Debug)]
pub struct Injected;

/// Panics, as a fault. Nothing is printed: it is not a fault of the program.
pub fn panic_as_told() -> ! {
    std::panic::resume_unwind(Box::new(Injected))
}
