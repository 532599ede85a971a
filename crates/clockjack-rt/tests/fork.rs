//! Forked children, in a binary of its own: a fork meets no threads but those of these tests.
#![cfg(not(loom))]

#[path = "support/in_time.rs"]
mod in_time;
#[path = "fork/linux.rs"]
mod linux;
