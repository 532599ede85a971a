//! Room on blocking edges that lead from one domain to another.
//!
//! A producer cannot look into a channel of another domain. So it counts what it has sent, and the
//! reader's domain says after each of its epochs how much of that is not in the channel any more:
//! the difference, which is on its way or waits there, is what the channel's capacity is for. A
//! producer that finds no room leaves a wish to be called, and looks once more: either it sees what
//! was taken meanwhile, or who takes sees the wish.

use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use clockjack_sync::mutant;

use crate::compile::Plan;
use crate::describe::Overflow;

/// Those of a run, by edge of its plan.
#[derive(Default)]
pub(crate) struct Credits(Vec<Option<Credit>>);

struct Credit {
    capacity: u32,
    /// Messages that the producer's domain has sent.
    sent: AtomicU64,
    /// Of these, what the reader's domain has put into the channel.
    received: AtomicU64,
    /// Of these, what is not there any more.
    taken: AtomicU64,
    /// A producer waits for room.
    is_awaited: AtomicBool,
}

impl Credits {
    /// `domain_of`: the domain of each lane.
    pub(crate) fn new(plan: &Plan, domain_of: &[usize]) -> Self {
        let domain = |component: usize| Some(domain_of[plan.components.get(component)?.lane]);
        let credits = plan.edges.iter().map(|edge| {
            let (from, to) = (domain(edge.from.0)?, domain(edge.to.0)?);
            (from != to && edge.policy.overflow == Overflow::Block).then(|| Credit {
                capacity: edge.policy.capacity,
                sent: AtomicU64::new(0),
                received: AtomicU64::new(0),
                taken: AtomicU64::new(0),
                is_awaited: AtomicBool::new(false),
            })
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
        let Some(credit) = self.of(edge) else { return true };
        if credit.room() >= wanted {
            return true;
        }
        // SeqCst, as in `took`: of two who write and then look, one sees what the other wrote.
        credit.is_awaited.store(true, Ordering::SeqCst);
        credit.room() >= wanted
    }

    /// A message is on its way.
    pub(crate) fn send(&self, edge: u32) {
        if let Some(credit) = self.of(edge) {
            // Relaxed: only the producer's domain looks at it.
            credit.sent.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// A message has come.
    pub(crate) fn receive(&self, edge: u32) {
        if let Some(credit) = self.of(edge) {
            // Relaxed: only the reader's domain looks at it.
            credit.received.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// So many are in the channel; whether a producer is to be called for it.
    pub(crate) fn took(&self, edge: u32, n_inside: u32) -> bool {
        let Some(credit) = self.of(edge) else { return false };
        // Relaxed: as in `receive`.
        let received = credit.received.load(Ordering::Relaxed);
        credit.taken.store(received.saturating_sub(n_inside.into()), Ordering::SeqCst);
        credit.is_awaited.swap(false, Ordering::SeqCst)
    }

    /// Nobody reads any more: who sends is not to wait for it.
    pub(crate) fn end(&self, edge: u32) {
        if let Some(credit) = self.of(edge) {
            credit.taken.store(u64::MAX, Ordering::SeqCst);
        }
    }
}

impl Credit {
    fn room(&self) -> u32 {
        // Relaxed: as in `send`. SeqCst: as in `await_room`.
        let sent = self.sent.load(Ordering::Relaxed);
        if mutant!("credit-without-end") {
            return u32::MAX;
        }
        let n_outside = sent.saturating_sub(self.taken.load(Ordering::SeqCst));
        self.capacity.saturating_sub(u32::try_from(n_outside).unwrap_or(u32::MAX))
    }
}
