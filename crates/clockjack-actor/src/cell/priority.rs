//! Mailboxes in which messages of a higher priority are handled first.
//!
//! What has come is moved into a heap of the runner's own before each message, and keeps its room
//! in the mailbox until it is handled: so the bound counts all that wait.
#![expect(unsafe_code, reason = "the runner is the one consumer of the mailbox")]

use alloc::collections::BinaryHeap;
use core::cmp::{Ordering, Reverse};

use clockjack_sync::{
    mail::{Pop, Popped},
    mutant,
};

use super::{Cell, State, TurnOf, see_empty};
use crate::{Actor, envelope::Envelope};

/// Messages that wait by their priority; equal ones in the order in which they came.
pub(crate) struct Ranks<M> {
    heap: BinaryHeap<Ranked<M>>,
    next: u64,
}

struct Ranked<M> {
    rank: (u8, Reverse<u64>),
    envelope: Envelope<M>,
}

impl<M> Default for Ranks<M> {
    fn default() -> Self {
        Self { heap: BinaryHeap::new(), next: 0 }
    }
}

impl<M> Ranks<M> {
    fn push(&mut self, priority: u8, envelope: Envelope<M>) {
        self.heap.push(Ranked { rank: (priority, Reverse(self.next)), envelope });
        self.next += u64::from(!mutant!("actor-ranks-unordered"));
    }

    /// The next one, whatever becomes of it.
    pub(crate) fn pop(&mut self) -> Option<Envelope<M>> {
        self.heap.pop().map(|ranked| ranked.envelope)
    }
}

impl<M> PartialEq for Ranked<M> {
    fn eq(&self, other: &Self) -> bool {
        self.rank == other.rank
    }
}

impl<M> Eq for Ranked<M> {}

impl<M> PartialOrd for Ranked<M> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<M> Ord for Ranked<M> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.rank.cmp(&other.rank)
    }
}

impl<A: Actor> State<A> {
    /// How messages are ranked, if they are.
    pub(super) fn priority(&self) -> Option<fn(&A::Msg) -> u8> {
        self.settings.as_ref().and_then(|settings| settings.priority)
    }
}

impl<A: Actor, F: FnMut() -> A + 'static> Cell<A, F> {
    /// The message of the highest priority.
    #[cold]
    pub(super) fn next_by_rank(
        &mut self,
        turn: &TurnOf<'_, A::Msg>,
        priority: fn(&A::Msg) -> u8,
    ) -> Popped<Envelope<A::Msg>> {
        let front = turn.front();
        let ranks = &mut self.state.extra().ranks;
        // SAFETY: called in a turn only, and a cell has one runner at a time. The mailbox does not
        // evict: that is refused with priorities.
        while let Pop::Item(envelope) = unsafe { front.mail.pop_held() } {
            let mut rank = 0;
            // The function is the user's; one that panics ranks a message lowest.
            if let Err(caught) = turn.guarded(&mut || rank = priority(&envelope.msg)) {
                turn.discard(caught);
            }
            ranks.push(rank, envelope);
        }
        match ranks.pop() {
            Some(envelope) => {
                // SAFETY: as above; the room of each ranked message is held.
                unsafe { front.mail.free(1) };
                Popped::Item(envelope)
            }
            None => see_empty(front).map_or(Popped::Busy, Popped::Empty),
        }
    }
}
