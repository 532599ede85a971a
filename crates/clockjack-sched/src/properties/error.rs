//! Which property did not hold, and where.

use core::fmt;

use clockjack_time::Tick;

/// A property that every run of a scheduler has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Property {
    /// A handler is never told an earlier tick than the handler before it.
    Monotonic,
    /// Nothing runs before it is due.
    NeverEarly,
    /// Runs come in the order of their due times, and in the order of registration within a tick.
    InOrder,
    /// A fixed rate runs at multiples of its period, and a fixed delay counts from the end of a
    /// run.
    OnGrid,
    /// A call represents one run, or several runs of a fixed rate.
    Batch,
    /// Runs of one job do not overlap.
    NoOverlap,
    /// A job that has completed does not run.
    RunsOnce,
    /// A cancel succeeds once; a job that was cancelled or refused does not run.
    CancelIsFinal,
    /// Everything that was due has run.
    NothingLost,
}

/// A run or an answer of a scheduler that violates a [`Property`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PropertyError {
    property: Property,
    job: usize,
    found: Tick,
    expected: Tick,
}

impl PropertyError {
    pub(super) const fn new(property: Property, job: usize, found: Tick, expected: Tick) -> Self {
        Self { property, job, found, expected }
    }

    /// The property.
    #[must_use]
    pub const fn property(&self) -> Property {
        self.property
    }

    /// The number of the job.
    #[must_use]
    pub const fn job(&self) -> usize {
        self.job
    }
}

impl fmt::Display for PropertyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { property, job, found, expected } = self;
        match property {
            Property::Monotonic => {
                write!(f, "job {job} ran at tick {found}, but time had reached {expected}")
            }
            Property::NeverEarly => {
                write!(f, "job {job} ran at tick {found}, before its deadline {expected}")
            }
            Property::InOrder => {
                write!(f, "job {job} ran for tick {found}, after a run for tick {expected}")
            }
            Property::OnGrid => {
                write!(f, "job {job} ran for tick {found}, but was due at tick {expected}")
            }
            Property::Batch => {
                write!(f, "job {job} ran at tick {found} with a wrong batch, due at {expected}")
            }
            Property::NoOverlap => {
                write!(f, "job {job} ran at tick {found}, while its previous run had not ended")
            }
            Property::RunsOnce => {
                write!(f, "job {job} ran at tick {found}, but it had completed")
            }
            Property::CancelIsFinal => {
                write!(f, "job {job}: a cancel was wrong, or a run at {found} came after a cancel")
            }
            Property::NothingLost => {
                write!(f, "job {job} was due at tick {expected} and has not run by {found}")
            }
        }
    }
}

impl core::error::Error for PropertyError {}
