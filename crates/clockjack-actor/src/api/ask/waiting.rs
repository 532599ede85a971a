//! The asker's side of an ask, and its edge in the [wait-for graph](super::graph).
//!
//! There is an edge while an actor waits for the answer and takes no messages in the meantime. A
//! search for cycles reads the slots of the edges on its path: an ask that has its answer is no
//! edge, even if the asker has not seen the answer yet.
//!
//! So an edge refers to its slot, which stays valid as long as the asker has not left. Hence the
//! one rule: *the edge leaves the graph before the asker leaves the slot*. [`PendingAsk`] owns
//! both, drops the edge first, and nobody else has the asker.
#![expect(unsafe_code, reason = "looks at the slots of others")]

use core::task::{Poll, Waker};

use clockjack_exec::TimerError;
use clockjack_time::Tick;

use super::{
    graph::{EdgeId, WaitForGraph},
    slot::{Asker, ReplyOutcome, ReplySlotObserver},
};
use crate::{
    ActorPath,
    cell::header::AnyActor,
    events::{AskCycle, SystemEvent},
    futures::waker::{Owner, owner_of},
};

/// The asks for which actors wait, by the addresses of asker and asked actor.
pub(crate) type Asks = WaitForGraph<AskTarget>;

/// The asked actor, and an observer of the answer.
#[derive(Clone)]
pub(crate) struct AskTarget {
    path: ActorPath,
    answer: ReplySlotObserver<AnyActor>,
}

impl AskTarget {
    /// The path of the asked actor.
    pub(crate) fn into_path(self) -> ActorPath {
        self.path
    }

    /// Whether there is no answer yet. For targets in the graph, under its lock.
    fn is_awaited(&self) -> bool {
        // SAFETY: the asker has not left: before that it removes this target from the graph, which
        // needs the lock that the caller holds.
        unsafe { self.answer.is_open() }
    }
}

/// A graph without asks.
pub(crate) fn no_asks() -> Asks {
    WaitForGraph::new(AskTarget::is_awaited)
}

/// An asker, and its edge if it has one.
pub(super) struct PendingAsk<R> {
    /// Declared before the asker: dropped first.
    edge: Option<Edge>,
    asker: Asker<R, AnyActor>,
}

/// An edge; its drop removes it from the graph.
struct Edge {
    from: usize,
    id: EdgeId,
    /// Leads to the system.
    target: AnyActor,
}

impl Drop for Edge {
    fn drop(&mut self) {
        drop(self.target.system().asks().remove(self.id));
    }
}

impl<R> PendingAsk<R> {
    pub(super) fn new(asker: Asker<R, AnyActor>) -> Self {
        Self { edge: None, asker }
    }

    /// The actor that is asked.
    pub(super) fn target(&self) -> &AnyActor {
        self.asker.owner()
    }

    /// As [`Asker::poll`].
    pub(super) fn poll(&self, waker: &Waker) -> bool {
        self.asker.poll(waker)
    }

    /// As [`Asker::poll_until`].
    pub(super) fn poll_until(&self, deadline: Tick) -> Poll<Result<(), TimerError>> {
        self.asker.poll_until(deadline)
    }

    /// As [`Asker::is_dropped`].
    pub(super) fn is_dropped(&self) -> bool {
        self.asker.is_dropped()
    }

    /// As [`Asker::take`].
    pub(super) fn take(self) -> ReplyOutcome<R> {
        let Self { edge, asker } = self;
        drop(edge);
        asker.take()
    }

    /// As [`Asker::cancel`].
    pub(super) fn cancel(self) -> Option<ReplyOutcome<R>> {
        let Self { edge, asker } = self;
        drop(edge);
        asker.cancel()
    }

    /// The owner of this waker has polled the ask, and there is no answer. Returns whether there
    /// can be one: not if an actor waits for itself and so will not handle the request.
    pub(super) fn register_edge(&mut self, waker: &Waker) -> bool {
        let owner = owner_of(waker)
            .filter(|owner| owner.is_exclusive)
            .map(|Owner { actor, .. }| address(actor));
        if self.edge.as_ref().map(|edge| edge.from) == owner {
            return true;
        }
        self.edge = None;
        let Some(from) = owner else { return true };
        let target = self.target().clone();
        let to = address(&target);
        if from == to {
            return false;
        }
        let system = target.system();
        if system.is_sealed() {
            return true;
        }
        let asked = AskTarget { path: target.path.clone(), answer: self.asker.observer() };
        let (id, cycle) = system.asks().add(from, to, asked);
        self.edge = Some(Edge { from, id, target: target.clone() });
        if let Some(cycle) = cycle {
            let paths = cycle.into_iter().map(|asked| asked.path).collect();
            system.events().publish(&SystemEvent::AskCycle(AskCycle { paths }));
        }
        true
    }
}

fn address(actor: &AnyActor) -> usize {
    actor.as_raw().as_ptr().addr()
}
