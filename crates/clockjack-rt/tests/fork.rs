//! Forked children, in a binary of its own: a fork meets no threads but those of these tests.
#![cfg(not(loom))]

#[path = "fork/linux.rs"]
mod linux;
