//! Which property did not hold, and where.

use core::fmt;

use clockjack_time::Tick;

use crate::{JobNumber, LogRecord};

/// A property that did not hold, with the records that show it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PropertyError {
    /// The log has lost records, so nothing can be said: it needs more room.
    LogIncomplete {
        /// How many it has.
        kept: u64,
        /// How many were written.
        written: u64,
    },
    /// A record is of an earlier tick than the one before it.
    TimeWentBack {
        /// The later one, which came first.
        before: LogRecord,
        /// The earlier one.
        after: LogRecord,
    },
    /// A run came before its deadline.
    FiredEarly {
        /// The run.
        fire: LogRecord,
    },
    /// A run came behind one that was due later, or whose job was accepted later.
    OutOfOrder {
        /// The one that came first.
        before: LogRecord,
        /// The one that should have.
        after: LogRecord,
    },
    /// A job ran that was cancelled.
    RanAfterCancel {
        /// The cancel.
        cancel: LogRecord,
        /// The run.
        fire: LogRecord,
    },
    /// A job was cancelled twice.
    CancelledTwice {
        /// The first cancel.
        first: LogRecord,
        /// The second one.
        second: LogRecord,
    },
    /// The handler of a job was called after a cancel had said that it will not be.
    CalledAfterCancel {
        /// The job.
        job: JobNumber,
        /// Its runs when it was cancelled.
        runs_then: u32,
        /// Its runs now.
        runs_now: u32,
    },
    /// The handle of a job that was cancelled does not say so.
    CancelForgotten {
        /// The job.
        job: JobNumber,
    },
    /// The log has other runs of a job than its handler has seen.
    RunsDiffer {
        /// The job.
        job: JobNumber,
        /// Runs in the log.
        logged: u64,
        /// Runs that the handler has seen.
        seen: u64,
    },
    /// A run at a fixed rate was due at another time than a multiple of its period from the first.
    OffGrid {
        /// The run.
        fire: LogRecord,
        /// When it should have been due.
        expected: Tick,
    },
    /// A job at a fixed rate has run less often than was due.
    RunsMissed {
        /// The job.
        job: JobNumber,
        /// How often it has run.
        ran: u64,
        /// How often that was due.
        due: u64,
        /// By when.
        by: Tick,
    },
}

impl fmt::Display for PropertyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::LogIncomplete { kept, written } => {
                write!(f, "the log has {kept} of {written} records")
            }
            Self::TimeWentBack { before, after } => {
                write!(f, "time went back: {after:?} came behind {before:?}")
            }
            Self::FiredEarly { fire } => write!(f, "fired before its deadline: {fire:?}"),
            Self::OutOfOrder { before, after } => {
                write!(f, "out of order: {after:?} came behind {before:?}")
            }
            Self::RanAfterCancel { cancel, fire } => {
                write!(f, "ran after its cancel: {fire:?} came behind {cancel:?}")
            }
            Self::CancelledTwice { first, second } => {
                write!(f, "cancelled twice: {second:?} came behind {first:?}")
            }
            Self::CalledAfterCancel { job, runs_then, runs_now } => {
                write!(f, "job {job}: {runs_now} runs, and {runs_then} when it was cancelled")
            }
            Self::CancelForgotten { job } => {
                write!(f, "job {job}: was cancelled, and does not say so")
            }
            Self::RunsDiffer { job, logged, seen } => {
                write!(f, "job {job}: {logged} runs in the log, {seen} seen by its handler")
            }
            Self::OffGrid { fire, expected } => {
                write!(f, "off its grid: {fire:?} was to be due at {expected}")
            }
            Self::RunsMissed { job, ran, due, by } => {
                write!(f, "job {job}: {ran} runs by tick {by}, {due} were due")
            }
        }
    }
}

impl core::error::Error for PropertyError {}
