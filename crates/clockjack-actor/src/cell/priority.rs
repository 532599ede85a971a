//! Mailboxes in which messages of a higher priority are handled first.
//!
//! Binary heaps are from Williams ("Algorithm 232: heapsort", 1964).
//!
//! Before each message the runner moves all messages from the mailbox into a binary heap of its
//! own. A message in the heap still occupies its room in the mailbox until it is handled, so the
//! bound of the mailbox counts all waiting messages. Messages that arrive while a restart is
//! pending go into the same heap, but do not occupy room in the mailbox.
#![expect(unsafe_code, reason = "the runner is the one consumer of the mailbox")]

use alloc::collections::BinaryHeap;
use core::cmp::{Ordering, Reverse};

use clockjack_sync::mail::{Pop, Popped};

use super::{Cell, CellState, PollOf, empty_token};
use crate::{Actor, cell::envelope::Envelope};

/// Messages ordered by priority; messages of equal priority in the order of their arrival.
pub(crate) struct PriorityQueue<M> {
    heap: BinaryHeap<Prioritized<M>>,
    next: u64,
    n_kept: usize,
}

struct Prioritized<M> {
    rank: (u8, Reverse<u64>),
    /// It was kept through a restart, and occupies no room in the mailbox.
    is_kept: bool,
    envelope: Envelope<M>,
}

impl<M> Default for PriorityQueue<M> {
    fn default() -> Self {
        Self { heap: BinaryHeap::new(), next: 0, n_kept: 0 }
    }
}

impl<M> PriorityQueue<M> {
    fn push(&mut self, priority: u8, is_kept: bool, envelope: Envelope<M>) {
        self.heap.push(Prioritized { rank: (priority, Reverse(self.next)), is_kept, envelope });
        self.next += 1;
    }

    /// Inserts a message that is kept through a restart.
    pub(super) fn push_kept(&mut self, priority: u8, envelope: Envelope<M>) {
        self.push(priority, true, envelope);
        self.n_kept += 1;
    }

    pub(super) fn is_empty(&self) -> bool {
        self.heap.is_empty()
    }

    /// How many messages were kept through a restart and are not handled yet.
    pub(super) fn n_kept(&self) -> usize {
        self.n_kept
    }

    fn pop_prioritized(&mut self) -> Option<Prioritized<M>> {
        let next = self.heap.pop()?;
        self.n_kept -= usize::from(next.is_kept);
        Some(next)
    }

    /// Takes the message of the highest priority.
    pub(crate) fn pop(&mut self) -> Option<Envelope<M>> {
        self.pop_prioritized().map(|next| next.envelope)
    }
}

impl<M> PartialEq for Prioritized<M> {
    fn eq(&self, other: &Self) -> bool {
        self.rank == other.rank
    }
}

impl<M> Eq for Prioritized<M> {}

impl<M> PartialOrd for Prioritized<M> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<M> Ord for Prioritized<M> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.rank.cmp(&other.rank)
    }
}

impl<A: Actor> CellState<A> {
    /// The function that computes priorities, if there is one.
    pub(super) fn priority(&self) -> Option<fn(&A::Msg) -> u8> {
        self.settings.as_ref().and_then(|settings| settings.priority)
    }
}

impl<A: Actor, F: FnMut() -> A + 'static> Cell<A, F> {
    /// The message of the highest priority.
    #[cold]
    pub(super) fn next_by_priority(
        &mut self,
        poll: &PollOf<'_, A::Msg>,
        priority: fn(&A::Msg) -> u8,
    ) -> Popped<Envelope<A::Msg>> {
        let shared = poll.shared();
        let by_priority = &mut self.state.rare().by_priority;
        // SAFETY: called by the runner within a poll only, and a cell has one runner at a time. The
        // mailbox does not evict: eviction is refused together with priorities.
        while let Pop::Item(envelope) = unsafe { shared.mail.pop_held() } {
            by_priority.push(priority_of(poll, priority, &envelope), false, envelope);
        }
        match by_priority.pop_prioritized() {
            Some(Prioritized { is_kept, envelope, .. }) => {
                if !is_kept {
                    // SAFETY: as above; each message that was not kept through a restart holds its
                    // room.
                    unsafe { shared.mail.free(1) };
                }
                Popped::Item(envelope)
            }
            None => empty_token(shared).map_or(Popped::Retry, Popped::Empty),
        }
    }
}

/// The priority of a message. The function is user code; if it panics, the priority is the lowest.
pub(super) fn priority_of<M: 'static>(
    poll: &PollOf<'_, M>,
    priority: fn(&M) -> u8,
    envelope: &Envelope<M>,
) -> u8 {
    let mut rank = 0;
    if let Err(caught) = poll.catch_unwind(&mut || rank = priority(&envelope.msg)) {
        poll.drop_panic_payload(caught);
    }
    rank
}
