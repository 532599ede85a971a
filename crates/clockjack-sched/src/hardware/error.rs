//! Why a loop was not started.

use core::fmt;

use clockjack_time::DriverError;

use crate::ModeError;

/// Why a [`RunnerLoop`](crate::RunnerLoop) was not started, or not watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoopError(Kind);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Driver(DriverError),
    Mode(ModeError),
    Manual,
    Watched,
}

impl LoopError {
    pub(crate) const MANUAL: Self = Self(Kind::Manual);
    pub(crate) const WATCHED: Self = Self(Kind::Watched);

    /// What the driver said, if it refused the registration.
    #[must_use]
    pub const fn driver(&self) -> Option<DriverError> {
        match self.0 {
            Kind::Driver(error) => Some(error),
            _ => None,
        }
    }

    /// Why there is no scheduler, if it could not be made.
    #[must_use]
    pub const fn mode(&self) -> Option<ModeError> {
        match self.0 {
            Kind::Mode(error) => Some(error),
            _ => None,
        }
    }

    /// Whether the scheduler's clock is moved by hand: no other source of ticks is allowed beside
    /// that. Permanent.
    #[must_use]
    pub const fn is_manual(&self) -> bool {
        matches!(self.0, Kind::Manual)
    }

    /// Whether the clock to fall back with has a watch already. Passes when that is dropped.
    #[must_use]
    pub const fn is_watched(&self) -> bool {
        matches!(self.0, Kind::Watched)
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
            Kind::Driver(error) => write!(f, "the loop was not started: {error}"),
            Kind::Mode(error) => write!(f, "the loop was not started: {error}"),
            Kind::Manual => f.write_str("no ticks are supplied to a clock that is moved by hand"),
            Kind::Watched => f.write_str("the clock to fall back with has another watch"),
        }
    }
}

impl core::error::Error for LoopError {}
