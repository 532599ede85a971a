//! What the first page shows: [`Hello`], [`Overview`] and [`Finding`].

use serde::{Deserialize, Serialize};

use super::Number;

/// The name and the major version of the protocol.
pub const SCHEMA: &str = "clockjack.console/1";

/// Who answers, and what it offers. To a client without a token all but `schema` and `auth` is
/// absent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Hello {
    /// [`SCHEMA`].
    pub schema: String,
    /// How a client shows that it may look.
    pub auth: Auth,
    /// The name of the program's file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub program: Option<String>,
    /// The version of Clockjack in the program.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// The process id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    /// The name of the actor system.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub system: Option<String>,
    /// When the console was opened, in milliseconds since 1970.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started: Option<u64>,
    /// The clock of the system.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clock: Option<ClockRow>,
    /// The classes of actions that the program allows.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub control: Vec<String>,
    /// The names of the views.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub views: Vec<String>,
}

/// How a client shows that it may look.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Auth {
    /// By its user: over a socket.
    #[default]
    Peer,
    /// By a token.
    Token,
}

/// A clock.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct ClockRow {
    /// What makes time pass: `os`, `virtual`, `interrupt` or another name of a `ClockKind`.
    pub kind: String,
    /// The length of a tick.
    pub resolution_ns: u64,
    /// The clock's time since its begin.
    pub now_ns: u64,
    /// How late jobs become due, as the 99th percentile in nanoseconds.
    pub drift_ns: Number,
    /// Ticks that were caught up with, because time was not advanced when they came.
    pub compensated_ticks: Number,
}

/// The system at a glance.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Overview {
    /// The name of the system.
    pub system: String,
    /// When this was read, by the clock of the system.
    pub at_ns: u64,
    /// What is wrong, the worst first.
    pub findings: Vec<Finding>,
    /// See [`Findings::looked_ms`].
    pub looked_ms: Option<u64>,
    /// See [`Findings::undecided`].
    pub undecided: Vec<Undecided>,
    /// The clock.
    pub clock: ClockRow,
    /// How many workers all pools have.
    pub workers: Number,
    /// The part of their time in which the workers are busy, of 1.
    pub busy: Number,
    /// Tasks that wait for a worker.
    pub queue: Number,
    /// Tasks that workers steal from each other, per second.
    pub steals_rate: Number,
    /// How often workers go to sleep, per second.
    pub parks_rate: Number,
    /// Polls of tasks, per second.
    pub steps_rate: Number,
    /// Messages that actors take from their mailboxes, per second.
    pub messages_rate: Number,
    /// Dead letters per second.
    pub dead_rate: Number,
    /// Actors that live.
    pub actors: Number,
    /// Failures of actors, since the start.
    pub failures: Number,
    /// Restarts of actors, since the start.
    pub restarts: Number,
    /// Messages that full mailboxes have returned, since the start.
    pub refused: Number,
    /// Timers that are armed.
    pub timers: Number,
    /// Jobs that live.
    pub jobs: Number,
    /// Threads that run blocking work, and how many there may be.
    pub blocking: Option<BlockingRow>,
    /// The recorder, if the program records.
    pub recorder: Option<RecorderRow>,
    /// The walk over all actors.
    pub sweep: Sweep,
    /// Memory that the console holds for this system, in bytes, and what it has left out.
    pub console: ConsoleRow,
}

/// The threads for blocking work.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct BlockingRow {
    /// Threads that run work.
    pub running: Number,
    /// Threads that there may be.
    pub threads_max: Number,
    /// Work that waits for a thread.
    pub queued: Number,
    /// Work that was refused, since the start.
    pub refused: Number,
}

/// The recorder.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct RecorderRow {
    /// The file.
    pub file: String,
    /// Bytes per second.
    pub rate: Number,
    /// Entries that are missing.
    pub gaps: Number,
}

/// The walk over all actors, which goes on in slices.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Sweep {
    /// How long ago the last complete walk has ended, in milliseconds; `None` before the first.
    pub age_ms: Option<u64>,
    /// How long the last complete walk took, in milliseconds.
    pub took_ms: Option<u64>,
    /// Actors that the last complete walk has seen.
    pub seen: u64,
}

/// What the console itself costs and has lost.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct ConsoleRow {
    /// Clients that are connected.
    pub clients: Number,
    /// Bytes that the console holds, about.
    pub bytes: Number,
    /// Frames that were skipped, because a client did not read them in time.
    pub frames_skipped: Number,
    /// Events that were dropped before the console has seen them.
    pub events_lost: Number,
    /// Samples that were not taken, because the sampling thread came late.
    pub samples_lost: Number,
}

/// What is wrong, and what is not known.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Findings {
    /// For how long the program has been looked at, in milliseconds; `None` if nobody looks. What
    /// is wrong is then unknown, and `rows` says nothing about it.
    pub looked_ms: Option<u64>,
    /// What is wrong, the worst first.
    pub rows: Vec<Finding>,
    /// Findings that there may be all the same.
    pub undecided: Vec<Undecided>,
}

/// A finding of which it is not known whether there is one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Undecided {
    /// `S01` to `S14`.
    pub code: String,
    /// Why it is not known, for people.
    pub why: String,
}

/// A problem that was detected.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Finding {
    /// `S01` to `S14`; `clockjack explain` has a page for each.
    pub code: String,
    /// What is ill: the path of an actor, `worker 1`, the name of a graph's edge, and so on.
    pub subject: String,
    /// One line for people, without the code.
    pub text: String,
    /// For how long the condition has held, in milliseconds.
    pub since_ms: u64,
    /// The numbers behind it.
    pub evidence: Vec<Evidence>,
}

/// One number behind a finding.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Evidence {
    /// What the number is.
    pub name: String,
    /// The number.
    pub value: Number,
    /// The number from which on it is a finding; unknown if the number decides nothing.
    pub threshold: Number,
}
