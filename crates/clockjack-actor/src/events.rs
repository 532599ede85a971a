//! What the system tells whoever wants to know: lifecycle, failures, dead letters, warnings.
//!
//! What there is to be told is here; how it comes to those who want it, in [`EventStream`].

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

/// Something that has happened in an actor system.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum SystemEvent {
    /// An actor was started, restarted or has stopped.
    Lifecycle(Lifecycle),
    /// An actor has failed, and what was decided.
    Failure(FailureInfo),
    /// A message will not be handled.
    DeadLetter(DeadLetter),
    /// As [`DeadLetter`](Self::DeadLetter), of a type that was marked as one whose loss is of no
    /// interest: [`SystemBuilder::suppress_dead_letters_of`](crate::SystemBuilder).
    SuppressedDeadLetter(DeadLetter),
    /// An actor did not know what to do with a message.
    Unhandled(Unhandled),
    /// The scheduler warns.
    Scheduler(Warning),
    /// A mailbox was full, and its actor is stopped for it.
    MailboxOverflow(ActorPath),
    /// An actor was told to stop and has not ended for longer than its parent is patient.
    Straggler(ActorPath),
    /// A handler runs for long.
    Stuck(Stuck),
    /// Actors wait for answers of each other.
    AskCycle(AskCycle),
    /// So many events, the oldest of those that waited, had to go for newer ones before the one
    /// that comes next. Told to the subscriber that they were for, whatever it has asked for.
    EventsDropped(u64),
}

/// Actors that wait for answers of each other: each has asked the next, the last the first.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct AskCycle {
    /// Where they stand.
    pub paths: Vec<ActorPath>,
}

/// A step in the life of an actor.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Lifecycle {
    /// Which one.
    pub pid: Pid,
    /// Where it stands.
    pub path: ActorPath,
    /// What has happened.
    pub step: LifecycleStep,
}

/// What can happen to an actor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LifecycleStep {
    /// It has started for the first time.
    Started,
    /// It was made anew after a failure.
    Restarted,
    /// It has ended.
    Stopped,
}

/// A message that will not be handled.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DeadLetter {
    /// For whom it was.
    pub recipient: ActorPath,
    /// The name of its type.
    pub message_type: &'static str,
    /// Why.
    pub reason: DeadLetterReason,
}

/// Why a message will not be handled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DeadLetterReason {
    /// Its receiver has stopped.
    Stopped,
    /// The mailbox was full.
    MailboxFull,
    /// It waited in a full mailbox, and a newer one has its room.
    Evicted,
    /// There was no room to keep it while its receiver was being restarted.
    StashFull,
    /// Its receiver waited for no answer any more.
    LateReply,
    /// It was sent to the dead letters themselves.
    Addressed,
    /// Nobody receives for this path.
    NoReceiver,
}

impl DeadLetterReason {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::Stopped,
        Self::MailboxFull,
        Self::Evicted,
        Self::StashFull,
        Self::LateReply,
        Self::Addressed,
        Self::NoReceiver,
    ];

    /// Whether the receiver had no room, and goes on or will.
    pub(crate) const fn is_overflow(self) -> bool {
        matches!(self, Self::MailboxFull | Self::Evicted | Self::StashFull)
    }
}

impl fmt::Display for DeadLetterReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Stopped => "its receiver has stopped",
            Self::MailboxFull => "the mailbox is full",
            Self::Evicted => "a newer message has its room",
            Self::StashFull => "no room to keep it during a restart",
            Self::LateReply => "the answer came too late",
            Self::Addressed => "sent to the dead letters",
            Self::NoReceiver => "nobody receives it",
        })
    }
}

/// A message or signal that an actor did not know what to do with.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Unhandled {
    /// Which one.
    pub pid: Pid,
    /// Where it stands.
    pub path: ActorPath,
    /// The name of the message's type.
    pub message_type: &'static str,
}

/// A set of kinds of events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct EventKinds(u32);

impl EventKinds {
    /// None.
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
    /// The family of messages that will not be handled, also of those of no interest.
    pub const ALL_DEAD_LETTERS: Self = Self(Self::DEAD_LETTER.0 | Self::SUPPRESSED_DEAD_LETTER.0);
    /// The family of what becomes of actors: lifecycle and failures.
    pub const ACTORS: Self = Self(Self::LIFECYCLE.0 | Self::FAILURE.0);
    /// The family of messages that came to nothing: dead letters, and what was not handled.
    pub const LOST_MESSAGES: Self = Self(Self::DEAD_LETTER.0 | Self::UNHANDLED.0);
    /// The family of what somebody should look into: the scheduler's warnings, mailboxes that
    /// overflow, actors that do not stop, failures.
    pub const WARNINGS: Self =
        Self(Self::SCHEDULER.0 | Self::MAILBOX_OVERFLOW.0 | Self::STRAGGLER.0 | Self::FAILURE.0);
    /// [`SystemEvent::Stuck`].
    pub const STUCK: Self = Self(1 << 16);
    /// All of them, and those that come with later versions.
    pub const ALL: Self = Self(u32::MAX);

    /// Those of it that are not in `other`.
    #[must_use]
    pub const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// Whether all of `other` are in it.
    #[must_use]
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Whether some of `other` are in it.
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
    /// What kind it is of; none for [`EventsDropped`](Self::EventsDropped), which cannot be chosen.
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
