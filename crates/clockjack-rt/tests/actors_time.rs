//! What actors do by the clock, on a pool of workers and a real clock.

extern crate alloc;

#[path = "actors/fairness.rs"]
mod fairness;
#[path = "support/in_time.rs"]
mod in_time;
#[path = "actors/stuck.rs"]
mod stuck;
#[path = "../../clockjack-actor/tests/support/timer_order.rs"]
mod timer_order;
#[path = "actors/timer_order.rs"]
mod timer_order_on_threads;
