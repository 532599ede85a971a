//! The worlds that Clockjack itself is simulated in.

mod actors;
mod asks;
mod graphs;
mod jobs;
mod workers;

pub use self::{actors::Actors, asks::Asks, graphs::Graphs, jobs::Jobs, workers::Workers};
use crate::run::World;

/// All of them.
pub const ALL: &[&dyn World] = &[&Actors, &Jobs, &Workers, &Graphs, &Asks];

/// The world of this name.
#[must_use]
pub fn named(name: &str) -> Option<&'static dyn World> {
    ALL.iter().copied().find(|world| world.about().name == name)
}
