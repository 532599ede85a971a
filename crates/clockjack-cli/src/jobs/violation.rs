//! Laws that were broken, in words.

use core::{error::Error, fmt};

use super::check::{Run, Tells};

/// A law that was broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Violation {
    Early { run: Run },
    Late { run: Run },
    Ended { run: Run },
    OtherName { run: Run },
    OtherDue { run: Run, due: u64 },
    OtherTime { run: Run, until: u64 },
    OtherBatch { run: Run, owed: u64 },
    OutOfOrder { run: Run, before: u32 },
    OtherCancel { number: u32, won: bool },
    OtherState { number: u32, tells: Tells },
    Lost { number: u32, due: u64, now: u64 },
    OtherCount { what: &'static str, books: u64, told: u64 },
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Early { run: Run { number, due, at, .. } } => {
                write!(f, "job {number} ran at tick {at}, before it was due at {due}")
            }
            Self::Late { run: Run { number, due, at, .. } } => write!(
                f,
                "job {number} was due at tick {due} and ran at {at}, though the clock did not leap"
            ),
            Self::Ended { run: Run { number, at, .. } } => write!(
                f,
                "job {number} ran at tick {at}, but it had run for the last time, was cancelled, \
                 or never was registered"
            ),
            Self::OtherName { run: Run { number, job, .. } } => {
                write!(f, "job {number} was called {job} by the scheduler")
            }
            Self::OtherDue { run: Run { number, due: told, .. }, due } => {
                write!(f, "job {number} was to run next for tick {due} and ran for {told}")
            }
            Self::OtherTime { run: Run { number, at, .. }, until } => write!(
                f,
                "job {number} got tick {at} as the time of its run: that tick was over, or was not \
                 reached yet on the way to {until}"
            ),
            Self::OtherBatch { run: Run { number, at, batch, .. }, owed } => {
                write!(f, "job {number} ran at tick {at} as {batch}, when {owed} runs were due")
            }
            Self::OutOfOrder { run: Run { number, due, .. }, before } => write!(
                f,
                "the first run of job {number}, for tick {due}, came after that of job {before}"
            ),
            Self::OtherCancel { number, won: true } => {
                write!(f, "job {number} had ended, but its cancel said that it won")
            }
            Self::OtherCancel { number, won: false } => {
                write!(f, "job {number} was alive, but its cancel found nothing")
            }
            Self::OtherState { number, tells: Tells { is_completed, is_cancelled } } => write!(
                f,
                "the handle of job {number} is wrong: completed {is_completed}, cancelled \
                 {is_cancelled}"
            ),
            Self::Lost { number, due, now } => {
                write!(f, "job {number} was due at tick {due} and has not run by {now}")
            }
            Self::OtherCount { what, books, told } => {
                write!(f, "{what}: {books} by the books, {told} by the scheduler")
            }
        }
    }
}

impl Error for Violation {}

#[cfg(test)]
mod tests {
    use clockjack_sched::{BatchMode, ExecutionBatch, JobNumber};

    use super::*;

    #[test]
    fn a_report_names_job_and_ticks() {
        let batch = ExecutionBatch::folded(2, BatchMode::FixedRate);
        let job = JobNumber { shard: 0, number: 18 };
        let run = Run { number: 17, job, due: 5, at: 4, batch };
        let early = Violation::Early { run };
        assert_eq!(early.to_string(), "job 17 ran at tick 4, before it was due at 5");
        let batch = Violation::OtherBatch { run, owed: 1 };
        assert_eq!(
            batch.to_string(),
            "job 17 ran at tick 4 as fixed-rate x3 (2 missed), when 1 runs were due"
        );
        let count = Violation::OtherCount { what: "runs in the log", books: 3, told: 2 };
        assert_eq!(count.to_string(), "runs in the log: 3 by the books, 2 by the scheduler");
    }
}
