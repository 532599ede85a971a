//! Suite `jitter`: the lateness of a periodic timer of one millisecond.
//!
//! Each sleeper is woken once per millisecond, at instants that lie on its own tick, for five
//! seconds in slices of one second; the slices of the sleepers alternate. The figures are
//! percentiles of the time from the due time of a period until its body ran, over all slices, in
//! microseconds. A late period does not delay the next one; a missed period counts with its
//! lateness. On an idle machine lateness is mostly the kernel's path from the timer to the thread,
//! which `clock_nanosleep` shows alone: `vs_nanosleep` is the figure of `clock_nanosleep` divided
//! by ours, `vs_tokio` that of tokio.

mod clockjack;
mod nanosleep;
mod subject;
mod tokio;

use core::time::Duration;

use subject::Sleeper;

use crate::failure::Failure;
use crate::order::turn_order;
use crate::report::{Column, Facts, Reporter, Row, Target};
use crate::selection::{Effort, Selection};
use crate::stats::percentile;

/// The name of this suite in JSON.
pub(crate) const NAME: &str = "jitter";

/// The meaning of its figures.
pub(crate) const CAPTION: &str = "lateness of a period of 1 ms, percentiles of all periods";

/// The maximum number of periods: ten minutes per sleeper.
pub(crate) const N_MAX: u32 = 600_000;

/// Every sleeper, in the order of the table; the others are compared with the one that has
/// [`Standing::Ours`](crate::report::Standing::Ours).
const SLEEPERS: &[Sleeper] =
    &[clockjack::SLEEPER, tokio::TIME_ONLY, tokio::WITH_IO, nanosleep::SLEEPER];

/// What is reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Case {
    /// Half of the periods are at most this late.
    P50,
    /// Nine of ten periods are at most this late.
    P90,
    /// All but one of a hundred periods are at most this late.
    P99,
    /// The latest period.
    Max,
}

impl Case {
    pub(crate) const ALL: [Self; 4] = [Self::P50, Self::P90, Self::P99, Self::Max];

    /// The name in tables and JSON, the same as on the command line.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::P50 => "p50",
            Self::P90 => "p90",
            Self::P99 => "p99",
            Self::Max => "max",
        }
    }

    const fn per_cent(self) -> usize {
        match self {
            Self::P50 => 50,
            Self::P90 => 90,
            Self::P99 => 99,
            Self::Max => 100,
        }
    }

    /// The target of this percentile.
    const fn target(self) -> Option<Target> {
        match self {
            Self::P50 => Some(Target::Within(nanosleep::NAME, 1.5)),
            Self::P90 | Self::P99 | Self::Max => None,
        }
    }
}

/// The properties of the sleepers, for the head of the table and for `--list`.
pub(crate) fn columns(selection: &Selection<Case>) -> Result<Vec<Column>, Failure> {
    selection.columns(SLEEPERS)
}

/// Runs and reports the selected percentiles.
///
/// # Errors
///
/// If a sleeper is unknown or cannot be started, or the report cannot be written.
pub(crate) fn run(selection: &Selection<Case>, reporter: &mut Reporter<'_>) -> Result<(), Failure> {
    let sleepers = selection.subjects(SLEEPERS)?;
    let (n_usual, n_rounds) = match selection.effort {
        Effort::Quick => (1_000, 2),
        Effort::Full => (5_000, 5),
    };
    let n_rounds = selection.n_rounds.unwrap_or(n_rounds);
    let n_ticks = selection.n.unwrap_or(n_usual).div_ceil(n_rounds);
    let mut late: Vec<Vec<Duration>> = vec![Vec::new(); sleepers.len()];
    for round in 0..n_rounds {
        for index in turn_order(round as usize, sleepers.len()) {
            let Sleeper { facts: Facts { name, .. }, run } = sleepers[index];
            reporter.progress(&format!("1 ms: round {}/{n_rounds}, {name}", round + 1));
            late[index].extend(run(n_ticks)?);
        }
    }
    for late in &mut late {
        late.sort_unstable();
    }
    for case in Case::ALL.into_iter().filter(|case| selection.has(case)) {
        let figure = |(sleeper, late): (&Sleeper, &Vec<Duration>)| {
            let late = percentile(late, case.per_cent());
            (sleeper.facts.name, late.map(|late| late.as_secs_f64() * 1e6))
        };
        reporter.report(Row {
            case: case.name(),
            n: n_ticks * n_rounds,
            unit: "us",
            figures: sleepers.iter().zip(&late).map(figure).collect(),
            n_rounds: n_rounds as usize,
            target: case.target(),
            least: 0.0,
            versus: &[("vs_nanosleep", nanosleep::NAME), ("vs_tokio", tokio::NAME)],
            extras: Vec::new(),
        })?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::SLEEPERS;

    #[test]
    fn every_sleeper_reports_each_period() {
        for sleeper in SLEEPERS {
            let late = (sleeper.run)(5).unwrap_or_else(|failure| panic!("{failure}"));
            assert_eq!(late.len(), 5, "{}", sleeper.facts.name);
        }
    }
}
