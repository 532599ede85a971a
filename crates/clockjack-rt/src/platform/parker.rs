//! Lets one thread sleep until another thread unparks it or a deadline passes.
//!
//! # Overview
//!
//! A parker holds a token, like std's `thread::park`: [`unpark`](RawParker::unpark) stores the
//! token, `park` takes it, and sleeps only while there is none. Several unparks before one `park`
//! store one token. In contrast to std, a park has an *absolute* deadline, returns why it ended,
//! and never returns spuriously.
//!
//! The protocol is implemented once, here. Only the way to sleep on a word differs by system: the
//! trait `Sleep` has an implementation with a futex (Linux) and one with a mutex and a condition
//! variable (all other systems, and loom).
//!
//! # Protocol
//!
//! Roles: the *owner*, one thread, which parks; *callers*, any number of threads, which unpark.
//!
//! The state word:
//!
//! ```text
//!            park finds it: Notified
//!         ┌───────────────────────────┐
//!         ▼         unpark            │        unpark
//!       EMPTY ─────────────────────▶ TOKEN ◀─────────────┐
//!        │ ▲                          ▲ │ unpark         │
//!   park │ │ timeout                  └─┘                │
//!        ▼ │                                             │
//!       ASLEEP ──────────────────────────────────────────┘ and the caller wakes the owner
//! ```
//!
//! 1. Only the owner sets the word to EMPTY or ASLEEP, only callers set it to TOKEN. Every change
//!    is a read-modify-write, so all changes of the word have one modification order.
//! 2. A caller swaps in TOKEN, with Release. It wakes the owner if and only if it swapped out
//!    ASLEEP: of several callers, exactly one does.
//! 3. The owner compare-exchanges EMPTY to ASLEEP. If that fails, there is a token: the owner swaps
//!    in EMPTY, with Acquire, and does not sleep.
//! 4. The owner sleeps only *while the word is ASLEEP*. Comparing the word and falling asleep are
//!    one atomic step with respect to a waker: the kernel compares under the lock of the futex's
//!    queue; the portable implementation compares under its own mutex, which a waker takes before
//!    it notifies.
//! 5. After a wake-up for any reason (a wake, a signal, or none), the owner exchanges TOKEN for
//!    EMPTY, with Acquire. If there is no token, it sleeps again, until the same deadline.
//! 6. After the deadline the owner swaps in EMPTY, with Acquire. If a token arrived meanwhile, the
//!    swap takes it, and the park returns Notified.
//!
//! *Visibility*: after a park that took a token, the owner sees everything that the caller wrote
//! before its unpark. The swaps of later callers continue the release sequence of earlier ones, so
//! this holds for all unparks that were merged into one token.
//!
//! *Why no wake-up is lost*: in the modification order of the word, a caller's swap is either
//! before the owner's exchange of rule 3, and then the exchange fails and the owner does not
//! sleep; or after it, and then the caller sees ASLEEP and wakes the owner, and by rule 4 this wake
//! cannot fall between the owner's comparison and its sleep. There is only one word, so no fence is
//! needed. A caller never waits, except for the mutex of the portable implementation, under which
//! the owner only compares.
//!
//! *Out of scope*: a caller that first checks *whether* a thread sleeps, to save the unpark, uses
//! two words, and needs the fences of its own protocol.

use core::fmt;

use clockjack_sync::primitive::atomic::{
    AtomicU32,
    Ordering::{Acquire, Relaxed, Release},
};

pub use crate::Parker;
use crate::clock::OsInstant;

/// The owner is awake and there is no token.
const EMPTY: u32 = 0;
/// There is a token.
const TOKEN: u32 = 1;
/// The owner sleeps or is about to sleep.
const ASLEEP: u32 = 2;

/// Why a park ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Parked {
    /// There was a token, or one arrived; the park has taken it.
    Notified,
    /// The deadline passed and there was no token.
    TimedOut,
}

/// How to sleep on a word: the part that differs by system.
#[doc(hidden)]
pub trait Sleep: Default {
    /// Sleeps while `word` is `expected` and `until` has not passed. May wake spuriously.
    ///
    /// # For implementers
    ///
    /// Comparing and falling asleep MUST be one atomic step with respect to [`wake`](Self::wake),
    /// and [`Slept::TimedOut`] MUST NOT be returned before `until`.
    fn sleep(&self, word: &AtomicU32, expected: u32, until: Option<OsInstant>) -> Slept;

    /// Wakes the thread that sleeps on `word`; the caller has changed the word before.
    fn wake(&self, word: &AtomicU32);
}

/// How a sleep ended.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Slept {
    /// Woken, not asleep at all, or a spurious wake-up: check the word.
    Awake,
    /// The deadline passed.
    TimedOut,
}

/// A parker with one implementation of sleeping; [`Parker`] is the one for this system. The
/// [module](self) has the protocol.
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
    /// Creates a parker without a token.
    #[must_use]
    pub fn new() -> Self {
        Self { word: AtomicU32::new(EMPTY), sleep: S::default() }
    }

    /// Takes the token; sleeps while there is none and `until` has not passed. `None` means no
    /// deadline.
    ///
    /// The token has precedence: it is taken even if the deadline has passed long ago. Without a
    /// token, a park never returns before its deadline.
    ///
    /// # Panics
    ///
    /// If another thread parks here at the same time and this is noticed: a parker has one owner.
    pub fn park(&self, until: Option<OsInstant>) -> Parked {
        // Rule 3. Relaxed: the exchange publishes nothing, and the swap below takes the token.
        if let Err(found) = self.word.compare_exchange(EMPTY, ASLEEP, Relaxed, Relaxed) {
            assert_eq!(found, TOKEN, "two threads park on the same parker");
            return self.take();
        }
        loop {
            match self.sleep.sleep(&self.word, ASLEEP, until) {
                // Rule 5. Acquire pairs with the release of the callers' swaps. Relaxed on failure:
                // there is no token, so there is nothing to see.
                Slept::Awake => {
                    let woken = self.word.compare_exchange(TOKEN, EMPTY, Acquire, Relaxed);
                    if woken.is_ok() {
                        return Parked::Notified;
                    }
                }
                // Rule 6.
                Slept::TimedOut => return self.take(),
            }
        }
    }

    /// Stores the token, and wakes the owner if it sleeps. Otherwise it costs one
    /// read-modify-write.
    pub fn unpark(&self) {
        // Rule 2. Release pairs with the acquire by which the owner takes the token.
        let found = self.word.swap(TOKEN, Release);
        if found == ASLEEP {
            self.sleep.wake(&self.word);
        }
    }

    /// Finishes a park: sets the word to EMPTY and returns whether there was a token.
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
        // Relaxed: a snapshot for humans, on which nothing depends.
        let state = match self.word.load(Relaxed) {
            EMPTY => "empty",
            TOKEN => "token",
            _ => "asleep",
        };
        f.debug_struct("Parker").field("state", &state).finish_non_exhaustive()
    }
}
