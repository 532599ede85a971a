//! The numbers of a failure at the root, for recorders and metrics.

use clockjack_exec::Pid;
use clockjack_observe::{Event, Record};

use crate::{FailureInfo, system::actor_id};

/// The numbers of a failure that has reached the root. The value allocates nothing and can be
/// copied. [`SystemBuilder::observe_root`](crate::SystemBuilder::observe_root) sets an observer for
/// it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RootFailure {
    /// When the failure reached the root, in nanoseconds since the start of the system, by the
    /// system's clock.
    pub at_ns: u64,
    /// The actor that failed in the first place.
    pub actor: Pid,
    /// The root actor.
    pub root: Pid,
    /// How many levels the failure was escalated. Saturates.
    pub stage: u8,
    /// How often the actor that failed was restarted before.
    pub restarts: u32,
    /// The code, if the failure has one.
    pub code: Option<u16>,
}

impl RootFailure {
    pub(crate) fn new(at_ns: u64, info: &FailureInfo) -> Self {
        Self {
            at_ns,
            actor: info.origin().0,
            root: info.actor,
            stage: u8::try_from(info.hops()).unwrap_or(u8::MAX),
            restarts: info.restart_stats.restarts,
            code: info.reason.code(),
        }
    }

    /// The record for a flight recorder: an [`Event::FailureEscalated`] to the root. The event
    /// identifies actors by their indices, and has no room for restarts and code.
    #[must_use]
    pub fn record(&self) -> Record {
        let (actor, to) = (actor_id(self.actor), actor_id(self.root));
        Record::new(self.at_ns, Event::FailureEscalated { actor, to, stage: self.stage })
    }
}
