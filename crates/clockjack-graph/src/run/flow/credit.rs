//! Credit-based flow control on edges between domains that refuse messages when they are full:
//! with `block`, `reject`, `drop_newest` or `fail_fast`.
//!
//! The scheme is that of Kung, Blackwell and Chapman ("Credit-based flow control for ATM networks",
//! 1994).
//!
//! A producer cannot inspect a channel of another domain. So the producer counts what it has sent,
//! and the reader's domain reports after each of its epochs how many of these messages have left
//! the channel. The difference is on its way or in the channel, and must not exceed the capacity of
//! the channel. On a blocking edge, a producer that finds no room asks to be woken; [`Credit`]
//! explains why no wake-up is lost. On the other edges its publications are refused until there is
//! room.

mod edge;

use self::edge::Credit;
use crate::compile::Plan;

/// The credits of a run, by edge of its plan.
#[derive(Default)]
pub(crate) struct Credits(Vec<Option<Credit>>);

impl Credits {
    /// `domain_of`: the domain of each lane.
    pub(crate) fn new(plan: &Plan, domain_of: &[usize]) -> Self {
        let domain = |component: usize| Some(domain_of[plan.components.get(component)?.lane]);
        let credits = plan.edges.iter().map(|edge| {
            let (from, to) = (domain(edge.from.0)?, domain(edge.to.0)?);
            let is_held = from != to && !edge.policy.overflow.evicts();
            is_held.then(|| Credit::new(edge.policy.n_places()))
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

    /// Whether `wanted` more messages may be sent. If not, the producer is woken when that may have
    /// changed.
    pub(crate) fn await_room(&self, edge: u32, wanted: u32) -> bool {
        self.of(edge).is_none_or(|credit| credit.await_room(wanted))
    }

    /// A message was sent.
    pub(crate) fn send(&self, edge: u32) {
        self.of(edge).into_iter().for_each(Credit::send);
    }

    /// A message was put into the channel.
    pub(crate) fn receive(&self, edge: u32) {
        self.of(edge).into_iter().for_each(Credit::receive);
    }

    /// Reports how many messages take up room in the channel; returns whether the producer must be
    /// woken.
    pub(crate) fn report_depth(&self, edge: u32, n_inside: u32) -> bool {
        self.of(edge).is_some_and(|credit| credit.report_depth(n_inside))
    }

    /// The reader has ended; returns whether the producer must be woken.
    pub(crate) fn close(&self, edge: u32) -> bool {
        self.of(edge).is_some_and(Credit::close)
    }
}
