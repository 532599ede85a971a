//! Suite `actors`: the same actors in every actor crate.
//!
//! Figures are CPU time of all threads per operation: on one thread this is the cost of the crate,
//! even if other processes use the machine. Wall time and allocations are reported next to it. On
//! one thread the actors and the driver share that thread; cases that end in `_2t` are the same
//! load on two threads. A subject is started for each run and stopped after it, so only one subject
//! runs at a time. The order is that of the suite `timers`: each round starts with another subject,
//! every second round goes in reverse order, round 0 counts allocations and is not timed.
//!
//! All subjects share one process, which has had several threads. This matters for crates that
//! allocate: glibc's allocator takes no lock in a process that never had a second thread, and there
//! a send of actix takes two thirds of the time shown here. A program with a second thread has the
//! cost that is shown.
//!
//! The behaviour of the actors is written once (`parts.rs`), and each crate runs it with its own
//! means. Plain tokio tasks with channels are shown as a reference and are never the best peer.
//!
//! * `ping_pong`: two actors send each other a ball, n (100,000) round trips; ns per message.
//! * `tell`, `tell_64`: the driver sends n (1,000,000) messages of one word or of seven words to
//!   one actor with an unbounded mailbox; ns per message, until the last one is handled. Seven
//!   words are 64 bytes with the tag that a crate needs if it has one type for all messages of an
//!   actor.
//! * `tell_bounded`: the same with one word and a mailbox for 1,000 messages; if the mailbox is
//!   full, the driver waits for room.
//! * `mpsc4`: four tasks share the n (1,000,000) messages and yield every 64; otherwise as `tell`.
//! * `ask`: the driver asks one actor n (100,000) questions, each after the previous answer; ns per
//!   answer.
//! * `spawn`: n (100,000) actors are started; ns per actor, until all have started.
//! * `stop`: n (100,000) idle actors are stopped; ns per actor, until the state of all is dropped.
//! * `ring`: a token goes n (1,000) times around a ring of 1,000 actors; ns per message.
//! * `skynet`: each actor starts ten children, down to n (1,000,000) leaves that send their numbers
//!   up, and stops when it has sent the sum to its parent; ns per actor (there are one ninth more
//!   actors than leaves).
//! * `big`: each of 200 actors pings every other one n (10) times, the next one after the pong; ns
//!   per message.
//! * `memory`: heap bytes per idle actor with one word of state, after each of n (100,000) has
//!   answered once. The references that the driver holds are not counted.
//! * `allocs_tell`, `allocs_tell_64`: allocations per message as in `tell_bounded`, of one word or
//!   of seven words, after the mailbox was full.

pub(crate) mod actix;
pub(crate) mod actor_counts;
pub(crate) mod clockjack;
pub(crate) mod kameo;
mod load;
mod measure;
mod on_tokio;
mod part;
mod parts;
pub(crate) mod ractor;
pub(crate) mod subject;
pub(crate) mod tokio;
mod xtra;

use measure::{Entry, Run};
pub(crate) use subject::Case;
use subject::{Load, Threads};

use crate::clock::{Scope, Watch};
use crate::failure::Failure;
use crate::measure::{Cost, Mode};
use crate::order::{Results, in_turns};
use crate::report::{Column, Reporter, Row, Target};
use crate::selection::{Effort, Selection};

/// The name of this suite in JSON.
pub(crate) const NAME: &str = "actors";

/// The meaning of its figures.
pub(crate) const CAPTION: &str = "medians of CPU time per operation, on one thread or on two (_2t)";

/// The maximum size: a million concurrent actors need a few gigabytes.
pub(crate) const N_MAX: u32 = 1_000_000;

/// The target of a case.
const fn target(case: Case) -> Option<Target> {
    match (case.load, case.threads) {
        (_, Threads::Two) | (Load::Tell64, _) => None,
        (Load::PingPong | Load::Tell | Load::Spawn | Load::Stop, _) => {
            Some(Target::RatioAtLeast(3.0))
        }
        (Load::Memory, _) => Some(Target::OursAtMost(320.0)),
        (Load::AllocsTell | Load::AllocsTell64, _) => Some(Target::OursAtMost(0.0)),
        _ => Some(Target::RatioAtLeast(2.0)),
    }
}

/// Every subject, in the order of the table. To add one, add its file and its line here; the others
/// are compared with the one that has [`Standing::Ours`](crate::report::Standing::Ours).
const SUBJECTS: &[Entry] = &[
    Entry::of::<clockjack::Clockjack>(),
    Entry::of::<ractor::Ractor>(),
    Entry::of::<kameo::Kameo>(),
    Entry::of::<actix::Actix>(),
    Entry::of::<xtra::Xtra>(),
    Entry::of::<tokio::TokioMpsc>(),
];

/// The default size of a load.
const fn size(effort: Effort, load: Load) -> u32 {
    match (load, effort) {
        (Load::PingPong | Load::Ask, Effort::Quick) => 10_000,
        (Load::PingPong | Load::Ask, Effort::Full) => 100_000,
        (Load::Ring, Effort::Quick) => 20,
        (Load::Ring, Effort::Full) => 1_000,
        (Load::Big, Effort::Quick) => 1,
        (Load::Big, Effort::Full) => 10,
        (Load::Spawn | Load::Stop | Load::Memory, Effort::Quick) => 10_000,
        (Load::Spawn | Load::Stop | Load::Memory, Effort::Full) => 100_000,
        (Load::Skynet, Effort::Quick) => 10_000,
        (Load::Skynet, Effort::Full) => 1_000_000,
        (_, Effort::Quick) => 50_000,
        (_, Effort::Full) => 1_000_000,
    }
}

/// Timed rounds. An odd number, so that the median is a measured value.
const fn n_rounds(effort: Effort, load: Load) -> u32 {
    match (load, effort) {
        (Load::Skynet, Effort::Full) | (_, Effort::Quick) => 3,
        (_, Effort::Full) => 9,
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
/// If a subject is unknown, cannot be started or loses a message or an actor, or the report cannot
/// be written.
pub(crate) fn run(selection: &Selection<Case>, reporter: &mut Reporter<'_>) -> Result<(), Failure> {
    let watch = Watch::calibrated(Scope::Process);
    let can = |entry: &Entry, case: Case| !entry.lacks.contains(&case.load);
    selection.report(&Case::ALL, SUBJECTS, can, reporter, |case, able, reporter| {
        let n = selection.n.unwrap_or_else(|| size(selection.effort, case.load));
        if case.load.is_counted() {
            // The allocator's counts are the same in every round.
            let counted = rounds(case, n, 0, able, watch, reporter)?;
            return Ok(counted_row(case, n, &counted));
        }
        let usual = || n_rounds(selection.effort, case.load);
        let n_rounds = selection.n_rounds.unwrap_or_else(usual);
        let timed = rounds(case, n, n_rounds, able, watch, reporter)?;
        Ok(timed_row(case, n, n_rounds, &timed))
    })
}

fn rounds(
    case: Case,
    n: u32,
    n_rounds: u32,
    subjects: &[Entry],
    watch: Watch,
    reporter: &mut Reporter<'_>,
) -> Result<Results<Cost>, Failure> {
    let what = format!("{} n={n}", case.name);
    in_turns(&what, n_rounds, subjects, reporter, |round, entry| {
        (entry.run)(&Run { case, n, mode: Mode::of_round(round), watch })
    })
}

/// A row without figures.
fn row(case: Case, n: u32, n_rounds: u32) -> Row {
    // A tree has only full levels.
    let leaves = || u32::try_from(load::n_leaves(n)).expect("at most the size that was asked for");
    Row {
        case: case.name,
        n: if case.load == Load::Skynet { leaves() } else { n },
        unit: case.load.unit(),
        figures: Vec::new(),
        n_rounds: n_rounds as usize,
        target: target(case),
        least: 0.0,
        versus: &[],
        extras: Vec::new(),
    }
}

fn counted_row(case: Case, n: u32, all: &Results<Cost>) -> Row {
    let figures = all.counted(|cost| match case.load {
        Load::Memory => Some(cost.live_bytes),
        _ => Some(cost.n_allocs),
    });
    Row { figures, ..row(case, n, 1) }
}

fn timed_row(case: Case, n: u32, n_rounds: u32, all: &Results<Cost>) -> Row {
    let (figures, extras) = (all.medians(Cost::cpu), Cost::extras(all));
    Row { figures, extras, ..row(case, n, n_rounds) }
}

#[cfg(test)]
mod tests {
    use super::{Case, Effort, Load, Mode, Run, SUBJECTS, Scope, Watch, n_rounds};

    #[test]
    fn every_subject_does_every_case_it_claims_also_at_odd_sizes() {
        let watch = Watch::calibrated(Scope::Process);
        for entry in SUBJECTS {
            for case in Case::ALL.into_iter().filter(|case| !entry.lacks.contains(&case.load)) {
                // Several rounds would only take longer.
                let is_long = matches!(case.load, Load::Ring | Load::Big);
                let sizes: &[u32] = if is_long { &[1, 2] } else { &[1, 2, 65, 1_030] };
                for &n in sizes {
                    let run = Run { case, n, mode: Mode::Timed, watch };
                    let name = entry.facts.name;
                    let cost = (entry.run)(&run).unwrap_or_else(|failure| panic!("{failure}"));
                    assert!(cost.wall_ns > 0.0, "{name} {case:?} {n}: {cost:?}");
                }
            }
        }
    }

    #[test]
    fn the_number_of_rounds_is_odd() {
        for case in Case::ALL {
            for effort in [Effort::Quick, Effort::Full] {
                assert_eq!(n_rounds(effort, case.load) % 2, 1, "{case:?} {effort:?}");
            }
        }
    }
}
