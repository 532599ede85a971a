//! The stand-in for programs that do not compile: a program uses its actor, so that an error which
//! follows from another one is seen.

#[path = "actor.rs"]
mod actor;

pub use actor::*;

/// Spawns an actor on any thread.
pub fn spawn<A: Actor>(_factory: impl FnMut() -> A) -> ActorRef<A::Msg>
where
    A::Msg: Send,
{
    unreachable!("the program does not compile")
}
