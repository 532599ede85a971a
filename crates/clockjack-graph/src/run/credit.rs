//! Room on blocking edges that lead from one domain to another.
//!
//! A producer cannot look into a channel of another domain. So it counts what it has sent, and the
//! reader's domain says after each of its epochs how much of that is not in the channel any more:
//! the difference, which is on its way or waits there, is what the channel's capacity is for. A
//! producer that finds no room leaves a wish to be called; how neither misses the other is told
//! beside [`Credit`].

mod edge;

use self::edge::Credit;
use crate::{compile::Plan, describe::Overflow};

/// Those of a run, by edge of its plan.
#[derive(Default)]
pub(crate) struct Credits(Vec<Option<Credit>>);

impl Credits {
    /// `domain_of`: the domain of each lane.
    pub(crate) fn new(plan: &Plan, domain_of: &[usize]) -> Self {
        let domain = |component: usize| Some(domain_of[plan.components.get(component)?.lane]);
        let credits = plan.edges.iter().map(|edge| {
            let (from, to) = (domain(edge.from.0)?, domain(edge.to.0)?);
            let is_held = from != to && edge.policy.overflow == Overflow::Block;
            is_held.then(|| Credit::new(edge.policy.capacity))
        });
        Self(credits.collect())
    }

    fn of(&self, edge: u32) -> Option<&Credit> {
        self.0.get(edge as usize)?.as_ref()
    }

    /// How many more may be sent; any number on edges that have no credit.
    pub(crate) fn room(&self, edge: u32) -> u32 {
        self.of(edge).map_or(u32::MAX, Credit::room)
    }

    /// Whether so many more may be sent. If not, the producer is called when it may be otherwise.
    pub(crate) fn await_room(&self, edge: u32, wanted: u32) -> bool {
        self.of(edge).is_none_or(|credit| credit.await_room(wanted))
    }

    /// A message is on its way.
    pub(crate) fn send(&self, edge: u32) {
        self.of(edge).into_iter().for_each(Credit::send);
    }

    /// A message has come.
    pub(crate) fn receive(&self, edge: u32) {
        self.of(edge).into_iter().for_each(Credit::receive);
    }

    /// So many are in the channel; whether a producer is to be called for it.
    pub(crate) fn report_depth(&self, edge: u32, n_inside: u32) -> bool {
        self.of(edge).is_some_and(|credit| credit.report_depth(n_inside))
    }

    /// Nobody reads any more; whether a producer is to be called for it.
    pub(crate) fn close(&self, edge: u32) -> bool {
        self.of(edge).is_some_and(Credit::close)
    }
}
