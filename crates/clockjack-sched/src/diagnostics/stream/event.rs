//! Diagnostic events, and the kinds by which a subscriber selects them.

use core::{
    fmt,
    ops::{BitOr, BitOrAssign},
    time::Duration,
};

use clockjack_time::Tick;

use crate::{BatchMode, ExecutionBatch, JobNumber, Warning};

/// Something that the scheduler did, or a warning.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum DiagnosticEvent {
    /// A job was accepted.
    Scheduled {
        /// The job.
        job: JobNumber,
        /// When.
        at: Tick,
        /// When it is due.
        due: Tick,
        /// How it repeats.
        mode: BatchMode,
    },
    /// A job was handed over to run.
    Fired {
        /// The job.
        job: JobNumber,
        /// When it was due.
        due: Tick,
        /// When it was handed over.
        at: Tick,
        /// How many runs the call represents.
        batch: ExecutionBatch,
        /// The executor that ran it.
        executor: u16,
    },
    /// A job was cancelled.
    Cancelled {
        /// The job.
        job: JobNumber,
        /// When.
        at: Tick,
    },
    /// A warning.
    Warned(Warning),
    /// How far the wheel advanced, about once per second.
    TickRate {
        /// The number of ticks.
        ticks: u64,
        /// Their duration.
        over: Duration,
    },
}

impl DiagnosticEvent {
    /// The kind of the event.
    #[must_use]
    pub const fn kind(&self) -> EventKinds {
        match self {
            Self::Scheduled { .. } => EventKinds::SCHEDULE,
            Self::Fired { .. } => EventKinds::FIRE,
            Self::Cancelled { .. } => EventKinds::CANCEL,
            Self::Warned(_) => EventKinds::WARNING,
            Self::TickRate { .. } => EventKinds::TICK_RATE,
        }
    }
}

impl fmt::Display for DiagnosticEvent {
    /// One line, without a newline.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Scheduled { job, at, due, mode } => {
                write!(f, "job {job}: scheduled at {at}, due at {due}, {mode}")
            }
            Self::Fired { job, due, at, batch, executor } => {
                let late = at.saturating_since(*due);
                write!(f, "job {job}: fired at {at}, {late} ticks late, {batch}, by {executor}")
            }
            Self::Cancelled { job, at } => write!(f, "job {job}: cancelled at {at}"),
            Self::Warned(warning) => write!(f, "warning: {warning}"),
            Self::TickRate { ticks, over } => write!(f, "{ticks} ticks in {over:?}"),
        }
    }
}

/// A set of kinds of events.
///
/// # Examples
///
/// ```
/// use clockjack_sched::EventKinds;
///
/// let kinds = EventKinds::FIRE | EventKinds::CANCEL;
/// assert!(kinds.contains(EventKinds::FIRE));
/// assert!(!kinds.contains(EventKinds::FIRE | EventKinds::WARNING));
/// assert!(kinds.intersects(EventKinds::FIRE | EventKinds::WARNING));
/// assert_eq!(kinds.to_string(), "fire|cancel");
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct EventKinds(u8);

impl EventKinds {
    /// No kind.
    pub const NONE: Self = Self(0);
    /// [`DiagnosticEvent::Scheduled`].
    pub const SCHEDULE: Self = Self(1);
    /// [`DiagnosticEvent::Fired`].
    pub const FIRE: Self = Self(1 << 1);
    /// [`DiagnosticEvent::Cancelled`].
    pub const CANCEL: Self = Self(1 << 2);
    /// [`DiagnosticEvent::Warned`].
    pub const WARNING: Self = Self(1 << 3);
    /// [`DiagnosticEvent::TickRate`].
    pub const TICK_RATE: Self = Self(1 << 4);
    /// Every kind.
    pub const ALL: Self = Self(0b1_1111);

    const NAMES: [(Self, &str); 5] = [
        (Self::SCHEDULE, "schedule"),
        (Self::FIRE, "fire"),
        (Self::CANCEL, "cancel"),
        (Self::WARNING, "warning"),
        (Self::TICK_RATE, "tick-rate"),
    ];

    /// The union.
    #[must_use]
    pub const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// The difference.
    #[must_use]
    pub const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// Whether all of `other` is in this one.
    #[must_use]
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Whether some of `other` is in this one.
    #[must_use]
    pub const fn intersects(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// Whether the set is empty.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// A bit per kind, the lowest five.
    pub(super) const fn bits(self) -> u32 {
        self.0 as u32
    }
}

impl BitOr for EventKinds {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        self.union(other)
    }
}

impl BitOrAssign for EventKinds {
    fn bitor_assign(&mut self, other: Self) {
        *self = self.union(other);
    }
}

impl fmt::Display for EventKinds {
    /// The names with `|` between them; `none` if there is none.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut names = Self::NAMES.iter().filter(|(kind, _)| self.contains(*kind));
        match names.next() {
            Some((_, name)) => f.write_str(name)?,
            None => f.write_str("none")?,
        }
        names.try_for_each(|(_, name)| write!(f, "|{name}"))
    }
}

impl fmt::Debug for EventKinds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "EventKinds({self})")
    }
}
