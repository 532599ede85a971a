//! [`Engine`]: what carries frames and decides about the log.
//!
//! An engine is a server and the connection to it. The node calls the functions below, none of
//! which waits, and gets the results as [`EngineEvent`]s. The engine decides whatever needs
//! agreement: the order of the log, and whether a conditional write is accepted.

use alloc::{string::String, vec::Vec};
use core::time::Duration;

use crate::log::LogEvent;

/// A point in time: the monotonic clock of the caller, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Moment(u64);

impl Moment {
    /// The time that the clock shows.
    #[must_use]
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// The time that the clock shows, in nanoseconds.
    #[must_use]
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// The time since an earlier moment; zero if that is later.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }

    pub(crate) fn after(self, delay: Duration) -> Self {
        let nanos = u64::try_from(delay.as_nanos()).unwrap_or(u64::MAX);
        Self(self.0.saturating_add(nanos))
    }
}

/// What must be true of a key for a write to be accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Expected {
    /// Anything.
    Any,
    /// The key has no value.
    Absent,
    /// The last entry of the key has this sequence number.
    Sequence(u64),
}

/// A write to the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogWrite {
    /// The key.
    pub key: String,
    /// The value; `None` ends the key.
    pub value: Option<Vec<u8>>,
    /// The condition.
    pub expected: Expected,
    /// The key ends after this time, unless it is written again.
    pub ttl: Option<Duration>,
}

/// Something that an engine reports.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum EngineEvent {
    /// The next entry of the log.
    Log(LogEvent),
    /// All entries of the log at a sequence number, instead of those that were missed.
    Snapshot {
        /// The sequence number of the last entry of the log.
        sequence: u64,
        /// The keys that have a value.
        entries: Vec<LogEvent>,
    },
    /// A pack for this node.
    Pack(Vec<u8>),
    /// A pack was sent to an incarnation whose subject has no subscriber.
    NoResponders(u64),
}

/// The connection of a node to what carries its frames and decides about the log.
///
/// The engine tells the node when [`poll`](Self::poll) has something to return.
pub trait Engine: Send {
    /// Receives packs for this incarnation from now on, and no longer those for an earlier one.
    fn subscribe(&mut self, incarnation: u64);

    /// Sends a pack to an incarnation: at most once, and in the order of the calls.
    fn publish(&mut self, to: u64, pack: Vec<u8>);

    /// Writes to the log. Whether the write was accepted is read from the log.
    fn write(&mut self, now: Moment, write: LogWrite);

    /// What has happened since the last call, in order.
    fn poll(&mut self, now: Moment) -> Vec<EngineEvent>;
}
