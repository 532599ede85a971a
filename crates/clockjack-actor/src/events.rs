//! What the system tells whoever wants to know: lifecycle, failures, dead letters, warnings.

use alloc::vec::Vec;
use core::{fmt, ops::BitOr};

use clockjack_exec::Pid;
use clockjack_sched::Warning;
use clockjack_sync::{
    Counted,
    lock::Lock,
    prim::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed},
};

use crate::{ActorPath, ActorRef, FailureInfo};

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
    /// An actor did not know what to do with a message.
    Unhandled(Unhandled),
    /// The scheduler warns.
    Scheduler(Warning),
    /// A mailbox was full, and its actor is stopped for it.
    MailboxOverflow(ActorPath),
    /// An actor was told to stop and has not ended for longer than its parent is patient.
    Straggler(ActorPath),
    /// Actors wait for answers of each other.
    AskCycle(AskCycle),
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
    /// All of them, and those that come with later versions.
    pub const ALL: Self = Self(u32::MAX);

    /// Whether all of `other` are in it.
    #[must_use]
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

impl BitOr for EventKinds {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl SystemEvent {
    /// What kind it is of.
    #[must_use]
    pub const fn kind(&self) -> EventKinds {
        match self {
            Self::Lifecycle(_) => EventKinds::LIFECYCLE,
            Self::Failure(_) => EventKinds::FAILURE,
            Self::DeadLetter(_) => EventKinds::DEAD_LETTER,
            Self::Unhandled(_) => EventKinds::UNHANDLED,
            Self::Scheduler(_) => EventKinds::SCHEDULER,
            Self::MailboxOverflow(_) => EventKinds::MAILBOX_OVERFLOW,
            Self::Straggler(_) => EventKinds::STRAGGLER,
            Self::AskCycle(_) => EventKinds::ASK_CYCLE,
        }
    }
}

/// Tells events to actors that have asked for them.
pub struct EventStream {
    /// The kinds that somebody wants; nobody looks further for others.
    wanted: AtomicU32,
    subscribers: Lock<Vec<Counted<Subscriber>>>,
    dropped: AtomicU64,
}

struct Subscriber {
    kinds: EventKinds,
    to: ActorRef<SystemEvent>,
}

impl EventStream {
    pub(crate) fn new() -> Self {
        Self {
            wanted: AtomicU32::new(0),
            subscribers: Lock::new(Vec::new()),
            dropped: AtomicU64::new(0),
        }
    }

    /// Tells `to` all events of these kinds from now on. A second call for the same actor sets
    /// other kinds.
    pub fn subscribe(&self, kinds: EventKinds, to: ActorRef<SystemEvent>) {
        let new = Counted::new(Subscriber { kinds, to });
        let old = self.subscribers.with(|list| {
            let old = list.iter().position(|one| one.to == new.to).map(|at| list.remove(at));
            list.push(new);
            self.count(list);
            old
        });
        drop(old);
    }

    /// Tells `to` nothing any more. False if it was told nothing before.
    pub fn unsubscribe(&self, to: &ActorRef<SystemEvent>) -> bool {
        let old = self.subscribers.with(|list| {
            let old = list.iter().position(|one| one.to == *to).map(|at| list.remove(at));
            self.count(list);
            old
        });
        old.is_some()
    }

    fn count(&self, list: &[Counted<Subscriber>]) {
        let wanted = list.iter().fold(0, |wanted, one| wanted | one.kinds.0);
        // Relaxed: who subscribes is told what is published after that, and no order is promised
        // between the two.
        self.wanted.store(wanted, Relaxed);
    }

    /// Whether anybody wants events of this kind.
    #[inline]
    pub(crate) fn wants(&self, kind: EventKinds) -> bool {
        // Relaxed: as in `count`.
        self.wanted.load(Relaxed) & kind.0 != 0
    }

    /// Tells an event to all who want it.
    pub fn publish(&self, event: &SystemEvent) {
        let kind = event.kind();
        if !self.wants(kind) {
            return;
        }
        let list = self.subscribers.with(|list| list.clone());
        for subscriber in list.iter().filter(|one| one.kinds.0 & kind.0 != 0) {
            match subscriber.to.tell(event.clone()) {
                Ok(()) => {}
                Err(refused) if refused.is_full() => {
                    // Relaxed: a statistic.
                    self.dropped.fetch_add(1, Relaxed);
                }
                Err(_) => {
                    self.unsubscribe(&subscriber.to);
                }
            }
        }
    }

    /// How many events subscribers had no room for.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        // Relaxed: a statistic.
        self.dropped.load(Relaxed)
    }
}

impl fmt::Debug for EventStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let len = self.subscribers.with(|list| list.len());
        f.debug_struct("EventStream").field("subscribers", &len).finish_non_exhaustive()
    }
}
