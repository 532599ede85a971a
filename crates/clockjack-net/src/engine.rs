//! [`Engine`]: what carries frames and decides about the log.
//!
//! An engine is a server and the connection to it. The node calls the functions below, none of
//! which waits, and gets the results as [`EngineEvent`]s. The engine decides whatever needs
//! agreement: the order of the log, and whether a conditional write is accepted.

use alloc::{boxed::Box, string::String, vec::Vec};
use core::{fmt, time::Duration};

use clockjack_sync::Arc;

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
    /// The connection to the server is lost. The engine connects again by itself.
    Disconnected,
    /// The server is reached again. A [`Snapshot`](Self::Snapshot) of the log follows.
    Reconnected,
    /// The log was deleted and created again: the sequence numbers begin again, and every member
    /// is lost. A [`Snapshot`](Self::Snapshot) of the new log follows.
    LogReplaced,
    /// The server refuses something that the node must do, in the words of the server.
    Refused(String),
    /// So many packs and writes were dropped because a queue between the node and the server was
    /// full.
    Dropped(u64),
}

/// Tells a node that its engine has something to read. Cheap to clone.
#[derive(Clone)]
pub struct Notify(Arc<Box<dyn Fn() + Send + Sync>>);

impl Notify {
    /// Calls the function for each notification.
    #[must_use]
    pub fn new(notify: impl Fn() + Send + Sync + 'static) -> Self {
        Self(Arc::new(Box::new(notify)))
    }

    /// There is something to read. The call returns at once, on any thread.
    pub fn notify(&self) {
        (self.0)();
    }
}

impl fmt::Debug for Notify {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Notify").finish_non_exhaustive()
    }
}

/// Connects a node to its engine: what [`Net::join`](crate::Net::join) takes.
pub trait Connect: Send {
    /// A number that no other join at this server gets, at random or by counting. With the seed of
    /// the node it decides about the incarnations that the node draws.
    fn join_number(&mut self) -> u64;

    /// Connects the node. The call does not wait for a server; an engine that needs one has reached
    /// it before.
    fn connect(self: Box<Self>, notify: Notify) -> Box<dyn Engine>;
}

/// The connection of a node to what carries its frames and decides about the log.
///
/// The engine [notifies](Notify) the node when [`poll`](Self::poll) has something to return. The
/// membership of the node ends with the engine: what was written before the drop is still carried
/// out, as far as the server can be reached.
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
