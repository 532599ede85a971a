//! The part of an actor that whoever knows its messages can reach.

use alloc::boxed::Box;

use clockjack_exec::SendError;
use clockjack_sync::{PushError, mail::Mailbox as Queue, mutant};

use crate::{
    base::{Core, STOP},
    envelope::Envelope,
    events::DeadLetterReason,
    props::Overflow,
    send::{WaitList, Waiters},
};

/// See the [module](self). It begins with the untyped part, so a reference to it is one to that.
#[repr(C)]
pub(crate) struct Front<M> {
    pub(crate) core: Core,
    pub(crate) mail: Queue<Envelope<M>>,
}

/// What became of a message that was accepted.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sent {
    /// It is in the mailbox, and its owner is awake.
    Quiet,
    /// It is in the mailbox, and its owner is to be woken.
    Wake,
}

impl<M: 'static> Front<M> {
    const _SAME: () = assert!(
        align_of::<Self>() == align_of::<Core>(),
        "a reference to a front is one to its core"
    );

    pub(crate) fn new(core: Core, capacity: usize) -> Self {
        const { Self::_SAME };
        let mail = match core.overflow {
            Overflow::DropOldest => Queue::evicting(capacity),
            _ => Queue::new(capacity),
        };
        Self { core, mail }
    }

    /// Puts a message into the mailbox, by the rules of its overflow.
    #[inline]
    pub(crate) fn push(&self, msg: M) -> Result<Sent, SendError<M>> {
        self.push_envelope(Envelope::new(msg))
    }

    /// As [`push`](Self::push), with what comes along.
    #[inline]
    pub(crate) fn push_envelope(&self, envelope: Envelope<M>) -> Result<Sent, SendError<M>> {
        match self.mail.push(envelope) {
            Ok(_) if mutant!("actor-push-unwoken") => Ok(Sent::Quiet),
            Ok(pushed) if pushed.wake || mutant!("actor-push-queues-twice") => Ok(Sent::Wake),
            Ok(_) => Ok(Sent::Quiet),
            Err(refused) => self.refuse(refused),
        }
    }

    #[cold]
    fn refuse(&self, refused: PushError<Envelope<M>>) -> Result<Sent, SendError<M>> {
        let is_full = refused.is_full();
        let envelope = refused.into_inner();
        if !is_full {
            return Err(SendError::stopped(envelope.msg));
        }
        match self.core.overflow {
            Overflow::Fail => Err(SendError::full(envelope.msg)),
            Overflow::DropNewest => {
                self.lose(envelope, DeadLetterReason::MailboxFull);
                Ok(Sent::Quiet)
            }
            Overflow::DropOldest => {
                let lose = |oldest| {
                    if !mutant!("actor-evicts-silently") {
                        self.lose(oldest, DeadLetterReason::Evicted);
                    }
                };
                match self.mail.push_or_evict(envelope, lose) {
                    Ok(pushed) if pushed.wake => Ok(Sent::Wake),
                    Ok(_) => Ok(Sent::Quiet),
                    Err(refused) if refused.is_full() => {
                        Err(SendError::full(refused.into_inner().msg))
                    }
                    Err(refused) => Err(SendError::stopped(refused.into_inner().msg)),
                }
            }
            Overflow::StopActor => {
                self.overflow();
                Err(SendError::stopped(envelope.msg))
            }
        }
    }

    /// The mailbox is full, and the actor is stopped for it; the caller wakes it.
    pub(crate) fn overflow(&self) {
        self.core.raise(STOP);
        self.core.system().mailbox_overflowed(&self.core.path);
    }

    /// Those who wait for room; none if nobody ever did.
    pub(crate) fn waiters(&self) -> Option<&Waiters<M>> {
        self.core.wait_list()?.as_any().downcast_ref()
    }

    /// Those who wait for room, in a list that is made for the first one.
    #[expect(unsafe_code, reason = "the list knows the front that it hangs in")]
    pub(crate) fn waiters_or_new(&self) -> &Waiters<M> {
        // SAFETY: the list hangs in the core of this front, which stands in a cell.
        let made = || -> Box<dyn WaitList> { Box::new(unsafe { Waiters::new(self) }) };
        let list = self.core.wait_list_or(made).as_any().downcast_ref();
        list.expect("the list of an actor has the type of its messages")
    }

    /// A message that nobody will handle: told, unless it was cancelled, and dropped.
    pub(crate) fn lose(&self, envelope: Envelope<M>, reason: DeadLetterReason) {
        if !envelope.is_cancelled() || mutant!("actor-evicts-cancelled-loudly") {
            self.core.system().dead_letter::<M>(&self.core.path, reason);
        }
        drop(envelope);
    }
}
