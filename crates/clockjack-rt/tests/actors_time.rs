//! What actors do by the clock, on a pool of workers and a real clock.

#[path = "actors/fairness.rs"]
mod fairness;
#[path = "support/in_time.rs"]
mod in_time;
#[path = "actors/stuck.rs"]
mod stuck;
