//! Replaces the tokio reactor in builds without the feature `tokio`.

use clockjack_exec::StartError;

use crate::OsInstant;

/// A reactor that does not exist.
#[derive(Debug)]
pub(crate) struct Reactor;

/// The handle that a worker would enter.
#[derive(Clone, Debug)]
pub(crate) struct ReactorHandle;

impl Reactor {
    /// Fails if a reactor is requested.
    pub(crate) fn start(threads: usize) -> Result<Self, StartError> {
        if threads > 0 {
            return Err(StartError::thread(&"the feature `tokio` is not compiled in"));
        }
        Ok(Self)
    }

    /// Does nothing.
    #[expect(clippy::unused_self, reason = "its twin has something to stop")]
    pub(crate) fn stop(&self, _until: OsInstant) {}

    #[expect(clippy::unused_self, reason = "its twin has something to give")]
    pub(crate) fn handle(&self) -> ReactorHandle {
        ReactorHandle
    }
}

impl ReactorHandle {
    /// Does nothing.
    pub(crate) fn enter(&self) -> Self {
        self.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reactor_that_is_not_compiled_in_is_refused_by_name() {
        let refused = Reactor::start(1).expect_err("there is none");
        assert!(refused.is_thread());
        assert!(refused.to_string().contains("the feature `tokio` is not compiled in"));
    }

    #[test]
    fn a_pool_that_wants_no_reactor_gets_nothing_to_enter() {
        let reactor = Reactor::start(0).expect("nothing was asked for");
        let _entered = reactor.handle().enter();
        reactor.stop(OsInstant::now());
    }
}
