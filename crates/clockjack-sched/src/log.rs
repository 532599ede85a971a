//! The deterministic log: what a shard did, in order, so that two runs can be compared.
//!
//! A [`SchedulerLog`] is a ring that keeps the newest records and counts what it has lost; it
//! belongs to whoever holds the shard, and shares nothing. A [`ReplayTrace`] is what a log, or the
//! logs of all shards, come to: a text that another run is held against.

mod record;
mod ring;
mod trace;

pub use record::{LogKind, LogRecord};
pub use ring::SchedulerLog;
pub use trace::{Divergence, ReplayTrace, TraceError, TraceErrorKind};
