//! Random schedules, cancels, stalls and advances: against a simple model, and against the
//! properties that users' own fuzzers check.
#![cfg(not(loom))]

extern crate alloc;

#[path = "properties/against_model.rs"]
mod against_model;
#[path = "properties/harness.rs"]
mod harness;
#[path = "properties/model.rs"]
mod model;
#[path = "properties/oracle.rs"]
mod oracle;
#[path = "properties/subject.rs"]
mod subject;
