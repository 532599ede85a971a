//! What a runner does with the futures of its actor.
#![expect(unsafe_code, reason = "polls futures of types that only their functions know")]

use core::task::{self, Poll};

use clockjack_sync::mutant;

use super::{Cell, TurnOf, any, lifecycle::drop_reported};
use crate::{Actor, Context};

impl<A: Actor, F: FnMut() -> A + 'static> Cell<A, F> {
    /// Polls the future that was woken first, and does what comes after it.
    pub(super) fn poll_next(&mut self, turn: &TurnOf<'_, A::Msg>) {
        let Self { actor, state, .. } = self;
        let Some(due) = state.rare().futures.next_due() else { return };
        state.rare().in_other_handler = true;
        let waker = due.waker();
        let mut cx = Context::new(state, turn);
        let mut waker = task::Context::from_waker(&waker);
        // SAFETY: body and function are those of one task, which is in its entry and marked as the
        // one that is being polled; it is pinned there, and the cell is borrowed by its runner.
        let polled = unsafe { (due.run)(due.body, &mut waker, actor, &mut cx) };
        let name = due.name;
        state.rare().in_other_handler = false;
        state.rare().futures.was_polled(due);
        state.finish_wait();
        if let Poll::Ready(result) = polled {
            self.handle_result_of(turn, result, name);
        }
    }

    /// A panic has come out of a turn: the future that was being polled, if one was, is not polled
    /// again.
    pub(super) fn drop_polled(&mut self, turn: &TurnOf<'_, A::Msg>) {
        let Some(rare) = &mut self.state.rare else { return };
        if mutant!("actor-poll-panic-kept") {
            return;
        }
        if let Some(task) = rare.futures.remove_polled() {
            drop_reported(&any(turn), task);
            self.take_back();
        }
        // What comes after a wait may have panicked, and is out of its place by then.
        self.state.finish_wait();
    }

    /// All futures end, and the actor is where it belongs.
    pub(super) fn cancel_futures(&mut self, turn: &TurnOf<'_, A::Msg>) {
        if mutant!("actor-futures-outlive-restart") && !self.state.is_stopping() {
            return;
        }
        if self.state.rare.is_none() {
            return;
        }
        while let Some(task) = self.state.rare().futures.remove_last() {
            if mutant!("actor-future-drop-untold") {
                turn.drop_contained(task);
                continue;
            }
            drop_reported(&any(turn), task);
        }
        self.take_back();
    }

    /// Whether there is a value of the actor, here or lent to a future.
    pub(super) fn has_actor(&self) -> bool {
        let rare = self.state.rare.as_ref();
        self.actor.is_some() || rare.is_some_and(|rare| rare.futures.is_lent())
    }

    fn take_back(&mut self) {
        let rare = self.state.rare();
        if let Some(actor) = rare.futures.take_back() {
            self.actor = Some(actor);
        }
    }
}
