//! tokio inside Clockjack (the reactor of a pool), and Clockjack inside tokio (the toolbox).

#[cfg(all(feature = "tokio", not(loom)))]
pub(crate) mod failure_bridge;
#[cfg(not(all(feature = "tokio", not(loom))))]
#[path = "tokio_integration/reactor/disabled.rs"]
pub(crate) mod reactor;
#[cfg(all(feature = "tokio", not(loom)))]
#[path = "tokio_integration/reactor/enabled.rs"]
pub(crate) mod reactor;
#[cfg(all(test, feature = "tokio", not(loom)))]
#[path = "tokio_integration/reactor/disabled.rs"]
mod reactor_disabled;
#[cfg(all(feature = "tokio", not(loom)))]
pub(crate) mod toolbox;
