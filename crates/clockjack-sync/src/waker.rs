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
    const_unless_loom,
    primitive::{
        UnsafeCell,
        atomic::{
            AtomicU32,
            Ordering::{AcqRel, Acquire, Relaxed},
        },
    },
};

/// A registrar owns the cell.
const REGISTERING: u32 = 1;
/// A notifier owns the cell, or came while another thread owned it.
const WAKING: u32 = 2;

/// A slot for one waker; see the [module](self).
///
/// # Examples
///
/// ```
/// use clockjack_sync::waker::AtomicWaker;
/// use core::task::Waker;
///
/// let slot = AtomicWaker::new();
/// slot.register(Waker::noop());
/// // Here the task checks its condition once more.
/// assert!(slot.take().is_some());
/// assert!(slot.take().is_none());
/// ```
pub struct AtomicWaker {
    state: AtomicU32,
    waker: UnsafeCell<Option<Waker>>,
}

// SAFETY: the cell is the only part that is not `Sync` by itself. By rules 1 and 2 one thread at a
// time owns it, and the swap by which an owner unlocks happens before the next owner's exchange.
// `Waker` is `Send`.
unsafe impl Sync for AtomicWaker {}

impl AtomicWaker {
    const_unless_loom! {
        /// No waker.
        #[must_use]
        pub const fn new() -> Self {
            Self { state: AtomicU32::new(0), waker: UnsafeCell::new(None) }
        }
    }

    /// Makes `waker` the one that is woken next, instead of an earlier one. The caller checks its
    /// condition *after* this, and returns pending only if the condition is still false.
    ///
    /// Of two concurrent calls one may wake its waker instead of registering it; so may a call that
    /// is concurrent with a [`wake`](Self::wake).
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
        // Rule 1: cloned while this thread does not own the cell. A notifier that comes now finds
        // the old waker, or none; the exchange below comes later and acquires what the notifier
        // did.
        let mut other = Some(waker.clone());
        if !self.try_lock() {
            return self.wake_now(waker);
        }
        self.with_locked(|slot| mem::swap(slot, &mut other));
        self.unlock();
    }

    /// Wakes the registered waker, if there is one, and removes it.
    pub fn wake(&self) {
        if let Some(waker) = self.take() {
            waker.wake();
        }
    }

    /// Takes the waker out, for the caller to wake it where user code may run.
    ///
    /// `None` if there is none, or if another thread owns the cell, which then wakes the task or
    /// checks the condition in place of this one: in either case the caller has nothing to do.
    #[must_use = "the caller has to wake the waker that it takes out"]
    pub fn take(&self) -> Option<Waker> {
        // Release: the registrar, and the notifier that wakes for this one, see what this notifier
        // did before. Acquire: pairs with the swap of the previous owner of the cell.
        let before = self.state.fetch_or(WAKING, AcqRel);
        if before != 0 {
            return None;
        }
        let waker = self.with_locked(Option::take);
        // Release: pairs with the next owner of the cell. Acquire: pairs with notifiers that found
        // WAKING and returned, for which this one wakes (rule 4).
        self.state.swap(0, AcqRel);
        waker
    }

    /// Begins a registration; `false` if another thread owns the cell.
    fn try_lock(&self) -> bool {
        // Acquire: pairs with the swap of the previous owner, so that the waker is visible, and the
        // registrar's next check sees what a notifier did. On failure it pairs with a notifier's
        // WAKING, for the same check.
        self.state.compare_exchange(0, REGISTERING, Acquire, Acquire).is_ok()
    }

    /// Ends a registration.
    fn unlock(&self) {
        // Release: pairs with the next owner of the cell, which sees the waker. Acquire: pairs with
        // the notifiers that came meanwhile and returned (rule 3).
        self.state.swap(0, AcqRel);
    }

    /// Rule 5.
    #[cold]
    fn wake_now(&self, waker: &Waker) {
        waker.wake_by_ref();
    }

    /// Calls `f` with the contents of the cell, which the caller owns.
    fn with_locked<R>(&self, f: impl FnOnce(&mut Option<Waker>) -> R) -> R {
        self.waker.with_mut(|slot| {
            // SAFETY: the pointer is valid and aligned, as it points into `self`. The callers are
            // between their exchange and their swap (rules 1 and 2), so no other thread uses it.
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
        // Relaxed: only for debug output.
        let state = self.state.load(Relaxed);
        f.debug_struct("AtomicWaker").field("state", &state).finish_non_exhaustive()
    }
}
