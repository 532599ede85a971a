//! Where one thread sleeps until it is called or a deadline passes.
//!
//! # What it is
//!
//! A token, as with std's `park`: [`unpark`](RawParker::unpark) leaves it, `park` takes it, and
//! sleeps only as long as there is none. Many calls before one `park` are one token. Unlike std's,
//! a park has an *absolute* deadline and says why it ended, and never ends for no reason.
//!
//! The protocol is here, once. What differs by system is how to sleep on a word: `Sleep` has a
//! twin on a futex (Linux) and one on a lock and a condition variable (everywhere, and under loom).
//!
//! # Protocol
//!
//! Roles: the *owner*, one thread, which parks; *callers*, any number, which unpark.
//!
//! The word:
//!
//! ```text
//!            park finds it: Notified
//!         ┌───────────────────────────┐
//!         ▼         unpark            │        unpark
//!       EMPTY ─────────────────────▶ TOKEN ◀─────────────┐
//!        │ ▲                          ▲ │ unpark         │
//!   park │ │ time-out                 └─┘                │
//!        ▼ │                                             │
//!       ASLEEP ──────────────────────────────────────────┘ and the caller wakes the owner
//! ```
//!
//! 1. Only the owner makes the word EMPTY or ASLEEP, only callers make it TOKEN. Every change is a
//!    read-modify-write, so the changes of one word have one order, which all agree on.
//! 2. A caller swaps TOKEN in, with Release. It wakes the owner if, and only if, it swapped ASLEEP
//!    out: of many callers that is one.
//! 3. The owner compare-exchanges EMPTY to ASLEEP. If that fails then the token is there: it swaps
//!    EMPTY in, with Acquire, and does not sleep.
//! 4. The owner sleeps only *while the word is ASLEEP*, and looking and falling asleep are one step
//!    for whoever wakes: the kernel looks under the lock of the futex's queue, the portable twin
//!    under its own lock, which the waker takes before it rings.
//! 5. Awake for whatever reason, a signal or none, the owner exchanges TOKEN for EMPTY, with
//!    Acquire. If there is no token then it sleeps again, until the same absolute deadline.
//! 6. After the deadline the owner swaps EMPTY in, with Acquire. A token that came meanwhile is
//!    taken by this, and the park was not in vain: it is Notified.
//!
//! *What is seen*: all that a caller wrote before an unpark, after the park that took its token.
//! Later callers' swaps continue the release sequence of earlier ones, so this holds for all calls
//! that were one token.
//!
//! *Why nobody hangs*: a caller's swap comes before the owner's exchange (rule 3) in the order of
//! the word, then the exchange fails and the owner does not sleep; or after it, then the caller
//! sees ASLEEP and wakes, and by rule 4 this cannot fall between the look and the sleep. No fence
//! is needed, since there is one word. A caller waits for nobody, but for the portable twin's lock,
//! under which the owner does nothing but look.
//!
//! *What it does not do*: a caller that must first find out *whether* somebody sleeps, to save the
//! call, has two words, and needs the fences of its own protocol.

use core::fmt;

use clockjack_sync::{
    mutant,
    prim::atomic::{
        AtomicU32,
        Ordering::{Acquire, Relaxed, Release},
    },
};

pub use crate::Parker;
use crate::clock::OsInstant;

/// The owner is awake and nobody called.
const EMPTY: u32 = 0;
/// Somebody called.
const TOKEN: u32 = 1;
/// The owner sleeps or is about to.
const ASLEEP: u32 = 2;

/// Why a park ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Parked {
    /// A token was there or came; it is taken.
    Notified,
    /// The deadline passed and there was no token.
    TimedOut,
}

/// How to sleep on a word: what a system has to give.
#[doc(hidden)]
pub trait Sleep: Default {
    /// Sleeps while `word` is `expected` and `until` has not come. May wake for no reason.
    ///
    /// # For implementers
    ///
    /// Comparing and falling asleep MUST be one step for [`wake`](Self::wake), and
    /// [`Slept::TimedOut`] MUST NOT come before `until`.
    fn sleep(&self, word: &AtomicU32, expected: u32, until: Option<OsInstant>) -> Slept;

    /// Wakes the one that sleeps on `word`, which was changed before.
    fn wake(&self, word: &AtomicU32);
}

/// How a sleep ended.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Slept {
    /// Woken, not asleep at all, or for no reason: look at the word.
    Awake,
    /// The deadline passed.
    TimedOut,
}

/// A parker over one way to sleep; [`Parker`] is the one of this system. The [module](self) has
/// the rules.
///
/// # Examples
///
/// ```
/// use clockjack_rt::{OsInstant, Parked, Parker};
///
/// let parker = Parker::new();
/// std::thread::scope(|scope| {
///     scope.spawn(|| parker.unpark());
///     assert_eq!(parker.park(None), Parked::Notified);
/// });
/// assert_eq!(parker.park(Some(OsInstant::now())), Parked::TimedOut);
/// ```
pub struct RawParker<S> {
    word: AtomicU32,
    sleep: S,
}

impl<S: Sleep> RawParker<S> {
    /// A parker without a token.
    #[must_use]
    pub fn new() -> Self {
        Self { word: AtomicU32::new(EMPTY), sleep: S::default() }
    }

    /// Takes the token; sleeps while there is none and `until` has not come. `None` is for ever.
    ///
    /// A token comes first: it is taken also if the deadline is long past. A park never ends
    /// before its deadline without a token.
    ///
    /// # Panics
    ///
    /// If another thread parks here meanwhile and this is noticed: a parker has one owner.
    pub fn park(&self, until: Option<OsInstant>) -> Parked {
        // Rule 3. Relaxed: it publishes nothing, and what it finds is taken by the swap below.
        if let Err(found) = self.word.compare_exchange(EMPTY, ASLEEP, Relaxed, Relaxed) {
            assert_eq!(found, TOKEN, "two threads park at one parker");
            return self.take();
        }
        loop {
            match self.sleep.sleep(&self.word, ASLEEP, until) {
                // Rule 5. Acquire pairs with the release of the callers' swaps. Relaxed on failure:
                // nobody called, so there is nothing to see.
                Slept::Awake => {
                    let woken = self.word.compare_exchange(TOKEN, EMPTY, Acquire, Relaxed);
                    if woken.is_ok() {
                        return Parked::Notified;
                    }
                }
                Slept::TimedOut if mutant!("parker-timeout-drops-token") => {
                    self.word.swap(EMPTY, Acquire);
                    return Parked::TimedOut;
                }
                // Rule 6.
                Slept::TimedOut => return self.take(),
            }
        }
    }

    /// Leaves the token, and wakes the owner if it sleeps. One read-modify-write if it does not.
    pub fn unpark(&self) {
        let order = if mutant!("parker-relaxed-token") { Relaxed } else { Release };
        let found = if mutant!("parker-store-token") {
            let found = self.word.load(Relaxed);
            self.word.store(TOKEN, order);
            found
        } else {
            // Rule 2. Release pairs with the acquire by which the owner takes the token.
            self.word.swap(TOKEN, order)
        };
        if found == ASLEEP {
            self.sleep.wake(&self.word);
        }
    }

    /// Ends a park: the word is EMPTY, whatever it was.
    fn take(&self) -> Parked {
        // Rules 3 and 6. Acquire pairs with the release of the callers' swaps.
        match self.word.swap(EMPTY, Acquire) {
            TOKEN => Parked::Notified,
            _ => Parked::TimedOut,
        }
    }
}

impl<S: Sleep> Default for RawParker<S> {
    fn default() -> Self {
        Self::new()
    }
}

impl<S> fmt::Debug for RawParker<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Relaxed: a picture, by which nobody decides.
        let state = match self.word.load(Relaxed) {
            EMPTY => "empty",
            TOKEN => "token",
            _ => "asleep",
        };
        f.debug_struct("Parker").field("state", &state).finish_non_exhaustive()
    }
}
