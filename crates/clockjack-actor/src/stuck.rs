//! Handlers that run for long, or for ever: told from outside.
//!
//! On a pool of workers the thread that watches over them, the metronome, sees that one has been in
//! one step for longer than `PoolConfig::stuck_after`, and whose step that is. Each such step is
//! told once, as [`SystemEvent::Stuck`], while it still runs. The workers do nothing for it but
//! count their steps: no message costs a look at the clock. It is the same on every dispatcher of a
//! runtime: each pool has its metronome, and for pinned threads there is one thread that looks.
//!
//! A step of an actor has several messages, but ends within its budget of time if they are short.
//! So a step that takes as long as that is one handler, or a hook, that does not return.
//!
//! A [`RootContext`](crate::RootContext) has one thread, and nobody is outside to see it stuck:
//! there a watchdog of the host, or of the hardware, has to do.

use core::time::Duration;

use clockjack_exec::Pid;

use crate::{ActorPath, ActorSystem, EventKinds, SystemEvent};

/// A handler that runs for long.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stuck {
    /// Whose it is.
    pub pid: Pid,
    /// Where that stands.
    pub path: ActorPath,
    /// For how long, at least.
    pub running_for: Duration,
    /// The name of the type of the actor.
    pub actor_type: &'static str,
    /// The name of the type of its messages.
    pub message_type: &'static str,
}

impl ActorSystem {
    /// A host has seen that the process is in one step for so long. Nothing happens if it is no
    /// actor of this system.
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
