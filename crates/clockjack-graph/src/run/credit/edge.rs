//! What both sides know of one blocking edge between two domains.
//!
//! # Protocol
//!
//! Two roles, one thread each at a time: the *producer's* domain sends and looks for room, the
//! *reader's* receives and takes.
//!
//! 1. `sent` is the producer's own, `received` the reader's. `taken` is written by the reader alone
//!    and only rises.
//! 2. A reader writes `taken`, and then takes the wish by a swap; if it was there, the reader calls
//!    the producer.
//! 3. A producer that finds no room leaves the wish by a swap, and then looks at `taken` once more.
//! 4. The swaps of one word have one order. If the reader's is the later one, it finds the wish. If
//!    it is the earlier one, the producer's has acquired what the reader had written before. So who
//!    waits is called, or has not begun to wait.

use clockjack_sync::{
    mutant,
    prim::atomic::{AtomicBool, AtomicU64, Ordering},
};

/// See the [module](self).
pub(super) struct Credit {
    capacity: u32,
    /// Messages that the producer's domain has sent.
    sent: AtomicU64,
    /// Of these, what the reader's domain has put into the channel.
    received: AtomicU64,
    /// Of these, what is not there any more.
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

    /// For the producer: how many more may be sent.
    pub(super) fn room(&self) -> u32 {
        if mutant!("credit-without-end") {
            return u32::MAX;
        }
        // Relaxed: rule 1. Acquire pairs with the release of `took`.
        let sent = self.sent.load(Ordering::Relaxed);
        let n_outside = sent.saturating_sub(self.taken.load(Ordering::Acquire));
        self.capacity.saturating_sub(u32::try_from(n_outside).unwrap_or(u32::MAX))
    }

    /// For the producer: whether so many more may be sent. If not, it is called when that may have
    /// changed.
    pub(super) fn await_room(&self, wanted: u32) -> bool {
        if self.room() >= wanted {
            return true;
        }
        if mutant!("credit-wish-by-store") {
            self.is_producer_waiting.store(true, Ordering::Release);
        } else {
            // Acquire: rule 4.
            self.is_producer_waiting.swap(true, Ordering::AcqRel);
        }
        self.room() >= wanted
    }

    /// For the producer: a message is on its way.
    pub(super) fn send(&self) {
        // Relaxed: rule 1.
        self.sent.fetch_add(1, Ordering::Relaxed);
    }

    /// For the reader: a message has come.
    pub(super) fn receive(&self) {
        // Relaxed: rule 1.
        self.received.fetch_add(1, Ordering::Relaxed);
    }

    /// For the reader: so many are in the channel. Whether the producer is to be called for it.
    pub(super) fn report_depth(&self, n_inside: u32) -> bool {
        // Relaxed: rule 1.
        let received = self.received.load(Ordering::Relaxed);
        self.set_taken(received.saturating_sub(n_inside.into()))
    }

    /// For the reader: nobody takes anything any more, so nobody is to wait for it. Whether the
    /// producer is to be called for it.
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
