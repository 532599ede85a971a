//! The seam between what every cell does alike and what depends on its types.
//!
//! Lives, failures and watches go the same way whatever an actor and its messages are. Compiled for
//! each type of actor they would be most of a program on a microcontroller, so they are functions
//! of `dyn Typed` and compiled once. What handles a message is compiled for each type, and never
//! goes through here.

use clockjack_exec::{Failure, custom::Turn};

use super::{
    Budget, Cell, Life, Mark, Outcome, PENDING, TurnOf, Watchers,
    lifecycle::{drop_told, guarded},
    reserve,
};
use crate::{Actor, FailureReport, Next, Signal, base::Core, control::Control};

/// A turn of an actor whose messages are not known.
pub(crate) type AnyTurn<'t> = Turn<'t, Core>;

/// The same turn for who need not know the messages.
#[expect(unsafe_code, reason = "a front begins with its core")]
#[inline]
pub(crate) fn any<'t, M: 'static>(turn: &TurnOf<'t, M>) -> AnyTurn<'t> {
    // SAFETY: the front begins with its core, at the same alignment.
    unsafe { turn.of_prefix() }
}

/// A cell in a turn, for what is the same for all types. What knows the types is asked of it.
pub(super) trait Typed {
    fn mark(&self) -> &Mark;

    fn mark_mut(&mut self) -> &mut Mark;

    /// What only some have; none if it has not been made.
    fn life(&self) -> Option<&Life>;

    fn life_mut(&mut self) -> Option<&mut Life>;

    /// Both, made if need be.
    fn mark_and_life(&mut self) -> (&mut Mark, &mut Life);

    /// Whether it cannot be made again.
    fn is_once(&self) -> bool;

    /// Whether there is a value of the actor, here or lent to a future.
    fn has_actor(&self) -> bool;

    /// Makes now what a failure would need later.
    fn prepare(&mut self);

    /// Makes the actor, in a guard.
    fn make(&mut self) -> Result<(), Failure>;

    /// Lets it start, in a guard.
    fn started(&mut self) -> Result<Next, Failure>;

    /// Tells it a signal, in a guard.
    fn tell(&mut self, signal: Signal) -> Result<Next, Failure>;

    /// Drops the actor.
    fn drop_actor(&mut self);

    /// Puts stashed messages in front of the mailbox.
    fn put_back(&mut self);

    /// Does what a handler has asked for, for when it returns.
    fn settle(&mut self);

    /// Begins the wait for a receive time-out anew, if there is one.
    fn restart_idle(&mut self);

    /// The job of a receive time-out has come.
    fn idle_later(&mut self, number: u32);

    /// Does what the notes say; control messages come later.
    fn take_notes(&mut self);

    /// Looks which futures were woken.
    fn collect_futures(&mut self);

    /// Handles one thing that waits before the mailbox. None if nothing does.
    fn next_pending(&mut self, budget: &mut Budget) -> Option<Outcome>;

    /// Whether it has neither a message, beside those that it has stashed, nor a future under way.
    /// What is pending was looked at before.
    fn is_idle(&self) -> bool;

    /// Lets those in who wait for room, as far as there is any.
    fn admit(&mut self);

    /// Closes the mailbox, and tells those who wait for room.
    fn close_mail(&mut self);

    /// Makes dead letters of what waits, in the mailbox, which is closed, or before it. False if
    /// somebody is about to put in more.
    fn empty_mailbox(&mut self) -> bool;

    /// The same where there is no other turn.
    fn drop_mail(&mut self);

    /// Takes messages out of the mailbox while a restart is waited for, and keeps them.
    fn keep_mail(&mut self, budget: &mut Budget) -> Outcome;

    /// Before a restart: what was stashed is older than what is kept of an earlier one. Gives how
    /// many are.
    fn keep_messages(&mut self) -> usize;

    /// Ends what belongs to this value of the actor: timers, futures and, if so, adapters.
    fn end_belongings(&mut self, with_adapters: bool);

    /// Makes dead letters of what it has kept. Gives who wants to know of the end, and why it ends.
    fn lose_all(&mut self) -> (Watchers, Option<FailureReport>);

    /// Takes no more notes. Of those that have come, watches and the like count.
    fn close_notes(&mut self, watchers: &mut Watchers);
}

impl dyn Typed + '_ {
    /// What only some have, made if need be.
    pub(super) fn life_or_new(&mut self) -> &mut Life {
        self.mark_and_life().1
    }
}

/// A cell in a turn.
pub(super) struct Live<'c, 't, A: Actor, F> {
    pub(super) cell: &'c mut Cell<A, F>,
    pub(super) turn: &'c TurnOf<'t, A::Msg>,
}

impl<A: Actor, F: FnMut() -> A + 'static> Typed for Live<'_, '_, A, F> {
    fn mark(&self) -> &Mark {
        &self.cell.state
    }

    fn mark_mut(&mut self) -> &mut Mark {
        &mut self.cell.state
    }

    fn life(&self) -> Option<&Life> {
        self.cell.state.extra.as_ref().map(|extra| &***extra)
    }

    fn life_mut(&mut self) -> Option<&mut Life> {
        self.cell.state.extra.as_mut().map(|extra| &mut ***extra)
    }

    fn mark_and_life(&mut self) -> (&mut Mark, &mut Life) {
        let state = &mut self.cell.state;
        (&mut state.mark, &mut *state.extra.get_or_insert_default())
    }

    fn is_once(&self) -> bool {
        self.cell.state.settings.as_ref().is_some_and(|settings| settings.is_once)
    }

    fn has_actor(&self) -> bool {
        self.cell.has_actor()
    }

    fn prepare(&mut self) {
        self.cell.state.prepare();
        reserve(self.turn.front());
    }

    fn make(&mut self) -> Result<(), Failure> {
        let Cell { actor, factory, .. } = &mut *self.cell;
        guarded(&any(self.turn), &mut || *actor = Some(factory()))
    }

    fn started(&mut self) -> Result<Next, Failure> {
        self.cell.guarded(self.turn, A::started)
    }

    fn tell(&mut self, signal: Signal) -> Result<Next, Failure> {
        self.cell.guarded(self.turn, |actor, cx| actor.signal(cx, signal))
    }

    fn drop_actor(&mut self) {
        drop_told(&any(self.turn), self.cell.actor.take());
    }

    fn put_back(&mut self) {
        self.cell.state.put_back();
    }

    fn settle(&mut self) {
        self.cell.settle(self.turn);
    }

    fn restart_idle(&mut self) {
        self.cell.state.restart_idle(self.turn);
    }

    fn idle_later(&mut self, number: u32) {
        self.cell.control_later(Control::Idle(number));
    }

    fn take_notes(&mut self) {
        self.cell.take_notes(self.turn);
    }

    fn collect_futures(&mut self) {
        if let Some(extra) = &mut self.cell.state.extra {
            extra.futures.collect();
            self.cell.state.set(PENDING, true);
        }
    }

    fn next_pending(&mut self, budget: &mut Budget) -> Option<Outcome> {
        self.cell.next_pending(self.turn, budget)
    }

    fn is_idle(&self) -> bool {
        let extra = self.cell.state.extra.as_ref();
        self.turn.front().mail.is_empty()
            && extra.is_none_or(|extra| extra.ranks.is_empty() && extra.futures.is_empty())
    }

    fn admit(&mut self) {
        Cell::<A, F>::admit(self.turn);
    }

    fn close_mail(&mut self) {
        self.turn.front().mail.close();
        Cell::<A, F>::refuse_waiters(self.turn);
    }

    fn empty_mailbox(&mut self) -> bool {
        self.cell.empty_mailbox(self.turn)
    }

    fn drop_mail(&mut self) {
        self.cell.drop_mail(self.turn);
    }

    fn keep_mail(&mut self, budget: &mut Budget) -> Outcome {
        self.cell.keep_mail(self.turn, budget)
    }

    fn keep_messages(&mut self) -> usize {
        self.cell.keep_messages()
    }

    fn end_belongings(&mut self, with_adapters: bool) {
        self.cell.end_timers(self.turn);
        self.cell.end_futures(self.turn);
        if let (true, Some(extra)) = (with_adapters, &mut self.cell.state.extra) {
            for adapter in core::mem::take(&mut extra.adapters) {
                drop_told(&any(self.turn), adapter);
            }
        }
    }

    fn lose_all(&mut self) -> (Watchers, Option<FailureReport>) {
        self.cell.lose_all(self.turn)
    }

    fn close_notes(&mut self, watchers: &mut Watchers) {
        self.cell.close_notes(self.turn, watchers);
    }
}
