//! Sending that waits for room, where [`tell`](ActorRef::tell) would say full.
//!
//! # Protocol
//!
//! Roles: *senders*, any number, that found the mailbox full; the *runner*, the one that steps the
//! actor. Those who wait stand in a list of the actor's, made when the first one comes, each with a
//! ticket, its message and, once it was polled, its waker. One lock guards the list.
//!
//! 1. A sender that was told full takes the lock and *bars* the mailbox. If there is room after
//!    all, it leaves and claims it as a tell does. If the box is barred, it puts its message into
//!    the list, raises WAITERS in the bits of the cell, leaves, and wakes the cell.
//! 2. Under the lock these three are the same: the list has somebody, the mailbox is barred,
//!    WAITERS is up (the last also while messages that were given up are to be dropped). Who makes
//!    the list empty opens the mailbox again and takes WAITERS down.
//! 3. The runner looks at its bits before each message. If WAITERS is up, it takes the lock, claims
//!    room in spite of the bar and moves the oldest message there, as long as there is both. Then
//!    it wakes whom the message was from.
//! 4. A sender that is polled looks for its ticket. If it is not there, the message was moved. If
//!    it is, and the list is closed, the message comes back. Otherwise it leaves its waker.
//! 5. A sender that gives up takes its ticket out. If it was there, the message was not sent, and
//!    will not be; otherwise it was.
//! 6. When the actor begins to stop, the runner closes the mailbox, and then under the lock the
//!    list. It wakes all who wait; what was not moved is theirs. Requests of an
//!    [`ask`](ActorRef::ask) that nobody polls for are dropped by the runner.
//!
//! *Why nobody is overtaken*: a tell claims by exchanging the word that has the bar, so after
//! rule 1 it is told full until the list is empty; and the runner moves by ticket. *Why nobody
//! hangs*: who is in the list has raised WAITERS after that, and woken the cell. The runner is
//! not idle while the mailbox is barred, however it became empty; so it looks once more, and a look
//! at an empty mailbox moves at least one. Nothing is in the list after it was closed but what its
//! owner was woken for, and nothing can come: the bar says closed.
//!
//! The lock is held for some moves and a step in a queue, and calls nobody: wakers and messages are
//! dropped, and functions of mapped refs called, after it was opened.

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

use clockjack_exec::SendError;

pub(crate) use self::waiters::{
    DeferredMessage, Enqueued, MappedMessage, WaitList, Waiters, WaitingMessage,
};
use crate::{ActorRef, header::AnyActor};

impl<M: 'static> ActorRef<M> {
    /// Sends a message, and waits for room if the mailbox is full.
    ///
    /// It takes its place at the call: a [`tell`](Self::tell) that follows comes behind it, or says
    /// full. Who waits is let in in the order of the calls, and before anybody who does not wait.
    /// It waits where `tell` would say full: not if the mailbox overflows in another way.
    ///
    /// # Errors
    ///
    /// The message comes back if the actor stops; or, full, if the system is sealed, since waiting
    /// needs memory.
    ///
    /// # Cancellation
    ///
    /// Dropping it gives up: either the message was sent before, or it is dropped and never will
    /// be. [`Sending::cancel`] tells which, and gives the message back.
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
        let state = match self.tell(msg) {
            Ok(()) => SendState::Sent,
            Err(refused) if refused.is_full() => self.enqueue(refused.into_inner()),
            Err(refused) => SendState::Refused(refused),
        };
        Sending { state }
    }

    #[cold]
    fn enqueue(&self, msg: M) -> SendState<M> {
        if self.any().system().is_sealed() {
            return SendState::Refused(SendError::full(msg));
        }
        let mut back = None;
        let enqueued = self.wait_for_room(self.waiting_message(msg), false, &mut back);
        match (enqueued, back) {
            (Enqueued::Waits(ticket), _) => SendState::Waits { to: self.any().clone(), ticket },
            (Enqueued::Full, Some(msg)) => SendState::Again { to: self.clone(), msg },
            (Enqueued::Stopped, Some(msg)) => SendState::Refused(SendError::stopped(msg)),
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
    /// The mailbox gives room by evicting, and others were faster.
    Again {
        to: ActorRef<M>,
        msg: M,
    },
    Done,
}

impl<M> Unpin for Sending<M> {}

impl<M: 'static> Sending<M> {
    /// Gives up. The message, if it was not sent and now never will be; none if it was sent,
    /// surely, or its fate has been told already.
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
    /// If it is polled after it was ready, or cancelled.
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        match core::mem::replace(&mut this.state, SendState::Done) {
            SendState::Sent => Poll::Ready(Ok(())),
            SendState::Refused(refused) => Poll::Ready(Err(refused)),
            SendState::Waits { to, ticket } => {
                let mut back = None;
                let waiters = to.wait_list().expect("it stands in the list");
                let is_waiting = waiters.poll(ticket, cx.waker(), &mut back);
                if is_waiting {
                    this.state = SendState::Waits { to, ticket };
                    return Poll::Pending;
                }
                Poll::Ready(back.map_or(Ok(()), |msg| Err(SendError::stopped(msg))))
            }
            SendState::Again { to, msg } => match to.tell(msg) {
                Err(refused) if refused.is_full() => {
                    this.state = SendState::Again { to, msg: refused.into_inner() };
                    cx.waker().wake_by_ref();
                    Poll::Pending
                }
                result => Poll::Ready(result),
            },
            SendState::Done => panic!("polled after it was over"),
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
