//! What users are warned of.

use core::{fmt, time::Duration};

use clockjack_time::Class;

use crate::{ExecutionBatch, HandlerError, JobNumber};

/// Why the runtime is under pressure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum PressureReason {
    /// Mailboxes are nearly full.
    Mailboxes,
    /// A dispatcher has refused a job. It ends when one takes a job again, or at the first request
    /// a second after the last refusal.
    Dispatcher,
    /// The host said so.
    Host,
}

impl fmt::Display for PressureReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Mailboxes => "mailboxes are nearly full",
            Self::Dispatcher => "a dispatcher refuses work",
            Self::Host => "the host says so",
        })
    }
}

/// Something that somebody should know of.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Warning {
    /// Each of many fires in a row was late by more than the budget, beyond what the driver had
    /// reported of itself. Once for each such window. On a clock that is moved by hand no fire may
    /// be late: there it is told at the first one of a window that is.
    DriftExceeded {
        /// The shard.
        shard: u32,
        /// How late the least late of them was; on a clock that is moved by hand, the first.
        observed: Duration,
        /// How late it may be.
        budget: Duration,
        /// How many fires there were in the window so far, late or not.
        fires: u32,
    },
    /// One advance made up for many ticks at once: the driver, or what runs the scheduler, was
    /// away.
    DriverCatchUpExceeded {
        /// The shard.
        shard: u32,
        /// How many ticks were made up for.
        ticks: u64,
        /// How many may be.
        limit: u32,
    },
    /// Ticks were wanted, and the driver has supplied none.
    DriverSilent {
        /// For how long.
        silent_for: Duration,
    },
    /// Many runs of one job have come due at once.
    BurstFire {
        /// The job.
        job: JobNumber,
        /// How many runs it has missed.
        missed: u32,
        /// How many it may miss without being told of.
        threshold: u32,
    },
    /// A job has fallen further behind than its policy allows, and was cancelled.
    BacklogExceeded {
        /// The job.
        job: JobNumber,
        /// How many runs it has missed.
        backlog: u32,
        /// How many it may miss.
        limit: u32,
    },
    /// As many jobs live as may: the first request since there was room was refused.
    QuotaReached {
        /// How many may live.
        limit: usize,
        /// Whether that is so few because of pressure.
        adaptive: bool,
    },
    /// Pressure began or ended.
    BackpressureState {
        /// Whether there is pressure now.
        engaged: bool,
        /// Why there is, or was.
        reason: PressureReason,
    },
    /// Many jobs lie further ahead than the wheel reaches.
    OverflowNearCapacity {
        /// The shard.
        shard: u32,
        /// How many do.
        len: usize,
        /// How many may.
        capacity: usize,
    },
    /// A job was given up for a more important one.
    DroppedLowPriority {
        /// The job.
        job: JobNumber,
        /// How important it was.
        priority: Class,
    },
    /// A handler returned an error or panicked; its job has ended.
    HandlerFailed {
        /// The job.
        job: JobNumber,
        /// What it said.
        error: HandlerError,
        /// What the call stood for.
        batch: ExecutionBatch,
    },
    /// A task that was to run at the close failed.
    TaskRunFailed {
        /// Its number, in the order of registration.
        task: u64,
        /// What it said.
        error: HandlerError,
    },
    /// A subscription had no room for events.
    DiagnosticsDropped {
        /// How many it lost.
        dropped: u64,
    },
    /// The clock went forward by a leap. What came due by it was folded.
    ClockJump {
        /// How far.
        by: Duration,
    },
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::DriftExceeded { shard, observed, budget, .. } if budget.is_zero() => {
                write!(f, "shard {shard}: a fire was late by {observed:?}, and none may be")
            }
            Self::DriftExceeded { shard, observed, budget, fires } => write!(
                f,
                "shard {shard}: {fires} fires in a row were late by {observed:?} or more, \
                 with a budget of {budget:?}"
            ),
            Self::DriverCatchUpExceeded { shard, ticks, limit } => {
                write!(f, "shard {shard}: made up for {ticks} ticks at once, {limit} are usual")
            }
            Self::DriverSilent { silent_for } => {
                write!(f, "the tick driver has been silent for {silent_for:?}")
            }
            Self::BurstFire { job, missed, threshold } => {
                write!(f, "job {job}: {missed} runs came due at once, {threshold} are usual")
            }
            Self::BacklogExceeded { job, backlog, limit } => {
                write!(f, "job {job}: cancelled {backlog} runs behind, {limit} are allowed")
            }
            Self::QuotaReached { limit, adaptive } => {
                let why = if *adaptive { " under pressure" } else { "" };
                write!(f, "jobs are refused: {limit} live, as many as may{why}")
            }
            Self::BackpressureState { engaged, reason } => {
                let what = if *engaged { "began" } else { "ended" };
                write!(f, "pressure {what}: {reason}")
            }
            Self::OverflowNearCapacity { shard, len, capacity } => {
                write!(f, "shard {shard}: {len} far jobs of {capacity} that may be")
            }
            Self::DroppedLowPriority { job, priority } => {
                write!(f, "job {job}: given up for room, its class was {priority}")
            }
            Self::HandlerFailed { job, error, batch } => {
                write!(f, "job {job}: ended by its handler ({batch}): {error}")
            }
            Self::TaskRunFailed { task, error } => {
                write!(f, "close task {task} failed: {error}")
            }
            Self::DiagnosticsDropped { dropped } => {
                write!(f, "{dropped} diagnostic events were dropped")
            }
            Self::ClockJump { by } => write!(f, "the clock went forward by {by:?} at once"),
        }
    }
}
