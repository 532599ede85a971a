//! The shared state of one edge between two domains that refuses messages when it is full.
//!
//! # Protocol
//!
//! Two roles, each on one thread at a time: the *producer's* domain sends and checks for room; the
//! *reader's* domain receives and consumes.
//!
//! 1. Only the producer accesses `sent`, and only the reader accesses `received`. Only the reader
//!    writes `taken`, which never decreases.
//! 2. The reader stores `taken`, and then swaps `is_producer_waiting` to false. If it was true, the
//!    reader wakes the producer.
//! 3. A producer that finds no room swaps `is_producer_waiting` to true, and then checks `taken`
//!    again.
//! 4. All swaps of one variable have a single order. If the reader's swap is later, the reader sees
//!    true and wakes the producer. If the reader's swap is earlier, the producer's swap acquires
//!    it, so that the producer's second check sees the new `taken` and the producer does not wait.
//!    With a plain store instead of the producer's swap, both could miss each other.

use clockjack_sync::primitive::atomic::{AtomicBool, AtomicU64, Ordering};

/// See the [module](self).
pub(super) struct Credit {
    capacity: u32,
    /// Messages that the producer's domain has sent.
    sent: AtomicU64,
    /// How many of these the reader's domain has put into the channel.
    received: AtomicU64,
    /// How many of these have left the channel.
    taken: AtomicU64,
    /// A producer waits for room.
    is_producer_waiting: AtomicBool,
}

impl Credit {
    pub(super) fn new(capacity: u32) -> Self {
        Self {
            capacity,
            sent: AtomicU64::new(0),
            received: AtomicU64::new(0),
            taken: AtomicU64::new(0),
            is_producer_waiting: AtomicBool::new(false),
        }
    }

    /// For the producer: how many more messages may be sent.
    pub(super) fn room(&self) -> u32 {
        // Relaxed: rule 1. Acquire pairs with the release in `set_taken`.
        let sent = self.sent.load(Ordering::Relaxed);
        let n_outside = sent.saturating_sub(self.taken.load(Ordering::Acquire));
        self.capacity.saturating_sub(u32::try_from(n_outside).unwrap_or(u32::MAX))
    }

    /// For the producer: whether `wanted` more messages may be sent. If not, the producer is woken
    /// when that may have changed.
    pub(super) fn await_room(&self, wanted: u32) -> bool {
        if self.room() >= wanted {
            return true;
        }
        // Acquire: rule 4.
        self.is_producer_waiting.swap(true, Ordering::AcqRel);
        self.room() >= wanted
    }

    /// For the producer: a message was sent.
    pub(super) fn send(&self) {
        // Relaxed: rule 1.
        self.sent.fetch_add(1, Ordering::Relaxed);
    }

    /// For the reader: a message was put into the channel.
    pub(super) fn receive(&self) {
        // Relaxed: rule 1.
        self.received.fetch_add(1, Ordering::Relaxed);
    }

    /// For the reader: reports how many messages take up room in the channel. Returns whether the
    /// producer must be woken.
    pub(super) fn report_depth(&self, n_inside: u32) -> bool {
        // Relaxed: rule 1.
        let received = self.received.load(Ordering::Relaxed);
        self.set_taken(received.saturating_sub(n_inside.into()))
    }

    /// For the reader: nothing is read any more, so the producer must not wait. Returns whether the
    /// producer must be woken.
    pub(super) fn close(&self) -> bool {
        self.set_taken(u64::MAX)
    }

    fn set_taken(&self, taken: u64) -> bool {
        // Release pairs with the acquire of `room`.
        self.taken.store(taken, Ordering::Release);
        // Release: rule 4.
        self.is_producer_waiting.swap(false, Ordering::AcqRel)
    }
}
