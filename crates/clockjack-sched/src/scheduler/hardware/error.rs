//! Why a loop did not start.

use core::fmt;

use clockjack_time::DriverError;

use crate::ModeError;

/// Why a [`RunnerLoop`](crate::RunnerLoop) did not start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoopError(Kind);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Driver(DriverError),
    Mode(ModeError),
    Manual,
}

impl LoopError {
    pub(crate) const MANUAL: Self = Self(Kind::Manual);

    /// The error of the driver, if it refused the registration.
    #[must_use]
    pub const fn driver(&self) -> Option<DriverError> {
        match self.0 {
            Kind::Driver(error) => Some(error),
            _ => None,
        }
    }

    /// Why the scheduler could not be created, if that is the reason.
    #[must_use]
    pub const fn mode(&self) -> Option<ModeError> {
        match self.0 {
            Kind::Mode(error) => Some(error),
            _ => None,
        }
    }

    /// Whether the scheduler has a manual clock, which takes no ticks from a driver. Permanent.
    #[must_use]
    pub const fn is_manual(&self) -> bool {
        matches!(self.0, Kind::Manual)
    }
}

impl From<DriverError> for LoopError {
    fn from(error: DriverError) -> Self {
        Self(Kind::Driver(error))
    }
}

impl From<ModeError> for LoopError {
    fn from(error: ModeError) -> Self {
        Self(Kind::Mode(error))
    }
}

impl fmt::Display for LoopError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Kind::Driver(error) => write!(f, "the loop did not start: {error}"),
            Kind::Mode(error) => write!(f, "the loop did not start: {error}"),
            Kind::Manual => f.write_str("a manual clock takes no ticks from a driver"),
        }
    }
}

impl core::error::Error for LoopError {}
