//! Suite `graph`: the same dataflow on Clockjack's graphs, on Taskflow where it is installed, and
//! in a loop written by hand.
//!
//! Ours runs in virtual time on a runtime with one worker a core, with all metrics, and decides by
//! itself whether to work on an epoch with several. Figures are CPU time of all threads, with wall
//! time beside; only of branches that are to run at once wall time is the figure, with CPU time
//! beside. The subjects take turns as in the suite `timers`; round 0 counts allocations and is not
//! timed. What the sinks have added up must be the same for all.
//!
//! * `caterpillar`: a head and eight segments of a body and a foot; ns a node, of which there are
//!   17 here and in the next three. n is the number of epochs, the first 128 not counted.
//! * `chain`: one behind the other.
//! * `fan_out`: one that 16 read.
//! * `fan_in`: one that reads 16, in one call.
//! * `parallel_10us`, `parallel_1ms`: a source, eight branches with so much arithmetic each, and a
//!   sink that reads all; microseconds an epoch. Efficiency is the time of the loop by hand divided
//!   by time and cores, of which no more than eight count.
//! * `compile_4096`: a file with 4,096 components and 8,192 edges is read, checked and ordered;
//!   milliseconds.
//! * `trace`: the caterpillar with a trace of 65,536 records, against itself without; ns a node.
//! * `allocs`: allocations an epoch of the caterpillar.

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

/// What its figures are.
pub(crate) const CAPTION: &str =
    "medians of CPU time of all threads (parallel: of wall time), one worker a core";

/// The most epochs one may ask for.
pub(crate) const N_MAX: u32 = 1_000_000;

/// The caterpillar of ours without a trace, to which the case `trace` is compared.
const UNTRACED: &str = "untraced";

/// What there is to compare with on this machine.
#[derive(Debug)]
pub(crate) struct Rivals {
    taskflow: Result<Program, Missing>,
}

impl Rivals {
    /// Looks what is installed.
    pub(crate) fn find() -> Self {
        Self { taskflow: Program::compile() }
    }
}

/// Who takes part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Subject {
    Clockjack,
    Taskflow,
    StaticLoop,
    Untraced,
}

impl Subject {
    const ALL: [Self; 4] = [Self::Clockjack, Self::Taskflow, Self::StaticLoop, Self::Untraced];

    /// Whether it has a figure in a case, where it is installed.
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
                    Ok(_) => "`run_n` of one taskflow, one thread; `parallel`: one a core".into(),
                    Err(missing) => format!("left out: {missing}"),
                };
                (Some("taskflow"), Standing::Rival, note)
            }
            Self::StaticLoop => {
                let note = "written by hand: boxed trait objects called in order, values in slots";
                (None, Standing::Reference, note.to_owned())
            }
            Self::Untraced => {
                let note = "ours without a trace, for the case `trace`";
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

/// What is known about the subjects, for the head of the table and for `--list`.
pub(crate) fn columns(
    selection: &Selection<Case>,
    rivals: &Rivals,
) -> Result<Vec<Column>, Failure> {
    let subjects = selection.subjects(&Subject::ALL)?;
    Ok(subjects.iter().map(|subject| subject.column(rivals)).collect())
}

/// What the project promises of a case.
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

/// The cores that eight branches can use.
fn n_cores() -> usize {
    available_parallelism().map_or(1, |n| n.get().min(8))
}

/// Turns of arithmetic that take so long: by the fastest of a few tries, since a turn is never
/// faster than the machine allows.
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

/// Runs what was selected and reports each case as soon as it is known.
///
/// # Errors
///
/// If a subject is unknown, cannot be started or loses something of the load, or the report cannot
/// be written.
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

/// One case with graphs that run.
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
            // What the allocator counts comes out the same again.
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

/// Fills in what was timed.
fn timed_row(row: Row, case: Case, n_nodes: usize, all: &Results<Figure>) -> Row {
    let scale = if case.is_parallel() { 1e3 } else { n_nodes as f64 };
    let of = |pick: fn(&Cost) -> f64| move |figure: &Figure| Some(pick(&figure.cost) / scale);
    let (cpu, wall) = (of(|cost| cost.cpu_ns), of(|cost| cost.wall_ns));
    let (main, beside, name) =
        if case.is_parallel() { (wall, cpu, "cpu") } else { (cpu, wall, "wall_time") };
    let allocs = all.each(|name, figures| {
        // Nobody counts those of another process.
        let is_here = name != taskflow::NAME;
        figures.first().filter(|_| is_here).map(|counted| counted.cost.n_allocs)
    });
    let figures = all.medians(main);
    let mut extras = vec![
        Extra::numbers(name, all.medians(beside)),
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

/// How much of the cores everybody makes use of, in per cent.
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
                    let failure = subject.run(&wrong).expect_err("something else comes out");
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
