//! The interface of a measured periodic sleeper.

use core::time::Duration;

use crate::failure::Failure;
use crate::report::Facts;
use crate::selection::Listed;

/// The period. It is the tick of every runtime here, so that a deadline on a tick can be met
/// exactly.
pub(crate) const PERIOD: Duration = Duration::from_millis(1);

/// A way to be woken periodically.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sleeper {
    pub(crate) facts: Facts,
    /// Starts, is woken this many times and returns for each period how long after its due time it
    /// ran.
    pub(crate) run: fn(n_ticks: u32) -> Result<Vec<Duration>, Failure>,
}

impl Listed for Sleeper {
    fn facts(&self) -> &Facts {
        &self.facts
    }
}
