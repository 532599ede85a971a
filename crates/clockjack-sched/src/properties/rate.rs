//! The due times of a job at a fixed rate, counted again from the log.

use core::time::Duration;

use clockjack_time::{Resolution, Tick, TickSpan};

use super::PropertyError;
use crate::{JobNumber, LogKind, LogRecord};

/// A job at a fixed rate, as it was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FixedRate {
    /// The job.
    pub job: JobNumber,
    /// Its period. One that is shorter than a tick counts as a tick.
    pub period: Duration,
    /// The scheduler's tick.
    pub resolution: Resolution,
}

impl FixedRate {
    /// When run `n` is due, the first being 0: a multiple of the period later, rounded up.
    #[must_use]
    pub fn due(&self, first: Tick, n: u64) -> Tick {
        let span_ns = self.period_ns() * u128::from(n);
        let span = u64::try_from(span_ns.div_ceil(self.tick_ns())).unwrap_or(u64::MAX);
        first.saturating_add(TickSpan::new(span))
    }

    /// How many runs are due by a tick.
    #[must_use]
    pub fn runs_due(&self, first: Tick, by: Tick) -> u64 {
        let Some(span) = by.checked_since(first) else { return 0 };
        let n = u128::from(span.get()) * self.tick_ns() / self.period_ns();
        u64::try_from(n).unwrap_or(u64::MAX).saturating_add(1)
    }

    fn tick_ns(&self) -> u128 {
        u128::from(self.resolution.nanos().get())
    }

    fn period_ns(&self) -> u128 {
        self.period.as_nanos().max(self.tick_ns())
    }
}

/// Checks a job at a fixed rate by a log: each run was due at a multiple of the period from the
/// first, none was left out, and if everything that was due by the tick `settled` has run, so has
/// each run of this job. Returns the number of runs.
///
/// # Errors
///
/// The first violation.
pub fn fixed_rate_grid<'r>(
    records: impl IntoIterator<Item = &'r LogRecord>,
    rate: &FixedRate,
    settled: Option<Tick>,
) -> Result<u64, PropertyError> {
    let (mut ran, mut first) = (0, None);
    for record in records.into_iter().filter(|record| record.job == rate.job) {
        match (record.kind, first) {
            (LogKind::Schedule, _) => first = Some(record.deadline),
            (LogKind::Fire | LogKind::Fold, Some(first)) => {
                let expected = rate.due(first, ran);
                if record.deadline != expected {
                    return Err(PropertyError::OffGrid { fire: *record, expected });
                }
                ran += u64::from(record.runs);
            }
            _ => {}
        }
    }
    if let (Some(first), Some(by)) = (first, settled) {
        let due = rate.runs_due(first, by);
        if ran < due {
            return Err(PropertyError::RunsMissed { job: rate.job, ran, due, by });
        }
    }
    Ok(ran)
}
