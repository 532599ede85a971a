//! `#[actor]` on valid blocks; `ui` has the blocks that it refuses.

extern crate alloc;

#[path = "actor/generics.rs"]
mod generics;
#[path = "actor/hygiene.rs"]
mod hygiene;
#[path = "actor/messages.rs"]
mod messages;
#[path = "stub/actor.rs"]
mod stub;
