//! The whole executor with its workers, handles, timers and commands, in schedules drawn at random:
//! run with `cargo xtask shuttle`.
#![cfg(shuttle)]

extern crate alloc;

#[path = "shuttle/leave.rs"]
mod leave;
#[path = "shuttle/links.rs"]
mod links;
#[path = "shuttle/process.rs"]
mod process;
#[path = "shuttle/realtime.rs"]
mod realtime;
#[path = "shuttle/task.rs"]
mod task;
#[path = "shuttle/timer.rs"]
mod timer;
#[path = "shuttle/toolbox.rs"]
mod toolbox;
