//! Runs that are sent as deliveries: decided when they are opened, complete when they are dropped.
#![cfg(not(loom))]

extern crate alloc;

#[path = "deliveries/close.rs"]
mod close;
#[path = "support/host.rs"]
mod host;
#[path = "deliveries/once.rs"]
mod once;
#[path = "deliveries/periodic.rs"]
mod periodic;
#[path = "deliveries/stress.rs"]
mod stress;
#[path = "deliveries/support.rs"]
mod support;
