//! How a runner polls the futures of its actor.
#![expect(unsafe_code, reason = "polls futures of types that only their functions know")]

use core::task::{self, Poll};

use super::{Cell, PollOf, any, lifecycle::drop_reported};
use crate::{Actor, Context};

impl<A: Actor, F: FnMut() -> A + 'static> Cell<A, F> {
    /// Polls the future that was woken first, and runs its continuation if it is ready.
    pub(super) fn poll_next(&mut self, poll: &PollOf<'_, A::Msg>) {
        let Self { actor, state, .. } = self;
        let Some(due) = state.rare().futures.next_due() else { return };
        state.rare().in_other_handler = true;
        let waker = due.waker();
        let mut cx = Context::new(state, poll);
        let mut waker = task::Context::from_waker(&waker);
        let polled = due.span.enter(&poll.shared().header, || {
            // SAFETY: body and function belong to one task, which is in its entry and marked as
            // being polled; the task is pinned there, and the runner borrows the cell.
            unsafe { (due.run)(due.body, &mut waker, actor, &mut cx) }
        });
        let name = due.name;
        state.rare().in_other_handler = false;
        state.rare().futures.was_polled(due);
        state.finish_wait();
        if let Poll::Ready(result) = polled {
            self.handle_result_of(poll, result, name);
        }
    }

    /// A panic has left a poll: a future that was being polled is not polled again.
    pub(super) fn drop_polled(&mut self, poll: &PollOf<'_, A::Msg>) {
        let Some(rare) = &mut self.state.rare else { return };
        if let Some(task) = rare.futures.remove_polled() {
            drop_reported(&any(poll), task);
            self.take_back();
        }
        // The continuation of a wait may have panicked; its task was removed before.
        self.state.finish_wait();
    }

    /// Cancels all futures, and moves a lent actor back into the cell.
    pub(super) fn cancel_futures(&mut self, poll: &PollOf<'_, A::Msg>) {
        if self.state.rare.is_none() {
            return;
        }
        while let Some(task) = self.state.rare().futures.remove_last() {
            drop_reported(&any(poll), task);
        }
        self.take_back();
    }

    /// Whether there is a value of the actor, in the cell or lent to a future.
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
