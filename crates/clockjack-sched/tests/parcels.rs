//! Runs that are sent as parcels: decided when they are opened, complete when they are dropped.
#![cfg(not(loom))]

extern crate alloc;

#[path = "parcels/close.rs"]
mod close;
#[path = "support/host.rs"]
mod host;
#[path = "parcels/once.rs"]
mod once;
#[path = "parcels/periodic.rs"]
mod periodic;
#[path = "parcels/stress.rs"]
mod stress;
#[path = "parcels/support.rs"]
mod support;
