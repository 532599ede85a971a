//! The hardware mode: an interrupt posts, a loop drains; and what watches over the interrupt.
//!
//! Interrupts are simulated: by calls at chosen places on one thread, and by a second thread.
#![cfg(not(loom))]

extern crate alloc;

#[path = "support/counting_task.rs"]
mod counting_task;
#[path = "hardware/runner_loop.rs"]
mod runner_loop;
#[path = "hardware/support.rs"]
mod support;
#[path = "hardware/threads.rs"]
mod threads;
#[path = "hardware/watch.rs"]
mod watch;
