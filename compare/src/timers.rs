//! Suite `timers`: the same timers in every store.
//!
//! Random deadlines of up to a minute in ticks of one millisecond are inserted, cancelled in
//! another random order, fired in one jump and in steps, and put off again and again. All subjects
//! run in this process, on this thread, one after the other in rounds: each round starts at another
//! subject and every second one goes backwards, so that a slow minute of the machine, or what one
//! subject leaves in the caches and the heap, falls on all of them alike. Round 0 counts
//! allocations and is not timed.

mod btree;
mod clockjack;
mod delay_queue;
mod hash_wheel;
mod heap;
mod load;
mod measure;
mod nexus;
mod paused;
mod sleep;
mod subject;
mod targets;

use load::Load;
use measure::{Entry, Figure, Footprint, Group, Mode, Run};
pub(crate) use subject::Case;
use subject::{Cancel, Role};

use crate::clock::{Scope, Watch};
use crate::failure::Failure;
use crate::order::turn_order;
use crate::report::{Column, Extra, Reporter, Row, Standing};
use crate::selection::{Effort, Selection};
use crate::stats::Quartiles;

/// The name of this suite in JSON.
pub(crate) const NAME: &str = "timers";

/// What its figures are.
pub(crate) const CAPTION: &str = "medians of thread CPU time an operation";

/// The largest size one may ask for: ids and churn stay within 32 bits, memory within a few GB.
pub(crate) const N_MAX: u32 = 10_000_000;

/// Every subject, in the order of the table. A new one needs its file and its line here; the one
/// with [`Role::Ours`] is what the others are compared with.
const SUBJECTS: &[Entry] = &[
    Entry::of::<clockjack::Owned>().with_footprint_of::<clockjack::Shared>(),
    Entry::of::<clockjack::Shared>(),
    Entry::of::<nexus::NexusTimer>(),
    Entry::of::<delay_queue::TokioDelayQueue>(),
    Entry::of::<sleep::TokioSleep>(),
    Entry::of::<hash_wheel::HashWheel>(),
    Entry::of::<btree::Tree>(),
    Entry::of::<heap::Heap>(),
];

impl Effort {
    /// Timed rounds at a size. Odd, so that the median is a round that happened.
    const fn n_rounds(self, n: u32) -> u32 {
        match (self, n) {
            (Self::Quick, _) => 5,
            (Self::Full, ..=10_000) => 21,
            (Self::Full, ..=200_000) => 15,
            (Self::Full, _) => 7,
        }
    }

    /// Repeats within a run: a single pass over few timers is shorter than the clock's own noise.
    const fn n_repeats(self, group: Group, n: u32) -> u32 {
        let (n_ops, most) = match (self, group) {
            // Sixty thousand steps take milliseconds even with nothing to fire.
            (_, Group::Fire1ms | Group::Churn) => (1, 1),
            (Self::Quick, _) => (50_000, 50),
            (Self::Full, _) => (200_000, 200),
        };
        // Each repeat of `fire` builds a store, so that few timers must not mean endless repeats.
        match n_ops / n {
            0 => 1,
            n_repeats if n_repeats > most => most,
            n_repeats => n_repeats,
        }
    }

    /// Enough operations to replace every timer about three times, within limits.
    fn n_churn_ops(self, n: u32) -> u64 {
        let most = match self {
            Self::Quick => 300_000,
            Self::Full => 3_000_000,
        };
        (u64::from(n) * 3).clamp(most / 10, most)
    }

    /// The sizes at which a case is measured if none is given.
    const fn sizes(self, case: Case) -> &'static [u32] {
        match (self, case) {
            (_, Case::Bytes) => &[1_000_000],
            (Self::Quick, _) => &[1_000, 100_000],
            (Self::Full, _) => &[1_000, 100_000, 1_000_000],
        }
    }
}

/// The subjects chosen, in the order of the table.
fn subjects(selection: &Selection<Case>) -> Result<Vec<Entry>, Failure> {
    selection.subjects(SUBJECTS, |entry| entry.facts.name)
}

fn sizes(selection: &Selection<Case>, case: Case) -> Vec<u32> {
    selection.n.map_or_else(|| selection.effort.sizes(case).to_vec(), |n| vec![n])
}

/// What is known about the subjects, for the head of the table and for `--list`.
pub(crate) fn columns(selection: &Selection<Case>) -> Result<Vec<Column>, Failure> {
    let column = |entry: &Entry| Column {
        name: entry.facts.name,
        package: entry.facts.package,
        standing: match entry.facts.role {
            Role::Ours => Standing::Ours,
            Role::Crate if entry.facts.is_rival() => Standing::Rival,
            Role::Crate | Role::Reference => Standing::Reference,
        },
        note: match entry.facts.cancel {
            Cancel::Frees => format!("cancel frees; {}", entry.facts.note),
            Cancel::Lazy => format!("cancel frees nothing; {}", entry.facts.note),
        },
    };
    Ok(subjects(selection)?.iter().map(column).collect())
}

/// Runs what was selected and reports each case as soon as it is known.
///
/// # Errors
///
/// If a subject is unknown, does not do what the load asks of it, or the report cannot be written.
pub(crate) fn run(selection: &Selection<Case>, reporter: &mut Reporter<'_>) -> Result<(), Failure> {
    let subjects = subjects(selection)?;
    let watch = Watch::calibrated(Scope::Thread);
    for group in Group::ALL {
        let cases: Vec<Case> =
            group.cases().iter().copied().filter(|&case| selection.has(&case)).collect();
        let Some(&first) = cases.first() else { continue };
        for n in sizes(selection, first) {
            let figures = rounds(group, n, &subjects, selection, watch, reporter)?;
            for &case in &cases {
                reporter.report(row(case, n, &figures))?;
            }
        }
    }
    if selection.has(&Case::Bytes) {
        for n in sizes(selection, Case::Bytes) {
            let load = Load::new(n);
            let mut footprints = Vec::new();
            for entry in &subjects {
                reporter.progress(&format!("bytes n={n}: {}", entry.facts.name));
                let able = !entry.facts.cannot.contains(&Case::Bytes);
                let footprint = able.then(|| (entry.footprint)(&load)).transpose()?;
                footprints.push((*entry, footprint));
            }
            reporter.report(bytes_row(n, &footprints))?;
        }
    }
    Ok(())
}

/// All figures of one subject in one group at one size.
struct Gathered {
    entry: Entry,
    counted: Vec<Figure>,
    timed: Vec<Vec<Figure>>,
}

/// Runs all subjects interleaved, round after round.
fn rounds(
    group: Group,
    n: u32,
    subjects: &[Entry],
    selection: &Selection<Case>,
    watch: Watch,
    reporter: &mut Reporter<'_>,
) -> Result<Vec<Gathered>, Failure> {
    let effort = selection.effort;
    let load = Load::new(n);
    let gathered = |&entry: &Entry| Gathered { entry, counted: Vec::new(), timed: Vec::new() };
    let mut all: Vec<Gathered> = subjects.iter().map(gathered).collect();
    let n_rounds = selection.n_rounds.unwrap_or_else(|| effort.n_rounds(n));
    for round in 0..=n_rounds {
        let mode = if round == 0 { Mode::Counted } else { Mode::Timed };
        let n_repeats = if round == 0 { 1 } else { effort.n_repeats(group, n) };
        let n_churn_ops = effort.n_churn_ops(n);
        let run = Run { group, load: &load, n_repeats, n_churn_ops, mode, watch };
        for index in turn_order(round as usize, all.len()) {
            let one = &mut all[index];
            let facts = &one.entry.facts;
            if group.cases().iter().all(|case| facts.cannot.contains(case)) {
                continue;
            }
            let case = group.cases()[0].name();
            reporter.progress(&format!("{case} n={n}: round {round}/{n_rounds}, {}", facts.name));
            let figures = (one.entry.run)(&run)?;
            match mode {
                Mode::Counted => one.counted = figures,
                Mode::Timed => one.timed.push(figures),
            }
        }
    }
    Ok(all)
}

fn row(case: Case, n: u32, gathered: &[Gathered]) -> Row {
    let able = |one: &&Gathered| !one.entry.facts.cannot.contains(&case);
    let extra = |name, pick: &dyn Fn(&Gathered) -> Option<serde_json::Value>| {
        let value = |one| Some(one).filter(able).and_then(pick);
        let values = gathered.iter().map(|one| (one.entry.facts.name, value(one))).collect();
        Extra::new(name, values)
    };
    let quartiles = |one: &Gathered, pick| Quartiles::of(&samples(one, case, pick));
    let median = |name, pick: fn(&Figure) -> Option<f64>| {
        extra(name, &|one| Some(Extra::number(quartiles(one, pick)?.median)))
    };
    let cpu = |figure: &Figure| Some(figure.cpu_ns);
    let figure = |one| Some(quartiles(Some(one).filter(able)?, cpu)?.median);
    let mut extras = vec![
        median("wall", |figure| Some(figure.wall_ns)),
        extra("quartiles", &|one| quartiles(one, cpu).map(|cuts| Extra::pair(cuts.q1, cuts.q3))),
        extra("allocs", &|one| {
            let counted = one.counted.iter().find(|figure| figure.case == case)?;
            Some(Extra::number(counted.n_allocs))
        }),
    ];
    if case == Case::Insert {
        extras.push(median("first_fill", |figure| figure.first_ns));
        extras.push(median("scattered", |figure| figure.scattered_ns));
    }
    Row {
        case: case.name(),
        n,
        unit: case.unit(),
        figures: gathered.iter().map(|one| (one.entry.facts.name, figure(one))).collect(),
        n_rounds: gathered.iter().map(|one| one.timed.len()).max().unwrap_or(0),
        target: targets::target(case, n),
        least: 0.0,
        versus: &[],
        extras,
    }
}

fn samples(one: &Gathered, case: Case, pick: fn(&Figure) -> Option<f64>) -> Vec<f64> {
    one.timed.iter().flatten().filter(|figure| figure.case == case).filter_map(pick).collect()
}

fn bytes_row(n: u32, footprints: &[(Entry, Option<Footprint>)]) -> Row {
    let per_subject = |pick: fn(&Footprint) -> f64| {
        footprints
            .iter()
            .map(|(entry, footprint)| {
                (entry.facts.name, footprint.as_ref().map(|f| Extra::number(pick(f))))
            })
            .collect::<Vec<_>>()
    };
    Row {
        case: Case::Bytes.name(),
        n,
        unit: Case::Bytes.unit(),
        figures: footprints
            .iter()
            .map(|(entry, footprint)| (entry.facts.name, footprint.map(|f| f.live)))
            .collect(),
        n_rounds: 1,
        target: targets::target(Case::Bytes, n),
        least: 0.0,
        versus: &[],
        extras: vec![
            Extra::new("after_cancel", per_subject(|footprint| footprint.after_cancel)),
            Extra::new("refilled", per_subject(|footprint| footprint.refilled)),
            Extra::new("key_bytes", per_subject(|footprint| footprint.key_len as f64)),
        ],
    }
}

#[cfg(test)]
mod tests {
    use super::{Case, Effort, SUBJECTS};

    #[test]
    fn subjects_have_different_names() {
        let mut names: Vec<&str> = SUBJECTS.iter().map(|entry| entry.facts.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), SUBJECTS.len());
    }

    #[test]
    fn churn_ends_before_the_first_timeout_at_every_size() {
        for effort in [Effort::Quick, Effort::Full] {
            for n in [1, 1_000, 100_000, 1_000_000, super::N_MAX] {
                let end_ms = effort.n_churn_ops(n) / super::load::CHURN_OPS_PER_MS;
                assert!(end_ms < super::load::CHURN_TIMEOUT_MS, "{effort:?} {n}: {end_ms} ms");
            }
        }
    }

    #[test]
    fn a_quick_run_stays_at_small_sizes_except_for_bytes() {
        for case in Case::ALL {
            let largest = Effort::Quick.sizes(case).iter().max();
            let expected = if case == Case::Bytes { 1_000_000 } else { 100_000 };
            assert_eq!(largest, Some(&expected), "{case:?}");
        }
    }
}
