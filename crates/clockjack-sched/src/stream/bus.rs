//! Where events are published. Rules 2, 4 and 7 of the [protocol](super).

use core::fmt;

use clockjack_sync::{
    Counted, const_unless_loom, mutant,
    prim::{
        IS_MODEL,
        atomic::{
            AtomicU32, AtomicUsize,
            Ordering::{AcqRel, Acquire, Relaxed, Release},
        },
    },
    prim_array,
};

use super::{
    DiagnosticEvent, EventKinds, Subscription,
    channel::{Channel, PushResult},
    slot::SubscriberSlot,
};

/// How many subscriptions a bus has room for.
pub const SUBSCRIPTIONS_MAX: usize = if IS_MODEL { 2 } else { 16 };

/// In the word of subscriber_counts: nothing will be published any more.
const CLOSED: u32 = 1 << 31;

/// Where events are published, and to whom; see the [module](super).
///
/// # Examples
///
/// ```
/// use clockjack_sched::{Warning, stream::{DiagnosticEvent, EventKinds, Bus}};
/// use clockjack_sync::Counted;
///
/// let bus = Counted::new(Bus::new());
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
    /// How many want each kind, five bits each, and whether the bus was closed.
    subscriber_counts: AtomicU32,
    /// A bit for each slot whose reader is to be woken.
    wake_mask: AtomicU32,
    /// Events that a reader has lost, for all readers.
    dropped: AtomicUsize,
    slots: [SubscriberSlot; SUBSCRIPTIONS_MAX],
}

impl Bus {
    const_unless_loom! {
        /// Nobody listens.
        #[must_use]
        pub const fn new() -> Self {
            Self {
                subscriber_counts: AtomicU32::new(0),
                wake_mask: AtomicU32::new(0),
                dropped: AtomicUsize::new(0),
                slots: prim_array![SubscriberSlot::new(); SUBSCRIPTIONS_MAX],
            }
        }
    }

    /// Whether somebody wants an event of these kinds: one load, to be asked before an event is
    /// made.
    #[inline(always)]
    pub fn wants(&self, kinds: EventKinds) -> bool {
        // Relaxed: a hint. Whoever has subscribed before, in the order of this thread, is seen.
        self.subscriber_counts.load(Relaxed) & kinds.fields() != 0
    }

    /// Gives an event to all who want it. Never waits and calls no foreign code, so that a guard
    /// may be held; [`wake_readers`](Self::wake_readers) is to be called when it no longer is.
    ///
    /// Each reader that wants it costs a node on the heap and a copy.
    pub fn publish(&self, event: DiagnosticEvent) {
        let kind = event.kind();
        if !self.wants(kind) {
            return;
        }
        for (index, slot) in self.slots.iter().enumerate() {
            if mutant!("stream-mark-before-push") {
                self.mark_for_wake(index);
                slot.with_channel(kind, |channel| channel.push(event.clone()));
                continue;
            }
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

    /// Wakes the readers to whom something was published. Calls their wakers, so no guard and no
    /// lock may be held. One load if there is none to wake.
    #[inline]
    pub fn wake_readers(&self) {
        // Relaxed, in it: what this thread has marked is seen; others ring for their own.
        if self.has_pending_wakes() {
            self.wake_marked();
        }
    }

    /// Whether a reader is to be woken.
    pub(crate) fn has_pending_wakes(&self) -> bool {
        // Relaxed: as in `wake_readers`.
        self.wake_mask.load(Relaxed) != 0
    }

    #[cold]
    fn wake_marked(&self) {
        /// Puts marks back if a waker panics: the next ring has them.
        struct UnwokenMarks<'h>(&'h Bus, u32);
        impl Drop for UnwokenMarks<'_> {
            fn drop(&mut self) {
                if self.1 != 0 {
                    // Release: continues what the marks published.
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
            // Taken in the slot, woken outside of it: foreign code holds nothing.
            if let Some(waker) = slot.with_any_channel(|channel| channel.waker.take()).flatten() {
                waker.wake();
            }
        }
    }

    /// How many events were dropped for want of room, by all readers together; wraps around.
    #[must_use]
    pub fn dropped(&self) -> usize {
        // Relaxed: a count.
        self.dropped.load(Relaxed)
    }

    /// Ends all subscriptions: their readers get what is queued, and then nothing. To be followed
    /// by a [`wake_readers`](Self::wake_readers).
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

    /// Listens to events of these kinds, which wait in a queue of `capacity`, at least one. If it
    /// is full then events are dropped, and the reader is told how many in their place.
    ///
    /// # Errors
    ///
    /// If [`SUBSCRIPTIONS_MAX`] live. A slot is also in use while a publisher has not yet left the
    /// subscription that had it. Passes when one ends.
    pub fn subscribe(
        this: &Counted<Self>,
        kinds: EventKinds,
        capacity: usize,
    ) -> Result<Subscription, TooManySubscriptions> {
        let (channel, consumer) = Channel::new(capacity);
        let channel = Counted::new(channel);
        let slot = this.slots.iter().position(|slot| slot.put(kinds, &channel));
        let slot = slot.ok_or(TooManySubscriptions { _private: () })?;
        // Release: pairs with the closing, which then finds the slot. Acquire: pairs with an
        // earlier closing (rule 7).
        let before = this.subscriber_counts.fetch_add(kinds.ones(), AcqRel);
        if before & CLOSED != 0 && !mutant!("stream-close-unseen") {
            channel.close();
        }
        Ok(Subscription::new(this.clone(), slot, kinds, channel, consumer))
    }

    /// Rule 3, called once by each subscription.
    pub(super) fn unsubscribe(&self, slot: usize, kinds: EventKinds) {
        // Relaxed: the slot orders the next subscriber behind this.
        self.subscriber_counts.fetch_sub(kinds.ones(), Relaxed);
        self.slots[slot].take();
    }

    fn mark_for_wake(&self, slot: usize) {
        // Release: pairs with the swap of a ringer: what was pushed is seen by what it wakes.
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

/// A subscription that was refused: [`SUBSCRIPTIONS_MAX`] live. Passes when one ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooManySubscriptions {
    _private: (),
}

impl fmt::Display for TooManySubscriptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "not subscribed: {SUBSCRIPTIONS_MAX} subscriptions live")
    }
}

impl core::error::Error for TooManySubscriptions {}
