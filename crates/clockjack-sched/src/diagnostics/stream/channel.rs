//! The channel of one subscription: its queue, losses and waker. Rules 5 and 6 of the
//! [protocol](super).
#![expect(unsafe_code, reason = "passes the promise of the only consumer to the mailbox")]

use clockjack_sync::{
    mail::{CAPACITY_MAX, Mailbox, Pop},
    primitive::atomic::{AtomicUsize, Ordering::Relaxed},
    waker::AtomicWaker,
};

use super::DiagnosticEvent;

/// An event, and how many were lost before it.
#[derive(Debug)]
pub(super) struct QueuedEvent {
    pub(super) lost_before: usize,
    pub(super) event: DiagnosticEvent,
}

/// What became of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PushResult {
    /// It is in the queue.
    Kept,
    /// There was no room.
    Lost,
    /// The queue is closed.
    Refused,
}

/// The side of a subscription that publishers see.
#[derive(Debug)]
pub(super) struct Channel {
    mailbox: Mailbox<QueuedEvent>,
    /// Losses that were neither reported nor attached to an event yet.
    lost: AtomicUsize,
    /// Lost since the beginning.
    lost_total: AtomicUsize,
    pub(super) waker: AtomicWaker,
}

impl Channel {
    /// A queue of `capacity` events, or the next number that is possible.
    pub(super) fn new(capacity: usize) -> Self {
        Self {
            mailbox: Mailbox::new(capacity.clamp(1, CAPACITY_MAX)),
            lost: AtomicUsize::new(0),
            lost_total: AtomicUsize::new(0),
            waker: AtomicWaker::new(),
        }
    }

    /// Takes the oldest event.
    ///
    /// # Safety
    ///
    /// The caller is the only consumer: the one subscription of the channel, borrowed exclusively.
    pub(super) unsafe fn pop(&self) -> Pop<QueuedEvent> {
        // SAFETY: by the caller's promise.
        unsafe { self.mailbox.pop() }
    }

    pub(super) fn len(&self) -> usize {
        self.mailbox.len()
    }

    pub(super) fn is_closed(&self) -> bool {
        self.mailbox.is_closed()
    }

    /// Appends an event, or counts it as lost.
    pub(super) fn push(&self, event: DiagnosticEvent) -> PushResult {
        let lost_before = self.take_lost();
        let Err(refused) = self.mailbox.push(QueuedEvent { lost_before, event }) else {
            return PushResult::Kept;
        };
        let is_lost = refused.is_full();
        self.return_lost(lost_before.wrapping_add(usize::from(is_lost)));
        if !is_lost {
            return PushResult::Refused;
        }
        // Relaxed: a count.
        self.lost_total.fetch_add(1, Relaxed);
        PushResult::Lost
    }

    /// Takes the losses that were not reported yet.
    pub(super) fn take_lost(&self) -> usize {
        // Relaxed, twice: read-modify-writes move the number, so one thread has each loss; a reader
        // that must see it is woken after the mark that follows it (rule 4). The load only avoids a
        // useless write.
        if self.lost.load(Relaxed) == 0 { 0 } else { self.lost.swap(0, Relaxed) }
    }

    fn return_lost(&self, n: usize) {
        if n > 0 {
            // Relaxed: as for taking.
            self.lost.fetch_add(n, Relaxed);
        }
    }

    /// How many were lost since the beginning.
    pub(super) fn lost_total(&self) -> usize {
        // Relaxed: a count.
        self.lost_total.load(Relaxed)
    }

    /// Refuses every event from now on.
    pub(super) fn close(&self) {
        self.mailbox.close();
    }
}
