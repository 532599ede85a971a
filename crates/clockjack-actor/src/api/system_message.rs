//! System messages, which an actor handles before all others.

use clockjack_exec::Pid;

use crate::{
    ActorPath,
    failure_info::{FailureInfo, FailureReport},
};

/// A message of the system to an actor.
///
/// User code receives the relevant ones as typed signals; the cell carries out the others. A host
/// may send one too.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum SystemMessage {
    /// Stop: the children first, then the actor.
    Stop,
    /// Restart the actor; its mailbox is kept.
    Restart,
    /// Take no more user messages. Counted, up to 255 times: each needs a [`Resume`](Self::Resume)
    /// of its own.
    Suspend,
    /// Take user messages again, if this is the last missing resume and the parent does not suspend
    /// the actor, as a failed parent does; or continue after a failure.
    Resume,
    /// The actor with this pid wants to be notified when the actor stops.
    Watch(Pid),
    /// The actor with this pid no longer wants to be notified.
    Unwatch(Pid),
    /// A watched actor has stopped.
    Terminated(Terminated),
    /// A child has failed, and waits for the decision of its parent.
    Failure(FailureInfo),
    /// A failure from further below, which the child has escalated to its parent.
    Escalate(FailureInfo),
}

impl SystemMessage {
    /// The failure that the message is about.
    #[must_use]
    pub fn failure(&self) -> Option<&FailureInfo> {
        match self {
            Self::Failure(info) | Self::Escalate(info) => Some(info),
            _ => None,
        }
    }
}

/// A watched actor has stopped.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Terminated {
    /// Which actor.
    pub pid: Pid,
    /// The path of the actor. Its name may be used again.
    pub path: ActorPath,
    /// Why, if it failed; only for a parent that watches its child.
    pub failure: Option<FailureReport>,
    cause: TerminationCause,
}

/// Why a watched actor has stopped, as far as a watcher learns it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum TerminationCause {
    /// It was stopped, or stopped itself.
    #[default]
    Stopped,
    /// It failed, and its supervisor stopped it.
    Failed,
    /// It was on another node, and that node is lost. The actor itself may still run there.
    NodeLost,
    /// It is on another node, and this node has lost its membership.
    SelfLost,
}

impl Terminated {
    /// The notification that this actor has stopped, with the failure that was the cause, if there
    /// was one.
    #[must_use]
    pub fn new(pid: Pid, path: ActorPath, failure: Option<FailureReport>) -> Self {
        let cause = match failure {
            Some(_) => TerminationCause::Failed,
            None => TerminationCause::Stopped,
        };
        Self { pid, path, failure, cause }
    }

    pub(crate) fn with_cause(mut self, cause: TerminationCause) -> Self {
        self.cause = cause;
        self
    }

    /// Why the actor has stopped. An actor that had stopped before it was watched counts as
    /// [`Stopped`](TerminationCause::Stopped).
    #[must_use]
    pub fn cause(&self) -> TerminationCause {
        self.cause
    }

    /// Whether the connection to the actor is lost, and not necessarily the actor: it was on
    /// another node.
    #[must_use]
    pub fn is_lost(&self) -> bool {
        matches!(self.cause, TerminationCause::NodeLost | TerminationCause::SelfLost)
    }

    /// Whether it is this actor that has stopped.
    #[must_use]
    pub fn is<M: 'static>(&self, actor: &crate::ActorRef<M>) -> bool {
        actor.pid() == self.pid
    }
}
