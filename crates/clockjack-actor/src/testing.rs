//! What a kit for tests sees of a system and of an actor, beyond what users may.

mod effect;
mod test_actor;

use alloc::vec::Vec;

use clockjack_exec::state::State as RunState;

pub use self::{
    effect::{Effect, TimerMode},
    test_actor::{TestActor, TimerHandle},
};
use crate::{ActorPath, ActorSystem, header::AnyActor, spawn};

/// An actor, as a look at the whole tree finds it.
#[derive(Clone, Debug)]
pub struct ActorSnapshot {
    /// Where it stands.
    pub path: ActorPath,
    /// It has something to do.
    pub is_ready: bool,
}

/// All actors, each before those below it.
#[must_use]
pub fn all_actors(system: &ActorSystem) -> Vec<ActorSnapshot> {
    let user = system.inner().user();
    let root = user.as_ref().and_then(|user| user.parent.as_ref());
    let all = root.map_or_else(Vec::new, spawn::descendants);
    let snapshot =
        |one: &AnyActor| ActorSnapshot { path: one.path.clone(), is_ready: one.state() == RunState::Ready };
    all.iter().map(snapshot).collect()
}
