//! The whole program, with few operations: every suite, case and subject, both forms of output.
//!
//! One binary for all suites, because every further binary would be linked and optimised
//! separately.

#[path = "suites/actor_timers.rs"]
mod actor_timers;
#[path = "suites/actors.rs"]
mod actors;
#[path = "suites/executor.rs"]
mod executor;
#[path = "suites/graph.rs"]
mod graph;
#[path = "suites/jitter.rs"]
mod jitter;
#[path = "suites/program.rs"]
mod program;
#[path = "suites/scheduler.rs"]
mod scheduler;
#[path = "suites/timers.rs"]
mod timers;
