//! The closed set of events, each in at most sixteen bytes, and the record that adds the time.
//!
//! The set is closed and [`Event`] is exhaustive on purpose: code that exports, counts or draws
//! events matches all of them, and the compiler reports every place that a new event would break.
//! So a new event is a breaking change of this crate. Code that must not break prints generically
//! with [`Event::visit_fields`].
//!
//! Rare events are always recorded; events of every poll, wake-up and fire only while a trace is on
//! ([`Kind::is_traced_only`]).
//!
//! The encoding is a bijection between events and the sixteen-byte strings that decode:
//! `decode(encode(e)) == Ok(e)`, and if `decode(b)` is `Ok(e)` then `encode(e) == b`. Decoding is
//! total: any other bytes are a [`DecodeError`].
//!
//! A reporter saturates numbers that do not fit: events are for diagnosis, not for accounting.

mod detail;
mod encoding;
mod field;
mod id;
mod table;

use core::fmt;

pub use detail::{DeadLetterReason, Directive, SchedulerWarning, TaskOutcome};
pub use encoding::{DecodeError, Encoded};
pub use id::{ActorId, ShardId, TaskId, WorkerId};
pub use table::{Event, FieldInfo, Kind};

/// An event and when it happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Record {
    /// Nanoseconds since the start of the system, by the system's clock. A host that knows only
    /// ticks multiplies by its resolution. In virtual time these are virtual nanoseconds.
    pub at_ns: u64,
    /// What happened.
    pub event: Event,
}

impl Record {
    /// Creates a record of an event at a time.
    #[inline(always)]
    #[must_use]
    pub const fn new(at_ns: u64, event: Event) -> Self {
        Self { at_ns, event }
    }
}

/// What an event is about, and how long it took.
pub(crate) struct Facts {
    pub(crate) subject: Option<Subject>,
    /// `None` for an event without a duration.
    pub(crate) span_ns: Option<u64>,
}

/// What an event is about.
pub(crate) enum Subject {
    Task(TaskId),
    Actor(ActorId),
}

// An event in memory is not larger than its encoding, so that passing one takes two registers.
const _: () = assert!(size_of::<Event>() <= Encoded::BYTES);

impl Event {
    /// The printed name.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        self.kind().name()
    }

    /// How long the event took, in nanoseconds; it is recorded when it ends.
    #[must_use]
    pub const fn duration_ns(&self) -> u64 {
        match self.facts().span_ns {
            Some(span_ns) => span_ns,
            None => 0,
        }
    }

    /// The actor or other task that the event is about, if the executor `node` recorded it.
    #[must_use]
    pub const fn subject(&self, node: u16) -> Option<ActorId> {
        match self.facts().subject {
            Some(Subject::Task(task)) => Some(ActorId::new(node, task.0)),
            Some(Subject::Actor(actor)) => Some(actor),
            None => None,
        }
    }

    /// What a drawing has to know. Every event is listed, so that the compiler asks about a new
    /// one.
    pub(crate) const fn facts(&self) -> Facts {
        let (subject, span_ns) = match *self {
            Self::TaskPolled { task, ran_ns, .. } => (Some(Subject::Task(task)), Some(ran_ns)),
            Self::TaskSpawned { task }
            | Self::TaskWoken { task }
            | Self::TaskFinished { task, .. }
            | Self::WorkerStuck { task, .. } => (Some(Subject::Task(task)), None),
            Self::WorkerParked { parked_ns, .. } => (None, Some(parked_ns)),
            Self::ActorStarted { actor, .. }
            | Self::ActorStopped { actor }
            | Self::ActorFailed { actor, .. }
            | Self::ActorRestarted { actor }
            | Self::FailureEscalated { actor, .. } => (Some(Subject::Actor(actor)), None),
            Self::TimersFired { .. }
            | Self::TimersLate { .. }
            | Self::ShardReassigned { .. }
            | Self::TimersTakenOver { .. }
            | Self::WorkerStarted { .. }
            | Self::WorkerStopped { .. }
            | Self::WorkStolen { .. }
            | Self::ShutdownStarted { .. }
            | Self::JobFired { .. }
            | Self::JobLate { .. }
            | Self::SchedulerWarned { .. }
            | Self::DeadLettered { .. } => (None, None),
        };
        Facts { subject, span_ns }
    }
}

impl Kind {
    /// The code of the encoding, never 0.
    #[must_use]
    pub const fn code(self) -> u8 {
        self as u8
    }
}

/// The name, then ` field=value` for each field.
impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())?;
        self.visit_fields(|name, value| write!(f, " {name}={value}"))
    }
}

/// Seconds with nine decimals, then the event.
impl fmt::Display for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (seconds, nanos) = (self.at_ns / 1_000_000_000, self.at_ns % 1_000_000_000);
        write!(f, "{seconds}.{nanos:09} {}", self.event)
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
