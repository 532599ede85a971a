//! The views as data, without a server.
//!
//! Each function reads words that exist anyway. It stops nobody, and no actor is asked for
//! anything. What needs two inspections, such as a rate, is known as long as a
//! [`Watcher`](crate::Watcher) lives and is driven; without one it is unknown.

mod actors;
mod graphs;
mod machine;
mod messages;

use crate::{
    Target,
    query::{ActorQuery, EventsQuery, Query, TreeQuery},
    view::{
        ActorDetail, ActorRow, AskRow, DeadLetters, Events, Finding, GraphView, Graphs, JobRow,
        Overview, Page, TimersView, TreeRow, Workers,
    },
};

/// The system at a glance.
#[must_use]
pub fn overview(target: &Target) -> Overview {
    machine::overview(target)
}

/// A page of actors: the best 256 of the last complete walk over all actors. Without a watcher, of
/// a walk that this call makes, which ends after 20,000 actors.
#[must_use]
pub fn actors(target: &Target, query: &Query) -> Page<ActorRow> {
    actors::actors(target, query)
}

/// A page of the children of an actor, the oldest first; `None` if there is no such actor.
#[must_use]
pub fn tree(target: &Target, query: &TreeQuery) -> Option<Page<TreeRow>> {
    actors::tree(target, query)
}

/// One actor, which may have ended a while ago; `None` if there is no such actor.
#[must_use]
pub fn actor(target: &Target, query: &ActorQuery) -> Option<ActorDetail> {
    actors::actor(target, query)
}

/// The workers of all pools.
#[must_use]
pub fn workers(target: &Target) -> Workers {
    machine::workers(target)
}

/// The timers of all pools.
#[must_use]
pub fn timers(target: &Target) -> TimersView {
    machine::timers(target)
}

/// A page of jobs: periodic ones first, then by due time. The order of the query does not matter.
#[must_use]
pub fn jobs(target: &Target, query: &Query) -> Page<JobRow> {
    machine::jobs(target, query)
}

/// A page of asks in which an actor waits for the answer of another one.
#[must_use]
pub fn asks(target: &Target, query: &Query) -> Page<AskRow> {
    messages::asks(target, query)
}

/// Dead letters, in groups.
#[must_use]
pub fn deadletters(target: &Target) -> DeadLetters {
    messages::deadletters(target)
}

/// The graphs that the program shows.
#[must_use]
pub fn graphs(target: &Target) -> Graphs {
    graphs::graphs(target)
}

/// One graph; `None` if there is none of this name.
#[must_use]
pub fn graph(target: &Target, name: &str) -> Option<GraphView> {
    graphs::graph(target, name)
}

/// The drawing of a graph as SVG, the same as that of `clockjack render`; `None` if there is no
/// graph of this name.
#[must_use]
pub fn graph_svg(target: &Target, name: &str) -> Option<String> {
    target.graph_svg(name)
}

/// Events, the oldest first.
#[must_use]
pub fn events(target: &Target, query: &EventsQuery) -> Events {
    messages::events(target, query)
}

/// What is wrong, the worst first.
#[must_use]
pub fn findings(target: &Target) -> Vec<Finding> {
    target.state().findings.clone()
}

/// The page of a list.
fn page_of<T>(rows: Vec<T>, query: &Query) -> (Vec<T>, bool) {
    let n_rows = query.rows.clamp(1, crate::query::ROWS_MAX) as usize;
    let skip = (query.page as usize).saturating_mul(n_rows);
    let has_more = rows.len() > skip.saturating_add(n_rows);
    (rows.into_iter().skip(skip).take(n_rows).collect(), has_more)
}
