//! A failure at the root as numbers, for recorders and meters.

use clockjack_exec::Pid;
use clockjack_observe::{Event, Record, event::ActorId};

use crate::FailureInfo;

/// A failure that has come up to the root, without its words: it allocates nothing, and can be
/// copied to wherever numbers are kept. Told to those who were given to
/// [`SystemBuilder::observe_root`](crate::SystemBuilder::observe_root).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RootFailure {
    /// When it came there, in nanoseconds since the start of the system, by the system's clock.
    pub at_ns: u64,
    /// The actor that failed in the first place.
    pub actor: Pid,
    /// The root.
    pub root: Pid,
    /// How many levels it has come up. Saturates.
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

    /// The record of it for a flight recorder: an [`Event::FailureEscalated`] to the root. An
    /// event has actors by their indices, and room for neither restarts nor code.
    #[must_use]
    pub fn record(&self) -> Record {
        let (actor, to) = (ActorId(self.actor.index()), ActorId(self.root.index()));
        Record::new(self.at_ns, Event::FailureEscalated { actor, to, stage: self.stage })
    }
}
