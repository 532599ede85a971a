//! How messages reach an actor: waiting for room, the system queue, control messages, dead letters.

pub(crate) mod control;
pub(crate) mod dead_letters;
pub(crate) mod reusable_node;
pub mod send;
pub(crate) mod system_queue;
