//! The typed part of an actor that all of its references share: header and mailbox.

use alloc::boxed::Box;

use clockjack_exec::SendError;
use clockjack_sync::{PushError, mail::Mailbox as Queue};

use crate::{
    cell::{
        envelope::Envelope,
        header::{ActorHeader, STOP},
    },
    events::DeadLetterReason,
    props::Overflow,
    send::{WaitList, Waiters},
};

/// See the [module](self). It begins with the untyped header, so a reference to it is also one to
/// the header.
#[repr(C)]
pub(crate) struct ActorShared<M> {
    pub(crate) header: ActorHeader,
    pub(crate) mail: Queue<Envelope<M>>,
}

/// Whether the sender of an accepted message must wake the receiver.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Accepted {
    /// The message is in the mailbox, and the receiver is awake.
    NoWake,
    /// The message is in the mailbox, and the receiver must be woken.
    MustWake,
}

impl<M: 'static> ActorShared<M> {
    const _SAME_ALIGNMENT: () = assert!(
        align_of::<Self>() == align_of::<ActorHeader>(),
        "a reference to the shared part is one to its header"
    );

    pub(crate) fn new(header: ActorHeader, capacity: usize) -> Self {
        const { Self::_SAME_ALIGNMENT };
        let mail = match header.overflow {
            Overflow::DropOldest => Queue::evicting(capacity),
            _ => Queue::new(capacity),
        };
        Self { header, mail }
    }

    /// Puts a message into the mailbox, according to its overflow policy.
    #[inline]
    pub(crate) fn push(&self, msg: M) -> Result<Accepted, SendError<M>> {
        self.push_envelope(Envelope::new(msg))
    }

    /// As [`push`](Self::push), with attachments.
    #[inline]
    pub(crate) fn push_envelope(&self, envelope: Envelope<M>) -> Result<Accepted, SendError<M>> {
        match self.mail.push(envelope) {
            Ok(pushed) if pushed.wake => Ok(Accepted::MustWake),
            Ok(_) => Ok(Accepted::NoWake),
            Err(refused) => self.refuse(refused),
        }
    }

    #[cold]
    fn refuse(&self, refused: PushError<Envelope<M>>) -> Result<Accepted, SendError<M>> {
        let is_full = refused.is_full();
        let envelope = refused.into_inner();
        if !is_full {
            return Err(SendError::stopped(envelope.msg));
        }
        match self.header.overflow {
            Overflow::Fail => Err(SendError::full(envelope.msg)),
            Overflow::DropNewest => {
                self.discard(envelope, DeadLetterReason::MailboxFull);
                Ok(Accepted::NoWake)
            }
            Overflow::DropOldest => {
                let discard = |oldest| {
                    self.discard(oldest, DeadLetterReason::Evicted);
                };
                match self.mail.push_or_evict(envelope, discard) {
                    Ok(pushed) if pushed.wake => Ok(Accepted::MustWake),
                    Ok(_) => Ok(Accepted::NoWake),
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

    /// The mailbox is full, and therefore the actor stops; the caller wakes it.
    pub(crate) fn overflow(&self) {
        self.header.set_flags(STOP);
        self.header.system().mailbox_overflowed(&self.header.path);
    }

    /// The senders that wait for room; none if there never was one.
    pub(crate) fn waiters(&self) -> Option<&Waiters<M>> {
        self.header.wait_list()?.as_any().downcast_ref()
    }

    /// The senders that wait for room, in a list that is allocated for the first one.
    #[expect(unsafe_code, reason = "the list knows the shared that it hangs in")]
    pub(crate) fn waiters_or_new(&self) -> &Waiters<M> {
        // SAFETY: the list belongs to the header of this shared part, which is in a cell and does
        // not move.
        let made = || -> Box<dyn WaitList> { Box::new(unsafe { Waiters::new(self) }) };
        let list = self.header.wait_list_or(made).as_any().downcast_ref();
        list.expect("the list of an actor has the type of its messages")
    }

    /// Discards a message; it is a dead letter, unless it was cancelled.
    pub(crate) fn discard(&self, envelope: Envelope<M>, reason: DeadLetterReason) {
        if !envelope.is_cancelled() {
            self.header.system().dead_letter::<M>(&self.header.path, reason);
        }
        drop(envelope);
    }
}
