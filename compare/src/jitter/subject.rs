//! What a periodic sleeper must offer to be measured.

use core::time::Duration;

use crate::failure::Failure;
use crate::report::Standing;

/// The period. It is the tick of every runtime here, so that a deadline on a tick can be met.
pub(crate) const PERIOD: Duration = Duration::from_millis(1);

/// A way to be woken once a period.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sleeper {
    /// The name in tables, in JSON and after `--only`.
    pub(crate) name: &'static str,
    /// The package it comes from, or the system if there is none.
    pub(crate) package: Option<&'static str>,
    pub(crate) standing: Standing,
    /// What a reader of the figures should know, in one line.
    pub(crate) note: &'static str,
    /// Starts afresh, is woken so many times and says for each how long after its due time it ran.
    pub(crate) run: fn(n_ticks: u32) -> Result<Vec<Duration>, Failure>,
}
