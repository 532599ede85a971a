//! How long is waited for an end: so long that only what hangs takes it, also under a sanitizer.

use core::time::Duration;

use clockjack_rt::actor::shutdown::{Phase, ShutdownConfig};

/// For what all of a shutdown may take.
pub(crate) const LONG: Duration = Duration::from_secs(240);

/// Phases of which the last, in which the actors stop, may take half of that.
pub(crate) fn patient() -> ShutdownConfig {
    let mut config = ShutdownConfig::default();
    let last = config.phase_mut(Phase::ACTOR_SYSTEM_TERMINATE).expect("it is one of the defaults");
    last.timeout = LONG / 2;
    config
}
