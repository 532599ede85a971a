//! The whole engine with its workers, handles, timers and commands, in schedules drawn at random:
//! run with `cargo xtask shuttle`.
#![cfg(shuttle)]

extern crate alloc;

#[path = "shuttle/leave.rs"]
mod leave;
#[path = "shuttle/process.rs"]
mod process;
#[path = "shuttle/stage.rs"]
mod stage;
#[path = "shuttle/task.rs"]
mod task;
#[path = "shuttle/ties.rs"]
mod ties;
#[path = "shuttle/timer.rs"]
mod timer;
