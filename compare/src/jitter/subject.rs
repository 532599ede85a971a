//! What a periodic sleeper must offer to be measured.

use core::time::Duration;

use crate::failure::Failure;
use crate::report::Facts;
use crate::selection::Listed;

/// The period. It is the tick of every runtime here, so that a deadline on a tick can be met.
pub(crate) const PERIOD: Duration = Duration::from_millis(1);

/// A way to be woken once a period.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sleeper {
    pub(crate) facts: Facts,
    /// Starts afresh, is woken so many times and says for each how long after its due time it ran.
    pub(crate) run: fn(n_ticks: u32) -> Result<Vec<Duration>, Failure>,
}

impl Listed for Sleeper {
    fn facts(&self) -> &Facts {
        &self.facts
    }
}
