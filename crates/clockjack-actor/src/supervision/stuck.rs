//! Handlers that run for too long, or forever: detected from outside.
//!
//! On a pool of workers the watchdog thread detects that a worker has been in one step for longer
//! than `PoolConfig::stuck_after`, and which actor is running. It reports each such step once, as
//! [`SystemEvent::Stuck`], while the step is still running. The workers only count their steps for
//! this: no message costs a reading of the clock. This works the same way on every dispatcher of a
//! runtime: each pool has its watchdog, and one further thread watches all pinned threads.
//!
//! A step of an actor handles several messages, but ends within its time budget if they are short.
//! So a step that takes this long is one handler, or a hook, that does not return.
//!
//! A [`RootContext`](crate::RootContext) has a single thread, so nothing outside can detect that it
//! is stuck: use a watchdog of the host or of the hardware.

use core::time::Duration;

use clockjack_exec::Pid;

use crate::{ActorPath, ActorSystem, EventKinds, SystemEvent};

/// A handler that runs for too long.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stuck {
    /// The pid of the actor.
    pub pid: Pid,
    /// The path of the actor.
    pub path: ActorPath,
    /// For how long it has run, at least.
    pub running_for: Duration,
    /// The type name of the actor.
    pub actor_type: &'static str,
    /// The type name of its messages.
    pub message_type: &'static str,
}

impl ActorSystem {
    /// A host has detected that the task has been in one step for this long. Does nothing if it is
    /// not an actor of this system.
    #[doc(hidden)]
    pub fn report_stuck(&self, pid: Pid, running_for: Duration) {
        if !self.events().wants(EventKinds::STUCK) {
            return;
        }
        let Some(actor) = self.inner().find(pid) else { return };
        self.events().publish(&SystemEvent::Stuck(Stuck {
            pid,
            path: actor.path.clone(),
            running_for,
            actor_type: actor.name(),
            message_type: actor.input(),
        }));
    }
}
