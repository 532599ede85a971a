//! Whether a domain has work for its next epoch, what must wait, and when something becomes ready
//! by time alone.

use super::Domain;
use crate::{
    describe::EdgeOverflow,
    run::{
        engine::{
            epoch::RegionCell,
            region::{Deferred, earlier},
        },
        flow::inbox::Incoming,
        setup::wiring::{SpecialEdges, count},
    },
};

impl Domain {
    /// The next tick of a timer, and the next time at which something else may become ready.
    pub(super) fn due(&self) -> (Option<u64>, Option<u64>) {
        let (mut tick, mut other) = (None, None);
        let now_ns = self.state.env.now_ns;
        for position in &self.special_edges.timed {
            let region = &self.state.regions[*position as usize];
            let guard = region.lock();
            let (a, b) = guard.next_due(now_ns);
            tick = earlier(tick, a);
            other = earlier(other, b);
            let n_blocked = guard.nodes.iter().filter(|node| node.is_blocked).count();
            drop(guard);
            if n_blocked > 0 && self.has_room_again(region) {
                tick = Some(now_ns);
            }
        }
        // An event at the end of time never happens.
        let comes = |at: &u64| *at < u64::MAX;
        (tick.filter(comes), other.filter(comes))
    }

    /// Whether a component that waited for room can run now, because a reader has emptied its
    /// edges.
    fn has_room_again(&self, region: &RegionCell) -> bool {
        let n_nodes = region.lock().nodes.len();
        (0..n_nodes).any(|at| {
            let n_routes = {
                let region = region.lock();
                let node = &region.nodes[at];
                if node.is_blocked && !region.is_paced { node.routes.len() } else { return false }
            };
            (0..n_routes).all(|index| self.has_room_on(region, at, index))
        })
    }

    /// Whether an edge does not block its producer. Takes one lock at a time: an edge may lead back
    /// to its own region.
    fn has_room_on(&self, region: &RegionCell, at: usize, index: usize) -> bool {
        let (edge, n_on_the_way, burst) = {
            let region = region.lock();
            let node = &region.nodes[at];
            let edge = &node.outbox.edges()[index];
            if edge.overflow != EdgeOverflow::Block {
                return true;
            }
            let is_it = |one: &&Deferred| one.message.meta.edge == edge.edge;
            let n_on_the_way = region.deferred.iter().filter(is_it).count();
            let max = node.routes[index].max_inflight;
            if max > 0 && max < node.burst {
                return false;
            }
            (edge.edge, count(n_on_the_way), node.burst)
        };
        let place = self.channel_locations[edge as usize];
        if place.domain as usize != self.index {
            return self.shared.credits.await_room(edge, n_on_the_way.saturating_add(burst));
        }
        let to = self.state.regions[place.region as usize].lock();
        to.channels[place.channel as usize].room().saturating_sub(n_on_the_way) >= burst
    }

    /// Whether something waits for the next epoch, or a task will bring something.
    pub(super) fn has_more(&self) -> bool {
        self.state.env.tasks.n_open() > self.n_tasks_waiting() || self.has_work()
    }

    /// Tasks that have ended and wait for room, or for earlier tasks.
    pub(super) fn n_tasks_waiting(&self) -> usize {
        self.progress.incoming.iter().filter(|one| one.is_task()).count()
    }

    /// Whether something waits for the next epoch: deferred publications, incoming messages, a loop
    /// that continues. A running task does not count: it wakes the coordinator when it ends.
    pub(super) fn has_work(&self) -> bool {
        self.inboxes[self.index].has_any()
            || self.has_taken_work()
            || self
                .special_edges
                .deferring
                .iter()
                .any(|position| !self.state.regions[*position as usize].lock().deferred.is_empty())
    }

    /// Whether the next epoch sees something that was taken in before.
    fn has_taken_work(&self) -> bool {
        let SpecialEdges { triggering, one_per_epoch, .. } = &self.special_edges;
        let region = |position: &u32| self.state.regions[*position as usize].lock();
        triggering.iter().any(|(at, channel)| region(at).channels[*channel as usize].has_later())
            || one_per_epoch.iter().any(|at| region(at).is_under_way())
            || self.progress.incoming.iter().any(|item| !self.must_wait(item))
    }

    /// Whether an incoming item has to wait. Either a blocking edge has no room for it: there will
    /// be no room before the regions have run, so no later item overtakes it. Or it is the result
    /// of a task whose component wants results in the order of submission, and an earlier task
    /// still runs: the end of that task wakes the coordinator.
    pub(super) fn must_wait(&self, item: &Incoming) -> bool {
        match item {
            Incoming::Fed { edge, .. } => self.is_full(*edge),
            Incoming::FedOut { component, port, .. } => self.has_full_edge(*component, *port),
            Incoming::TaskEnded { number, origin, result } => {
                let gives = matches!(result, Some(Ok(Some(_))));
                self.progress.running.must_wait(*number, *origin)
                    || gives && self.has_full_edge(origin.component, origin.port)
            }
            Incoming::FromDomain { .. } | Incoming::RoomAvailable | Incoming::Config(_) => false,
        }
    }

    fn has_full_edge(&self, component: usize, port: usize) -> bool {
        let edges = &self.shared.plan.components[component].outputs[port].edges;
        edges.iter().any(|edge| self.is_full(count(*edge)))
    }

    /// Whether an edge blocks and has no room.
    fn is_full(&self, edge: u32) -> bool {
        let place = self.channel_locations[edge as usize];
        let overflow = self.shared.plan.edges[edge as usize].policy.overflow;
        if overflow != EdgeOverflow::Block {
            return false;
        }
        if place.domain as usize != self.index {
            return !self.shared.credits.await_room(edge, 1);
        }
        let to = self.state.regions[place.region as usize].lock();
        to.channels[place.channel as usize].room() == 0
    }
}
