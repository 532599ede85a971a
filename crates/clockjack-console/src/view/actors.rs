//! Actors: rows, the tree, one actor in full, asks.

use core::fmt;

use serde::{Deserialize, Serialize};

use super::{Number, Sweep};

/// One page of rows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, bound(deserialize = "T: Deserialize<'de>"))]
#[non_exhaustive]
pub struct Page<T> {
    /// The rows, sorted.
    pub rows: Vec<T>,
    /// The number of this page; the first is 0.
    pub page: u32,
    /// How many rows match in all.
    pub matches: Number,
    /// How many there are in all, whether they match or not.
    pub total: Number,
    /// Whether there is a next page.
    pub has_more: bool,
    /// The walk that the rows come from, if they come from one.
    pub sweep: Option<Sweep>,
}

impl<T> Default for Page<T> {
    fn default() -> Self {
        Self {
            rows: Vec::new(),
            page: 0,
            matches: Number::UNKNOWN,
            total: Number::UNKNOWN,
            has_more: false,
            sweep: None,
        }
    }
}

/// What an actor does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum ActorState {
    /// It cannot be told.
    #[default]
    Unknown,
    /// It has nothing to do.
    Idle,
    /// It has messages, and waits for a worker.
    Queued,
    /// A worker runs it.
    Running,
    /// It has messages or a worker, and waits for one of its futures.
    Waiting,
    /// Its parent or a host has suspended it.
    Suspended,
    /// It has failed, and its supervisor has not decided yet.
    Failed,
    /// It is being restarted.
    Restarting,
    /// It is stopping, or has stopped.
    Stopping,
    /// It has been in one handler for longer than `stuck_after`.
    Stuck,
}

impl ActorState {
    /// All states.
    pub const ALL: &'static [Self] = &[
        Self::Unknown,
        Self::Idle,
        Self::Queued,
        Self::Running,
        Self::Waiting,
        Self::Suspended,
        Self::Failed,
        Self::Restarting,
        Self::Stopping,
        Self::Stuck,
    ];

    /// The name, in lower case.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Unknown => "unknown",
            Self::Idle => "idle",
            Self::Queued => "queued",
            Self::Running => "running",
            Self::Waiting => "waiting",
            Self::Suspended => "suspended",
            Self::Failed => "failed",
            Self::Restarting => "restarting",
            Self::Stopping => "stopping",
            Self::Stuck => "stuck",
        }
    }
}

impl fmt::Display for ActorState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// One actor in a table.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct ActorRow {
    /// The pid, like `{0|3.1}`.
    pub pid: String,
    /// The path.
    pub path: String,
    /// The name of the type.
    #[serde(rename = "type")]
    pub type_name: String,
    /// What it does.
    pub state: ActorState,
    /// Messages in its mailbox.
    pub depth: Number,
    /// Messages that the mailbox may hold.
    pub capacity: Number,
    /// Messages that it takes from its mailbox, per second.
    pub rate: Number,
    /// Messages that it has taken from its mailbox, since its start.
    pub handled: Number,
    /// How long a message waits in the mailbox, in nanoseconds, on average.
    pub wait_ns: Number,
    /// The part of the time in which a worker runs it, of 1.
    pub share: Number,
    /// How often it was restarted.
    pub restarts: Number,
    /// Messages that its full mailbox has returned to their senders.
    pub refused: Number,
}

/// One actor in the tree, with sums over the actors below it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct TreeRow {
    /// The actor.
    #[serde(flatten)]
    pub actor: ActorRow,
    /// Its direct children.
    pub children: Number,
    /// All actors below it.
    pub below: Number,
    /// Messages in the mailboxes of the actors below it.
    pub depth_below: Number,
    /// Messages that the actors below it take from their mailboxes, per second.
    pub rate_below: Number,
    /// Restarts of the actors below it.
    pub restarts_below: Number,
}

/// One actor in full.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct ActorDetail {
    /// Its row.
    #[serde(flatten)]
    pub actor: ActorRow,
    /// Whether it has stopped; then everything is as it was last seen.
    pub has_ended: bool,
    /// Why it has stopped, if it has.
    pub ended_because: Option<String>,
    /// The message type that it handles at this moment, and for how long, if it is stuck.
    pub handling: Option<Handling>,
    /// Its supervisors: itself last, the root first.
    pub supervision: Vec<SupervisionRow>,
    /// The positions of its mailbox.
    pub mailbox: MailboxDetail,
    /// The sizes of the mailbox in the last minute, oldest first, one per second; empty unless
    /// somebody has looked at the actor for longer.
    pub depth_history: Vec<Number>,
    /// The rates of the last minute, as above.
    pub rate_history: Vec<Number>,
    /// Its timers; `None` if they are not known.
    pub timers: Option<Vec<ActorTimerRow>>,
    /// Its futures; `None` if they are not known.
    pub futures: Option<Vec<FutureRow>>,
    /// The asks in which it waits, or is waited for.
    pub asks: Vec<AskRow>,
    /// How long its messages take, if it is watched.
    pub watch: Option<WatchDetail>,
    /// Its last failures, newest first; at most five.
    pub failures: Vec<FailureRow>,
    /// Its direct children; `/v1/tree` has them.
    pub children: Number,
}

/// A handler that runs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Handling {
    /// The type of the message.
    pub message_type: String,
    /// The worker.
    pub worker: Number,
    /// For how long, in nanoseconds.
    pub for_ns: Number,
}

/// A supervisor, or the actor itself.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct SupervisionRow {
    /// Its path.
    pub path: String,
    /// What it does.
    pub state: ActorState,
    /// Its strategy for its children, as text; `None` if it is not known.
    pub strategy: Option<String>,
    /// Restarts of it.
    pub restarts: Number,
    /// How many failures its window has left before it escalates.
    pub remainder: Number,
}

/// A mailbox.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct MailboxDetail {
    /// Messages in it.
    pub depth: Number,
    /// Messages that it may hold.
    pub capacity: Number,
    /// Messages that have arrived, since the start.
    pub claimed: Number,
    /// Messages that have left, since the start.
    pub freed: Number,
    /// Messages that were returned to their senders.
    pub refused: Number,
    /// Senders that wait for room: 1 if there are any, for they are not counted.
    pub waiters: Number,
}

/// A timer of an actor.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct ActorTimerRow {
    /// Its key.
    pub key: String,
    /// In how many nanoseconds it is due.
    pub due_in_ns: Number,
    /// Its period; unknown if it fires once.
    pub period_ns: Number,
}

/// A future of an actor.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct FutureRow {
    /// Its type.
    #[serde(rename = "type")]
    pub type_name: String,
    /// Where it waits.
    pub waits_at: Option<String>,
}

/// How long the messages of a watched actor take, in nanoseconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct WatchDetail {
    /// Half of them are faster.
    pub p50_ns: Number,
    /// 99 of 100 are faster.
    pub p99_ns: Number,
    /// Messages that were timed.
    pub count: Number,
}

/// A failure of an actor.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct FailureRow {
    /// The number of its event.
    pub event: u64,
    /// When, by the clock of the system.
    pub at_ns: u64,
    /// What failed, in words.
    pub text: String,
    /// The type of the message that was being handled.
    pub message_type: Option<String>,
    /// What the supervisor decided.
    pub decision: String,
}

/// An ask whose answer is awaited.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct AskRow {
    /// The actor that waits.
    pub from: String,
    /// The actor that was asked.
    pub to: String,
    /// Since when, by the clock of the system, as far as the console has seen it.
    pub since_ns: Number,
    /// Whether it is part of a cycle: everyone in it waits.
    pub is_in_cycle: bool,
}
