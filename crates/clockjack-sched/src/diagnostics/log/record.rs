//! One record of a log.

use core::fmt;

use clockjack_time::Tick;

use crate::JobNumber;

/// What happened to a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LogKind {
    /// It was accepted.
    Schedule,
    /// A run was handed over, or sent as a delivery.
    Fire,
    /// It was cancelled.
    Cancel,
    /// A delivery was accepted, and runs that had become due since it was sent were folded into it.
    Fold,
    /// A delivery was dropped without having been accepted.
    Discard,
}

impl LogKind {
    /// All kinds.
    pub const ALL: [Self; 5] =
        [Self::Schedule, Self::Fire, Self::Cancel, Self::Fold, Self::Discard];

    /// Its name in a trace.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Schedule => "schedule",
            Self::Fire => "fire",
            Self::Cancel => "cancel",
            Self::Fold => "fold",
            Self::Discard => "discard",
        }
    }
}

impl fmt::Display for LogKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Something that happened to a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LogRecord {
    /// What.
    pub kind: LogKind,
    /// To which job.
    pub job: JobNumber,
    /// When the job was accepted.
    pub scheduled_at: Tick,
    /// When it was due: the oldest run, if it is about several.
    pub deadline: Tick,
    /// When it happened.
    pub at: Tick,
    /// How many runs a fire, a fold or a discard is about; zero for anything else.
    pub runs: u32,
    /// Who ran it; zero if nobody did.
    pub executor: u16,
}

impl LogRecord {
    /// Nothing: what the buffer of a log is filled with at first.
    pub const EMPTY: Self = Self {
        kind: LogKind::Schedule,
        job: JobNumber { shard: 0, number: 0 },
        scheduled_at: Tick::ZERO,
        deadline: Tick::ZERO,
        at: Tick::ZERO,
        runs: 0,
        executor: 0,
    };
}

impl fmt::Display for LogRecord {
    /// As in a trace; see [`ReplayTrace::write_to`](super::ReplayTrace::write_to).
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kind, job, scheduled_at, deadline, at, runs, executor } = self;
        write!(f, "{kind} shard={} job={} scheduled_at={scheduled_at} ", job.shard, job.number)?;
        write!(f, "deadline={deadline} at={at} runs={runs} executor={executor}")
    }
}
