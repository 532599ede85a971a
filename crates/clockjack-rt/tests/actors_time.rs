//! What actors do by the clock, on a pool of workers and a real clock.

#[path = "actors/fairness.rs"]
mod fairness;
#[path = "actors/stuck.rs"]
mod stuck;
