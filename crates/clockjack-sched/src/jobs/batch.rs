//! How many runs one call of a handler represents.

use core::{fmt, num::NonZeroU32};

/// How a job repeats.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BatchMode {
    /// Once.
    OneShot,
    /// At multiples of a period after its first run.
    FixedRate,
    /// With a delay after the end of each run.
    FixedDelay,
}

impl fmt::Display for BatchMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::OneShot => "once",
            Self::FixedRate => "fixed-rate",
            Self::FixedDelay => "fixed-delay",
        })
    }
}

/// How many runs one call of a handler represents.
///
/// For a one-shot, a job with a fixed delay, and a job with [`CatchUp::Individually`] this is
/// always one run and none missed. With [`CatchUp::Folded`] all runs that have become due since the
/// last call are one call: `runs` of them, of which `missed_runs` were too late for their own call.
///
/// [`CatchUp::Individually`]: crate::CatchUp::Individually
/// [`CatchUp::Folded`]: crate::CatchUp::Folded
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ExecutionBatch {
    /// Runs that this call represents: one more than `missed_runs`.
    pub runs: NonZeroU32,
    /// Runs that were folded into this call.
    pub missed_runs: u32,
    /// How the job repeats.
    pub mode: BatchMode,
}

impl ExecutionBatch {
    /// One run, none missed.
    #[must_use]
    pub const fn single(mode: BatchMode) -> Self {
        Self { runs: NonZeroU32::MIN, missed_runs: 0, mode }
    }

    /// One run and those that were missed before it. Saturates.
    #[must_use]
    pub const fn folded(missed_runs: u32, mode: BatchMode) -> Self {
        Self { runs: NonZeroU32::MIN.saturating_add(missed_runs), missed_runs, mode }
    }
}

impl fmt::Display for ExecutionBatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} x{}", self.mode, self.runs)?;
        if self.missed_runs > 0 {
            write!(f, " ({} missed)", self.missed_runs)?;
        }
        Ok(())
    }
}
