//! The slot of one subscription, which publishers use concurrently with its drop. Rules 1 to 3 of
//! the [protocol](super).
#![expect(unsafe_code, reason = "the channel is read and written under the protocol")]

use core::fmt;

use clockjack_sync::{
    Arc, const_unless_loom,
    primitive::{
        UnsafeCell,
        atomic::{
            AtomicU32,
            Ordering::{AcqRel, Acquire, Relaxed, Release},
        },
    },
};

use super::{EventKinds, channel::Channel};

const FILLED: u32 = 1;
const ACTIVE: u32 = 1 << 1;
const WRITING: u32 = 1 << 2;
const KINDS_SHIFT: u32 = 8;
const KINDS: u32 = EventKinds::ALL.bits() << KINDS_SHIFT;
const PUBLISHER: u32 = 1 << 16;

pub(super) struct SubscriberSlot {
    state: AtomicU32,
    channel: UnsafeCell<Option<Arc<Channel>>>,
}

// SAFETY: the cell is the only part that is not `Sync` by itself. By rules 1 to 3 it is written by
// one thread while nobody reads, and read through shared references otherwise; a counted channel is
// `Send` and `Sync`, which `is_shareable` below has checked.
unsafe impl Sync for SubscriberSlot {}

const _: () = {
    const fn is_shareable<T: Send + Sync>() {}
    is_shareable::<Arc<Channel>>();
};

impl SubscriberSlot {
    const_unless_loom! {
        /// An empty slot.
        pub(super) const fn new() -> Self {
            Self { state: AtomicU32::new(0), channel: UnsafeCell::new(None) }
        }
    }

    /// Takes the slot, if it is free and nobody reads what was in it; says whether.
    pub(super) fn put(&self, kinds: EventKinds, channel: &Arc<Channel>) -> bool {
        // Relaxed: only a first guess for the exchange.
        let mut state = self.state.load(Relaxed);
        loop {
            // Rule 1.
            let is_read = state & FILLED != 0 && state >= PUBLISHER;
            if state & (ACTIVE | WRITING) != 0 || is_read {
                return false;
            }
            match self.begin(state, state | WRITING) {
                Ok(()) => break,
                Err(now) => state = now,
            }
        }
        let former = self.channel.with_mut(|slot| {
            // SAFETY: valid and aligned, as it points into `self`; nobody else accesses it, by
            // rule 1.
            unsafe { slot.replace(Some(channel.clone())) }
        });
        // Without ACTIVE there are no kinds, and only the holder of WRITING changes FILLED.
        let change = if state & FILLED == 0 { FILLED } else { 0 } | ACTIVE | WRITING;
        let change = change | kinds.bits() << KINDS_SHIFT;
        // Release: pairs with the active publishers' addition: they see the channel.
        self.state.fetch_xor(change, AcqRel);
        drop(former);
        true
    }

    /// Gives the slot back. Only its subscription calls it, once.
    pub(super) fn take(&self) {
        // Relaxed: only a first guess for the exchange.
        let mut state = self.state.load(Relaxed);
        let former = loop {
            debug_assert!(state & ACTIVE != 0, "the slot was given up already: {state:#x}");
            let idle = state & !(ACTIVE | KINDS);
            if state >= PUBLISHER {
                match self.begin(state, idle) {
                    Ok(()) => return,
                    Err(now) => state = now,
                }
                continue;
            }
            match self.begin(state, idle | WRITING) {
                Ok(()) => {
                    break self.channel.with_mut(|slot| {
                        // SAFETY: valid and aligned, as it points into `self`; nobody else accesses
                        // it: there was no active publisher, and those who come find no ACTIVE.
                        unsafe { slot.replace(None) }
                    });
                }
                Err(now) => state = now,
            }
        };
        // Release: pairs with the exchange of the next subscriber.
        self.state.fetch_xor(FILLED | WRITING, AcqRel);
        drop(former);
    }

    /// Calls `f` with the channel of a subscriber that wants one of these kinds.
    pub(super) fn with_channel<R>(
        &self,
        kinds: EventKinds,
        f: impl FnOnce(&Channel) -> R,
    ) -> Option<R> {
        self.with_channel_if(kinds.bits() << KINDS_SHIFT, f)
    }

    /// Calls `f` with the channel of a subscriber, whatever it wants.
    pub(super) fn with_any_channel<R>(&self, f: impl FnOnce(&Channel) -> R) -> Option<R> {
        self.with_channel_if(ACTIVE, f)
    }

    /// As [`visit`](Self::visit), if one of these bits is set.
    fn with_channel_if<R>(&self, bits: u32, f: impl FnOnce(&Channel) -> R) -> Option<R> {
        // Relaxed: spares those who are not wanted the addition. A subscription that happens before
        // the call is seen all the same.
        if self.state.load(Relaxed) & bits == 0 {
            return None;
        }
        // Acquire: pairs with the release of `put`: the channel is there.
        let found = self.state.fetch_add(PUBLISHER, Acquire);
        let _active = ActivePublisher(&self.state);
        // Looked at again: another may have the slot by now.
        let is_wanted = found & bits != 0;
        if found & (ACTIVE | WRITING) != ACTIVE || !is_wanted {
            return None;
        }
        self.channel.with(|slot| {
            // SAFETY: valid and aligned, as it points into `self`; nobody writes it while this
            // active publisher is counted, by rules 1 and 3.
            unsafe { &*slot }.as_deref().map(f)
        })
    }

    /// Acquire pairs with the release of active publishers and subscribers that are done; release
    /// with the acquire of the next one.
    fn begin(&self, from: u32, to: u32) -> Result<(), u32> {
        self.state.compare_exchange(from, to, AcqRel, Relaxed).map(drop)
    }
}

impl fmt::Debug for SubscriberSlot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Relaxed: for people.
        let state = self.state.load(Relaxed);
        f.debug_struct("SubscriberSlot").field("state", &state).finish_non_exhaustive()
    }
}

/// Takes the active publisher off the count.
struct ActivePublisher<'s>(&'s AtomicU32);

impl Drop for ActivePublisher<'_> {
    fn drop(&mut self) {
        // Release: pairs with the exchange of the subscriber that finds no active publisher: this
        // one's reading is over.
        self.0.fetch_sub(PUBLISHER, Release);
    }
}
