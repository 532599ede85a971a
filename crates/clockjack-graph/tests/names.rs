//! Every trace event and metric name of a run: each is in its table and occurs in a run. Also
//! checks what is written for trace viewers.

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
