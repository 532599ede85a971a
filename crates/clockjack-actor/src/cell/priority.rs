//! Mailboxes in which messages of a higher priority are handled first.
//!
//! Binary heaps are from Williams ("Algorithm 232: heapsort", 1964).
//!
//! Before each message the runner moves all messages from the mailbox into a binary heap of its
//! own. A message in the heap still occupies its room in the mailbox until it is handled, so the
//! bound of the mailbox counts all waiting messages. Messages that arrive while a restart is
//! pending go into the same heap, but do not occupy room in the mailbox. Neither do timers that
//! have fired, which are moved when their [position](super::in_order) is reached, and have the
//! priority of their message.
#![expect(unsafe_code, reason = "the runner is the one consumer of the mailbox")]

use alloc::collections::BinaryHeap;
use core::cmp::{Ordering, Reverse};

use clockjack_sync::mail::Pop;

use super::{
    Cell, CellState, HAS_TIMERS, PollOf, any, drop_reported,
    in_order::{Checked, NextInOrder},
};
use crate::{Actor, cell::envelope::Envelope};

/// Messages ordered by priority; messages of equal priority in the order of their arrival.
pub(crate) struct PriorityQueue<M> {
    heap: BinaryHeap<Prioritized<M>>,
    next: u64,
    n_kept: usize,
}

struct Prioritized<M> {
    rank: (u8, Reverse<u64>),
    item: Item<M>,
}

pub(super) enum Item<M> {
    /// A message that occupies its room in the mailbox.
    Message(Envelope<M>),
    /// A message that was kept through a restart, and occupies no room in the mailbox.
    Kept(Envelope<M>),
    /// A timer that has fired, with the message of a periodic one.
    Timer { slot: u32, generation: u32, msg: Option<M> },
}

impl<M> Default for PriorityQueue<M> {
    fn default() -> Self {
        Self { heap: BinaryHeap::new(), next: 0, n_kept: 0 }
    }
}

impl<M> PriorityQueue<M> {
    fn push(&mut self, priority: u8, item: Item<M>) {
        self.heap.push(Prioritized { rank: (priority, Reverse(self.next)), item });
        self.next += 1;
    }

    /// Inserts a message that is kept through a restart.
    pub(super) fn push_kept(&mut self, priority: u8, envelope: Envelope<M>) {
        self.push(priority, Item::Kept(envelope));
        self.n_kept += 1;
    }

    pub(super) fn is_empty(&self) -> bool {
        self.heap.is_empty()
    }

    /// How many messages were kept through a restart and are not handled yet.
    pub(super) fn n_kept(&self) -> usize {
        self.n_kept
    }

    /// Takes what has the highest priority.
    pub(super) fn pop(&mut self) -> Option<Item<M>> {
        let item = self.heap.pop()?.item;
        self.n_kept -= usize::from(matches!(item, Item::Kept(_)));
        Some(item)
    }

    /// Removes the timer in this slot. Returns the message that was made of it, if it is periodic.
    #[must_use = "the drop of a message is user code"]
    pub(crate) fn remove_timer(&mut self, of: u32) -> Option<M> {
        let is_it =
            |one: &Prioritized<M>| matches!(one.item, Item::Timer { slot, .. } if slot == of);
        // Neither this conversion nor the one back allocates.
        let mut all = core::mem::take(&mut self.heap).into_vec();
        let removed = all.iter().position(is_it).map(|index| all.swap_remove(index).item);
        self.heap = all.into();
        match removed {
            Some(Item::Timer { msg, .. }) => msg,
            _ => None,
        }
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
    /// What has the highest priority.
    pub(super) fn next_by_priority(
        &mut self,
        poll: &PollOf<'_, A::Msg>,
        priority: fn(&A::Msg) -> u8,
    ) -> NextInOrder<A::Msg> {
        if self.collect_by_priority(poll, priority) == Collected::SystemQueue {
            return NextInOrder::Again;
        }
        loop {
            let rare = self.state.rare();
            match rare.by_priority.pop() {
                Some(Item::Message(envelope)) => {
                    // SAFETY: called by the runner within a poll only, and a cell has one runner at
                    // a time; such a message holds its room.
                    unsafe { poll.shared().mail.free(1) };
                    return NextInOrder::Message(envelope);
                }
                Some(Item::Kept(envelope)) => return NextInOrder::Message(envelope),
                Some(Item::Timer { slot, generation, msg }) => {
                    let timers = rare.timers.as_mut();
                    let fired = timers.and_then(|timers| timers.due.remove(slot));
                    let Some(fired) = fired.filter(|fired| fired.generation == generation) else {
                        drop_reported(&any(poll), msg);
                        continue;
                    };
                    return NextInOrder::Timer(fired, msg);
                }
                None => return self.nothing_in_order(poll),
            }
        }
    }

    /// Moves the messages of the mailbox, and the timers between them, into the heap.
    fn collect_by_priority(
        &mut self,
        poll: &PollOf<'_, A::Msg>,
        priority: fn(&A::Msg) -> u8,
    ) -> Collected {
        let mail = &poll.shared().mail;
        loop {
            let limit = self.state.has(HAS_TIMERS).then(|| self.state.timers_or_new().due.limit());
            let popped = loop {
                let popped = match limit {
                    // SAFETY: called by the runner within a poll only, and a cell has one runner at
                    // a time. The mailbox does not evict: that is refused together with priorities.
                    Some(limit) => unsafe { mail.pop_held_before(limit) },
                    // SAFETY: as above.
                    None => unsafe { mail.pop_held() },
                };
                let Pop::Item(envelope) = popped else { break popped };
                let rank = priority_of(poll, priority, &envelope.msg);
                self.state.rare().by_priority.push(rank, Item::Message(envelope));
            };
            if limit.is_none() || matches!(popped, Pop::Retry) {
                return Collected::All;
            }
            if self.rank_timer(poll, priority) {
                continue;
            }
            match self.state.timers_or_new().due.check(poll.shared()) {
                Checked::More => {}
                Checked::Nothing => return Collected::All,
                Checked::SystemQueue => return Collected::SystemQueue,
            }
        }
    }

    /// Moves a timer into the heap, if its position was reached.
    fn rank_timer(&mut self, poll: &PollOf<'_, A::Msg>, priority: fn(&A::Msg) -> u8) -> bool {
        let rare = self.state.rare();
        let Some(timers) = &mut rare.timers else { return false };
        let Some(fired) = timers.due.take_unranked() else { return false };
        let (slot, generation) = (fired.slot, fired.generation);
        // Not inside `catch_unwind`, as in `timer_fired`: if the closure panics, the event is
        // dropped, which completes the run, and the actor has failed.
        let msg = timers.table.make_message(slot);
        let rank = msg.as_ref().or_else(|| timers.table.message(slot));
        let rank = rank.map_or(0, |msg| priority_of(poll, priority, msg));
        timers.due.put_ranked(fired);
        rare.by_priority.push(rank, Item::Timer { slot, generation, msg });
        true
    }
}

/// How far the mailbox was moved into the heap.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Collected {
    /// To its end, or to a message that is still being written.
    All,
    /// The system queue goes first.
    SystemQueue,
}

/// The priority of a message. The function is user code; if it panics, the priority is the lowest.
pub(super) fn priority_of<M: 'static>(poll: &PollOf<'_, M>, priority: fn(&M) -> u8, msg: &M) -> u8 {
    let mut rank = 0;
    if let Err(caught) = poll.catch_unwind(&mut || rank = priority(msg)) {
        poll.drop_panic_payload(caught);
    }
    rank
}
