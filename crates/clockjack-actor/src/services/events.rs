//! Events of an actor system: lifecycle, failures, dead letters, warnings.
//!
//! This module defines the events; [`EventStream`] delivers them to subscribers.

pub(crate) mod backlog;
mod bridge;
mod root_failure;
mod stream;

use alloc::vec::Vec;
use core::{fmt, ops::BitOr, time::Duration};

use clockjack_exec::Pid;
use clockjack_observe::event;
use clockjack_sched::Warning;

pub use self::{
    root_failure::RootFailure,
    stream::{EVENTS_WAITING_MAX, EventStream},
};
use crate::{ActorPath, FailureInfo, stuck::Stuck};

/// The delay after which something is sent again to an actor whose mailbox was full.
pub(crate) const RETRY: Duration = Duration::from_millis(10);

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
    /// The scheduler is being closed: timers and jobs do not fire any more, and those that wait are
    /// cancelled. Published only if that happens before the last actor has stopped: an ordinary
    /// shutdown of the system closes the scheduler after all subscribers have stopped.
    SchedulerClosed,
    /// How far the scheduler's time has advanced, about once per second of that time.
    TickRate(TickRate),
    /// A mailbox was full, and its overflow rule stops the actor.
    MailboxOverflow(ActorPath),
    /// A mailbox was full and has returned messages to their senders. Published a second after the
    /// first refusal, and then, as long as messages are refused, after 1, 2, 4 .. 60 minutes.
    MailboxRefusals(MailboxRefusals),
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

/// How far the wheels of a scheduler have advanced since the last report. A wheel without jobs is
/// not advanced; the next advance reports the ticks of that time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TickRate {
    /// The number of ticks.
    pub ticks: u64,
    /// The duration of these ticks: about a second, or longer if there were no jobs.
    pub over: Duration,
}

/// Messages that were returned to their senders, because mailboxes were full, since the last event
/// of this kind.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct MailboxRefusals {
    /// The path of the actor whose mailbox has refused the most messages.
    pub path: ActorPath,
    /// How many messages this mailbox has refused. If very many mailboxes refuse messages at the
    /// same time, this is an upper bound.
    pub refused: u64,
    /// How many messages all mailboxes have refused.
    pub total: u64,
}

impl fmt::Display for MailboxRefusals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { refused, total, .. } = self;
        let messages = if *refused == 1 { "message" } else { "messages" };
        write!(f, "the mailbox was full and has refused {refused} {messages}")?;
        match total.saturating_sub(*refused) {
            0 => Ok(()),
            others => write!(f, "; other mailboxes have refused {others}"),
        }
    }
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
    /// The receiver is on another node, which is lost or does not export it.
    Unreachable,
    /// The receiver is on another node, and the message is too large, or has no encoding.
    Unsendable,
    /// The message came from another node, and is not one that its receiver understands.
    Undecodable,
}

impl DeadLetterReason {
    /// All reasons.
    pub const ALL: &'static [Self] = &[
        Self::Stopped,
        Self::MailboxFull,
        Self::Evicted,
        Self::StashFull,
        Self::LateReply,
        Self::Addressed,
        Self::NoReceiver,
        Self::Unreachable,
        Self::Unsendable,
        Self::Undecodable,
    ];

    /// A short name for labels and logs, such as `mailbox_full`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.recorded().name()
    }

    /// The reason as the flight recorder has it.
    pub(crate) const fn recorded(self) -> event::DeadLetterReason {
        match self {
            Self::Stopped => event::DeadLetterReason::Stopped,
            Self::MailboxFull => event::DeadLetterReason::MailboxFull,
            Self::Evicted => event::DeadLetterReason::Evicted,
            Self::StashFull => event::DeadLetterReason::StashFull,
            Self::LateReply => event::DeadLetterReason::LateReply,
            Self::Addressed => event::DeadLetterReason::Addressed,
            Self::NoReceiver => event::DeadLetterReason::NoReceiver,
            Self::Unreachable => event::DeadLetterReason::Unreachable,
            Self::Unsendable => event::DeadLetterReason::Unsendable,
            Self::Undecodable => event::DeadLetterReason::Undecodable,
        }
    }

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
            Self::Unreachable => "the node of its receiver cannot be reached",
            Self::Unsendable => "it cannot be sent to another node",
            Self::Undecodable => "its receiver does not understand it",
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
    /// [`SystemEvent::Scheduler`] and [`SystemEvent::SchedulerClosed`].
    pub const SCHEDULER: Self = Self(1 << 4);
    /// [`SystemEvent::MailboxOverflow`].
    pub const MAILBOX_OVERFLOW: Self = Self(1 << 5);
    /// [`SystemEvent::Straggler`].
    pub const STRAGGLER: Self = Self(1 << 6);
    /// [`SystemEvent::AskCycle`].
    pub const ASK_CYCLE: Self = Self(1 << 7);
    /// [`SystemEvent::SuppressedDeadLetter`].
    pub const SUPPRESSED_DEAD_LETTER: Self = Self(1 << 8);
    /// [`SystemEvent::MailboxRefusals`].
    pub const MAILBOX_REFUSALS: Self = Self(1 << 9);
    /// All dead letters, including suppressed ones.
    pub const ALL_DEAD_LETTERS: Self = Self(Self::DEAD_LETTER.0 | Self::SUPPRESSED_DEAD_LETTER.0);
    /// Lifecycle and failures of actors.
    pub const ACTORS: Self = Self(Self::LIFECYCLE.0 | Self::FAILURE.0);
    /// Dead letters and unhandled messages.
    pub const LOST_MESSAGES: Self = Self(Self::DEAD_LETTER.0 | Self::UNHANDLED.0);
    /// Events that need attention: warnings of the scheduler, mailbox overflows and refusals,
    /// stragglers, failures.
    pub const WARNINGS: Self = Self(
        Self::SCHEDULER.0
            | Self::MAILBOX_OVERFLOW.0
            | Self::MAILBOX_REFUSALS.0
            | Self::STRAGGLER.0
            | Self::FAILURE.0,
    );
    /// [`SystemEvent::TickRate`].
    pub const TICK_RATE: Self = Self(1 << 10);
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
            Self::Scheduler(_) | Self::SchedulerClosed => EventKinds::SCHEDULER,
            Self::TickRate(_) => EventKinds::TICK_RATE,
            Self::MailboxOverflow(_) => EventKinds::MAILBOX_OVERFLOW,
            Self::MailboxRefusals(_) => EventKinds::MAILBOX_REFUSALS,
            Self::Stuck(_) => EventKinds::STUCK,
            Self::Straggler(_) => EventKinds::STRAGGLER,
            Self::AskCycle(_) => EventKinds::ASK_CYCLE,
            Self::SuppressedDeadLetter(_) => EventKinds::SUPPRESSED_DEAD_LETTER,
            Self::EventsDropped(_) => EventKinds::NONE,
        }
    }

    /// Drops the event if that frees no memory; returns it otherwise.
    fn release_quietly(self) -> Result<(), Self> {
        match self {
            Self::DeadLetter(DeadLetter { recipient, message_type, reason }) => {
                let again =
                    |recipient| Self::DeadLetter(DeadLetter { recipient, message_type, reason });
                recipient.release_unless_last().map_err(again)
            }
            Self::SuppressedDeadLetter(DeadLetter { recipient, message_type, reason }) => {
                let again = |recipient| {
                    Self::SuppressedDeadLetter(DeadLetter { recipient, message_type, reason })
                };
                recipient.release_unless_last().map_err(again)
            }
            Self::MailboxOverflow(path) => {
                path.release_unless_last().map_err(Self::MailboxOverflow)
            }
            Self::MailboxRefusals(MailboxRefusals { path, refused, total }) => {
                let again = |path| Self::MailboxRefusals(MailboxRefusals { path, refused, total });
                path.release_unless_last().map_err(again)
            }
            // No path from `tell` publishes these, but they may have to make room for one that a
            // `tell` publishes; a thread drops them.
            other => Err(other),
        }
    }
}
