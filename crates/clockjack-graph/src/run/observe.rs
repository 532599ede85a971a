//! What a run records: logs, traces, metrics, health events and reports. No decision of a run
//! depends on them.

pub(crate) mod call_watch;
pub(crate) mod collect;
pub mod commit_log;
pub(crate) mod component_log;
pub(crate) mod health;
pub(crate) mod live;
pub(crate) mod losses;
pub(crate) mod metrics;
pub(crate) mod observer;
pub(crate) mod report;
pub(crate) mod sinks;
pub mod timeline;
pub mod trace;
