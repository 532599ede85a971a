//! The seam between what every cell does with_untyped and what depends on its types.
//!
//! Lives, failures and watches go the same way whatever an actor and its messages are. Compiled for
//! each type of actor they would be most of a program on a microcontroller, so they are functions
//! of `dyn CellVTable` and compiled once. What handles a message is compiled for each type, and never
//! goes through here.

use clockjack_exec::{Failure, custom::Turn};

use super::{
    Budget, Cell, CellStatus, Outcome, PENDING, TurnOf, UntypedRareState, Watchers,
    lifecycle::{drop_reported, guarded},
    reserve,
};
use crate::{Actor, FailureReport, Next, Signal, control::Control, header::ActorHeader};

/// A turn of an actor whose messages are not known.
pub(crate) type AnyTurn<'t> = Turn<'t, ActorHeader>;

/// The same turn for who need not know the messages.
#[expect(unsafe_code, reason = "a shared begins with its header")]
#[inline]
pub(crate) fn any<'t, M: 'static>(turn: &TurnOf<'t, M>) -> AnyTurn<'t> {
    // SAFETY: the front begins with its core, at the same alignment.
    unsafe { turn.of_prefix() }
}

/// A cell in a turn, for what is the same for all types. What knows the types is asked of it.
pub(super) trait CellVTable {
    fn status(&self) -> &CellStatus;

    fn status_mut(&mut self) -> &mut CellStatus;

    /// What only some have; none if it has not been made.
    fn rare(&self) -> Option<&UntypedRareState>;

    fn rare_mut(&mut self) -> Option<&mut UntypedRareState>;

    /// Both, made if need be.
    fn status_and_rare(&mut self) -> (&mut CellStatus, &mut UntypedRareState);

    /// Whether it cannot be made again.
    fn is_single_use(&self) -> bool;

    /// Whether there is a value of the actor, here or lent to a future.
    fn has_actor(&self) -> bool;

    /// Makes now what a failure would need later.
    fn prepare(&mut self);

    /// Makes the actor, in a guard.
    fn create_actor(&mut self) -> Result<(), Failure>;

    /// Lets it start, in a guard.
    fn call_started(&mut self) -> Result<Next, Failure>;

    /// Tells it a signal, in a guard.
    fn deliver_signal(&mut self, signal: Signal) -> Result<Next, Failure>;

    /// Drops the actor.
    fn drop_actor(&mut self);

    /// Puts stashed messages in front of the mailbox.
    fn unstash(&mut self);

    /// Does what a handler has asked for, for when it returns.
    fn apply_deferred(&mut self);

    /// Begins the wait for a receive time-out anew, if there is one.
    fn restart_receive_timeout(&mut self);

    /// The job of a receive time-out has come.
    fn receive_timeout_later(&mut self, number: u32);

    /// Does what the notes say; control messages come later.
    fn drain_system_queue(&mut self);

    /// Looks which futures were woken.
    fn collect_futures(&mut self);

    /// Handles one thing that waits before the mailbox. None if nothing does.
    fn next_pending(&mut self, budget: &mut Budget) -> Option<Outcome>;

    /// Whether it has neither a message, beside those that it has stashed, nor a future under way.
    /// What is pending was looked at before.
    fn is_idle(&self) -> bool;

    /// Lets those in who wait for room, as far as there is any.
    fn admit_waiters(&mut self);

    /// Closes the mailbox, and tells those who wait for room.
    fn close_mail(&mut self);

    /// Makes dead letters of what waits, in the mailbox, which is closed, or before it. False if
    /// somebody is about to put in more.
    fn drain_mailbox(&mut self) -> bool;

    /// The same where there is no other turn.
    fn drain_mailbox_now(&mut self);

    /// Takes messages out of the mailbox while a restart is waited for, and keeps them.
    fn keep_incoming(&mut self, budget: &mut Budget) -> Outcome;

    /// Before a restart: what was stashed is older than what is kept of an earlier one. Gives how
    /// many are.
    fn keep_stashed(&mut self) -> usize;

    /// Ends what belongs to this value of the actor: timers, futures and, if so, adapters.
    fn cancel_owned(&mut self, with_adapters: bool);

    /// Makes dead letters of what it has kept. Gives who wants to know of the end, and why it ends.
    fn discard_all(&mut self) -> (Watchers, Option<FailureReport>);

    /// Takes no more notes. Of those that have come, watches and the like count.
    fn close_system_queue(&mut self, watchers: &mut Watchers);
}

impl dyn CellVTable + '_ {
    /// What only some have, made if need be.
    pub(super) fn rare_or_new(&mut self) -> &mut UntypedRareState {
        self.status_and_rare().1
    }
}

/// A cell in a turn.
pub(super) struct TypedCell<'c, 't, A: Actor, F> {
    pub(super) cell: &'c mut Cell<A, F>,
    pub(super) turn: &'c TurnOf<'t, A::Msg>,
}

impl<A: Actor, F: FnMut() -> A + 'static> CellVTable for TypedCell<'_, '_, A, F> {
    fn status(&self) -> &CellStatus {
        &self.cell.state
    }

    fn status_mut(&mut self) -> &mut CellStatus {
        &mut self.cell.state
    }

    fn rare(&self) -> Option<&UntypedRareState> {
        self.cell.state.rare.as_ref().map(|rare| &***rare)
    }

    fn rare_mut(&mut self) -> Option<&mut UntypedRareState> {
        self.cell.state.rare.as_mut().map(|rare| &mut ***rare)
    }

    fn status_and_rare(&mut self) -> (&mut CellStatus, &mut UntypedRareState) {
        let state = &mut self.cell.state;
        (&mut state.status, &mut *state.rare.get_or_insert_default())
    }

    fn is_single_use(&self) -> bool {
        self.cell.state.settings.as_ref().is_some_and(|settings| settings.is_once)
    }

    fn has_actor(&self) -> bool {
        self.cell.has_actor()
    }

    fn prepare(&mut self) {
        self.cell.state.prepare();
        reserve(self.turn.front());
    }

    fn create_actor(&mut self) -> Result<(), Failure> {
        let Cell { actor, factory, .. } = &mut *self.cell;
        guarded(&any(self.turn), &mut || *actor = Some(factory()))
    }

    fn call_started(&mut self) -> Result<Next, Failure> {
        self.cell.guarded(self.turn, A::started)
    }

    fn deliver_signal(&mut self, signal: Signal) -> Result<Next, Failure> {
        self.cell.guarded(self.turn, |actor, cx| actor.signal(cx, signal))
    }

    fn drop_actor(&mut self) {
        drop_reported(&any(self.turn), self.cell.actor.take());
    }

    fn unstash(&mut self) {
        self.cell.state.unstash();
    }

    fn apply_deferred(&mut self) {
        self.cell.apply_deferred(self.turn);
    }

    fn restart_receive_timeout(&mut self) {
        self.cell.state.restart_receive_timeout(self.turn);
    }

    fn receive_timeout_later(&mut self, number: u32) {
        self.cell.control_later(Control::ReceiveTimeout(number));
    }

    fn drain_system_queue(&mut self) {
        self.cell.drain_system_queue(self.turn);
    }

    fn collect_futures(&mut self) {
        if let Some(rare) = &mut self.cell.state.rare {
            rare.futures.collect();
            self.cell.state.set(PENDING, true);
        }
    }

    fn next_pending(&mut self, budget: &mut Budget) -> Option<Outcome> {
        self.cell.next_pending(self.turn, budget)
    }

    fn is_idle(&self) -> bool {
        let rare = self.cell.state.rare.as_ref();
        self.turn.front().mail.is_empty()
            && rare.is_none_or(|rare| rare.by_priority.is_empty() && rare.futures.is_empty())
    }

    fn admit_waiters(&mut self) {
        Cell::<A, F>::admit_waiters(self.turn);
    }

    fn close_mail(&mut self) {
        self.turn.front().mail.close();
        Cell::<A, F>::refuse_waiters(self.turn);
    }

    fn drain_mailbox(&mut self) -> bool {
        self.cell.drain_mailbox(self.turn)
    }

    fn drain_mailbox_now(&mut self) {
        self.cell.drain_mailbox_now(self.turn);
    }

    fn keep_incoming(&mut self, budget: &mut Budget) -> Outcome {
        self.cell.keep_incoming(self.turn, budget)
    }

    fn keep_stashed(&mut self) -> usize {
        self.cell.keep_stashed()
    }

    fn cancel_owned(&mut self, with_adapters: bool) {
        self.cell.cancel_timers(self.turn);
        self.cell.cancel_futures(self.turn);
        if let (true, Some(rare)) = (with_adapters, &mut self.cell.state.rare) {
            for adapter in core::mem::take(&mut rare.adapters) {
                drop_reported(&any(self.turn), adapter);
            }
        }
    }

    fn discard_all(&mut self) -> (Watchers, Option<FailureReport>) {
        self.cell.discard_all(self.turn)
    }

    fn close_system_queue(&mut self, watchers: &mut Watchers) {
        self.cell.close_system_queue(self.turn, watchers);
    }
}
