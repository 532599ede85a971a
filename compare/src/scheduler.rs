//! Suite `scheduler`: one-shot timers with a receiver that only counts, scheduled by a task on a
//! worker.
//!
//! Figures are CPU time of the whole process per timer, from the first call until the last timer
//! has fired or has dropped its closure: wall time would only show the delays, and work that a
//! subject defers to another thread still has to be done. The wall time of the calls alone, for
//! which the caller waits, is reported next to it. Every runtime has two workers. Subjects are
//! started for each run, in the order of the suite `executor`: each round starts with another
//! subject, every second round goes in reverse order, round 0 counts allocations and is not timed.
//!
//! * `schedule_cancel`: a task schedules n (100,000) one-shots for 30 to 90 s, waits 50 ms so that
//!   all of them are armed, and cancels all in random order; the case is over when the last closure
//!   is dropped; ns per timer.
//! * `schedule_fire`: a task schedules n (100,000) one-shots whose delays are uniformly distributed
//!   between 100 and 150 ms and keeps no handle; the case is over when the last one has fired; ns
//!   per timer. The first 100 ms are for scheduling, so that a slow subject does not have fewer
//!   timers armed at the same time.
//!
//! Further fields: `schedule` and `cancel` are the wall time per call in ns, `behind` is how many
//! microseconds after the last due time, or after the last call to cancel, the case was over.

mod clockjack;
mod delay_queue;
mod heap_thread;
mod load;
mod measure;
mod sleep;
mod subject;
mod tokio;

use load::Load;
use measure::Figure;
pub(crate) use subject::Case;
use subject::Subject;

use crate::clock::{Scope, Watch};
use crate::entry::{Entry, Plan};
use crate::failure::Failure;
use crate::order::Results;
use crate::report::{Column, Extra, Reporter, Row, Target};
use crate::selection::{Effort, Selection};

/// The name of this suite in JSON.
pub(crate) const NAME: &str = "scheduler";

/// The meaning of its figures.
pub(crate) const CAPTION: &str = "medians of CPU time of all threads per timer, two workers each";

/// The maximum size: a million concurrent tasks need a few hundred megabytes.
pub(crate) const N_MAX: u32 = 1_000_000;

/// The target of both cases.
const TARGET: Target = Target::RatioAtLeast(3.0);

/// Every subject, in the order of the table. To add one, add its file and its line here; the others
/// are compared with the one that has [`Standing::Ours`](crate::report::Standing::Ours).
const SUBJECTS: &[Entry<Load, Figure>] = &[
    entry::<clockjack::Ours>(),
    entry::<tokio::MultiThread<sleep::SleepTasks>>(),
    entry::<tokio::MultiThread<delay_queue::QueueTask>>(),
    entry::<heap_thread::HeapThread>(),
];

const fn entry<S: Subject>() -> Entry<Load, Figure> {
    Entry { facts: S::FACTS, run: measure::run::<S> }
}

/// The default number of timers.
const fn size(effort: Effort) -> u32 {
    match effort {
        Effort::Quick => 10_000,
        Effort::Full => 100_000,
    }
}

/// Timed rounds. An odd number, so that the median is a measured value.
const fn n_rounds(effort: Effort) -> u32 {
    match effort {
        Effort::Quick => 5,
        Effort::Full => 21,
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
/// If a subject is unknown, cannot be started or loses a timer, or the report cannot be written.
pub(crate) fn run(selection: &Selection<Case>, reporter: &mut Reporter<'_>) -> Result<(), Failure> {
    let watch = Watch::calibrated(Scope::Process);
    selection.report(
        &Case::ALL,
        SUBJECTS,
        |_, _| true,
        reporter,
        |case, subjects, reporter| row(case, selection, subjects, watch, reporter),
    )
}

/// Runs all subjects through a case, interleaved, round after round.
fn row(
    case: Case,
    selection: &Selection<Case>,
    subjects: &[Entry<Load, Figure>],
    watch: Watch,
    reporter: &mut Reporter<'_>,
) -> Result<Row, Failure> {
    let effort = selection.effort;
    let n = selection.n.unwrap_or_else(|| size(effort));
    let n_rounds = selection.n_rounds.unwrap_or_else(|| n_rounds(effort));
    let what = format!("{} n={n}", case.name());
    let plan = Plan { effort, n_rounds, watch };
    let all = plan.run(&what, Load::new(case, n), subjects, reporter)?;
    Ok(summary(case, n, n_rounds, &all))
}

/// The medians over all rounds but the first.
fn summary(case: Case, n: u32, n_rounds: u32, all: &Results<Figure>) -> Row {
    let cpu = |figure: &Figure| Some(figure.cpu_ns);
    Row {
        case: case.name(),
        n,
        unit: "ns",
        figures: all.medians(cpu),
        n_rounds: n_rounds as usize,
        target: Some(TARGET),
        least: 0.0,
        versus: &[("vs_sleep", sleep::NAME), ("vs_delay_queue", delay_queue::NAME)],
        extras: vec![
            Extra::numbers("schedule", all.medians(|figure| Some(figure.schedule_ns))),
            Extra::numbers("cancel", all.medians(|figure| figure.cancel_ns)),
            Extra::numbers("behind", all.medians(|figure| Some(figure.behind_us))),
            Extra::quartiles(all.quartiles(cpu)),
            Extra::numbers("allocs", all.counted(|figure| Some(figure.n_allocs))),
        ],
    }
}

#[cfg(test)]
mod tests {
    use super::{Case, Effort, Load, SUBJECTS, n_rounds};
    use crate::entry::for_each_run;

    #[test]
    fn every_subject_does_every_case_also_at_odd_sizes() {
        for_each_run(SUBJECTS, &Case::ALL, &[1, 65, 300], Load::new, |name, case, n, figure| {
            assert!(figure.cpu_ns > 0.0, "{name} {case:?} {n}: {figure:?}");
            assert!(figure.schedule_ns > 0.0, "{name} {case:?} {n}: {figure:?}");
            assert_eq!(figure.cancel_ns.is_some(), case == Case::ScheduleCancel, "{name} {n}");
        });
    }

    #[test]
    fn the_number_of_rounds_is_odd() {
        for effort in [Effort::Quick, Effort::Full] {
            assert_eq!(n_rounds(effort) % 2, 1, "{effort:?}");
        }
    }
}
