//! Why a scheduler or its loop does not start.

use core::fmt;

use clockjack_time::DriverError;

/// Why a scheduler, or the loop that drives it, cannot be started or driven in the requested way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ModeError(Kind);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    ManualInProduction,
    NotManual,
    Shards,
    ManualLoop,
    HostSetting,
    Driver(DriverError),
}

impl ModeError {
    pub(crate) const MANUAL_IN_PRODUCTION: Self = Self(Kind::ManualInProduction);
    pub(crate) const NOT_MANUAL: Self = Self(Kind::NotManual);
    pub(crate) const SHARDS: Self = Self(Kind::Shards);
    pub(crate) const HOST_SETTING: Self = Self(Kind::HostSetting);
    pub(crate) const MANUAL_LOOP: Self = Self(Kind::ManualLoop);

    /// Whether the configuration is for production, but the clock is a manual one.
    #[must_use]
    pub const fn is_manual_in_production(&self) -> bool {
        matches!(self.0, Kind::ManualInProduction)
    }

    /// Whether the call needs a scheduler with a manual clock, and this one has another.
    #[must_use]
    pub const fn is_not_manual(&self) -> bool {
        matches!(self.0, Kind::NotManual)
    }

    /// Whether the number of shards is zero or too large.
    #[must_use]
    pub const fn is_shards(&self) -> bool {
        matches!(self.0, Kind::Shards)
    }

    /// Whether a loop was to take ticks from a driver for a manual clock, which takes none.
    #[must_use]
    pub const fn is_manual_loop(&self) -> bool {
        matches!(self.0, Kind::ManualLoop)
    }

    /// Whether the configuration has a setting that only the host can make.
    #[must_use]
    pub const fn is_host_setting(&self) -> bool {
        matches!(self.0, Kind::HostSetting)
    }

    /// The error of the driver, if it refused the registration.
    #[must_use]
    pub const fn driver(&self) -> Option<DriverError> {
        match self.0 {
            Kind::Driver(error) => Some(error),
            _ => None,
        }
    }
}

impl From<DriverError> for ModeError {
    fn from(error: DriverError) -> Self {
        Self(Kind::Driver(error))
    }
}

impl fmt::Display for ModeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match &self.0 {
            Kind::ManualInProduction => "a manual clock is refused in production",
            Kind::NotManual => "the scheduler has no manual clock",
            Kind::Shards => "a scheduler has from 1 to 1024 shards",
            Kind::ManualLoop => "a manual clock takes no ticks from a driver",
            Kind::HostSetting => {
                "the host determines `resolution`, `start` and `shards` of the scheduler"
            }
            Kind::Driver(error) => return write!(f, "the loop did not start: {error}"),
        })
    }
}

impl core::error::Error for ModeError {}
