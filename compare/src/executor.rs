//! Suite `executor`: the same tasks on every runtime, each with two workers.
//!
//! Figures are wall time per operation, because the purpose of a runtime is to finish sooner with
//! two workers than with one. The CPU time and the allocations of all threads are reported next to
//! it. A subject is started for each run and stopped after it, so only one subject runs at a time.
//! The order is that of the suite `timers`: each round starts with another subject, every second
//! round goes in reverse order, round 0 counts allocations and is not timed.
//!
//! * `spawn`: a task spawns n (10,000) empty tasks and awaits all of them; ns per task.
//! * `yield`: two tasks per worker yield n (10,000) times each, by the runtime's own means; ns per
//!   yield.
//! * `wake`: two tasks wake each other through a flag with a waker, n (10,000) round trips; ns per
//!   wake (a round trip has two).
//! * `ping_pong`: four pairs of tasks bounce a message n (10,000) times over two unbounded channels
//!   of `futures-channel`, which belongs to no runtime; ns per round trip of any pair.
//! * `fork_join`: a binary tree with n (1,024) leaves of about one microsecond of arithmetic: one
//!   half is spawned, the other is computed, then the first is awaited; ns per leaf.
//! * `steal`: a task spawns n (10,000) tasks of about 500 ns of arithmetic and awaits all of them:
//!   work that is created on one worker must be distributed; ns per task.
//! * `timer_arm_drop`: a task creates the runtime's sleep of one hour, polls it once and drops it,
//!   n (10,000) times, and yields every 64; ns per sleep.
//! * `idle_cpu`: one sleep of an hour is armed and the runtime is left idle for n (3,000)
//!   milliseconds in a separate process; the sum of microseconds of CPU time and voluntary context
//!   switches of its threads. A sum below one counts as one in the ratio, so that zero is the best.

mod clockjack;
mod idle;
mod load;
mod measure;
mod rayon;
mod serial;
mod smol;
mod subject;
mod tokio;

use idle::Idleness;
use measure::{Entry, Run};
pub(crate) use subject::Case;

use crate::clock::{Scope, Watch};
use crate::failure::Failure;
use crate::measure::{Cost, Mode};
use crate::order::in_turns;
use crate::report::{Column, Extra, Reporter, Row, Target};
use crate::selection::{Effort, Selection};
use crate::stats;

/// The name of this suite in JSON.
pub(crate) const NAME: &str = "executor";

/// The meaning of its figures.
pub(crate) const CAPTION: &str = "medians of wall time per operation, two workers each";

/// The maximum size: a million concurrent tasks need a few hundred megabytes.
pub(crate) const N_MAX: u32 = 1_000_000;

/// The target of a case: never slower than the best rival of the same run, and clearly faster where
/// the design is meant to be.
const fn target(case: Case) -> Target {
    match case {
        Case::Yield | Case::TimerArmDrop => Target::RatioAtLeast(1.5),
        _ => Target::RatioAtLeast(1.0),
    }
}

/// Every subject, in the order of the table. To add one, add its file and its line here; the others
/// are compared with the one that has [`Standing::Ours`](crate::report::Standing::Ours).
const SUBJECTS: &[Entry] = &[
    Entry::of::<clockjack::Pool>(),
    Entry::of::<tokio::MultiThread>(),
    Entry::of::<smol::TwoThreads>(),
    Entry::apart(rayon::FACTS, rayon::CASES, rayon::run),
    Entry::apart(serial::FACTS, serial::CASES, serial::run),
];

/// The default size of a case.
const fn size(effort: Effort, case: Case) -> u32 {
    match (case, effort) {
        (Case::ForkJoin, _) => 1_024,
        (Case::IdleCpu, Effort::Quick) => 1_000,
        (Case::IdleCpu, Effort::Full) => 3_000,
        _ => 10_000,
    }
}

/// Timed rounds. An odd number, so that the median is a measured value.
const fn n_rounds(effort: Effort, case: Case) -> u32 {
    match (case, effort) {
        (Case::IdleCpu, Effort::Quick) => 1,
        (Case::IdleCpu, Effort::Full) => 3,
        (_, Effort::Quick) => 5,
        (_, Effort::Full) => 21,
    }
}

/// The properties of the subjects, for the head of the table and for `--list`.
pub(crate) fn columns(selection: &Selection<Case>) -> Result<Vec<Column>, Failure> {
    selection.columns(SUBJECTS)
}

/// Runs the selected cases and reports each as soon as it is finished.
///
/// # Errors
///
/// If a subject is unknown, cannot be started or loses a part of the load, or the report cannot be
/// written.
pub(crate) fn run(selection: &Selection<Case>, reporter: &mut Reporter<'_>) -> Result<(), Failure> {
    let watch = Watch::calibrated(Scope::Process);
    let can = |entry: &Entry, case| entry.cases.contains(&case);
    selection.report(&Case::ALL, SUBJECTS, can, reporter, |case, able, reporter| match case {
        Case::IdleCpu => idle_row(selection, able, reporter),
        _ => timed_row(case, selection, able, watch, reporter),
    })
}

/// Runs the subject called `name` idle in this process for this time.
///
/// # Errors
///
/// If there is no such subject or it cannot be started.
pub(crate) fn idle(name: &str, millis: u32) -> Result<Idleness, Failure> {
    let idle = SUBJECTS.iter().find(|entry| entry.facts.name == name).and_then(|entry| entry.idle);
    let able = || SUBJECTS.iter().filter(|entry| entry.idle.is_some());
    let names = || able().map(|entry| entry.facts.name).collect::<Vec<_>>().join(", ");
    idle.ok_or_else(|| Failure::unknown("subject", name.to_owned(), names()))?(millis)
}

fn timed_row(
    case: Case,
    selection: &Selection<Case>,
    subjects: &[Entry],
    watch: Watch,
    reporter: &mut Reporter<'_>,
) -> Result<Row, Failure> {
    let effort = selection.effort;
    let n = selection.n.unwrap_or_else(|| size(effort, case));
    let n_rounds = selection.n_rounds.unwrap_or_else(|| n_rounds(effort, case));
    let what = format!("{} n={n}", case.name());
    let all = in_turns(&what, n_rounds, subjects, reporter, |round, entry| {
        let mode = Mode::of_round(round);
        let n_passes = effort.n_passes(mode);
        (entry.run)(&Run { case, n, n_passes, mode, watch })
    })?;
    let wall = |cost: &Cost| Some(cost.wall_ns);
    Ok(Row {
        case: case.name(),
        n,
        unit: case.unit(),
        figures: all.medians(wall),
        n_rounds: n_rounds as usize,
        target: Some(target(case)),
        least: 0.0,
        versus: &[],
        extras: vec![
            Extra::numbers("cpu", all.medians(|cost| Some(cost.cpu_ns))),
            Extra::quartiles(all.quartiles(wall)),
            Extra::numbers("allocs", all.counted(|cost| Some(cost.n_allocs))),
        ],
    })
}

fn idle_row(
    selection: &Selection<Case>,
    subjects: &[Entry],
    reporter: &mut Reporter<'_>,
) -> Result<Row, Failure> {
    let (case, effort) = (Case::IdleCpu, selection.effort);
    let millis = selection.n.unwrap_or_else(|| size(effort, case));
    let n_rounds = selection.n_rounds.unwrap_or_else(|| n_rounds(effort, case));
    let what = format!("{} n={millis}", case.name());
    // Idle processes have no counted round 0.
    let all = in_turns(&what, n_rounds - 1, subjects, reporter, |_, entry| {
        idle::measure_apart(entry.facts.name, millis)
    })?;
    let medians = |pick: fn(&Idleness) -> f64| {
        all.each(|_, rounds| stats::median(&rounds.iter().map(pick).collect::<Vec<_>>()))
    };
    Ok(Row {
        case: case.name(),
        n: millis,
        unit: case.unit(),
        figures: medians(|idleness| idleness.figure()),
        n_rounds: n_rounds as usize,
        target: Some(target(case)),
        least: 1.0,
        versus: &[],
        extras: vec![
            Extra::numbers("cpu_us", medians(|idleness| idleness.cpu_us)),
            Extra::numbers("switches", medians(|idleness| idleness.n_switches as f64)),
        ],
    })
}

#[cfg(test)]
mod tests {
    use super::{Case, Effort, Mode, Run, SUBJECTS, Scope, Watch, n_rounds};

    #[test]
    fn every_subject_does_every_case_it_claims_also_at_odd_sizes() {
        let watch = Watch::calibrated(Scope::Process);
        for entry in SUBJECTS {
            for &case in entry.cases.iter().filter(|&&case| case != Case::IdleCpu) {
                for n in [1, 2, 65, 130] {
                    let run = Run { case, n, n_passes: 2, mode: Mode::Timed, watch };
                    let name = entry.facts.name;
                    let cost = (entry.run)(&run).unwrap_or_else(|failure| panic!("{failure}"));
                    assert!(cost.wall_ns > 0.0, "{name} {case:?} {n}: {cost:?}");
                }
            }
        }
    }

    #[test]
    fn who_claims_to_idle_can_be_left_alone() {
        for entry in SUBJECTS {
            let claims = entry.cases.contains(&Case::IdleCpu);
            assert_eq!(claims, entry.idle.is_some(), "{}", entry.facts.name);
        }
    }

    #[test]
    fn the_number_of_rounds_is_odd() {
        for case in Case::ALL {
            for effort in [Effort::Quick, Effort::Full] {
                assert_eq!(n_rounds(effort, case) % 2, 1, "{case:?} {effort:?}");
            }
        }
    }
}
