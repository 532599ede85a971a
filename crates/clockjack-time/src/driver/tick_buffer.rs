//! The tick buffer: it counts ticks between arrival and poll, and decides between poll and stop.
//!
//! Roles: the *source* (an interrupt, or a caller of `inject`) adds ticks; the *loop* polls,
//! registers and stops, from any thread. They share the waker slot and two words: the absolute
//! `count`, which only the source writes, and `taken`, which only the loop writes:
//!
//! ```text
//!    top bit   the rest
//!   [ STOPPED | the count of the last token, truncated to this width ]
//! ```
//!
//! 1. The source raises `count`, fences, and loads `taken`. If only the new ticks wait to be taken,
//!    and not all of them are taken already, they are the first ticks that are in no token, and the
//!    source wakes the loop; unless STOPPED is set.
//! 2. A poll loads `taken`, then `count`. The difference becomes a token by a compare-exchange of
//!    `taken`; if the exchange fails, another thread took a token or stopped, and the poll tries
//!    again.
//! 3. A stop works like a poll, but sets STOPPED as well. That exchange is the linearization point
//!    of the stop: the ticks that `count` showed just before are drained, all later ticks stay
//!    pending, and no exchange of rule 2 succeeds any more. The clock continues after a stop.
//! 4. A poll fences before it loads `count`, so that after a token either the poll sees a new tick
//!    or the source sees the new `taken` (rule 1). A loop that polls until `None` misses no tick.
//! 5. The same holds for a registration: the loop stores the waker, fences, and then loads `count`;
//!    if ticks wait, the registering thread wakes its own waker.
//!
//! `count` has 64 bits, so `up_to` is always exact. `taken` has 63 bits, or 31 where a target
//! cannot exchange more (`driver/taken_ticks_64.rs`, `driver/taken_ticks_32.rs`): there, a loop
//! that does not poll for 2^31 ticks (25 days at 1 ms) gets a `catch_up` that is short by a
//! multiple of 2^31, and sees exactly 2^31 waiting ticks only when the next tick arrives.
//!
//! Why it cannot hang: the source has no loop; the other threads repeat only if a thread made
//! progress.

use core::{fmt, task::Waker};

use clockjack_sync::primitive::atomic::{Ordering, fence};

use crate::{
    driver::{DriverError, DriverStatus, TickToken, waker_slot::WakerSlot},
    tick::Tick,
};

/// A rising count with one writer, in a 64-bit and a 32-bit form. Not for use outside this crate
/// and its tests.
#[doc(hidden)]
pub trait MonotonicCount: fmt::Debug + Sync {
    /// The count: never less than an earlier reading.
    fn load(&self) -> u64;
    /// Raises it, by its one writer; a smaller value has no effect.
    fn raise(&self, to: u64);
}

/// The word that decides between poll and stop, in a 64-bit and a 32-bit form. Not for use outside
/// this crate and its tests.
#[doc(hidden)]
pub trait TakenTicks: fmt::Debug + Sync {
    /// The bit that says that the buffer is stopped; the bits below it are the taken count.
    const STOPPED: u64;

    /// The word.
    fn load(&self, order: Ordering) -> u64;
    /// Overwrites the word; only mutants do.
    fn store(&self, bits: u64);
    /// Acquire: as in `poll`. Release pairs with it, for the next thread that loads the word.
    ///
    /// # Errors
    ///
    /// The word, if it was not `from`.
    fn exchange(&self, from: u64, to: u64) -> Result<(), u64>;
}

/// The mechanism of the drivers of this crate. Not for use outside this crate and its tests.
#[doc(hidden)]
#[derive(Debug)]
pub struct TickBuffer<C, G> {
    count: C,
    taken: G,
    backpressure_above: u64,
    slot: WakerSlot,
}

impl<C, G> TickBuffer<C, G> {
    const_unless_loom! {
        /// A buffer whose count and taken ticks are at the same tick; it reports backpressure above
        /// three quarters of `capacity` ticks.
        pub fn new(count: C, taken: G, capacity: u32) -> Self {
            let capacity = capacity as u64;
            Self { count, taken, backpressure_above: capacity * 3 / 4, slot: WakerSlot::new() }
        }
    }
}

impl<C: MonotonicCount, G: TakenTicks> TickBuffer<C, G> {
    /// The absolute count.
    #[inline]
    pub fn count(&self) -> u64 {
        self.count.load()
    }

    /// Rule 1: adds `ticks`, by the one source.
    #[inline]
    pub fn add_and_wake(&self, ticks: u64) {
        if self.add(ticks) {
            self.slot.wake();
        }
    }

    /// Rule 1 without the wake-up: returns whether the loop must be woken. The count saturates.
    #[inline]
    #[must_use = "the loop must be woken if this says so"]
    pub fn add(&self, ticks: u64) -> bool {
        let before = self.count.load();
        let after = before.saturating_add(ticks);
        self.count.raise(after);
        // Pairs with the fences of `poll` and `register`: see rules 4 and 5.
        fence(Ordering::SeqCst);
        // Relaxed: ordered by the fence.
        let taken = self.taken.load(Ordering::Relaxed);
        let waiting = Self::distance(taken, after);
        taken & G::STOPPED == 0 && waiting != 0 && waiting <= after - before
    }

    /// The wake-up of rule 1.
    #[inline]
    pub fn wake(&self) {
        self.slot.wake();
    }

    /// Rule 2.
    pub fn poll(&self) -> Option<TickToken> {
        // Pairs with the fence of `add`: rule 4.
        fence(Ordering::SeqCst);
        // Acquire pairs with the release of the exchange below: this count is not older than the
        // one that made that token.
        let mut taken = self.taken.load(Ordering::Acquire);
        loop {
            if taken & G::STOPPED != 0 {
                return None;
            }
            let up_to = self.count.load();
            let waiting = Self::distance(taken, up_to);
            if waiting == 0 {
                return None;
            }
            let exchanged = self.taken.exchange(taken, Self::truncate(up_to));
            match exchanged {
                Ok(()) => {
                    let catch_up = u32::try_from(waiting - 1).unwrap_or(u32::MAX);
                    return Some(TickToken { up_to: Tick::new(up_to), catch_up });
                }
                Err(now) => taken = now,
            }
        }
    }

    /// Rule 5.
    pub fn register(&self, wake: Waker) -> Result<(), DriverError> {
        // Acquire: as in `poll`.
        if self.taken.load(Ordering::Acquire) & G::STOPPED != 0 {
            return Err(DriverError::STOPPED);
        }
        self.slot.put(wake)?;
        // Pairs with the fence of `add`: rule 5.
        fence(Ordering::SeqCst);
        // Relaxed: ordered by the fence.
        let taken = self.taken.load(Ordering::Relaxed);
        if taken & G::STOPPED != 0 {
            // The stop may have emptied the slot before this waker was in it.
            self.slot.take();
            return Err(DriverError::STOPPED);
        }
        if Self::distance(taken, self.count.load()) != 0 {
            self.slot.wake();
        }
        Ok(())
    }

    /// Removes the registration.
    pub fn unregister(&self) {
        self.slot.take();
    }

    /// `Ok`, `Backpressured` or `Suspended`.
    pub fn status(&self) -> DriverStatus {
        // Acquire: as in `poll`.
        let taken = self.taken.load(Ordering::Acquire);
        if taken & G::STOPPED != 0 {
            return DriverStatus::Suspended;
        }
        let waiting = Self::distance(taken, self.count.load());
        if waiting > self.backpressure_above {
            return DriverStatus::Backpressured { pending_ticks: waiting };
        }
        DriverStatus::Ok
    }

    /// Rule 3.
    pub fn stop(&self) -> DriverStatus {
        // Acquire: as in `poll`.
        let mut taken = self.taken.load(Ordering::Acquire);
        let drained = loop {
            if taken & G::STOPPED != 0 {
                break 0;
            }
            let at = self.count.load();
            let exchanged = self.taken.exchange(taken, Self::truncate(at) | G::STOPPED);
            match exchanged {
                Ok(()) => {
                    let drained = Self::distance(taken, at);
                    taken = Self::truncate(at);
                    break drained;
                }
                Err(now) => taken = now,
            }
        };
        // Pairs with the fence of `register`: either it sees STOPPED or this sees its waker.
        fence(Ordering::SeqCst);
        self.slot.take();
        let pending_ticks = Self::distance(taken, self.count.load());
        DriverStatus::Flushed { drained, pending_ticks }
    }

    /// The part of a count that `taken` holds.
    #[inline(always)]
    const fn truncate(count: u64) -> u64 {
        count & (G::STOPPED - 1)
    }

    /// Ticks from the last token, or from the stop, to `count`.
    #[inline(always)]
    const fn distance(taken: u64, count: u64) -> u64 {
        Self::truncate(count.wrapping_sub(taken))
    }
}
