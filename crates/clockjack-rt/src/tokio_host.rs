//! Stands in for tokio where the feature is not compiled in.

use clockjack_exec::StartError;

/// No reactor.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reactor;

impl Reactor {
    /// Refuses what is not there.
    pub(crate) fn start(is_wanted: bool) -> Result<Self, StartError> {
        if is_wanted {
            return Err(StartError::thread(&"the feature `tokio` is not compiled in"));
        }
        Ok(Self)
    }

    pub(crate) fn handle(&self) -> Self {
        *self
    }

    /// Nothing to enter.
    pub(crate) fn enter(&self) -> Self {
        *self
    }
}
