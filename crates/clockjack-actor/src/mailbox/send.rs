//! Sending that waits for room, where [`tell`](ActorRef::tell) would return "full".
//!
//! # Protocol
//!
//! Roles: *senders*, any number, that found the mailbox full; the *runner*, the thread that polls
//! the actor. Waiting senders are in a list of the actor, allocated for the first one. Each entry
//! has a ticket, the message and, once the sender was polled, its waker. One lock protects the
//! list.
//!
//! 1. A sender that found the mailbox full takes the lock and *reserves* the mailbox: from then on,
//!    free room is for waiting senders only. If there is room after all, the sender releases the
//!    lock and sends as a tell does. If the mailbox is reserved, the sender puts its
//!    message into the list, sets WAITERS in the flag word of the cell, releases the lock, and
//!    wakes the cell.
//! 2. Under the lock, these three statements are equivalent: the list is not empty, the mailbox is
//!    reserved, WAITERS is set (WAITERS also while cancelled messages remain to be dropped). The
//!    thread that removes the last entry releases the reservation and clears WAITERS.
//! 3. The runner reads the flag word before each message. If WAITERS is set, it takes the lock and,
//!    as long as there are a waiting message and room, claims room in spite of the reservation for
//!    the oldest message. It moves the message there after it has released the lock, because the
//!    mailbox may allocate. Then it wakes the sender of the message.
//! 4. A sender that is polled looks up its ticket. If the ticket is not in the list, the message
//!    was moved. If it is, and the list is closed, the sender gets its message back. Otherwise it
//!    stores its waker.
//! 5. A sender that is cancelled removes its ticket. If the ticket was in the list, the message was
//!    not sent and never will be; otherwise it was sent.
//! 6. When the actor begins to stop, the runner closes the mailbox, and then, under the lock, the
//!    list. It refuses the waiting senders, some at a time under the lock, and wakes them; messages
//!    that were not moved belong to them. Requests of an [`ask`](ActorRef::ask), which nobody polls
//!    for, are dropped by the runner.
//!
//! 7. The function of a mapped reference runs on the thread of the sender before the message claims
//!    a position: a claim that is not written stops the runner, and the function is user code,
//!    which may run for long. So the sender checks for room, runs the function, and pushes the
//!    message late (rule 13 of [`mail`](clockjack_sync::mail)). Only the runner runs such a
//!    function with a claim (rule 3), and only the runner would wait for that claim.
//!
//! *Why no tell overtakes a waiting sender*: a tell claims room by a compare-and-swap of the word
//! that contains the reservation, so after rule 1 it gets "full" until the list is empty; and the
//! runner moves messages in the order of their tickets. A mapped tell that has found room before
//! rule 1 may come before a sender that began to wait while the function ran. *Why no sender waits
//! forever*: a sender sets WAITERS and wakes the cell after it has entered the list. The runner
//! cannot go idle while the mailbox is reserved, no matter how the mailbox became empty; so it
//! polls once more, and a poll with an empty mailbox moves at least one message. After the list was
//! closed no further senders can enter it, because the attempt to reserve returns "closed", and the
//! runner wakes all those that are in it.
//!
//! The lock is held for a few moves and one queue operation, and no user code runs inside: wakers
//! and messages are dropped, and functions of mapped references called, after it was released.

#[cfg(loom)]
#[doc(hidden)]
pub mod model;
mod wait_queue;
mod waiters;

use core::{
    fmt,
    pin::Pin,
    task::{Context, Poll},
};

use clockjack_exec::{SendError, poll_leaf};

pub(crate) use self::waiters::{
    DeferredMessage, Enqueued, MappedMessage, MessageInSpan, WaitList, Waiters, WaitingMessage,
};
use crate::{ActorRef, cell::header::AnyActor};

impl<M: 'static> ActorRef<M> {
    /// Sends a message, and waits for room if the mailbox is full.
    ///
    /// The message takes its place in the order at the time of the call: a [`tell`](Self::tell)
    /// that follows comes after it, or returns "full". Waiting senders are served in the order of
    /// the calls, and before senders that do not wait. `send` waits only where `tell` would return
    /// "full": not if the mailbox has another overflow policy.
    ///
    /// # Errors
    ///
    /// Returns the message if the actor stops; or, as full, if the system is sealed, because
    /// waiting needs memory.
    ///
    /// # Cancellation
    ///
    /// Dropping the future cancels the send: either the message was sent before, or it is dropped
    /// and never sent. [`Sending::cancel`] says which, and returns the message.
    ///
    /// # Examples
    ///
    /// ```
    /// # use clockjack_actor::{ActorRef, SendError};
    /// async fn feed(to: &ActorRef<u32>) -> Result<(), SendError<u32>> {
    ///     for n in 0..1000 {
    ///         to.send(n).await?;
    ///     }
    ///     Ok(())
    /// }
    /// ```
    pub fn send(&self, msg: M) -> Sending<M> {
        let state = match self.offer(msg) {
            Ok(()) => SendState::Sent,
            Err(refused) if refused.is_full() => self.enqueue(refused.into_inner()),
            Err(refused) => SendState::Refused(self.counted(refused)),
        };
        Sending { state }
    }

    #[cold]
    fn enqueue(&self, msg: M) -> SendState<M> {
        if self.any().system().is_sealed() {
            return SendState::Refused(self.counted(SendError::full(msg)));
        }
        let mut back = None;
        let enqueued = self.wait_for_room(self.waiting_message(msg), false, &mut back);
        match (enqueued, back) {
            (Enqueued::Waits(ticket), _) => SendState::Waits { to: self.any().clone(), ticket },
            (Enqueued::Full, Some(msg)) => SendState::Again { to: self.clone(), msg },
            (Enqueued::Stopped, Some(msg)) => {
                SendState::Refused(self.counted(SendError::stopped(msg)))
            }
            (Enqueued::Sent | Enqueued::Full | Enqueued::Stopped, _) => SendState::Sent,
        }
    }
}

/// The future of [`ActorRef::send`].
#[must_use = "the message may wait for room, and is given up when this is dropped"]
pub struct Sending<M: 'static> {
    state: SendState<M>,
}

enum SendState<M: 'static> {
    Sent,
    Refused(SendError<M>),
    Waits {
        to: AnyActor,
        ticket: u64,
    },
    /// The mailbox makes room by eviction, and other senders were faster.
    Again {
        to: ActorRef<M>,
        msg: M,
    },
    Done,
}

impl<M> Unpin for Sending<M> {}

impl<M: 'static> Sending<M> {
    /// Cancels the send. Returns the message if it was not sent and never will be; none if it was
    /// sent, or if the result was already returned by a poll.
    pub fn cancel(self: Pin<&mut Self>) -> Option<M> {
        self.get_mut().cancel_send()
    }

    fn cancel_send(&mut self) -> Option<M> {
        match core::mem::replace(&mut self.state, SendState::Done) {
            SendState::Sent | SendState::Done => None,
            SendState::Refused(refused) => Some(refused.into_inner()),
            SendState::Again { msg, .. } => Some(msg),
            SendState::Waits { to, ticket } => {
                let mut back = None;
                if let Some(waiters) = to.wait_list() {
                    waiters.cancel(ticket, &mut back);
                }
                back
            }
        }
    }
}

impl<M: 'static> Future for Sending<M> {
    type Output = Result<(), SendError<M>>;

    /// # Panics
    ///
    /// If it is polled after it was ready or cancelled.
    #[track_caller]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        poll_leaf(cx, |cx| self.get_mut().poll_sent(cx))
    }
}

impl<M: 'static> Sending<M> {
    /// As `poll`, without the budget of the task.
    fn poll_sent(&mut self, cx: &Context<'_>) -> Poll<Result<(), SendError<M>>> {
        match core::mem::replace(&mut self.state, SendState::Done) {
            SendState::Sent => Poll::Ready(Ok(())),
            SendState::Refused(refused) => Poll::Ready(Err(refused)),
            SendState::Waits { to, ticket } => {
                let mut back = None;
                let waiters = to.wait_list().expect("a waiting sender is in a list");
                let is_waiting = waiters.poll(ticket, cx.waker(), &mut back);
                if is_waiting {
                    self.state = SendState::Waits { to, ticket };
                    return Poll::Pending;
                }
                Poll::Ready(back.map_or(Ok(()), |msg| {
                    to.system().refused(&to, false);
                    Err(SendError::stopped(msg))
                }))
            }
            SendState::Again { to, msg } => match to.offer(msg) {
                Err(refused) if refused.is_full() => {
                    self.state = SendState::Again { to, msg: refused.into_inner() };
                    cx.waker().wake_by_ref();
                    Poll::Pending
                }
                result => Poll::Ready(result.map_err(|refused| to.counted(refused))),
            },
            SendState::Done => panic!("polled after it was ready or cancelled"),
        }
    }
}

impl<M: 'static> Drop for Sending<M> {
    fn drop(&mut self) {
        drop(self.cancel_send());
    }
}

impl<M> fmt::Debug for Sending<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = match self.state {
            SendState::Sent => "sent",
            SendState::Refused(_) => "refused",
            SendState::Waits { .. } | SendState::Again { .. } => "waits",
            SendState::Done => "over",
        };
        f.debug_tuple("Sending").field(&state).finish()
    }
}
