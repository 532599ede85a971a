//! The boundary between the code of a cell that is compiled once and the code that is compiled for
//! each type of actor.
//!
//! Life cycle, supervision and watches work the same way for all types of actors and messages.
//! Compiled for each type of actor they would make up most of a program on a microcontroller, so
//! they are methods of `dyn CellVTable`, compiled once. The code that handles a message is compiled
//! for each type and never goes through this vtable.

use clockjack_exec::{Failure, custom_task::PollContext};

use super::{
    Budget, Cell, CellStatus, Outcome, PENDING, PollOf, UntypedRareState, Watchers,
    lifecycle::{catch_failure, drop_reported},
    own_timer::OwnTimer,
    reserve,
};
use crate::{Actor, FailureReport, Next, Signal, cell::header::ActorHeader};

/// One poll of an actor whose message type is not known.
pub(crate) type AnyPoll<'t> = PollContext<'t, ActorHeader>;

/// The same poll for code that need not know the message type.
#[expect(unsafe_code, reason = "the shared part begins with its header")]
#[inline]
pub(crate) fn any<'t, M: 'static>(poll: &PollOf<'t, M>) -> AnyPoll<'t> {
    // SAFETY: the shared part begins with its header, at the same alignment.
    unsafe { poll.of_prefix() }
}

/// The typed operations of a cell during a poll, for the code that is compiled once.
pub(super) trait CellVTable {
    fn status(&self) -> &CellStatus;

    fn status_mut(&mut self) -> &mut CellStatus;

    /// State that few actors have; none if it was not allocated.
    fn rare(&self) -> Option<&UntypedRareState>;

    fn rare_mut(&mut self) -> Option<&mut UntypedRareState>;

    /// Both, allocated if necessary.
    fn status_and_rare(&mut self) -> (&mut CellStatus, &mut UntypedRareState);

    /// Whether the actor cannot be created a second time.
    fn is_single_use(&self) -> bool;

    /// Whether there is a value of the actor, in the cell or lent to a future.
    fn has_actor(&self) -> bool;

    /// Allocates now what a failure would need later.
    fn prepare(&mut self);

    /// Creates the actor, inside `catch_unwind`.
    fn create_actor(&mut self) -> Result<(), Failure>;

    /// Calls `started`, inside `catch_unwind`.
    fn call_started(&mut self) -> Result<Next, Failure>;

    /// Calls the signal handler, inside `catch_unwind`.
    fn deliver_signal(&mut self, signal: Signal) -> Result<Next, Failure>;

    /// Drops the actor.
    fn drop_actor(&mut self);

    /// Applies what a handler has requested for the time after its return.
    fn apply_deferred(&mut self);

    /// Restarts the receive timeout, if one is set.
    fn restart_receive_timeout(&mut self);

    /// The job of a receive timeout has fired.
    fn receive_timeout_later(&mut self, number: u32);

    /// The timer of the receive timeout, if it is armed.
    fn receive_timeout_timer(&mut self) -> Option<&mut OwnTimer>;

    /// Handles what is in the system queue; control messages are queued for later.
    fn drain_system_queue(&mut self);

    /// Collects the futures that were woken.
    fn collect_futures(&mut self);

    /// Handles one item that precedes the mailbox. None if there is no such item.
    fn next_pending(&mut self, budget: &mut Budget) -> Option<Outcome>;

    /// Whether there is neither a message, apart from stashed ones, nor a running future. Pending
    /// items were checked before.
    fn is_idle(&self) -> bool;

    /// Moves messages of waiting senders into the mailbox, as far as there is room.
    fn admit_waiters(&mut self);

    /// Closes the mailbox and refuses the senders that wait for room.
    fn close_mail(&mut self);

    /// Turns the messages in the closed mailbox, and those before it, into dead letters. False if a
    /// producer is still about to write one.
    fn drain_mailbox(&mut self) -> bool;

    /// The same where there is no further poll.
    fn drain_mailbox_now(&mut self);

    /// Takes messages out of the mailbox while a restart is pending, and keeps them.
    fn keep_incoming(&mut self, budget: &mut Budget) -> Outcome;

    /// Before a restart: puts the stashed messages before those that were kept by an earlier
    /// restart, which are younger. Returns the number of the latter.
    fn keep_stashed(&mut self) -> usize;

    /// Cancels what belongs to this incarnation of the actor: timers, futures and, if requested,
    /// adapters.
    fn cancel_owned(&mut self, with_adapters: bool);

    /// Turns all kept messages into dead letters. Returns the watchers, and the failure that is the
    /// cause of the stop.
    fn discard_all(&mut self) -> (Watchers, Option<FailureReport>);

    /// Closes the system queue. Of the messages in it, only watches and unwatches are still
    /// processed.
    fn close_system_queue(&mut self, watchers: &mut Watchers);
}

impl dyn CellVTable + '_ {
    /// State that few actors have, allocated if necessary.
    pub(super) fn rare_or_new(&mut self) -> &mut UntypedRareState {
        self.status_and_rare().1
    }
}

/// A cell during a poll.
pub(super) struct TypedCell<'c, 't, A: Actor, F> {
    pub(super) cell: &'c mut Cell<A, F>,
    pub(super) poll: &'c PollOf<'t, A::Msg>,
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
        reserve(self.poll.shared());
    }

    fn create_actor(&mut self) -> Result<(), Failure> {
        let Cell { actor, factory, .. } = &mut *self.cell;
        catch_failure(&any(self.poll), &mut || *actor = Some(factory()))
    }

    fn call_started(&mut self) -> Result<Next, Failure> {
        self.cell.call_catching(self.poll, A::started)
    }

    fn deliver_signal(&mut self, signal: Signal) -> Result<Next, Failure> {
        self.cell.call_catching(self.poll, |actor, cx| actor.signal(cx, signal))
    }

    fn drop_actor(&mut self) {
        drop_reported(&any(self.poll), self.cell.actor.take());
    }

    fn apply_deferred(&mut self) {
        self.cell.apply_deferred(self.poll);
    }

    fn restart_receive_timeout(&mut self) {
        self.cell.state.restart_receive_timeout(self.poll);
    }

    fn receive_timeout_later(&mut self, number: u32) {
        self.cell.state.receive_timeout_later(number);
    }

    fn receive_timeout_timer(&mut self) -> Option<&mut OwnTimer> {
        self.cell.state.timers_mut()?.receive_timeout.timer_mut()
    }

    fn drain_system_queue(&mut self) {
        self.cell.drain_system_queue(self.poll);
    }

    fn collect_futures(&mut self) {
        if let Some(rare) = &mut self.cell.state.rare {
            rare.futures.collect();
            self.cell.state.set(PENDING, true);
        }
    }

    fn next_pending(&mut self, budget: &mut Budget) -> Option<Outcome> {
        self.cell.next_pending(self.poll, budget)
    }

    fn is_idle(&self) -> bool {
        let rare = self.cell.state.rare.as_ref();
        !self.cell.state.has_waiting_message(self.poll.shared())
            && rare.is_none_or(|rare| rare.futures.is_empty())
    }

    fn admit_waiters(&mut self) {
        Cell::<A, F>::admit_waiters(self.poll);
    }

    fn close_mail(&mut self) {
        self.poll.shared().mail.close();
        Cell::<A, F>::refuse_waiters(self.poll);
    }

    fn drain_mailbox(&mut self) -> bool {
        self.cell.drain_mailbox(self.poll)
    }

    fn drain_mailbox_now(&mut self) {
        self.cell.drain_mailbox_now(self.poll);
    }

    fn keep_incoming(&mut self, budget: &mut Budget) -> Outcome {
        self.cell.keep_incoming(self.poll, budget)
    }

    fn keep_stashed(&mut self) -> usize {
        self.cell.keep_stashed()
    }

    fn cancel_owned(&mut self, with_adapters: bool) {
        self.cell.cancel_timers(self.poll);
        self.cell.cancel_futures(self.poll);
        if let (true, Some(rare)) = (with_adapters, &mut self.cell.state.rare) {
            for adapter in core::mem::take(&mut rare.adapters) {
                drop_reported(&any(self.poll), adapter);
            }
        }
    }

    fn discard_all(&mut self) -> (Watchers, Option<FailureReport>) {
        self.cell.discard_all(self.poll)
    }

    fn close_system_queue(&mut self, watchers: &mut Watchers) {
        self.cell.close_system_queue(self.poll, watchers);
    }
}
