//! What actors do by the clock, in virtual time.

extern crate alloc;

#[path = "support/bench.rs"]
mod bench;
#[path = "timers/fairness.rs"]
mod fairness;
#[path = "timers/in_order.rs"]
mod in_order;
#[path = "timers/keyed.rs"]
mod keyed;
#[path = "timers/pressure.rs"]
mod pressure;
#[path = "timers/receive_timeout.rs"]
mod receive_timeout;
#[path = "timers/reserve.rs"]
mod reserve;
#[path = "timers/scheduler.rs"]
mod scheduler;
#[path = "timers/scripted_actor.rs"]
mod scripted_actor;
#[path = "timers/silence.rs"]
mod silence;
#[path = "timers/waits.rs"]
mod waits;
