//! What users of Pekko's scheduler rely on, a test for each line; in virtual time. The lines are in
//! `pekko_scheduler/README.md`.
#![cfg(not(loom))]

extern crate alloc;

#[path = "pekko_scheduler/explicit.rs"]
mod explicit;
#[path = "pekko_scheduler/once.rs"]
mod once;
#[path = "pekko_scheduler/periodic.rs"]
mod periodic;
#[path = "pekko_scheduler/rates.rs"]
mod rates;
#[path = "pekko_scheduler/semantics.rs"]
mod semantics;
#[path = "pekko_scheduler/support.rs"]
mod support;
