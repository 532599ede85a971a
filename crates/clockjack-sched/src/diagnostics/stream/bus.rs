//! The event bus. Rules 2, 4 and 7 of the [protocol](super).

use core::fmt;

use clockjack_sync::{
    Arc, const_unless_loom,
    primitive::{
        IS_MODEL,
        atomic::{
            AtomicU32, AtomicUsize,
            Ordering::{AcqRel, Acquire, Relaxed, Release},
        },
    },
    primitive_array,
};

use super::{
    DiagnosticEvent, EventKinds, Subscription,
    channel::{Channel, PushResult},
    slot::SubscriberSlot,
};

/// The most subscriptions that a bus can have.
pub const SUBSCRIPTIONS_MAX: usize = if IS_MODEL { 2 } else { 16 };

/// In `subscriber_counts`: the bus is closed.
const CLOSED: u32 = 1 << 31;

/// A bus for diagnostic events; see the [module](super).
///
/// # Examples
///
/// ```
/// use clockjack_sched::{Warning, stream::{DiagnosticEvent, EventKinds, Bus}};
/// use clockjack_sync::Arc;
///
/// let bus = Arc::new(Bus::new());
/// assert!(!bus.wants(EventKinds::ALL));
///
/// let mut warnings = Bus::subscribe(&bus, EventKinds::WARNING, 8)?;
/// assert!(bus.wants(EventKinds::WARNING));
/// assert!(!bus.wants(EventKinds::FIRE));
///
/// let event = DiagnosticEvent::Warned(Warning::QuotaReached { limit: 10, adaptive: false });
/// bus.publish(event.clone());
/// bus.wake_readers();
/// assert_eq!(warnings.try_next(), Some(event));
/// assert_eq!(warnings.try_next(), None);
/// # Ok::<(), clockjack_sched::stream::TooManySubscriptions>(())
/// ```
#[derive(Debug)]
pub struct Bus {
    /// How many subscribers want each kind, five bits each, and whether the bus is closed.
    subscriber_counts: AtomicU32,
    /// A bit per slot whose reader must be woken.
    wake_mask: AtomicU32,
    /// Events that a reader has lost, for all readers.
    dropped: AtomicUsize,
    slots: [SubscriberSlot; SUBSCRIPTIONS_MAX],
}

impl Bus {
    const_unless_loom! {
        /// Creates a bus without subscribers.
        #[must_use]
        pub const fn new() -> Self {
            Self {
                subscriber_counts: AtomicU32::new(0),
                wake_mask: AtomicU32::new(0),
                dropped: AtomicUsize::new(0),
                slots: primitive_array![SubscriberSlot::new(); SUBSCRIPTIONS_MAX],
            }
        }
    }

    /// Whether a subscriber wants an event of these kinds. One load; ask before you create an
    /// event.
    #[inline(always)]
    pub fn wants(&self, kinds: EventKinds) -> bool {
        // Relaxed: a hint. A subscription that happens before this call is seen.
        self.subscriber_counts.load(Relaxed) & kinds.fields() != 0
    }

    /// Queues an event for all subscribers that want it. Never waits and calls no user code, so the
    /// caller may hold a guard. After releasing it, call [`wake_readers`](Self::wake_readers).
    ///
    /// Costs an allocation and a copy per subscriber.
    pub fn publish(&self, event: DiagnosticEvent) {
        let kind = event.kind();
        if !self.wants(kind) {
            return;
        }
        for (index, slot) in self.slots.iter().enumerate() {
            match slot.with_channel(kind, |channel| channel.push(event.clone())) {
                Some(PushResult::Kept) => self.mark_for_wake(index),
                Some(PushResult::Lost) => {
                    // Relaxed: a count.
                    self.dropped.fetch_add(1, Relaxed);
                    self.mark_for_wake(index);
                }
                Some(PushResult::Refused) | None => (),
            }
        }
    }

    /// Wakes the readers of published events. Calls their wakers, so the caller must hold no guard
    /// and no lock. One load if there is none to wake.
    #[inline]
    pub fn wake_readers(&self) {
        // Relaxed: this thread sees its own marks; other threads wake readers for theirs.
        if self.has_pending_wakes() {
            self.wake_marked();
        }
    }

    /// Whether a reader must be woken.
    pub(crate) fn has_pending_wakes(&self) -> bool {
        // Relaxed: as in `wake_readers`.
        self.wake_mask.load(Relaxed) != 0
    }

    #[cold]
    fn wake_marked(&self) {
        /// Restores the marks if a waker panics, for the next `wake_readers`.
        struct UnwokenMarks<'h>(&'h Bus, u32);
        impl Drop for UnwokenMarks<'_> {
            fn drop(&mut self) {
                if self.1 != 0 {
                    // Release: continues the release sequence of the marks.
                    self.0.wake_mask.fetch_or(self.1, Release);
                }
            }
        }
        // Acquire: pairs with the marks (rule 4).
        let mut rest = UnwokenMarks(self, self.wake_mask.swap(0, AcqRel));
        for (index, slot) in self.slots.iter().enumerate() {
            if rest.1 & 1 << index == 0 {
                continue;
            }
            rest.1 &= !(1 << index);
            // Taken in the slot, woken outside of it: user code must not keep the slot in use.
            if let Some(waker) = slot.with_any_channel(|channel| channel.waker.take()).flatten() {
                waker.wake();
            }
        }
    }

    /// How many events were dropped because a queue was full, for all readers; wraps around.
    #[must_use]
    pub fn dropped(&self) -> usize {
        // Relaxed: a count.
        self.dropped.load(Relaxed)
    }

    /// Closes the bus: readers get the queued events, and then `None`. Call
    /// [`wake_readers`](Self::wake_readers) afterwards.
    pub fn close(&self) {
        // Acquire: pairs with the addition of a subscriber that came before: its slot is seen.
        // Release: pairs with a subscriber that comes later, and with `is_closed`.
        self.subscriber_counts.fetch_or(CLOSED, AcqRel);
        for (index, slot) in self.slots.iter().enumerate() {
            if slot.with_any_channel(Channel::close).is_some() {
                self.mark_for_wake(index);
            }
        }
    }

    /// Subscribes to events of these kinds, with a queue of `capacity`, at least one. If the queue
    /// is full, events are dropped, and the reader gets their number in their place.
    ///
    /// # Errors
    ///
    /// If there are [`SUBSCRIPTIONS_MAX`] subscriptions. A slot is also in use while a publisher
    /// has not left its former subscription yet. Temporary.
    pub fn subscribe(
        this: &Arc<Self>,
        kinds: EventKinds,
        capacity: usize,
    ) -> Result<Subscription, TooManySubscriptions> {
        let channel = Channel::new(capacity);
        let channel = Arc::new(channel);
        let slot = this.slots.iter().position(|slot| slot.put(kinds, &channel));
        let slot = slot.ok_or(TooManySubscriptions { _private: () })?;
        // Release: pairs with the closing, which then finds the slot. Acquire: pairs with an
        // earlier closing (rule 7).
        let before = this.subscriber_counts.fetch_add(kinds.ones(), AcqRel);
        if before & CLOSED != 0 {
            channel.close();
        }
        Ok(Subscription::new(this.clone(), slot, kinds, channel))
    }

    /// Rule 3, called once by each subscription.
    pub(super) fn unsubscribe(&self, slot: usize, kinds: EventKinds) {
        // Relaxed: the slot orders the next subscriber after this.
        self.subscriber_counts.fetch_sub(kinds.ones(), Relaxed);
        self.slots[slot].take();
    }

    fn mark_for_wake(&self, slot: usize) {
        // Release: pairs with the swap in `wake_marked`: the woken reader sees what was pushed.
        self.wake_mask.fetch_or(1 << slot, Release);
    }

    /// Whether [`close`](Self::close) was called.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        // Acquire: pairs with the closing.
        self.subscriber_counts.load(Acquire) & CLOSED != 0
    }
}

impl Default for Bus {
    fn default() -> Self {
        Self::new()
    }
}

/// A subscription that was refused, because there are [`SUBSCRIPTIONS_MAX`]. Temporary.
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
