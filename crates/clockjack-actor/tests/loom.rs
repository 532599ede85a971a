//! Races of this crate, explored by loom.
//!
//! How these models are written: writers start before readers and the main thread joins them before
//! it looks itself, because loom finds the steps to reorder from the last access to each object.
#![cfg(loom)]

extern crate alloc;

use clockjack_actor::router;

#[path = "loom/alarm.rs"]
mod alarm;
#[path = "loom/ask.rs"]
mod ask;
#[path = "support/clockwork.rs"]
mod clockwork;
#[path = "loom/counting_slot.rs"]
mod counting_slot_models;
#[path = "loom/listed_filter.rs"]
mod listed_models;
#[path = "loom/pair.rs"]
mod pair;
#[path = "loom/ready.rs"]
mod ready_models;
#[path = "loom/refusals.rs"]
mod refusal_models;
#[path = "loom/reusable_node.rs"]
mod reusable_node_models;
#[path = "loom/saturated_count.rs"]
mod saturated_count_models;
#[path = "loom/send.rs"]
mod send;

/// The part under test, which knows nothing of actors.
#[path = "../src/cell/counting_slot.rs"]
mod counting_slot;
/// The part under test, which knows nothing of actors.
#[path = "../src/system/listed_filter.rs"]
mod listed_filter;
/// The part under test, which knows nothing of actors.
#[expect(dead_code, reason = "the models use what the races are about")]
#[path = "../src/system/refusals/window.rs"]
mod refusal_window;
/// The part under test, which knows nothing of actors.
#[path = "../src/mailbox/reusable_node.rs"]
mod reusable_node;
/// The part under test, which knows nothing of actors.
#[path = "../src/system/saturated_count.rs"]
mod saturated_count;
/// The part under test, which knows nothing of actors.
#[expect(dead_code, reason = "the models use what the races are about")]
#[path = "../src/api/futures/wake.rs"]
mod wake;
