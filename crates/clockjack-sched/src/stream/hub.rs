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
    channel::{Channel, Pushed},
    slot::Slot,
};

/// How many subscriptions a hub has room for.
pub const SUBSCRIPTIONS_MAX: usize = if IS_MODEL { 2 } else { 16 };

/// In the word of listeners: nothing will be published any more.
const CLOSED: u32 = 1 << 31;

/// Where events are published, and to whom; see the [module](super).
///
/// # Examples
///
/// ```
/// use clockjack_sched::{Warning, stream::{DiagnosticEvent, EventKinds, Hub}};
/// use clockjack_sync::Counted;
///
/// let hub = Counted::new(Hub::new());
/// assert!(!hub.wants(EventKinds::ALL));
///
/// let mut warnings = Hub::subscribe(&hub, EventKinds::WARNING, 8)?;
/// assert!(hub.wants(EventKinds::WARNING));
/// assert!(!hub.wants(EventKinds::FIRE));
///
/// let event = DiagnosticEvent::Warned(Warning::QuotaReached { limit: 10, adaptive: false });
/// hub.publish(event.clone());
/// hub.ring();
/// assert_eq!(warnings.try_next(), Some(event));
/// assert_eq!(warnings.try_next(), None);
/// # Ok::<(), clockjack_sched::stream::TooManySubscriptions>(())
/// ```
#[derive(Debug)]
pub struct Hub {
    /// How many want each kind, five bits each, and whether the hub was closed.
    listeners: AtomicU32,
    /// A bit for each slot whose reader is to be woken.
    due: AtomicU32,
    /// Events that a reader has lost, for all readers.
    dropped: AtomicUsize,
    slots: [Slot; SUBSCRIPTIONS_MAX],
}

impl Hub {
    const_unless_loom! {
        /// Nobody listens.
        #[must_use]
        pub const fn new() -> Self {
            Self {
                listeners: AtomicU32::new(0),
                due: AtomicU32::new(0),
                dropped: AtomicUsize::new(0),
                slots: prim_array![Slot::new(); SUBSCRIPTIONS_MAX],
            }
        }
    }

    /// Whether somebody wants an event of these kinds: one load, to be asked before an event is
    /// made.
    #[inline(always)]
    pub fn wants(&self, kinds: EventKinds) -> bool {
        // Relaxed: a hint. Whoever has subscribed before, in the order of this thread, is seen.
        self.listeners.load(Relaxed) & kinds.fields() != 0
    }

    /// Gives an event to all who want it. Never waits and calls no foreign code, so that a lease
    /// may be held; [`ring`](Self::ring) is to be called when it no longer is.
    ///
    /// Each reader that wants it costs a node on the heap and a copy.
    pub fn publish(&self, event: DiagnosticEvent) {
        let kind = event.kind();
        if !self.wants(kind) {
            return;
        }
        for (index, slot) in self.slots.iter().enumerate() {
            if mutant!("stream-mark-before-push") {
                self.mark(index);
                slot.visit(kind, |channel| channel.push(event.clone()));
                continue;
            }
            match slot.visit(kind, |channel| channel.push(event.clone())) {
                Some(Pushed::Kept) => self.mark(index),
                Some(Pushed::Lost) => {
                    // Relaxed: a count.
                    self.dropped.fetch_add(1, Relaxed);
                    self.mark(index);
                }
                Some(Pushed::Refused) | None => (),
            }
        }
    }

    /// Wakes the readers to whom something was published. Calls their wakers, so no lease and no
    /// lock may be held. One load if there is none to wake.
    #[inline]
    pub fn ring(&self) {
        // Relaxed, in it: what this thread has marked is seen; others ring for their own.
        if self.is_due() {
            self.ring_due();
        }
    }

    /// Whether a reader is to be woken.
    pub(crate) fn is_due(&self) -> bool {
        // Relaxed: as in `ring`.
        self.due.load(Relaxed) != 0
    }

    #[cold]
    fn ring_due(&self) {
        /// Puts marks back if a waker panics: the next ring has them.
        struct Rest<'h>(&'h Hub, u32);
        impl Drop for Rest<'_> {
            fn drop(&mut self) {
                if self.1 != 0 {
                    // Release: continues what the marks published.
                    self.0.due.fetch_or(self.1, Release);
                }
            }
        }
        // Acquire: pairs with the marks (rule 4).
        let mut rest = Rest(self, self.due.swap(0, AcqRel));
        for (index, slot) in self.slots.iter().enumerate() {
            if rest.1 & 1 << index == 0 {
                continue;
            }
            rest.1 &= !(1 << index);
            // Taken in the slot, woken outside of it: foreign code holds nothing.
            if let Some(waker) = slot.visit_any(|channel| channel.waker.take()).flatten() {
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
    /// by a [`ring`](Self::ring).
    pub fn close(&self) {
        // Acquire: pairs with the addition of a subscriber that came before: its slot is seen.
        // Release: pairs with a subscriber that comes later, and with `is_closed`.
        self.listeners.fetch_or(CLOSED, AcqRel);
        for (index, slot) in self.slots.iter().enumerate() {
            if slot.visit_any(Channel::close).is_some() {
                self.mark(index);
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
        let before = this.listeners.fetch_add(kinds.ones(), AcqRel);
        if before & CLOSED != 0 && !mutant!("stream-close-unseen") {
            channel.close();
        }
        Ok(Subscription::new(this.clone(), slot, kinds, channel, consumer))
    }

    /// Rule 3, called once by each subscription.
    pub(super) fn unsubscribe(&self, slot: usize, kinds: EventKinds) {
        // Relaxed: the slot orders the next subscriber behind this.
        self.listeners.fetch_sub(kinds.ones(), Relaxed);
        self.slots[slot].take();
    }

    fn mark(&self, slot: usize) {
        // Release: pairs with the swap of a ringer: what was pushed is seen by what it wakes.
        self.due.fetch_or(1 << slot, Release);
    }

    /// Whether [`close`](Self::close) was called.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        // Acquire: pairs with the closing.
        self.listeners.load(Acquire) & CLOSED != 0
    }
}

impl Default for Hub {
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
