//! The order between an actor's timers and its user messages.
//!
//! A timer that has fired is not in the mailbox: it needs no room there and no memory. It takes its
//! place among the user messages by a [`Position`] of the mailbox, rule 14 of whose
//! [protocol](clockjack_sync::mail) is the basis of this one. The order is that of Pekko, where the
//! timer would put a message into the mailbox.
//!
//! # Roles and rules
//!
//! *Firing threads* poll the scheduler, *senders* push into the mailbox, and the *runner* of the
//! actor handles both.
//!
//! 1. A firing thread reads the position that the next push gets, writes it into the event of the
//!    timer, pushes the event onto the system queue, sets SYSTEM_QUEUE and wakes the actor, in this
//!    order.
//! 2. The runner takes the events off the system queue and keeps those that are still valid in a
//!    list, [`DueTimers`], ordered by position; equal positions in the order of the queue.
//! 3. The runner takes user messages only up to the position of the first event in the list. When
//!    it has reached that position, the message of the timer is next.
//! 4. The runner takes user messages only up to a position that it has *checked*: it has read the
//!    next position of the mailbox, and after that has seen SYSTEM_QUEUE clear. At the end of what
//!    was checked, it checks again.
//! 5. A cancel, or a key that is set again, removes the event from the list. An event that is still
//!    in the system queue is found to be stale when the runner takes it off.
//!
//! *Why the order is right.* A message whose push has ended before the timer fires is before the
//! event: its claim has moved the tail that the firing thread then reads (rule 1), so the runner
//! takes the message first (rule 3). A message whose push begins after the fire has ended is behind
//! the event: its claim happens after the flag was set, so a check that covers the position of the
//! message sees the flag (rule 4), and the runner has the event in its list before it takes the
//! message. Without rule 4 the runner could see the flag clear, then the timer fires, then the
//! message is pushed, and then the runner takes the message before the event. If push and fire
//! overlap, either order is right. (The loom model is
//! `what_is_sent_after_a_timer_has_fired_is_handled_after_it`.) Of two timers of which one fires
//! after the other the first has no later position, and its event is not behind the other in the
//! system queue.
//!
//! *Why nothing waits forever.* When an event is made, all positions before that of the event are
//! claimed already, so the runner reaches the event as soon as it has taken what was inside then:
//! at most one mailbox full. An eviction only moves the runner closer. When the mailbox is empty,
//! every position is reached, so the actor never goes idle with an event in its list.
//!
//! *Memory.* The list has room for one event per timer: it is reserved when a timer is set. Rules 2
//! and 5 keep it at that: an event is in the list only as long as its timer is in the table.
//!
//! In a mailbox with [priorities](super::priority) a timer whose position was reached is ranked by
//! the priority of its message, behind older messages of the same priority.

#![expect(unsafe_code, reason = "the runner is the one consumer of the mailbox")]

use alloc::collections::VecDeque;

use clockjack_sync::mail::{EmptyToken, Pop, Position};

use super::{Cell, CellState, HAS_TIMERS, PENDING, PollOf, empty_token};
use crate::{
    Actor,
    cell::{envelope::Envelope, header::SYSTEM_QUEUE, shared::ActorShared},
    mailbox::control::{Control, TimerFired},
};

/// What an actor with timers or priorities handles next.
pub(super) enum NextInOrder<M> {
    Message(Envelope<M>),
    /// With the message of a periodic timer, if it was already made.
    Timer(TimerFired, Option<M>),
    /// The runner looks again, at the system queue first.
    Again,
    Empty(EmptyToken),
    /// As [`Pop::Retry`].
    Retry,
}

/// The timers that have fired and wait for their place; see the [module](self).
#[derive(Default)]
pub(crate) struct DueTimers {
    /// By position.
    events: VecDeque<TimerFired>,
    /// How many of the first events are in the queue of priorities already.
    n_ranked: usize,
    /// User messages before this position may be taken (rule 4).
    checked: Position,
}

impl DueTimers {
    pub(super) fn is_empty(&self) -> bool {
        self.events.is_empty()
    }

    /// Reserves room for so many events.
    pub(crate) fn reserve(&mut self, n_timers: usize) {
        self.events.reserve(n_timers.saturating_sub(self.events.len()));
    }

    /// Inserts an event at its place.
    pub(crate) fn insert(&mut self, fired: TimerFired) {
        let is_behind = |other: &&TimerFired| other.position.is_behind(fired.position);
        let n_behind = self.events.iter().rev().take_while(is_behind).count();
        // Events that were ranked stay first.
        let index = (self.events.len() - n_behind).max(self.n_ranked);
        self.events.insert(index, fired);
    }

    /// Removes the event of the timer in this slot.
    pub(crate) fn remove(&mut self, slot: u32) -> Option<TimerFired> {
        let index = self.events.iter().position(|fired| fired.slot == slot)?;
        self.n_ranked -= usize::from(index < self.n_ranked);
        self.events.remove(index)
    }

    /// Up to where user messages may be taken.
    pub(super) fn limit(&self) -> Position {
        match self.events.get(self.n_ranked) {
            Some(first) if self.checked.is_behind(first.position) => first.position,
            _ => self.checked,
        }
    }

    /// The first event, if user messages were taken up to it: to the [limit](Self::limit).
    pub(super) fn pop_reached(&mut self) -> Option<TimerFired> {
        let first = self.events.front()?;
        if first.position.is_behind(self.checked) { None } else { self.events.pop_front() }
    }

    /// As [`pop_reached`](Self::pop_reached), for an event that is to be ranked.
    pub(super) fn take_unranked(&mut self) -> Option<TimerFired> {
        let first = self.events.get(self.n_ranked)?;
        if first.position.is_behind(self.checked) {
            return None;
        }
        self.events.remove(self.n_ranked)
    }

    /// Puts an event back that is in the queue of priorities from now on.
    pub(super) fn put_ranked(&mut self, fired: TimerFired) {
        self.events.insert(self.n_ranked, fired);
        self.n_ranked += 1;
    }

    /// Checks how far user messages may be taken now (rule 4).
    pub(super) fn check<M: 'static>(&mut self, shared: &ActorShared<M>) -> Checked {
        // The order of these two loads is what rule 4 is about.
        let next = shared.mail.next_position();
        if shared.header.flags() & SYSTEM_QUEUE != 0 {
            return Checked::SystemQueue;
        }
        if core::mem::replace(&mut self.checked, next) == next {
            return Checked::Nothing;
        }
        Checked::More
    }
}

/// The result of [`DueTimers::check`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Checked {
    /// There may be more user messages than before.
    More,
    /// Nothing was sent since the last check.
    Nothing,
    /// The system queue goes first.
    SystemQueue,
}

impl<A: Actor> CellState<A> {
    /// A timer has fired: keeps the event until its place is reached, if it is still valid.
    pub(super) fn timer_later(&mut self, fired: TimerFired) {
        let Some(timers) = self.timers_mut() else { return };
        let Some(timer) = timers.table.current_mut(fired.slot, fired.generation) else { return };
        if timer.has_priority {
            self.control_later(Control::Timer(fired));
        } else {
            timer.is_due = true;
            timers.due.insert(fired);
        }
    }

    /// Whether a message waits: in the mailbox, before it, or that of a timer.
    pub(crate) fn has_waiting_message(&self, shared: &ActorShared<A::Msg>) -> bool {
        let is_before_mailbox = self.rare.as_ref().is_some_and(|rare| {
            let has_due = rare.timers.as_ref().is_some_and(|timers| !timers.due.is_empty());
            let is_none_kept = rare.unstashed.is_empty() && rare.replay.is_empty();
            has_due || !is_none_kept || !rare.by_priority.is_empty()
        });
        is_before_mailbox || !shared.mail.is_empty()
    }
}

impl<A: Actor, F: FnMut() -> A + 'static> Cell<A, F> {
    /// What is next in an actor that has timers, or priorities.
    #[cold]
    #[inline(never)]
    pub(super) fn next_in_order(&mut self, poll: &PollOf<'_, A::Msg>) -> NextInOrder<A::Msg> {
        if let Some(priority) = self.state.priority() {
            return self.next_by_priority(poll, priority);
        }
        let shared = poll.shared();
        let due = &mut self.state.timers_or_new().due;
        loop {
            // SAFETY: called by the runner within a poll only, and a cell has one runner at a time.
            match unsafe { shared.mail.pop_before(due.limit()) } {
                Pop::Item(envelope) => return NextInOrder::Message(envelope),
                Pop::Retry => return NextInOrder::Retry,
                Pop::Empty => {}
            }
            if let Some(fired) = due.pop_reached() {
                return NextInOrder::Timer(fired, None);
            }
            match due.check(shared) {
                Checked::More => {}
                Checked::Nothing => return self.nothing_in_order(poll),
                Checked::SystemQueue => return NextInOrder::Again,
            }
        }
    }

    /// The mailbox was found empty, and no timer is due.
    pub(super) fn nothing_in_order(&mut self, poll: &PollOf<'_, A::Msg>) -> NextInOrder<A::Msg> {
        if self.state.has(PENDING) {
            // A receive timeout waits for this.
            return NextInOrder::Again;
        }
        let has_timers = self.state.timers_mut().is_some_and(|timers| !timers.table.is_empty());
        self.state.set(HAS_TIMERS, has_timers);
        // If a sender has claimed a position since, its message is about to be written.
        empty_token(poll.shared()).map_or(NextInOrder::Retry, NextInOrder::Empty)
    }
}
