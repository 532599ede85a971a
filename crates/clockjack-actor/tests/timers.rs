//! What actors do by the clock, in virtual time.

extern crate alloc;

#[path = "support/bench.rs"]
mod bench;
#[path = "timers/fairness.rs"]
mod fairness;
#[path = "timers/keyed.rs"]
mod keyed;
#[path = "timers/receive_timeout.rs"]
mod receive_timeout;
#[path = "timers/scheduler.rs"]
mod scheduler;
#[path = "timers/scripted_actor.rs"]
mod scripted_actor;
#[path = "timers/waits.rs"]
mod waits;
