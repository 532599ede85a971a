//! The typed part of an actor that all of its references share: header and mailbox.

use alloc::boxed::Box;
use core::mem::ManuallyDrop;

use clockjack_exec::{SendError, custom_task::CustomTaskRef};
use clockjack_sync::{
    PushError,
    mail::{Mailbox as Queue, NextPosition, Position},
};

use crate::{
    cell::{
        envelope::Envelope,
        header::{ActorHeader, AnyActor, MAILBOX_FULL, STOP},
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

/// What every [`ActorShared`] begins with, whatever the type of its messages.
#[repr(C)]
struct Prefix {
    header: ActorHeader,
    next_position: NextPosition,
}

/// The position that the next message of an actor gets in its mailbox.
#[expect(unsafe_code, reason = "the message type of the actor is not known")]
pub(crate) fn next_position(actor: &AnyActor) -> Position {
    // SAFETY: the shared part of every actor begins with a `Prefix`, at the same alignment: the
    // mailbox follows the header, and begins with its next position. The handle is not dropped, so
    // the reference is not given away.
    let prefix = ManuallyDrop::new(unsafe { CustomTaskRef::<Prefix>::from_raw(actor.as_raw()) });
    prefix.next_position.get()
}

/// How many messages were accepted by the mailbox of an actor, and whether the actor has gone idle
/// since the last one. For displays.
#[expect(unsafe_code, reason = "the message type of the actor is not known")]
pub(crate) fn accepted(actor: &AnyActor) -> (usize, bool) {
    // SAFETY: as in `next_position`.
    let prefix = ManuallyDrop::new(unsafe { CustomTaskRef::<Prefix>::from_raw(actor.as_raw()) });
    (prefix.next_position.claimed(), prefix.next_position.is_idle())
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
    const _MAILBOX_FOLLOWS: () = assert!(
        core::mem::offset_of!(Self, mail) == core::mem::offset_of!(Prefix, next_position)
            && align_of::<Self>() == align_of::<Prefix>(),
        "a reference to the shared part is one to its prefix"
    );

    pub(crate) fn new(header: ActorHeader, capacity: usize) -> Self {
        const { Self::_SAME_ALIGNMENT };
        const { Self::_MAILBOX_FOLLOWS };
        let mail = match header.overflow {
            Overflow::DropOldest => Queue::evicting(capacity),
            Overflow::Fail | Overflow::DropNewest | Overflow::StopActor => Queue::new(capacity),
        };
        Self { header, mail }
    }

    /// Puts a message into the mailbox, according to its overflow policy.
    #[inline]
    pub(crate) fn push(&self, msg: M) -> Result<Accepted, SendError<M>> {
        self.push_envelope(Envelope::new(msg)).map_err(|refused| self.send_error(refused))
    }

    /// As [`push`](Self::push), with attachments.
    #[inline]
    pub(crate) fn push_envelope(
        &self,
        envelope: Envelope<M>,
    ) -> Result<Accepted, PushError<Envelope<M>>> {
        match self.mail.push(envelope) {
            Ok(pushed) if pushed.wake => Ok(Accepted::MustWake),
            Ok(_) => Ok(Accepted::NoWake),
            Err(refused) => self.refuse(refused),
        }
    }

    #[cold]
    pub(crate) fn send_error(&self, refused: PushError<Envelope<M>>) -> SendError<M> {
        // A mailbox whose overflow stops the actor takes nothing any more.
        let is_full = refused.is_full() && self.header.overflow != Overflow::StopActor;
        let msg = refused.into_inner().msg;
        if is_full { SendError::full(msg) } else { SendError::stopped(msg) }
    }

    /// Applies the overflow policy to a message that the mailbox has refused.
    #[cold]
    fn refuse(&self, refused: PushError<Envelope<M>>) -> Result<Accepted, PushError<Envelope<M>>> {
        if !refused.is_full() {
            return Err(refused);
        }
        self.header.set_flags(MAILBOX_FULL);
        match self.header.overflow {
            Overflow::Fail => Err(refused),
            Overflow::DropNewest => {
                self.discard(refused.into_inner(), DeadLetterReason::MailboxFull);
                Ok(Accepted::NoWake)
            }
            Overflow::DropOldest => {
                let discard = |oldest| {
                    self.discard(oldest, DeadLetterReason::Evicted);
                };
                let pushed = self.mail.push_or_evict(refused.into_inner(), discard)?;
                Ok(if pushed.wake { Accepted::MustWake } else { Accepted::NoWake })
            }
            Overflow::StopActor => {
                self.overflow();
                Err(refused)
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

    /// Discards a message that cannot be returned to its sender.
    #[cold]
    pub(crate) fn discard_refused(&self, refused: PushError<Envelope<M>>) {
        let reason = match refused.is_full() {
            true => DeadLetterReason::MailboxFull,
            false => DeadLetterReason::Stopped,
        };
        self.discard(refused.into_inner(), reason);
    }
}
