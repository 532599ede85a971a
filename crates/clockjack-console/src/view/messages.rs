//! Dead letters and events.

use serde::{Deserialize, Serialize};

use super::Number;

/// Dead letters of one recipient, message type and reason.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct DeadLetterRow {
    /// The path of the intended receiver.
    pub recipient: String,
    /// The type of the messages.
    pub message_type: String,
    /// Why they are not handled: a short name such as `mailbox_full`.
    pub reason: String,
    /// How many, since the console has listened.
    pub count: Number,
    /// How many per second.
    pub rate: Number,
    /// When the last one came, by the clock of the system.
    pub last_ns: u64,
}

/// Dead letters.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct DeadLetters {
    /// The groups, the largest rate first.
    pub rows: Vec<DeadLetterRow>,
    /// All dead letters by reason, since the start of the system.
    pub by_reason: Vec<(String, Number)>,
    /// Dead letters that are in no group, because there were too many groups or events.
    pub ungrouped: Number,
}

/// One event.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct EventRow {
    /// Its number. Numbers grow by one, so that a missing one is a gap.
    pub number: u64,
    /// When, by the clock of the system.
    pub at_ns: u64,
    /// Its kind, such as `failure` or `dead-letter`.
    pub kind: String,
    /// The path of the actor, if it is about one.
    pub path: Option<String>,
    /// What has happened, in words.
    pub text: String,
}

/// Events.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Events {
    /// The events, oldest first.
    pub rows: Vec<EventRow>,
    /// The number that the next event will have: what to ask for next.
    pub next: u64,
    /// Events that were asked for and are gone.
    pub gap: u64,
    /// Events that were dropped before the console has seen them, since it has listened.
    pub lost: Number,
}
