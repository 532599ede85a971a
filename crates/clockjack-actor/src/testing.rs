//! What a kit for tests sees of a system and of an actor, beyond what users may.

mod effect;
mod puppet;

use alloc::vec::Vec;

use clockjack_exec::state::State as Running;

pub use self::{
    effect::{Effect, TimerMode},
    puppet::{Puppet, TimerHandle},
};
use crate::{ActorPath, ActorSystem, base::AnyActor, spawn};

/// An actor, as a look at the whole tree finds it.
#[derive(Clone, Debug)]
pub struct Seen {
    /// Where it stands.
    pub path: ActorPath,
    /// It has something to do.
    pub is_ready: bool,
}

/// All actors, each before those below it.
#[must_use]
pub fn census(system: &ActorSystem) -> Vec<Seen> {
    let user = system.inner().user();
    let root = user.as_ref().and_then(|user| user.parent.as_ref());
    let all = root.map_or_else(Vec::new, spawn::below);
    let seen =
        |one: &AnyActor| Seen { path: one.path.clone(), is_ready: one.state() == Running::Ready };
    all.iter().map(seen).collect()
}
