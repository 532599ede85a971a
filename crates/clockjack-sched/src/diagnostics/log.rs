//! The deterministic log: what a shard did, in order, so that two executions can be compared.
//!
//! A `SchedulerLog` is a ring buffer that keeps the newest records and counts the lost ones. It
//! belongs to the holder of the shard guard, and shares nothing. A [`ReplayTrace`] is the content
//! of a log, or of the logs of all shards, as a text that can be compared with another execution.

mod record;
mod ring;
mod trace;

pub use record::{LogKind, LogRecord};
#[doc(hidden)]
pub use ring::SchedulerLog;
pub use trace::{Divergence, ReplayTrace, TraceError};
