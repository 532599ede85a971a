//! Suite `graph`: the same dataflow on Clockjack's graphs, on Taskflow if it is installed, and in a
//! hand-written loop.
//!
//! Clockjack runs in virtual time on a runtime with one worker per core, with all metrics, and
//! decides by itself whether several workers execute an epoch. Figures are CPU time of all threads,
//! with wall time next to it; for parallel branches the figure is wall time, with CPU time next to
//! it. The order of the subjects is that of the suite `timers`; round 0 counts allocations and is
//! not timed. The sums of the sinks must be the same for all subjects.
//!
//! * `caterpillar`: a head and eight segments of a body and a foot; ns per node. This graph and the
//!   next three have 17 nodes. n is the number of epochs without the first 128.
//! * `chain`: 17 nodes in a row.
//! * `fan_out`: one node with 16 readers.
//! * `fan_in`: one node that reads 16 others, in one call.
//! * `parallel_10us`, `parallel_1ms`: a source, eight branches with this much arithmetic each, and
//!   a sink that reads all of them; microseconds per epoch. Efficiency is the time of the
//!   hand-written loop divided by the product of time and cores, of which at most eight count.
//! * `compile_4096`: a file with 4,096 components and 8,192 edges is read, checked and ordered;
//!   milliseconds.
//! * `trace`: the caterpillar with a trace of 65,536 records, against itself without a trace; ns
//!   per node.
//! * `allocs`: allocations per epoch of the caterpillar.

mod case;
mod clockjack;
mod compile;
mod measure;
mod shape;
mod static_loop;
mod taskflow;

use core::hint::black_box;
use core::time::Duration;
use std::thread::available_parallelism;

pub(crate) use case::Case;
use measure::{Figure, Run};
use shape::{Shape, mix_times};
use taskflow::{Missing, Program};

use crate::clock::{Scope, Watch};
use crate::failure::Failure;
use crate::measure::{Cost, Mode};
use crate::order::{BySubject, Results, in_turns};
use crate::report::{Column, Extra, Reporter, Row, Standing, Target};
use crate::selection::{Named, Selection};
use crate::stats;

/// The name of this suite in JSON.
pub(crate) const NAME: &str = "graph";

/// The meaning of its figures.
pub(crate) const CAPTION: &str =
    "medians of CPU time of all threads (parallel: of wall time), one worker per core";

/// The maximum number of epochs.
pub(crate) const N_MAX: u32 = 1_000_000;

/// Clockjack's caterpillar without a trace, with which the case `trace` is compared.
const UNTRACED: &str = "untraced";

/// The rivals that are installed on this machine.
#[derive(Debug)]
pub(crate) struct Rivals {
    taskflow: Result<Program, Missing>,
}

impl Rivals {
    /// Searches for installed rivals.
    pub(crate) fn find() -> Self {
        Self { taskflow: Program::compile() }
    }
}

/// The subjects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Subject {
    Clockjack,
    Taskflow,
    StaticLoop,
    Untraced,
}

impl Subject {
    const ALL: [Self; 4] = [Self::Clockjack, Self::Taskflow, Self::StaticLoop, Self::Untraced];

    /// Whether it supports a case, if it is installed.
    const fn can(self, case: Case) -> bool {
        match self {
            Self::Clockjack => true,
            Self::Taskflow | Self::StaticLoop => case.is_compared(),
            Self::Untraced => matches!(case, Case::Trace),
        }
    }

    fn column(self, rivals: &Rivals) -> Column {
        let (package, standing, note) = match self {
            Self::Clockjack => {
                let note = "virtual time, metrics on, `Parallel::Auto`";
                (Some("clockjack-graph"), Standing::Ours, note.to_owned())
            }
            Self::Taskflow => {
                let note = match &rivals.taskflow {
                    Ok(_) => "`run_n` of one taskflow, one thread; `parallel`: one per core".into(),
                    Err(missing) => format!("left out: {missing}"),
                };
                (Some("taskflow"), Standing::Rival, note)
            }
            Self::StaticLoop => {
                let note = "written by hand: boxed trait objects called in order, values in slots";
                (None, Standing::Reference, note.to_owned())
            }
            Self::Untraced => {
                let note = "Clockjack without a trace, for the case `trace`";
                (Some("clockjack-graph"), Standing::Reference, note.to_owned())
            }
        };
        Column { name: self.name(), package, standing, note }
    }

    fn run(self, run: &Run<'_>) -> Result<Figure, Failure> {
        match self {
            Self::Clockjack => clockjack::run(run),
            Self::Untraced => clockjack::run(&Run { traces: false, ..*run }),
            Self::Taskflow => taskflow::run(run),
            Self::StaticLoop => static_loop::run(run),
        }
    }
}

impl Named for Subject {
    fn name(&self) -> &'static str {
        match self {
            Self::Clockjack => clockjack::NAME,
            Self::Taskflow => taskflow::NAME,
            Self::StaticLoop => static_loop::NAME,
            Self::Untraced => UNTRACED,
        }
    }
}

/// The properties of the subjects, for the head of the table and for `--list`.
pub(crate) fn columns(
    selection: &Selection<Case>,
    rivals: &Rivals,
) -> Result<Vec<Column>, Failure> {
    let subjects = selection.subjects(&Subject::ALL)?;
    Ok(subjects.iter().map(|subject| subject.column(rivals)).collect())
}

/// The target of a case.
fn target(case: Case) -> Target {
    // Efficiency is `static / (ours * cores)`.
    let efficient =
        |least: f64| Target::Within(static_loop::NAME, 1.0 / (least * n_cores() as f64));
    match case {
        Case::Caterpillar | Case::Chain | Case::FanOut | Case::FanIn => {
            Target::Over(static_loop::NAME, 30.0)
        }
        Case::Parallel10us => efficient(0.6),
        Case::Parallel1ms => efficient(0.9),
        Case::Compile4096 => Target::OursAtMost(50.0),
        Case::Trace => Target::Within(UNTRACED, 2.0),
        Case::Allocs => Target::OursAtMost(0.0),
    }
}

/// The number of cores that eight branches can use.
fn n_cores() -> usize {
    available_parallelism().map_or(1, |n| n.get().min(8))
}

/// The number of iterations of arithmetic that take this long: from the fastest of a few
/// measurements, because noise can only make an iteration slower.
fn turns_of(length: Duration) -> u32 {
    const N_TURNS: u32 = 200_000;
    let time = |seed: u64| {
        let began = Scope::Thread.cpu();
        black_box(mix_times(black_box(seed), N_TURNS));
        Scope::Thread.cpu().saturating_sub(began).as_nanos()
    };
    let fastest = (0..7).map(time).min().unwrap_or(0).max(1);
    let n_turns = length.as_nanos() * u128::from(N_TURNS) / fastest;
    u32::try_from(n_turns).unwrap_or(u32::MAX).max(2)
}

/// Runs the selected cases and reports each as soon as it is finished.
///
/// # Errors
///
/// If a subject is unknown, cannot be started or loses a part of the load, or the report cannot be
/// written.
pub(crate) fn run(
    selection: &Selection<Case>,
    rivals: &Rivals,
    reporter: &mut Reporter<'_>,
) -> Result<(), Failure> {
    let watch = Watch::calibrated(Scope::Process);
    let can = |subject: &Subject, case| {
        subject.can(case) && (*subject != Subject::Taskflow || rivals.taskflow.is_ok())
    };
    selection.report(&Case::ALL, &Subject::ALL, can, reporter, |case, able, reporter| match case {
        Case::Compile4096 => compile_row(selection, able, watch, reporter),
        _ => Bench { case, selection, rivals, watch }.row(able, reporter),
    })
}

/// One case with running graphs.
struct Bench<'a> {
    case: Case,
    selection: &'a Selection<Case>,
    rivals: &'a Rivals,
    watch: Watch,
}

impl Bench<'_> {
    fn shape(&self) -> Shape {
        match self.case {
            Case::Chain => Shape::chain(),
            Case::FanOut => Shape::fan_out(),
            Case::FanIn => Shape::fan_in(),
            Case::Parallel10us => Shape::branches(turns_of(Duration::from_micros(10))),
            Case::Parallel1ms => Shape::branches(turns_of(Duration::from_millis(1))),
            _ => Shape::caterpillar(),
        }
    }

    fn row(&self, able: &[Subject], reporter: &mut Reporter<'_>) -> Result<Row, Failure> {
        let Self { case, selection, .. } = *self;
        let n = selection.n.unwrap_or_else(|| case.size(selection.effort));
        let usual = || case.n_rounds(selection.effort);
        let n_rounds = match case {
            // The allocator's counts are the same in every round.
            Case::Allocs => 0,
            _ => selection.n_rounds.unwrap_or_else(usual),
        };
        let shape = self.shape();
        let all = self.rounds(&shape, n, n_rounds, able, reporter)?;
        let row = Row {
            case: case.name(),
            n,
            unit: case.unit(),
            figures: Vec::new(),
            n_rounds: n_rounds.max(1) as usize,
            target: Some(target(case)),
            least: 0.0,
            versus: &[],
            extras: Vec::new(),
        };
        Ok(match case {
            Case::Allocs => {
                Row { figures: all.counted(|figure| Some(figure.cost.n_allocs)), ..row }
            }
            _ => timed_row(row, case, shape.nodes.len(), &all),
        })
    }

    /// Runs all subjects interleaved, round after round.
    fn rounds(
        &self,
        shape: &Shape,
        n: u32,
        n_rounds: u32,
        subjects: &[Subject],
        reporter: &mut Reporter<'_>,
    ) -> Result<Results<Figure>, Failure> {
        let case = self.case;
        let n_warm_up = case.n_warm_up();
        let timed = Run {
            shape,
            n,
            n_warm_up,
            expected: shape.expected(n_warm_up + u64::from(n) + 1),
            mode: Mode::Timed,
            traces: case == Case::Trace,
            n_threads: if case.is_parallel() { n_cores() } else { 1 },
            watch: self.watch,
            taskflow: self.rivals.taskflow.as_ref().ok(),
        };
        let what = format!("{} n={n}", case.name());
        in_turns(&what, n_rounds, subjects, reporter, |round, subject| {
            subject.run(&Run { mode: Mode::of_round(round), ..timed })
        })
    }
}

/// Fills in the timed figures.
fn timed_row(row: Row, case: Case, n_nodes: usize, all: &Results<Figure>) -> Row {
    let scale = if case.is_parallel() { 1e3 } else { n_nodes as f64 };
    let of = |pick: fn(&Cost) -> f64| move |figure: &Figure| Some(pick(&figure.cost) / scale);
    let (cpu, wall) = (of(|cost| cost.cpu_ns), of(|cost| cost.wall_ns));
    let (main, second, name) =
        if case.is_parallel() { (wall, cpu, "cpu") } else { (cpu, wall, "wall_time") };
    let allocs = all.each(|name, figures| {
        // The allocations of another process are not counted.
        let is_here = name != taskflow::NAME;
        figures.first().filter(|_| is_here).map(|counted| counted.cost.n_allocs)
    });
    let figures = all.medians(main);
    let mut extras = vec![
        Extra::numbers(name, all.medians(second)),
        Extra::quartiles(all.quartiles(main)),
        Extra::numbers("allocs", allocs),
    ];
    if case.is_parallel() {
        extras.push(efficiency(&figures));
        let overlap = |_, figures: &[Figure]| {
            let most = figures.iter().filter_map(|one| one.overlap).max();
            most.map(|most| most as f64)
        };
        extras.push(Extra::numbers("overlap", all.each(overlap)));
    }
    Row { figures, extras, ..row }
}

/// The efficiency of each subject, in per cent.
fn efficiency(figures: &BySubject<f64>) -> Extra {
    let alone = figures.iter().find(|(name, _)| *name == static_loop::NAME);
    let alone = alone.and_then(|(_, figure)| *figure);
    let of = |&(name, figure): &(&'static str, Option<f64>)| {
        let per_cent = alone.zip(figure).filter(|_| name != static_loop::NAME);
        let per_cent = per_cent.map(|(alone, time)| 100.0 * alone / (time * n_cores() as f64));
        (name, per_cent)
    };
    Extra::numbers("efficiency", figures.iter().map(of).collect())
}

fn compile_row(
    selection: &Selection<Case>,
    able: &[Subject],
    watch: Watch,
    reporter: &mut Reporter<'_>,
) -> Result<Row, Failure> {
    let case = Case::Compile4096;
    let n_rounds = selection.n_rounds.unwrap_or_else(|| case.n_rounds(selection.effort));
    let text = compile::text();
    let mut readings = Vec::new();
    if !able.is_empty() {
        for round in 0..=n_rounds {
            reporter.progress(&format!("{}: round {round}/{n_rounds}", case.name()));
            readings.push(compile::read(&text, watch)?);
        }
    }
    let median = |pick: fn(&compile::Reading) -> f64| {
        let samples: Vec<f64> = readings.iter().skip(1).map(pick).collect();
        stats::median(&samples)
    };
    let extra = |name, pick| Extra::numbers(name, vec![(clockjack::NAME, median(pick))]);
    Ok(Row {
        case: case.name(),
        n: compile::N_COMPONENTS,
        unit: case.unit(),
        figures: vec![(clockjack::NAME, median(|one| one.load_ms + one.compile_ms))],
        n_rounds: n_rounds as usize,
        target: Some(target(case)),
        least: 0.0,
        versus: &[],
        extras: vec![
            extra("wall_time", |one| one.wall_ms),
            extra("load", |one| one.load_ms),
            extra("load_general", |one| one.load_general_ms),
            extra("compile", |one| one.compile_ms),
        ],
    })
}

#[cfg(test)]
mod tests {
    use super::{Case, Mode, Named, Run, Scope, Shape, Subject, Watch, turns_of};
    use crate::selection::Effort;
    use core::time::Duration;

    #[test]
    fn every_subject_does_every_shape_also_at_odd_sizes() {
        let watch = Watch::calibrated(Scope::Process);
        for shape in [
            Shape::caterpillar(),
            Shape::chain(),
            Shape::fan_out(),
            Shape::fan_in(),
            Shape::branches(20_000),
        ] {
            for (n, n_warm_up) in [(1, 0), (2, 7), (65, 3)] {
                let expected = shape.expected(n_warm_up + u64::from(n) + 1);
                let run = Run {
                    shape: &shape,
                    n,
                    n_warm_up,
                    expected,
                    mode: Mode::Timed,
                    traces: n == 2,
                    n_threads: 2,
                    watch,
                    taskflow: None,
                };
                for subject in [Subject::Clockjack, Subject::StaticLoop, Subject::Untraced] {
                    let figure = subject.run(&run).unwrap_or_else(|failure| panic!("{failure}"));
                    assert!(figure.cost.wall_ns > 0.0, "{subject:?} {shape:?} {n}: {figure:?}");
                    assert_eq!(figure.overlap.is_some(), subject != Subject::StaticLoop);
                    let wrong = Run { expected: expected ^ 1, ..run };
                    let failure = subject.run(&wrong).expect_err("the sum differs");
                    assert!(failure.to_string().contains("the sum of all sinks"), "{failure}");
                }
            }
        }
    }

    #[test]
    fn subjects_have_different_names() {
        let mut names = Subject::ALL.map(|subject| subject.name()).to_vec();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), Subject::ALL.len());
    }

    #[test]
    fn the_number_of_rounds_is_odd() {
        for case in Case::ALL {
            for effort in [Effort::Quick, Effort::Full] {
                assert_eq!(case.n_rounds(effort) % 2, 1, "{case:?} {effort:?}");
            }
        }
    }

    #[test]
    fn longer_work_has_more_turns() {
        assert!(turns_of(Duration::from_millis(1)) > 10 * turns_of(Duration::from_micros(10)));
    }
}
