//! One subject under one load, once, freshly started. What repeats, rotates and takes medians is
//! the suite.
//!
//! The clocks are read within the root task, on a worker: to start and stop a runtime and to wake
//! the thread that waits is nobody's operation. The first pass of each run is not measured; it
//! warms the runtime.

use core::future::Future;

use super::idle::{self, Idleness};
use super::load;
use super::subject::{Case, Facts, Subject};
use crate::clock::{Elapsed, Started, Watch};
use crate::failure::Failure;
use crate::tally::CountingAll;

/// How a run is made.
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
    /// One pass to warm up and then those that are measured.
    pub(crate) fn passes(&self) -> impl Iterator<Item = Pass> + use<> {
        let (mode, watch) = (self.mode, self.watch);
        (0..=self.n_passes).map(move |index| Pass { is_warm_up: index == 0, mode, watch })
    }
}

/// Counting costs time, so a run either counts or is timed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    Timed,
    /// Counts allocations.
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
}

/// One pass over a load.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pass {
    is_warm_up: bool,
    mode: Mode,
    watch: Watch,
}

impl Pass {
    /// Measures work that blocks.
    pub(crate) fn measure(self, work: impl FnOnce() -> u64) -> Spent {
        let begun = self.begin();
        let sum = work();
        begun.end(sum)
    }

    async fn measure_task(self, task: impl Future<Output = u64> + Send) -> Spent {
        let begun = self.begin();
        let sum = task.await;
        begun.end(sum)
    }

    fn begin(self) -> Begun {
        let counting = (self.mode == Mode::Counted && !self.is_warm_up).then(CountingAll::begin);
        Begun { counting, started: self.watch.start() }
    }
}

struct Begun {
    counting: Option<CountingAll>,
    started: Started,
}

impl Begun {
    fn end(self, sum: u64) -> Spent {
        let elapsed = self.started.stop();
        Spent { sum, elapsed, n_allocs: self.counting.map_or(0, |all| all.stop().n_allocs) }
    }
}

/// What a pass came to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Spent {
    sum: u64,
    elapsed: Elapsed,
    n_allocs: u64,
}

/// Adds up the passes of a run.
#[derive(Debug)]
pub(crate) struct Meter {
    subject: &'static str,
    expected: u64,
    n_ops: f64,
    total: Elapsed,
    n_allocs: u64,
}

impl Meter {
    pub(crate) fn new(subject: &'static str, run: &Run) -> Self {
        Self {
            subject,
            expected: load::expected(run.case, run.n),
            n_ops: load::n_ops(run.case, run.n) as f64 * f64::from(run.n_passes),
            total: Elapsed::default(),
            n_allocs: 0,
        }
    }

    /// Checks what a pass did and, unless it was there to warm up, adds what it took.
    ///
    /// # Errors
    ///
    /// If something of the load was lost.
    pub(crate) fn note(&mut self, pass: Pass, spent: Spent) -> Result<(), Failure> {
        if spent.sum != self.expected {
            let what = "the sum over all tasks";
            return Err(Failure::miscount(self.subject, what, spent.sum, self.expected));
        }
        if !pass.is_warm_up {
            self.total.cpu_ns += spent.elapsed.cpu_ns;
            self.total.wall_ns += spent.elapsed.wall_ns;
            self.n_allocs += spent.n_allocs;
        }
        Ok(())
    }

    pub(crate) fn figure(&self) -> Figure {
        Figure {
            cpu_ns: self.total.cpu_ns / self.n_ops,
            wall_ns: self.total.wall_ns / self.n_ops,
            n_allocs: self.n_allocs as f64 / self.n_ops,
        }
    }
}

/// Starts a subject, runs it through one case and stops it.
///
/// # Errors
///
/// If it cannot be started, or lost something of the load.
pub(crate) fn run<S: Subject>(run: &Run) -> Result<Figure, Failure> {
    let subject = S::start()?;
    let mut meter = Meter::new(S::FACTS.name, run);
    for pass in run.passes() {
        meter.note(pass, one_pass(&subject, run, pass))?;
    }
    subject.stop();
    Ok(meter.figure())
}

fn one_pass<S: Subject>(subject: &S, run: &Run, pass: Pass) -> Spent {
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

/// A subject whose type is forgotten, so that all of them stand in one list.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    pub(crate) facts: Facts,
    pub(crate) run: fn(&Run) -> Result<Figure, Failure>,
    /// None if it cannot sleep.
    pub(crate) idle: Option<fn(u32) -> Result<Idleness, Failure>>,
}

impl Entry {
    pub(crate) const fn name(&self) -> &'static str {
        self.facts.name
    }

    pub(crate) const fn of<S: Subject>() -> Self {
        Self { facts: S::FACTS, run: run::<S>, idle: Some(idle::measure::<S>) }
    }

    /// One that is no executor of tasks and brings its own runner.
    pub(crate) const fn apart(facts: Facts, run: fn(&Run) -> Result<Figure, Failure>) -> Self {
        Self { facts, run, idle: None }
    }
}
