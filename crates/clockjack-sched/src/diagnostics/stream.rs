//! The diagnostics stream: publishes what the scheduler does to its subscribers.
//!
//! The stream is a [`clockjack_observe::bus`] whose subscribers are queues of events. Publishing
//! never waits for long, allocates nothing and calls no user code, so a publisher may hold a shard
//! guard; afterwards, without the guard, it wakes the readers. Events that find a queue full are
//! counted, and the reader receives the count in their place. Without subscribers, publishing costs
//! one load.

mod event;
mod subscription;

use core::fmt;

use clockjack_observe::bus::{self, Cursor, Overflow, Pushed, Queue};
use clockjack_sync::{
    Arc, const_unless_loom,
    primitive::{
        IS_MODEL,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
};

pub use self::{
    event::{DiagnosticEvent, EventKinds},
    subscription::Subscription,
};

/// The most subscriptions that a stream can have.
#[doc(hidden)]
pub const SUBSCRIPTIONS_MAX: usize = if IS_MODEL { 2 } else { 16 };

/// The bus of a scheduler; see the [module](self).
#[doc(hidden)]
#[derive(Debug)]
pub struct Bus {
    bus: bus::Bus<Queue<DiagnosticEvent>>,
    /// Events that a reader has lost, for all readers.
    dropped: AtomicUsize,
}

impl Bus {
    const_unless_loom! {
        /// Creates a bus without subscribers.
        #[must_use]
        pub const fn new() -> Self {
            Self { bus: bus::Bus::new(), dropped: AtomicUsize::new(0) }
        }
    }

    /// Whether a subscriber wants an event of these kinds. One load; ask before you create an
    /// event.
    #[inline(always)]
    pub fn wants(&self, kinds: EventKinds) -> bool {
        self.bus.wants(kinds.bits())
    }

    /// Queues an event for all subscribers that want it. After releasing its guards, the caller
    /// calls [`wake_readers`](Self::wake_readers).
    pub fn publish(&self, event: DiagnosticEvent) {
        let kind = event.kind();
        if !self.wants(kind) {
            return;
        }
        let (mut n_lost, mut n_reached) = (0, 0);
        self.bus.visit(kind.bits(), &mut Cursor::default(), |queue| {
            let pushed = queue.push(event.clone());
            n_lost += usize::from(pushed == Pushed::Lost);
            n_reached += usize::from(pushed != Pushed::Closed);
            true
        });
        if n_lost > 0 {
            // Relaxed: a count.
            self.dropped.fetch_add(n_lost, Relaxed);
        }
        if n_reached > 0 {
            self.bus.mark_for_wake();
        }
    }

    /// Wakes the readers of published events. Calls their wakers, so the caller must hold no guard
    /// and no lock. One load if there is none to wake.
    #[inline]
    pub fn wake_readers(&self) {
        self.bus.wake_readers();
    }

    /// Whether a reader must be woken.
    pub(crate) fn has_pending_wakes(&self) -> bool {
        self.bus.has_pending_wakes()
    }

    /// How many events were dropped, for all readers; wraps around.
    #[must_use]
    pub fn dropped(&self) -> usize {
        // Relaxed: a count.
        self.dropped.load(Relaxed).wrapping_add(self.bus.missed())
    }

    /// Closes the bus: readers get the queued events, and then `None`. Call
    /// [`wake_readers`](Self::wake_readers) afterwards.
    pub fn close(&self) {
        self.bus.close(Queue::close);
        self.bus.mark_for_wake();
    }

    /// Whether [`close`](Self::close) was called.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.bus.is_closed()
    }

    /// Subscribes to events of these kinds, with a queue of `capacity`, at least one and at most
    /// [`CAPACITY_MAX`](bus::CAPACITY_MAX). If the queue is full, events are dropped, and the
    /// reader gets their number in their place.
    ///
    /// # Errors
    ///
    /// If there are [`SUBSCRIPTIONS_MAX`] subscriptions. Temporary.
    pub fn subscribe(
        this: &Arc<Self>,
        kinds: EventKinds,
        capacity: usize,
    ) -> Result<Subscription, TooManySubscriptions> {
        let queue = Arc::new(Queue::new(capacity, Overflow::DropNewest));
        let missed = this.bus.missed();
        let subscribed = this.bus.subscribe(kinds.bits(), SUBSCRIPTIONS_MAX, queue.clone());
        this.wake_readers();
        let id = match subscribed {
            Ok(id) => Some(id),
            Err(refused) if refused.is_closed => {
                queue.close();
                None
            }
            Err(_) => return Err(TooManySubscriptions { _private: () }),
        };
        Ok(Subscription::new(this.clone(), id, kinds, queue, missed))
    }
}

impl Default for Bus {
    fn default() -> Self {
        Self::new()
    }
}

/// A subscription that was refused, because there are 16. Temporary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooManySubscriptions {
    _private: (),
}

impl fmt::Display for TooManySubscriptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "not subscribed: {SUBSCRIPTIONS_MAX} subscriptions exist")
    }
}

impl core::error::Error for TooManySubscriptions {}
