//! Suite `timers`: the same timers in every store.
//!
//! Random deadlines of up to a minute in ticks of one millisecond are inserted, cancelled in
//! another random order, fired in one jump and in steps, and postponed again and again. All
//! subjects run in this process, on this thread, one after the other in rounds: each round starts
//! with another subject, and every second round goes in reverse order, so that a slow minute of the
//! machine, or the state of the caches and the heap after one subject, affects all of them equally.
//! Round 0 counts allocations and is not timed.

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
use measure::{Entry, Figure, Footprint, Group, Run};
pub(crate) use subject::Case;
use subject::{Cancel, Role};

use crate::clock::{Scope, Watch};
use crate::failure::Failure;
use crate::measure::Mode;
use crate::order::{BySubject, Results, in_turns};
use crate::report::{Column, Extra, Reporter, Row, Standing};
use crate::selection::{Effort, Selection};

/// The name of this suite in JSON.
pub(crate) const NAME: &str = "timers";

/// The meaning of its figures.
pub(crate) const CAPTION: &str = "medians of thread CPU time per operation";

/// The maximum size: ids and churn stay within 32 bits, memory within a few GB.
pub(crate) const N_MAX: u32 = 10_000_000;

/// Every subject, in the order of the table. To add one, add its file and its line here; the others
/// are compared with the one that has [`Role::Ours`].
const SUBJECTS: &[Entry] = &[
    Entry::of::<clockjack::Owned>().with_footprint_of::<clockjack::Shared>(),
    Entry::of::<clockjack::Shared>(),
    Entry::of::<nexus::NexusTimer>(),
    Entry::of::<paused::InTokio<delay_queue::TokioDelayQueue>>(),
    Entry::of::<paused::InTokio<sleep::TokioSleep>>(),
    Entry::of::<hash_wheel::HashWheel>(),
    Entry::of::<btree::Tree>(),
    Entry::of::<heap::Heap>(),
];

impl Effort {
    /// Timed rounds at a size. An odd number, so that the median is a measured value.
    const fn n_rounds(self, n: u32) -> u32 {
        match (self, n) {
            (Self::Quick, _) => 5,
            (Self::Full, ..=10_000) => 21,
            (Self::Full, ..=200_000) => 15,
            (Self::Full, _) => 7,
        }
    }

    /// Repeats within a run: a single pass over few timers is shorter than the noise of the clock.
    const fn n_repeats(self, group: Group, n: u32) -> u32 {
        let (n_ops, most) = match (self, group) {
            // Sixty thousand steps take milliseconds even with nothing to fire.
            (_, Group::Fire1ms | Group::Churn) => (1, 1),
            (Self::Quick, _) => (50_000, 50),
            (Self::Full, _) => (200_000, 200),
        };
        // Each repeat of `fire` builds a store, so few timers must not mean very many repeats.
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

    /// The default sizes of a case.
    const fn sizes(self, case: Case) -> &'static [u32] {
        match (self, case) {
            (_, Case::Bytes) => &[1_000_000],
            (Self::Quick, _) => &[1_000, 100_000],
            (Self::Full, _) => &[1_000, 100_000, 1_000_000],
        }
    }
}

fn sizes(selection: &Selection<Case>, case: Case) -> Vec<u32> {
    selection.n.map_or_else(|| selection.effort.sizes(case).to_vec(), |n| vec![n])
}

/// The properties of the subjects, for the head of the table and for `--list`.
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
    Ok(selection.subjects(SUBJECTS)?.iter().map(column).collect())
}

/// Runs the selected cases and reports each as soon as it is finished.
///
/// # Errors
///
/// If a subject is unknown or does not do the load correctly, or the report cannot be written.
pub(crate) fn run(selection: &Selection<Case>, reporter: &mut Reporter<'_>) -> Result<(), Failure> {
    let subjects = selection.subjects(SUBJECTS)?;
    let watch = Watch::calibrated(Scope::Thread);
    for group in Group::ALL {
        let cases: Vec<Case> =
            group.cases().iter().copied().filter(|&case| selection.has(&case)).collect();
        let Some(&first) = cases.first() else { continue };
        for n in sizes(selection, first) {
            let n_rounds = selection.n_rounds.unwrap_or_else(|| selection.effort.n_rounds(n));
            let load = Load::new(n);
            let what = format!("{} n={n}", first.name());
            let all = in_turns(&what, n_rounds, &subjects, reporter, |round, entry| {
                let mode = Mode::of_round(round);
                let n_repeats = match mode {
                    Mode::Counted => 1,
                    Mode::Timed => selection.effort.n_repeats(group, n),
                };
                let n_churn_ops = selection.effort.n_churn_ops(n);
                (entry.run)(&Run { group, load: &load, n_repeats, n_churn_ops, mode, watch })
            })?;
            for &case in &cases {
                reporter.report(row(case, n, n_rounds, &all))?;
            }
        }
    }
    if selection.has(&Case::Bytes) {
        for n in sizes(selection, Case::Bytes) {
            let load = Load::new(n);
            let mut footprints = Vec::new();
            for entry in &subjects {
                reporter.progress(&format!("bytes n={n}: {}", entry.facts.name));
                footprints.push((entry.facts.name, (entry.footprint)(&load)?));
            }
            reporter.report(bytes_row(n, &footprints))?;
        }
    }
    Ok(())
}

/// A row of one case; a run has figures of all cases of its group.
fn row(case: Case, n: u32, n_rounds: u32, all: &Results<Vec<Figure>>) -> Row {
    let of = |figures: &[Figure], pick: fn(&Figure) -> Option<f64>| {
        figures.iter().find(|figure| figure.case == case).and_then(pick)
    };
    let median = |name, pick| Extra::numbers(name, all.medians(|figures| of(figures, pick)));
    let cpu = |figures: &Vec<Figure>| of(figures, |figure| Some(figure.cost.cpu_ns));
    let allocs = |figures: &Vec<Figure>| of(figures, |figure| Some(figure.cost.n_allocs));
    let mut extras = vec![
        median("wall", |figure| Some(figure.cost.wall_ns)),
        Extra::quartiles(all.quartiles(cpu)),
        Extra::numbers("allocs", all.counted(allocs)),
    ];
    if case == Case::Insert {
        extras.push(median("first_fill", |figure| figure.first_ns));
        extras.push(median("scattered", |figure| figure.scattered_ns));
    }
    Row {
        case: case.name(),
        n,
        unit: case.unit(),
        figures: all.medians(cpu),
        n_rounds: n_rounds as usize,
        target: targets::target(case, n),
        least: 0.0,
        versus: &[],
        extras,
    }
}

fn bytes_row(n: u32, footprints: &[(&'static str, Footprint)]) -> Row {
    let each = |pick: fn(&Footprint) -> f64| -> BySubject<f64> {
        footprints.iter().map(|(name, footprint)| (*name, Some(pick(footprint)))).collect()
    };
    Row {
        case: Case::Bytes.name(),
        n,
        unit: Case::Bytes.unit(),
        figures: each(|footprint| footprint.live),
        n_rounds: 1,
        target: targets::target(Case::Bytes, n),
        least: 0.0,
        versus: &[],
        extras: vec![
            Extra::numbers("after_cancel", each(|footprint| footprint.after_cancel)),
            Extra::numbers("refilled", each(|footprint| footprint.refilled)),
            Extra::numbers("key_bytes", each(|footprint| footprint.key_len as f64)),
        ],
    }
}

#[cfg(test)]
mod tests {
    use super::{Case, Effort};

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
