//! `#[actor]` on blocks that it takes; what it refuses is in `ui`.

extern crate alloc;

#[path = "actor/generics.rs"]
mod generics;
#[path = "actor/hygiene.rs"]
mod hygiene;
#[path = "actor/messages.rs"]
mod messages;
#[path = "stub/actor.rs"]
mod stub;
