//! What the system says to an actor, ahead of all other mail.

use clockjack_exec::Pid;

use crate::{
    ActorPath,
    failure_info::{FailureInfo, FailureReport},
};

/// A message of the system to an actor.
///
/// User code sees what concerns it as a typed signal; the rest is carried out by the cell. A host
/// may send one too.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum SystemMessage {
    /// Stop: the children first, then the actor.
    Stop,
    /// Make the actor anew; its mailbox is kept.
    Restart,
    /// Take no more user messages. Counted, up to 255 times: each needs a [`Resume`](Self::Resume)
    /// of its own.
    Suspend,
    /// Take user messages again, if this is the last that is owed and its parent does not hold it,
    /// as one does that has failed; or go on after a failure.
    Resume,
    /// The actor with this pid wants to be told of the end.
    Watch(Pid),
    /// The actor with this pid does no longer want to be told.
    Unwatch(Pid),
    /// An actor that was watched has ended.
    Terminated(Terminated),
    /// A child has failed, and waits for what its parent decides.
    Failure(FailureInfo),
    /// A failure from further below, which the child has left to its parent.
    Escalate(FailureInfo),
}

impl SystemMessage {
    /// The failure that it is about.
    #[must_use]
    pub fn failure(&self) -> Option<&FailureInfo> {
        match self {
            Self::Failure(info) | Self::Escalate(info) => Some(info),
            _ => None,
        }
    }
}

/// An actor that was watched has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Terminated {
    /// Which actor.
    pub pid: Pid,
    /// Where it stood. The name may be used again.
    pub path: ActorPath,
    /// Why, if it failed; told only to a parent that watches.
    pub failure: Option<FailureReport>,
}

impl Terminated {
    /// The news that this actor has ended, with the failure that was the cause, if one was.
    #[must_use]
    pub fn new(pid: Pid, path: ActorPath, failure: Option<FailureReport>) -> Self {
        Self { pid, path, failure }
    }

    /// Whether it is this one that has ended.
    #[must_use]
    pub fn is<M: 'static>(&self, actor: &crate::ActorRef<M>) -> bool {
        actor.pid() == self.pid
    }
}
