//! What a run records: logs, traces, metrics, health events and reports. No decision of a run
//! depends on them.

pub(crate) mod collect;
pub mod commit_log;
pub mod component_log;
pub mod health;
pub(crate) mod live;
pub mod metrics;
pub mod observer;
pub mod report;
pub mod sinks;
pub mod timeline;
pub mod trace;
