//! The workloads of Clockjack itself.

mod actors;
mod asks;
mod cluster;
mod graphs;
mod jobs;
mod workers;

pub use self::{
    actors::Actors, asks::Asks, cluster::Cluster, graphs::Graphs, jobs::Jobs, workers::Workers,
};
use crate::run::Workload;

/// All workloads.
pub const ALL: &[&dyn Workload] = &[&Actors, &Jobs, &Workers, &Graphs, &Asks, &Cluster];

/// The workload of this name.
#[must_use]
pub fn named(name: &str) -> Option<&'static dyn Workload> {
    ALL.iter().copied().find(|workload| workload.description().name == name)
}
