//! The waker slot: one registered waker that an interrupt may wake while a thread replaces it.
//!
//! The Dekker pattern below is named after T. J. Dekker's mutual exclusion (Dijkstra, "Cooperating
//! sequential processes", 1965): each side writes its own flag and then reads the other's.
//!
//! Roles: *registrars* put a waker in and take it out, in ordinary code; *notifiers* wake it, also
//! in interrupts. One word of state:
//!
//! ```text
//!    31                8 7    3    2       1       0
//!   [ notifiers inside  | zero | WRITING | ACTIVE | FILLED ]
//! ```
//!
//! 1. A notifier adds itself to the count, and checks the flags that its addition returned. If they
//!    were ACTIVE and not WRITING, it wakes through a shared reference; else it touches nothing.
//!    Then it subtracts itself. Two read-modify-writes, no loop; it never drops a waker.
//! 2. A registrar changes the slot only between setting WRITING and clearing it, both by
//!    read-modify-writes, so there is at most one at a time.
//! 3. A registrar sets WRITING only from a state in which no thread reads the slot: empty, or
//!    filled with no notifier inside. Later notifiers find WRITING, or not ACTIVE, and by rule 1 do
//!    not touch the slot.
//! 4. `take` clears ACTIVE. If a notifier is inside, `take` leaves the waker where it is, FILLED
//!    and not ACTIVE: a later registrar, or the drop of the slot, drops it.
//! 5. Wakers are dropped after WRITING is cleared: their drop is user code.
//!
//! Why no wake-up is lost (the Dekker pattern): `put` makes the waker ACTIVE by a
//! read-modify-write, and its caller then fences and checks for ticks itself; the notifier counts
//! its tick, fences, and then comes here. One of the two sees the other.
//!
//! Why it cannot hang: no thread waits. A registrar's loop repeats only if the word changed, that
//! is, if a notifier entered or left; a registrar that may not proceed returns an error.
#![expect(unsafe_code, reason = "the waker is read and written under the protocol above")]

use core::task::Waker;

use clockjack_sync::primitive::{
    UnsafeCell,
    atomic::{AtomicU32, Ordering},
};

use crate::driver::DriverError;

const FILLED: u32 = 1;
const ACTIVE: u32 = 2;
const WRITING: u32 = 4;
const NOTIFIER: u32 = 1 << 8;

#[derive(Debug)]
pub(crate) struct WakerSlot {
    state: AtomicU32,
    waker: UnsafeCell<Option<Waker>>,
}

// SAFETY: the cell is the only part that is not `Sync` by itself. By rules 1 to 3 one registrar
// writes it while no thread reads, and it is read through shared references otherwise; `Waker` is
// `Send` and `Sync`.
unsafe impl Sync for WakerSlot {}

impl WakerSlot {
    const_unless_loom! {
        pub(crate) fn new() -> Self {
            Self { state: AtomicU32::new(0), waker: UnsafeCell::new(None) }
        }
    }

    /// Registers `waker`. The caller then fences and checks for ticks that it may have missed.
    pub(crate) fn put(&self, waker: Waker) -> Result<(), DriverError> {
        // Relaxed: only a first guess for the exchange.
        let mut state = self.state.load(Ordering::Relaxed);
        loop {
            if state & (ACTIVE | WRITING) != 0 {
                return Err(DriverError::ALREADY_REGISTERED);
            }
            // Rule 3.
            if state & FILLED != 0 && state >= NOTIFIER {
                return Err(DriverError::BUSY);
            }
            match self.begin(state, state | WRITING) {
                Ok(()) => break,
                Err(now) => state = now,
            }
        }
        let former = self.waker.with_mut(|slot| {
            // SAFETY: valid and aligned, as it points into `self`; no other thread accesses it, by
            // rule 3.
            unsafe { slot.replace(Some(waker)) }
        });
        // FILLED may have been set before (rule 4) and is not changed by notifiers. Release pairs
        // with the acquire of notifiers: they see the waker.
        let change = if state & FILLED == 0 { FILLED } else { 0 } | ACTIVE | WRITING;
        self.state.fetch_xor(change, Ordering::AcqRel);
        drop(former);
        Ok(())
    }

    /// Unregisters, and drops the waker unless a notifier is inside (rule 4).
    pub(crate) fn take(&self) {
        // Relaxed: only a first guess for the exchange.
        let mut state = self.state.load(Ordering::Relaxed);
        let former = loop {
            if state & WRITING != 0 || state & FILLED == 0 {
                // Empty; or another registrar is writing, whose call then counts as the later one.
                return;
            }
            if state >= NOTIFIER {
                match self.begin(state, state & !ACTIVE) {
                    Ok(()) => return,
                    Err(now) => state = now,
                }
                continue;
            }
            match self.begin(state, state & !ACTIVE | WRITING) {
                Ok(()) => {
                    let former = self.waker.with_mut(|slot| {
                        // SAFETY: valid and aligned, as it points into `self`; no other thread
                        // accesses it, by rule 3.
                        unsafe { slot.replace(None) }
                    });
                    break former;
                }
                Err(now) => state = now,
            }
        };
        // Release pairs with the acquire of the next registrar.
        self.state.fetch_xor(FILLED | WRITING, Ordering::AcqRel);
        drop(former);
    }

    /// Wakes the registered waker. From interrupts too (rule 1).
    pub(crate) fn wake(&self) {
        /// Subtracts the notifier from the count, also if the waker panics.
        struct Inside<'s>(&'s AtomicU32);
        impl Drop for Inside<'_> {
            fn drop(&mut self) {
                // Release pairs with the acquire of the registrar that finds no notifier inside:
                // this notifier does not read the waker any more.
                self.0.fetch_sub(NOTIFIER, Ordering::Release);
            }
        }
        // Acquire pairs with the release of `put`: the waker is visible.
        let found = self.state.fetch_add(NOTIFIER, Ordering::Acquire);
        let _inside = Inside(&self.state);
        if found & (ACTIVE | WRITING) != ACTIVE {
            return;
        }
        self.waker.with(|slot| {
            // SAFETY: valid and aligned, as it points into `self`; no thread writes it while this
            // notifier is counted, by rule 3.
            if let Some(waker) = unsafe { &*slot } {
                waker.wake_by_ref();
            }
        });
    }

    /// Acquire pairs with the release of earlier notifiers and registrars; release with the acquire
    /// of the next one.
    fn begin(&self, from: u32, to: u32) -> Result<(), u32> {
        self.state.compare_exchange(from, to, Ordering::AcqRel, Ordering::Relaxed).map(|_| ())
    }
}
