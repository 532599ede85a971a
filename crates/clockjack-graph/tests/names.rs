//! Every name that a run has for what it does: trace events and metrics, each in its table, each
//! seen in a run, and what is written for trace viewers.

extern crate alloc;

#[path = "names/decoded.rs"]
mod decoded;
#[path = "names/doer.rs"]
mod doer;
#[path = "names/metrics.rs"]
mod metrics;
#[path = "../../clockjack-observe/tests/support/perfetto.rs"]
mod perfetto_trace;
#[path = "names/scenes.rs"]
mod scenes;
#[path = "names/trace.rs"]
mod trace;
