//! The examples run to their end, and what they assert holds.
#![cfg(not(loom))]

#[path = "../examples/actors_dispatchers.rs"]
mod actors_dispatchers;
#[path = "../examples/pool_timers.rs"]
mod pool_timers;
#[path = "../examples/process.rs"]
mod process;
#[path = "../examples/scheduler.rs"]
mod scheduler;
#[path = "../examples/supervise.rs"]
mod supervise;

#[test]
fn the_example_of_dispatchers_runs() {
    actors_dispatchers::main().unwrap();
}

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
    pool_timers::main().unwrap();
}
