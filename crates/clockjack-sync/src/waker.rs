//! An atomic waker: one waker that any thread may wake while its task replaces it.
//!
//! The algorithm follows `AtomicWaker` of the crate `futures`: registering and waking meet in one
//! atomic word.
//!
//! # Protocol
//!
//! Roles: the *registrar*, a task that polls and wants to be woken, and *notifiers*, any number, in
//! any context. One word and a cell:
//!
//! ```text
//!      1        0
//!   [ WAKING | REGISTERING ]
//!
//!   0 ── register ──► REGISTERING ── unlock ──► 0      a wake meanwhile sets WAKING too
//!   0 ── wake, take ──► WAKING ── unlock ──► 0
//! ```
//!
//! 1. A registrar owns the cell from its exchange of 0 for REGISTERING to its swap to 0. In between
//!    it compares and moves wakers, and calls none of their code: it clones before, drops after.
//! 2. A notifier sets WAKING. If the word was 0, the notifier owns the cell until its swap to 0,
//!    and takes the waker out. If the word was not 0, the notifier returns at once: by rules 3 and
//!    4 another thread acts for it.
//! 3. A registrar unlocks by a swap that acquires what such a notifier released, and then checks
//!    the condition that it waits for: that check sees what the notifier did.
//! 4. A notifier that owns the cell unlocks the same way, and then wakes the task: the woken task
//!    sees what the second notifier did.
//! 5. A registrar that finds the cell owned, by a notifier or by another registrar, does not wait:
//!    it wakes its own waker, so that its task is polled and registers again.
//!
//! *Why no wake-up is lost*: a notifier first makes the condition true and then comes here; a
//! registrar first registers and then checks the condition. Both change the one word by
//! read-modify-writes. If the notifier's comes before the registrar's last one, the registrar's
//! check finds the condition true. If it comes later, the notifier finds the waker.
//!
//! *Why no thread hangs*: there is no loop. A waker is woken and dropped while its thread does not
//! own the cell, so the waker's code may call this module again.
#![expect(unsafe_code, reason = "the waker is moved under the protocol above")]

use core::{fmt, mem, task::Waker};

use crate::{
    const_unless_loom, mutant,
    primitive::{
        UnsafeCell,
        atomic::{
            AtomicU32,
            Ordering::{AcqRel, Acquire, Relaxed, Release},
        },
    },
};

/// A registrar is at the cell.
const REGISTERING: u32 = 1;
/// A notifier is at the cell, or came while a registrar was.
const WAKING: u32 = 2;

/// Room for one waker; see the [module](self).
///
/// # Examples
///
/// ```
/// use clockjack_sync::waker::AtomicWaker;
/// use core::task::Waker;
///
/// let slot = AtomicWaker::new();
/// slot.register(Waker::noop());
/// // Here the task looks once more at what it waits for.
/// assert!(slot.take().is_some());
/// assert!(slot.take().is_none());
/// ```
pub struct AtomicWaker {
    state: AtomicU32,
    waker: UnsafeCell<Option<Waker>>,
}

// SAFETY: the cell is the only part that is not `Sync` by itself. By rules 1 and 2 one thread at a
// time has it, and the swap that ends that happens before the next one's beginning. `Waker` is
// `Send`.
unsafe impl Sync for AtomicWaker {}

impl AtomicWaker {
    const_unless_loom! {
        /// No waker.
        #[must_use]
        pub const fn new() -> Self {
            Self { state: AtomicU32::new(0), waker: UnsafeCell::new(None) }
        }
    }

    /// Makes `waker` the one that is woken next, instead of an earlier one. The caller looks at
    /// what it waits for *after* this, and returns pending only if that is still not so.
    ///
    /// Of two calls at the same time one may wake its waker instead; so does a call at the same
    /// time as a [`wake`](Self::wake).
    pub fn register(&self, waker: &Waker) {
        if !self.try_lock() {
            return self.wake_now(waker);
        }
        let is_known =
            self.with_locked(|slot| slot.as_ref().is_some_and(|old| old.will_wake(waker)));
        self.unlock();
        if is_known {
            return;
        }
        // Rule 1: cloned while nothing is held. A notifier that comes now finds the old waker, or
        // none; the exchange below comes later and shows what it did before.
        let mut other = Some(waker.clone());
        if !self.try_lock() {
            return self.wake_now(waker);
        }
        self.with_locked(|slot| mem::swap(slot, &mut other));
        self.unlock();
    }

    /// Wakes the waker that was registered, if there is one, and forgets it.
    pub fn wake(&self) {
        if let Some(waker) = self.take() {
            waker.wake();
        }
    }

    /// Takes the waker out, for the caller to wake it where foreign code may run.
    ///
    /// `None` if there is none, or if another thread is at it, which then wakes or looks in place
    /// of this one: in either case the caller has nothing to do.
    #[must_use = "whoever takes a waker out owes the wake"]
    pub fn take(&self) -> Option<Waker> {
        // Release: what this notifier did before is seen by the registrar and by whoever wakes for
        // it. Acquire: pairs with the swap of whoever was at the cell before.
        let before = self.state.fetch_or(WAKING, AcqRel);
        if before != 0 {
            return None;
        }
        let waker = self.with_locked(Option::take);
        // Release: pairs with the next one at the cell. Acquire: pairs with notifiers that found
        // WAKING and left, for whom this one wakes (rule 4).
        self.state.swap(0, AcqRel);
        waker
    }

    /// Begins a registration; `false` if somebody is at the cell.
    fn try_lock(&self) -> bool {
        let order = if mutant!("waker-register-blindly") { Relaxed } else { Acquire };
        // Acquire: pairs with the swap of the last one at the cell, so that the waker is there, and
        // the registrar's next look finds what a notifier did. On failure it pairs with a
        // notifier's WAKING, for the same look.
        self.state.compare_exchange(0, REGISTERING, order, Acquire).is_ok()
    }

    /// Ends a registration.
    fn unlock(&self) {
        let order = if mutant!("waker-register-publishes-only") { Release } else { AcqRel };
        // Release: pairs with the next one at the cell, who sees the waker. Acquire: pairs with the
        // notifiers that came meanwhile and left (rule 3).
        self.state.swap(0, order);
    }

    /// Rule 5.
    #[cold]
    fn wake_now(&self, waker: &Waker) {
        if !mutant!("waker-meets-in-silence") {
            waker.wake_by_ref();
        }
    }

    /// Gives the cell to whoever holds it.
    fn with_locked<R>(&self, f: impl FnOnce(&mut Option<Waker>) -> R) -> R {
        self.waker.with_mut(|slot| {
            // SAFETY: the pointer is valid and aligned, as it points into `self`. The callers stand
            // between their beginning and their swap (rules 1 and 2), so nobody else uses it.
            f(unsafe { &mut *slot })
        })
    }
}

impl Default for AtomicWaker {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for AtomicWaker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Relaxed: for people.
        let state = self.state.load(Relaxed);
        f.debug_struct("AtomicWaker").field("state", &state).finish_non_exhaustive()
    }
}
