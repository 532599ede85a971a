//! Events of an actor system: lifecycle, failures, dead letters, warnings.
//!
//! This module defines the events; [`EventStream`] delivers them to subscribers.

pub(crate) mod backlog;
mod bridge;
mod root_failure;
mod stream;

use alloc::vec::Vec;
use core::{fmt, ops::BitOr};

use clockjack_exec::Pid;
use clockjack_sched::Warning;

pub(crate) use self::stream::RETRY;
pub use self::{
    root_failure::RootFailure,
    stream::{EVENTS_WAITING_MAX, EventStream},
};
use crate::{ActorPath, FailureInfo, stuck::Stuck};

/// An event in an actor system.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum SystemEvent {
    /// An actor was started, restarted or has stopped.
    Lifecycle(Lifecycle),
    /// An actor has failed; includes the decision about the failure.
    Failure(FailureInfo),
    /// A message that will not be handled.
    DeadLetter(DeadLetter),
    /// As [`DeadLetter`](Self::DeadLetter), of a message type whose dead letters are suppressed:
    /// [`SystemBuilder::suppress_dead_letters_of`](crate::SystemBuilder).
    SuppressedDeadLetter(DeadLetter),
    /// An actor did not handle a message.
    Unhandled(Unhandled),
    /// A warning of the scheduler.
    Scheduler(Warning),
    /// A mailbox was full, and its overflow rule stops the actor.
    MailboxOverflow(ActorPath),
    /// An actor takes longer to stop than its parent waits: see
    /// [`SystemBuilder::stop_timeout`](crate::SystemBuilder::stop_timeout).
    Straggler(ActorPath),
    /// A handler has been running for a long time.
    Stuck(Stuck),
    /// Actors wait for each other's answers.
    AskCycle(AskCycle),
    /// This many events, the oldest of those that waited, were dropped before the next event,
    /// because the subscriber had no room. Sent to that subscriber, whatever kinds it has
    /// subscribed to.
    EventsDropped(u64),
}

/// Actors that wait for each other's answers: each has asked the next one, and the last has asked
/// the first.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct AskCycle {
    /// The paths of the actors.
    pub paths: Vec<ActorPath>,
}

/// A step in the lifecycle of an actor.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Lifecycle {
    /// The process id of the actor.
    pub pid: Pid,
    /// The path of the actor.
    pub path: ActorPath,
    /// The step.
    pub step: LifecycleStep,
}

/// The steps in the lifecycle of an actor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LifecycleStep {
    /// The actor has started for the first time.
    Started,
    /// The actor was restarted after a failure.
    Restarted,
    /// The actor has stopped.
    Stopped,
}

/// A message that will not be handled.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DeadLetter {
    /// The path of the intended receiver.
    pub recipient: ActorPath,
    /// The name of the message's type.
    pub message_type: &'static str,
    /// Why the message will not be handled.
    pub reason: DeadLetterReason,
}

/// Why a message will not be handled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DeadLetterReason {
    /// The receiver has stopped.
    Stopped,
    /// The mailbox was full.
    MailboxFull,
    /// The message waited in a full mailbox, and a newer message took its place.
    Evicted,
    /// There was no room to keep the message while its receiver was being restarted.
    StashFull,
    /// An answer arrived after the asker had stopped waiting.
    LateReply,
    /// The message was sent to the dead-letter reference.
    Addressed,
    /// There is no receiver at this path.
    NoReceiver,
}

impl DeadLetterReason {
    /// All reasons.
    pub const ALL: [Self; 7] = [
        Self::Stopped,
        Self::MailboxFull,
        Self::Evicted,
        Self::StashFull,
        Self::LateReply,
        Self::Addressed,
        Self::NoReceiver,
    ];

    /// Whether the receiver had no room, and continues to run.
    pub(crate) const fn is_overflow(self) -> bool {
        matches!(self, Self::MailboxFull | Self::Evicted | Self::StashFull)
    }
}

impl fmt::Display for DeadLetterReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Stopped => "its receiver has stopped",
            Self::MailboxFull => "the mailbox is full",
            Self::Evicted => "a newer message took its place",
            Self::StashFull => "no room to keep the message during a restart",
            Self::LateReply => "the answer came too late",
            Self::Addressed => "sent to the dead letters",
            Self::NoReceiver => "there is no receiver",
        })
    }
}

/// A message or signal that an actor did not handle.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Unhandled {
    /// The process id of the actor.
    pub pid: Pid,
    /// The path of the actor.
    pub path: ActorPath,
    /// The name of the message's type.
    pub message_type: &'static str,
}

/// A set of kinds of events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct EventKinds(u32);

impl EventKinds {
    /// No events.
    pub const NONE: Self = Self(0);
    /// [`SystemEvent::Lifecycle`].
    pub const LIFECYCLE: Self = Self(1);
    /// [`SystemEvent::Failure`].
    pub const FAILURE: Self = Self(1 << 1);
    /// [`SystemEvent::DeadLetter`].
    pub const DEAD_LETTER: Self = Self(1 << 2);
    /// [`SystemEvent::Unhandled`].
    pub const UNHANDLED: Self = Self(1 << 3);
    /// [`SystemEvent::Scheduler`].
    pub const SCHEDULER: Self = Self(1 << 4);
    /// [`SystemEvent::MailboxOverflow`].
    pub const MAILBOX_OVERFLOW: Self = Self(1 << 5);
    /// [`SystemEvent::Straggler`].
    pub const STRAGGLER: Self = Self(1 << 6);
    /// [`SystemEvent::AskCycle`].
    pub const ASK_CYCLE: Self = Self(1 << 7);
    /// [`SystemEvent::SuppressedDeadLetter`].
    pub const SUPPRESSED_DEAD_LETTER: Self = Self(1 << 8);
    /// All dead letters, including suppressed ones.
    pub const ALL_DEAD_LETTERS: Self = Self(Self::DEAD_LETTER.0 | Self::SUPPRESSED_DEAD_LETTER.0);
    /// Lifecycle and failures of actors.
    pub const ACTORS: Self = Self(Self::LIFECYCLE.0 | Self::FAILURE.0);
    /// Dead letters and unhandled messages.
    pub const LOST_MESSAGES: Self = Self(Self::DEAD_LETTER.0 | Self::UNHANDLED.0);
    /// Events that need attention: warnings of the scheduler, mailbox overflows, stragglers,
    /// failures.
    pub const WARNINGS: Self =
        Self(Self::SCHEDULER.0 | Self::MAILBOX_OVERFLOW.0 | Self::STRAGGLER.0 | Self::FAILURE.0);
    /// [`SystemEvent::Stuck`].
    pub const STUCK: Self = Self(1 << 16);
    /// All kinds, including those of later versions.
    pub const ALL: Self = Self(u32::MAX);

    /// The kinds of `self` that are not in `other`.
    #[must_use]
    pub const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// Whether `self` contains all kinds of `other`.
    #[must_use]
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Whether `self` and `other` have a kind in common.
    #[must_use]
    pub const fn intersects(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }
}

impl BitOr for EventKinds {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl SystemEvent {
    /// The kind of the event; [`NONE`](EventKinds::NONE) for
    /// [`EventsDropped`](Self::EventsDropped), to which one cannot subscribe.
    #[must_use]
    pub const fn kind(&self) -> EventKinds {
        match self {
            Self::Lifecycle(_) => EventKinds::LIFECYCLE,
            Self::Failure(_) => EventKinds::FAILURE,
            Self::DeadLetter(_) => EventKinds::DEAD_LETTER,
            Self::Unhandled(_) => EventKinds::UNHANDLED,
            Self::Scheduler(_) => EventKinds::SCHEDULER,
            Self::MailboxOverflow(_) => EventKinds::MAILBOX_OVERFLOW,
            Self::Stuck(_) => EventKinds::STUCK,
            Self::Straggler(_) => EventKinds::STRAGGLER,
            Self::AskCycle(_) => EventKinds::ASK_CYCLE,
            Self::SuppressedDeadLetter(_) => EventKinds::SUPPRESSED_DEAD_LETTER,
            Self::EventsDropped(_) => EventKinds::NONE,
        }
    }
}
