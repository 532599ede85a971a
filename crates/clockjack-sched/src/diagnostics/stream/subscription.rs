//! The reader of a stream.

use core::{
    fmt,
    future::{Future, poll_fn},
    task::{Context, Poll},
};

use clockjack_observe::bus::{Item, Queue};
use clockjack_sync::Arc;

use super::{Bus, DiagnosticEvent, EventKinds};
use crate::Warning;

/// Reads the events of a scheduler; unsubscribes on drop.
///
/// If events were dropped, then a [`DiagnosticsDropped`](Warning::DiagnosticsDropped) comes in
/// their place, whatever kinds were asked for. Events are dropped if the queue is full, or if
/// publishers could not reach it; of the latter the reader learns when it has read everything, and
/// their number includes those of other kinds.
pub struct Subscription {
    bus: Arc<Bus>,
    /// `None` if the bus was already closed.
    id: Option<usize>,
    kinds: EventKinds,
    /// Always there before the drop.
    queue: Option<Arc<Queue<DiagnosticEvent>>>,
    /// The count of missed events at the time of the subscription, and when it was last read.
    missed_first: usize,
    missed_read: usize,
}

/// The result of reading the queue.
enum ReadResult {
    Event(DiagnosticEvent),
    Nothing,
    End,
}

impl Subscription {
    pub(super) const fn new(
        bus: Arc<Bus>,
        id: Option<usize>,
        kinds: EventKinds,
        queue: Arc<Queue<DiagnosticEvent>>,
        missed: usize,
    ) -> Self {
        let queue = Some(queue);
        Self { bus, id, kinds, queue, missed_first: missed, missed_read: missed }
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
    #[expect(clippy::should_implement_trait, reason = "a future, as `next` of any stream")]
    pub fn next(&mut self) -> impl Future<Output = Option<DiagnosticEvent>> + Send + '_ {
        poll_fn(|cx| self.poll_next(cx))
    }

    /// The next event, or the promise to wake when there is one; `None` as for
    /// [`next`](Self::next).
    pub fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<DiagnosticEvent>> {
        if let ReadResult::Event(event) = self.read() {
            return Poll::Ready(Some(event));
        }
        if let Some(queue) = &self.queue {
            queue.register(cx.waker());
        }
        match self.read() {
            ReadResult::Event(event) => Poll::Ready(Some(event)),
            ReadResult::Nothing => Poll::Pending,
            ReadResult::End => Poll::Ready(None),
        }
    }

    /// How many events it has lost since the beginning; wraps around.
    #[must_use]
    pub fn dropped(&self) -> usize {
        let full = self.queue.as_ref().map_or(0, |queue| queue.lost_total());
        full.wrapping_add(self.bus.bus.missed().wrapping_sub(self.missed_first))
    }

    /// The kinds it was made for.
    #[must_use]
    pub const fn kinds(&self) -> EventKinds {
        self.kinds
    }

    fn read(&mut self) -> ReadResult {
        let Some(queue) = &self.queue else { return ReadResult::End };
        let (item, is_end) = queue.pop();
        match item {
            Some(Item::Event(event)) => return ReadResult::Event(event),
            Some(Item::Lost(n)) => return ReadResult::Event(dropped(n)),
            None => {}
        }
        let missed = self.bus.bus.missed();
        match missed.wrapping_sub(core::mem::replace(&mut self.missed_read, missed)) {
            0 if is_end => ReadResult::End,
            0 => ReadResult::Nothing,
            n => ReadResult::Event(dropped(n)),
        }
    }
}

/// The event in place of `n` lost events.
const fn dropped(n: usize) -> DiagnosticEvent {
    DiagnosticEvent::Warned(Warning::DiagnosticsDropped { dropped: n as u64 })
}

impl Drop for Subscription {
    fn drop(&mut self) {
        if let Some(queue) = self.queue.take() {
            queue.abandon();
        }
        if let Some(id) = self.id {
            self.bus.bus.unsubscribe(id);
            self.bus.wake_readers();
        }
    }
}

impl fmt::Debug for Subscription {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Subscription")
            .field("kinds", &self.kinds)
            .field("dropped", &self.dropped())
            .finish_non_exhaustive()
    }
}
