//! The examples run to their end, and what they assert holds.
#![cfg(not(loom))]

#[path = "../examples/process.rs"]
mod process;
#[path = "../examples/scheduler.rs"]
mod scheduler;
#[path = "../examples/supervise.rs"]
mod supervise;
#[path = "../examples/timers.rs"]
mod timers;

#[test]
fn the_example_of_processes_runs() {
    process::main().unwrap();
}

#[test]
fn the_example_of_jobs_runs() {
    scheduler::main().unwrap();
}

#[test]
fn the_example_of_links_and_monitors_runs() {
    supervise::main().unwrap();
}

#[test]
fn the_example_of_timers_runs() {
    timers::main().unwrap();
}
