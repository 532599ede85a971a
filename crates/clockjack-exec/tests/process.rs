//! What is promised to processes and to those who start them, in virtual time.
#![cfg(not(loom))]

extern crate alloc;

#[path = "process/bench.rs"]
mod bench;
#[path = "process/commands.rs"]
mod commands;
#[path = "process/custom_task.rs"]
mod custom_task;
#[path = "process/events.rs"]
mod events;
#[path = "process/faults.rs"]
mod faults;
#[path = "process/futures.rs"]
mod futures;
#[path = "process/hosts.rs"]
mod hosts;
#[path = "process/links.rs"]
mod links;
#[path = "process/local.rs"]
mod local;
#[path = "process/memory.rs"]
mod memory;
