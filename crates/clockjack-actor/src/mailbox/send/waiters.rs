//! The list of senders that wait for room in a mailbox; the [parent module](super) describes its
//! protocol.
#![expect(unsafe_code, reason = "the list of an actor stands in its shared")]

use alloc::{boxed::Box, vec::Vec};
use core::{any::Any, ptr::NonNull, task::Waker};

use clockjack_sync::{
    mail::{Permit, WaiterReservation},
    spin_lock::SpinLock,
};

use super::wait_queue::WaitQueue;
use crate::{
    carried_span::CarriedSpan,
    cell::{
        envelope::Envelope,
        header::{AnyActor, WAITERS},
        shared::ActorShared,
    },
    props::Overflow,
    room::{Segments, with_room},
};

/// How many senders the runner refuses while it holds the lock.
const PAGE_LEN: usize = 32;

/// A message that waits.
pub(crate) enum WaitingMessage<M> {
    /// The message itself.
    Ready(M),
    /// What a mapped reference turns into a message when there is room.
    Mapped(Box<dyn DeferredMessage<M>>),
}

/// A message that is made when there is room.
pub(crate) trait DeferredMessage<M> {
    /// Makes the message, with what is attached to it; called once.
    fn make(&mut self) -> Envelope<M>;
    /// Returns the original value, into an `Option` of its type.
    fn give_back(&mut self, back: &mut dyn Any);
}

/// The value as it was given.
struct UnmappedMessage<N>(Option<N>);

impl<N: 'static> DeferredMessage<N> for UnmappedMessage<N> {
    fn make(&mut self) -> Envelope<N> {
        Envelope::new(self.0.take().expect("it is made once"))
    }

    fn give_back(&mut self, back: &mut dyn Any) {
        put_back(self.0.take(), back);
    }
}

/// A value that the function of a mapped reference converts.
pub(crate) struct MappedMessage<N, F> {
    pub(crate) from: Box<dyn DeferredMessage<N>>,
    pub(crate) f: F,
}

impl<N, M, F: Fn(N) -> M> DeferredMessage<M> for MappedMessage<N, F> {
    fn make(&mut self) -> Envelope<M> {
        self.from.make().map(&self.f)
    }

    fn give_back(&mut self, back: &mut dyn Any) {
        self.from.give_back(back);
    }
}

/// A message that carries the span in which it was sent.
pub(crate) struct MessageInSpan<M> {
    pub(crate) from: Box<dyn DeferredMessage<M>>,
    pub(crate) receiver: AnyActor,
    pub(crate) span: CarriedSpan,
}

impl<M> DeferredMessage<M> for MessageInSpan<M> {
    fn make(&mut self) -> Envelope<M> {
        self.from.make().carrying(&self.receiver, core::mem::take(&mut self.span))
    }

    fn give_back(&mut self, back: &mut dyn Any) {
        self.from.give_back(back);
    }
}

fn put_back<N: 'static>(what: Option<N>, back: &mut dyn Any) {
    if let Some(back) = back.downcast_mut::<Option<N>>() {
        *back = what;
    }
}

impl<M: 'static> WaitingMessage<M> {
    /// To be made when there is room.
    pub(crate) fn deferred(msg: M) -> Box<dyn DeferredMessage<M>> {
        Box::new(UnmappedMessage(Some(msg)))
    }

    pub(crate) fn boxed(self) -> Box<dyn DeferredMessage<M>> {
        match self {
            Self::Ready(msg) => Self::deferred(msg),
            Self::Mapped(message) => message,
        }
    }

    fn give_back(self, back: &mut dyn Any) {
        match self {
            Self::Ready(msg) => put_back(Some(msg), back),
            Self::Mapped(mut message) => message.give_back(back),
        }
    }
}

/// The result of an attempt to wait. A refused message is given back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Enqueued {
    /// There was room after all.
    Sent,
    /// The sender waits, with this ticket.
    Waits(u64),
    /// The overflow policy of the mailbox does not allow waiting.
    Full,
    /// The actor accepts no more messages.
    Stopped,
}

/// The waiting senders; see the [parent module](super).
pub(crate) struct Waiters<M: 'static> {
    /// The shared part that owns this list, so it lives at least as long.
    shared: NonNull<ActorShared<M>>,
    list: SpinLock<List<M>>,
}

struct List<M> {
    waiting: WaitQueue<Waiter<M>>,
    /// Cancelled on another thread, to be dropped by the runner.
    cancelled: Segments<WaitingMessage<M>>,
    is_closed: bool,
}

struct Waiter<M> {
    message: WaitingMessage<M>,
    waker: Option<Waker>,
    /// Whether it is the request of an ask, for which no future polls here.
    is_request: bool,
}

/// The operations on a ticket, for lists of all message types.
pub(crate) trait WaitList {
    /// Whether the sender still waits; then `waker` will be woken. If it does not wait and the
    /// message was not sent, the message is given back.
    fn poll(&self, ticket: u64, waker: &Waker, back: &mut dyn Any) -> bool;
    /// Removes the message and gives it back, if it was not sent.
    fn cancel(&self, ticket: u64, back: &mut dyn Any);
    /// Removes a request and drops it: here or, if it must not be dropped on this thread, by the
    /// runner, which the caller wakes.
    fn cancel_request(&self, ticket: u64, is_local: bool);
    /// The list of the concrete message type.
    fn as_any(&self) -> &dyn Any;
}

/// Room for a message, and the message to be made.
type DeferredWrite<'m, M> = (Permit<'m, Envelope<M>>, Box<dyn DeferredMessage<M>>);

/// A message that got room.
pub(crate) struct Admitted<'m, M> {
    /// Room that was claimed for a message that is to be made first.
    pub(crate) deferred: Option<DeferredWrite<'m, M>>,
    /// The waker of the sender.
    pub(crate) waker: Option<Waker>,
}

/// A sender that waits when the list is closed.
enum Refused<M> {
    Request(WaitingMessage<M>),
    /// Its message stays in the list.
    Sender(Option<Waker>),
}

/// What remains when a list is closed.
pub(crate) struct Leftover<M> {
    pub(crate) requests: Vec<WaitingMessage<M>>,
    pub(crate) wakers: Vec<Waker>,
}

impl<M: 'static> Waiters<M> {
    /// # Safety
    ///
    /// It lives no longer than the shared part, which does not move.
    pub(crate) unsafe fn new(shared: &ActorShared<M>) -> Self {
        let (waiting, cancelled) = (WaitQueue::new(), Segments::new());
        let list = SpinLock::new(List { waiting, cancelled, is_closed: false });
        Self { shared: NonNull::from(shared), list }
    }

    fn shared(&self) -> &ActorShared<M> {
        // SAFETY: by the contract of `new`.
        unsafe { self.shared.as_ref() }
    }

    /// Rule 1; `wake` wakes the cell, and `queue` queues it if a claim has ended its idle state.
    pub(crate) fn wait_for_room(
        &self,
        message: WaitingMessage<M>,
        is_request: bool,
        back: &mut dyn Any,
        wake: &dyn Fn(),
        queue: &dyn Fn(),
    ) -> Enqueued {
        if self.shared().header.overflow != Overflow::Fail {
            message.give_back(back);
            return Enqueued::Full;
        }
        let mut waiting = Some(message);
        loop {
            let (bar, ticket) = with_room(
                &self.list,
                |list| &mut list.waiting,
                |list| self.enter(list, &mut waiting, is_request),
            );
            match (bar, waiting.take()) {
                (WaiterReservation::Reserved, _) => {
                    wake();
                    return Enqueued::Waits(ticket);
                }
                (WaiterReservation::HasRoom, Some(message)) => match self.push(message) {
                    Ok(wakes) => {
                        if wakes {
                            queue();
                        }
                        return Enqueued::Sent;
                    }
                    Err(message) => waiting = Some(message),
                },
                (_, message) => {
                    if let Some(message) = message {
                        message.give_back(back);
                    }
                    return Enqueued::Stopped;
                }
            }
        }
    }

    /// Pushes a message for which there was room, and returns whether the caller must queue the
    /// cell. The function of a mapped reference runs before the push; the message that the function
    /// makes is accepted even if the room was taken meanwhile. A sealed system has no memory for
    /// that: there the message, which cannot be returned, becomes a dead letter.
    fn push(&self, message: WaitingMessage<M>) -> Result<bool, WaitingMessage<M>> {
        let mail = &self.shared().mail;
        match message {
            WaitingMessage::Ready(msg) => match mail.push(Envelope::new(msg)) {
                Ok(pushed) => Ok(pushed.wake),
                Err(refused) => Err(WaitingMessage::Ready(refused.into_inner().msg)),
            },
            WaitingMessage::Mapped(mut message) => {
                let envelope = message.make();
                let is_sealed = self.shared().header.system().is_sealed();
                let pushed = if is_sealed { mail.push(envelope) } else { mail.push_late(envelope) };
                let refused = |refused| self.shared().discard_refused(refused);
                Ok(pushed.map_err(refused).is_ok_and(|pushed| pushed.wake))
            }
        }
    }

    fn enter(
        &self,
        list: &mut List<M>,
        message: &mut Option<WaitingMessage<M>>,
        is_request: bool,
    ) -> (WaiterReservation, u64) {
        let bar = self.shared().mail.reserve_for_waiters();
        let mut ticket = 0;
        if bar == WaiterReservation::Reserved
            && let Some(message) = message.take()
        {
            ticket = list.waiting.push(Waiter { message, waker: None, is_request });
            self.shared().header.set_flags(WAITERS);
        }
        (bar, ticket)
    }

    /// Rule 2; called whenever an entry has left the list.
    fn update_reservation(&self, list: &List<M>) {
        if !list.waiting.is_empty() {
            return;
        }
        self.shared().mail.release_reservation();
        if list.cancelled.len() == 0 {
            self.shared().header.clear_flags(WAITERS);
        }
    }

    fn take(&self, list: &mut List<M>, ticket: u64) -> Option<Waiter<M>> {
        let taken = list.waiting.remove(ticket);
        if taken.is_some() {
            self.update_reservation(list);
        }
        taken
    }

    /// Rule 3, once. For the runner.
    pub(crate) fn admit(&self) -> Option<Admitted<'_, M>> {
        let (permit, next) = self.list.with(|list| {
            if list.waiting.is_empty() {
                self.update_reservation(list);
                return None;
            }
            let permit = self.shared().mail.claim_for_waiter().ok()?;
            let next = list.waiting.pop()?;
            self.update_reservation(list);
            Some((permit, next))
        })?;
        let deferred = match next.message {
            WaitingMessage::Ready(msg) => {
                // Outside of the lock, because the mailbox may allocate.
                let _ = permit.write(Envelope::new(msg));
                None
            }
            WaitingMessage::Mapped(message) => Some((permit, message)),
        };
        Some(Admitted { deferred, waker: next.waker })
    }

    /// The messages that were cancelled on other threads. For the runner.
    pub(crate) fn take_cancelled(&self) -> impl Iterator<Item = WaitingMessage<M>> + use<M> {
        let mut cancelled = self.list.with(|list| {
            let cancelled = core::mem::take(&mut list.cancelled);
            self.update_reservation(list);
            cancelled
        });
        core::iter::from_fn(move || cancelled.pop())
    }

    /// Rule 6. The mailbox is closed. For the runner.
    pub(crate) fn close(&self) -> Leftover<M> {
        let mut left = Leftover { requests: Vec::new(), wakers: Vec::new() };
        loop {
            let mut page = [const { None }; PAGE_LEN];
            let cancelled = self.list.with(|list| self.refuse_page(list, &mut page));
            for refused in page.into_iter().flatten() {
                match refused {
                    Refused::Request(message) => left.requests.push(message),
                    Refused::Sender(waker) => left.wakers.extend(waker),
                }
            }
            if let Some(mut cancelled) = cancelled {
                left.requests.extend(core::iter::from_fn(|| cancelled.pop()));
                return left;
            }
        }
    }

    /// Closes the list and refuses some of the senders. The last call returns the messages that
    /// were cancelled: afterwards there is no request that could be cancelled.
    fn refuse_page(
        &self,
        list: &mut List<M>,
        page: &mut [Option<Refused<M>>; PAGE_LEN],
    ) -> Option<Segments<WaitingMessage<M>>> {
        list.is_closed = true;
        for place in page {
            let Some((ticket, one)) = list.waiting.unlink_first() else { break };
            *place = if one.is_request {
                list.waiting.remove(ticket).map(|one| Refused::Request(one.message))
            } else {
                Some(Refused::Sender(one.waker.take()))
            };
        }
        if !list.waiting.is_empty() {
            return None;
        }
        self.shared().mail.release_reservation();
        self.shared().header.clear_flags(WAITERS);
        Some(core::mem::take(&mut list.cancelled))
    }
}

impl<M: 'static> WaitList for Waiters<M> {
    fn poll(&self, ticket: u64, waker: &Waker, back: &mut dyn Any) -> bool {
        let mut spare = Some(waker.clone());
        let left = self.list.with(|list| {
            if list.is_closed {
                return Some(list.waiting.remove(ticket));
            }
            let Some(waiting) = list.waiting.get_mut(ticket) else { return Some(None) };
            if !waiting.waker.as_ref().is_some_and(|known| known.will_wake(waker)) {
                core::mem::swap(&mut waiting.waker, &mut spare);
            }
            None
        });
        drop(spare);
        match left {
            None => true,
            Some(left) => {
                if let Some(waiting) = left {
                    waiting.message.give_back(back);
                }
                false
            }
        }
    }

    fn cancel(&self, ticket: u64, back: &mut dyn Any) {
        let taken = self.list.with(|list| {
            if list.is_closed { list.waiting.remove(ticket) } else { self.take(list, ticket) }
        });
        if let Some(waiting) = taken {
            waiting.message.give_back(back);
        }
    }

    fn cancel_request(&self, ticket: u64, is_local: bool) {
        let cancel = |list: &mut List<M>| {
            let taken = self.take(list, ticket)?;
            if !is_local {
                return Some(taken);
            }
            list.cancelled.push(taken.message);
            self.shared().header.set_flags(WAITERS);
            None
        };
        drop(with_room(&self.list, |list| &mut list.cancelled, cancel));
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl<M: 'static> Drop for Waiters<M> {
    /// A message that is still here belongs to a sender that was leaked. The last reference to an
    /// actor may be dropped on any thread, so it is not known whether the message may be dropped
    /// here.
    fn drop(&mut self) {
        let list = self.list.get_mut();
        // Only the messages are leaked: the memory of the queue is freed.
        while let Some(one) = list.waiting.take_any() {
            core::mem::forget(one.message);
        }
        while let Some(message) = list.cancelled.pop() {
            core::mem::forget(message);
        }
    }
}
