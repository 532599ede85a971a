//! Stands in for tokio where the feature is not compiled in.

use clockjack_exec::StartError;

/// No reactor.
#[derive(Debug)]
pub(crate) struct Reactor;

/// What a worker would enter.
#[derive(Clone, Debug)]
pub(crate) struct ReactorHandle;

impl Reactor {
    /// Refuses what is not there.
    pub(crate) fn start(is_wanted: bool) -> Result<Self, StartError> {
        if is_wanted {
            return Err(StartError::thread(&"the feature `tokio` is not compiled in"));
        }
        Ok(Self)
    }

    #[expect(clippy::unused_self, reason = "its twin has something to give")]
    pub(crate) fn handle(&self) -> ReactorHandle {
        ReactorHandle
    }
}

impl ReactorHandle {
    /// Nothing to enter.
    pub(crate) fn enter(&self) -> Self {
        self.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reactor_that_is_not_compiled_in_is_refused_by_name() {
        let refused = Reactor::start(true).expect_err("there is none");
        assert!(refused.is_thread());
        assert!(refused.to_string().contains("the feature `tokio` is not compiled in"));
    }

    #[test]
    fn a_pool_that_wants_no_reactor_gets_nothing_to_enter() {
        let reactor = Reactor::start(false).expect("nothing was asked for");
        let _entered = reactor.handle().enter();
    }
}
