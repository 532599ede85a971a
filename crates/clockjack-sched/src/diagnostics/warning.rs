//! Warnings of the scheduler.

use core::{fmt, time::Duration};

use clockjack_time::TimerPriority;

use crate::{ExecutionBatch, HandlerError, JobNumber};

/// Why the runtime is under pressure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum PressureReason {
    /// Mailboxes are nearly full.
    Mailboxes,
    /// A dispatcher has refused a job. The pressure ends when a dispatcher accepts a job again, or
    /// at the first request one second after the last refusal.
    Dispatcher,
    /// The host has reported it.
    Host,
}

impl fmt::Display for PressureReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Mailboxes => "mailboxes are nearly full",
            Self::Dispatcher => "a dispatcher refuses work",
            Self::Host => "the host reports pressure",
        })
    }
}

/// A condition that an operator should know of.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Warning {
    /// Each of many runs in succession was late by more than the budget, beyond the lateness that
    /// the driver reported of itself. If this repeats, in whichever shard, the next report follows
    /// after a minute, then after two, and so on up to an hour. With a manual clock no run may be
    /// late: there the first late run of each window is reported.
    DriftExceeded {
        /// The shard.
        shard: u32,
        /// How late the least late of them was; with a manual clock, the first late one.
        observed: Duration,
        /// How late it may be.
        budget: Duration,
        /// How many runs the window had so far, late or not.
        fires: u32,
        /// How many such windows there were since the last report.
        unreported: u32,
    },
    /// One advance caught up with many ticks at once: the driver, or the thread that polls the
    /// scheduler, was not running.
    DriverCatchUpExceeded {
        /// The shard.
        shard: u32,
        /// How many ticks were caught up with.
        ticks: u64,
        /// How many are allowed without a warning.
        limit: u32,
    },
    /// Ticks were needed, but the driver has supplied none.
    DriverSilent {
        /// For how long.
        silent_for: Duration,
    },
    /// Many runs of one job became due at once.
    BurstFire {
        /// The job.
        job: JobNumber,
        /// How many runs it has missed.
        missed: u32,
        /// How many it may miss without a warning.
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
    /// The number of live jobs is at its limit. Reported for the first refusal since there was
    /// room.
    QuotaReached {
        /// The limit.
        limit: usize,
        /// Whether it is the lower limit under pressure.
        adaptive: bool,
    },
    /// Pressure began or ended.
    BackpressureState {
        /// Whether there is pressure now.
        engaged: bool,
        /// The reason.
        reason: PressureReason,
    },
    /// Many jobs are due beyond the range of the wheel.
    OverflowNearCapacity {
        /// The shard.
        shard: u32,
        /// How many are.
        len: usize,
        /// How many may.
        capacity: usize,
    },
    /// A job was evicted for a more important one.
    DroppedLowPriority {
        /// The job.
        job: JobNumber,
        /// Its priority.
        priority: TimerPriority,
    },
    /// A handler returned an error or panicked; its job is completed.
    HandlerFailed {
        /// The job.
        job: JobNumber,
        /// The error.
        error: HandlerError,
        /// How many runs the call represents.
        batch: ExecutionBatch,
    },
    /// A close task failed.
    TaskRunFailed {
        /// Its number, in the order of registration.
        task: u64,
        /// The error.
        error: HandlerError,
    },
    /// A subscription had no room for events.
    DiagnosticsDropped {
        /// How many events were lost.
        dropped: u64,
    },
    /// The clock advanced by a large step. Runs that became due by that were folded.
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
            Self::DriftExceeded { shard, observed, budget, fires, unreported } => {
                write!(
                    f,
                    "shard {shard}: {fires} fires in a row were late by {observed:?} or more, \
                     with a budget of {budget:?}"
                )?;
                match unreported {
                    0 => Ok(()),
                    n => write!(f, "; {n} more windows since the last warning"),
                }
            }
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
                write!(f, "jobs are refused{why}: the limit is {limit} live jobs")
            }
            Self::BackpressureState { engaged, reason } => {
                let what = if *engaged { "began" } else { "ended" };
                write!(f, "pressure {what}: {reason}")
            }
            Self::OverflowNearCapacity { shard, len, capacity } => {
                write!(f, "shard {shard}: {len} of at most {capacity} jobs are in the overflow")
            }
            Self::DroppedLowPriority { job, priority } => {
                write!(f, "job {job}: evicted for lack of room, its class was {priority}")
            }
            Self::HandlerFailed { job, error, batch } => {
                write!(f, "job {job}: its handler failed ({batch}): {error}")
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
