//! The reader of a stream. Rules 3, 5 and 6 of the [protocol](super).
#![expect(unsafe_code, reason = "the subscription is the only consumer of its channel")]

use core::{
    fmt,
    future::Future,
    pin::Pin,
    task::{Context, Poll},
};

use clockjack_sync::{Arc, mail::Pop};

use super::{
    Bus, DiagnosticEvent, EventKinds,
    channel::{Channel, QueuedEvent},
};
use crate::Warning;

/// Reads the events of a [`Bus`]; unsubscribes on drop.
///
/// If events were dropped because the queue was full, then a
/// [`DiagnosticsDropped`](Warning::DiagnosticsDropped) comes in their place, whatever kinds were
/// asked for.
pub struct Subscription {
    bus: Arc<Bus>,
    slot: usize,
    kinds: EventKinds,
    channel: Arc<Channel>,
    /// The event after a loss that was just reported.
    held: Option<DiagnosticEvent>,
}

/// The result of reading the queue.
enum ReadResult {
    Event(DiagnosticEvent),
    Nothing,
    End,
}

impl Subscription {
    pub(super) fn new(
        bus: Arc<Bus>,
        slot: usize,
        kinds: EventKinds,
        channel: Arc<Channel>,
    ) -> Self {
        Self { bus, slot, kinds, channel, held: None }
    }

    /// The next event, if there is one now.
    pub fn try_next(&mut self) -> Option<DiagnosticEvent> {
        match self.read() {
            ReadResult::Event(event) => Some(event),
            ReadResult::Nothing | ReadResult::End => None,
        }
    }

    /// Waits for the next event; `None` when the bus was closed and everything was read.
    ///
    /// Nothing is lost if the future is dropped.
    pub const fn next(&mut self) -> Next<'_> {
        Next(self)
    }

    /// The next event, or the promise to wake when there is one; `None` as for
    /// [`next`](Self::next).
    pub fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<DiagnosticEvent>> {
        if let ReadResult::Event(event) = self.read() {
            return Poll::Ready(Some(event));
        }
        self.channel.waker.register(cx.waker());
        match self.read() {
            ReadResult::Event(event) => Poll::Ready(Some(event)),
            ReadResult::Nothing => Poll::Pending,
            ReadResult::End => Poll::Ready(None),
        }
    }

    /// How many events it has lost since the beginning; wraps around.
    #[must_use]
    pub fn dropped(&self) -> usize {
        self.channel.lost_total()
    }

    /// The kinds it was made for.
    #[must_use]
    pub const fn kinds(&self) -> EventKinds {
        self.kinds
    }

    fn pop(&mut self) -> Pop<QueuedEvent> {
        // SAFETY: a channel has one subscription, which is borrowed exclusively.
        unsafe { self.channel.pop() }
    }

    fn read(&mut self) -> ReadResult {
        if let Some(event) = self.held.take() {
            return ReadResult::Event(event);
        }
        // Before the pop: an empty queue is final only if it was closed before.
        let is_closed = self.channel.is_closed();
        match self.pop() {
            Pop::Item(QueuedEvent { lost_before: 0, event }) => ReadResult::Event(event),
            Pop::Item(QueuedEvent { lost_before, event }) => {
                self.held = Some(event);
                ReadResult::Event(dropped(lost_before))
            }
            Pop::Retry => ReadResult::Nothing,
            Pop::Empty => match self.channel.take_lost() {
                0 if is_closed => ReadResult::End,
                0 => ReadResult::Nothing,
                n => ReadResult::Event(dropped(n)),
            },
        }
    }
}

/// The event in place of `n` lost events.
const fn dropped(n: usize) -> DiagnosticEvent {
    DiagnosticEvent::Warned(Warning::DiagnosticsDropped { dropped: n as u64 })
}

impl Drop for Subscription {
    fn drop(&mut self) {
        self.bus.unsubscribe(self.slot, self.kinds);
        // A publisher may keep the channel alive in its slot: what it holds goes now.
        self.channel.close();
        while let Pop::Item(entry) = self.pop() {
            drop(entry);
        }
        drop(self.channel.waker.take());
    }
}

impl fmt::Debug for Subscription {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Subscription")
            .field("kinds", &self.kinds)
            .field("len", &self.channel.len())
            .field("dropped", &self.dropped())
            .finish_non_exhaustive()
    }
}

/// Waits for the next event; made by [`Subscription::next`].
#[derive(Debug)]
#[must_use = "a future does nothing unless it is polled"]
pub struct Next<'s>(&'s mut Subscription);

impl Future for Next<'_> {
    type Output = Option<DiagnosticEvent>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.0.poll_next(cx)
    }
}
