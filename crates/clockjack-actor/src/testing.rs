//! Access to a system and its actors for test kits, beyond the public API.

mod effect;
mod test_actor;

use alloc::vec::Vec;

use clockjack_exec::state::State as RunState;

pub use self::{
    effect::{Effect, TimerMode},
    test_actor::{TestActor, TimerHandle},
};
use crate::{
    ActorPath, ActorSystem,
    cell::{header::AnyActor, spawn},
};

/// The state of one actor in [`all_actors`].
#[derive(Clone, Debug)]
pub struct ActorSnapshot {
    /// The path of the actor.
    pub path: ActorPath,
    /// Whether the actor is ready to run.
    pub is_ready: bool,
}

/// All actors, each before its descendants.
#[must_use]
pub fn all_actors(system: &ActorSystem) -> Vec<ActorSnapshot> {
    let user = system.inner().user();
    let root = user.as_ref().and_then(|user| user.parent.as_ref());
    let all = root.map_or_else(Vec::new, spawn::descendants);
    let snapshot = |one: &AnyActor| ActorSnapshot {
        path: one.path.clone(),
        is_ready: one.state() == RunState::Ready,
    };
    all.iter().map(snapshot).collect()
}
