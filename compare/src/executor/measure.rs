//! One run of one subject under one load, newly started. The suite repeats runs, rotates subjects
//! and takes medians.
//!
//! The clocks are read within the root task, on a worker, so that starting and stopping a runtime
//! and waking the waiting thread are not measured. The first pass of each run is not measured; it
//! warms up the runtime.

use core::future::Future;

use super::idle::{self, Idleness};
use super::load;
use super::subject::{Case, Subject};
use crate::clock::Watch;
use crate::failure::Failure;
use crate::measure::{Begun, Cost, Mode, Spent};
use crate::report::Facts;
use crate::selection::Listed;

/// The parameters of a run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Run {
    pub(crate) case: Case,
    pub(crate) n: u32,
    /// How often the load is measured within the run.
    pub(crate) n_passes: u32,
    pub(crate) mode: Mode,
    pub(crate) watch: Watch,
}

impl Run {
    /// One pass to warm up, then the measured ones.
    pub(crate) fn passes(&self) -> impl Iterator<Item = Pass> + use<> {
        let (mode, watch) = (self.mode, self.watch);
        (0..=self.n_passes).map(move |index| Pass { is_warm_up: index == 0, mode, watch })
    }
}

/// One pass over a load.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pass {
    is_warm_up: bool,
    mode: Mode,
    watch: Watch,
}

impl Pass {
    /// Measures work that blocks, and returns its sum as well.
    pub(crate) fn measure(self, work: impl FnOnce() -> u64) -> (u64, Spent) {
        let begun = self.begin();
        let sum = work();
        (sum, begun.end())
    }

    async fn measure_task(self, task: impl Future<Output = u64> + Send) -> (u64, Spent) {
        let begun = self.begin();
        let sum = task.await;
        (sum, begun.end())
    }

    fn begin(self) -> Begun {
        // The cost of warming up is not used.
        Begun::new(if self.is_warm_up { Mode::Timed } else { self.mode }, self.watch)
    }
}

/// Sums the passes of a run.
#[derive(Debug)]
pub(crate) struct Meter {
    subject: &'static str,
    expected: u64,
    n_ops: f64,
    total: Spent,
}

impl Meter {
    pub(crate) fn new(subject: &'static str, run: &Run) -> Self {
        Self {
            subject,
            expected: load::expected(run.case, run.n),
            n_ops: load::n_ops(run.case, run.n) as f64 * f64::from(run.n_passes),
            total: Spent::default(),
        }
    }

    /// Checks the sum of a pass and, unless it was for warming up, adds its cost.
    ///
    /// # Errors
    ///
    /// If a part of the load was lost.
    pub(crate) fn note(&mut self, pass: Pass, (sum, spent): (u64, Spent)) -> Result<(), Failure> {
        if sum != self.expected {
            let what = "the sum over all tasks";
            return Err(Failure::miscount(self.subject, what, sum, self.expected));
        }
        if !pass.is_warm_up {
            self.total += spent;
        }
        Ok(())
    }

    pub(crate) fn cost(&self) -> Cost {
        self.total.per(self.n_ops)
    }
}

/// Starts a subject, runs it through one case and stops it.
///
/// # Errors
///
/// If it cannot be started, or lost a part of the load.
pub(crate) fn run<S: Subject>(run: &Run) -> Result<Cost, Failure> {
    let subject = S::start()?;
    let mut meter = Meter::new(S::FACTS.name, run);
    for pass in run.passes() {
        meter.note(pass, one_pass(&subject, run, pass))?;
    }
    subject.stop();
    Ok(meter.cost())
}

fn one_pass<S: Subject>(subject: &S, run: &Run, pass: Pass) -> (u64, Spent) {
    let n = run.n;
    match run.case {
        Case::Spawn => subject.block_on(pass.measure_task(load::spawn::<S>(n))),
        Case::Yield => subject.block_on(pass.measure_task(load::yields::<S>(n))),
        Case::Wake => subject.block_on(pass.measure_task(load::wake::<S>(n))),
        Case::PingPong => subject.block_on(pass.measure_task(load::ping_pong::<S>(n))),
        Case::ForkJoin => subject.block_on(pass.measure_task(load::fork_join::<S>(n))),
        Case::Steal => subject.block_on(pass.measure_task(load::steal::<S>(n))),
        Case::TimerArmDrop => subject.block_on(pass.measure_task(load::timer_arm_drop::<S>(n))),
        Case::IdleCpu => unreachable!("idleness is measured in a process of its own"),
    }
}

/// A subject without its type, so that all subjects are in one list.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    pub(crate) facts: Facts,
    /// The cases that it supports.
    pub(crate) cases: &'static [Case],
    pub(crate) run: fn(&Run) -> Result<Cost, Failure>,
    /// `None` if it has no timers.
    pub(crate) idle: Option<fn(u32) -> Result<Idleness, Failure>>,
}

impl Entry {
    pub(crate) const fn of<S: Subject>() -> Self {
        let idle: fn(u32) -> Result<Idleness, Failure> = idle::measure::<S>;
        Self { facts: S::FACTS, cases: &Case::ALL, run: run::<S>, idle: Some(idle) }
    }

    /// A subject that is not an executor of tasks and has its own runner.
    pub(crate) const fn apart(
        facts: Facts,
        cases: &'static [Case],
        run: fn(&Run) -> Result<Cost, Failure>,
    ) -> Self {
        Self { facts, cases, run, idle: None }
    }
}

impl Listed for Entry {
    fn facts(&self) -> &Facts {
        &self.facts
    }
}
